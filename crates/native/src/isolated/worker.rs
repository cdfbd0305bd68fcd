//! The process of an isolated function: an instance that works for the process at the other end of
//! shared memory and of a socket.

use super::call::{Call, Op, Reply};
use super::message::{Answer, LARGE, Request, receive, send};
use super::news;
use crate::library::find;
use crate::local::Local;
use crate::stream::Decision;
use crate::sys::{ALONE, SPINS, Shared, Side, Waited, place as place_of};
use crate::verdict::Verdict;
use braid_packet::Packet;
use braid_packet::frame::{Frame, Pool};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// Limits what this process may do, in a phase of an isolated function's life.
pub type Confine = fn(Phase) -> Result<(), String>;

/// A phase of the life of an isolated function's process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Its library is about to be loaded, and its instance made.
    BeforeLoading,
    /// Its first packet is about to come.
    BeforePackets,
}

/// The room for a packet. Longer packets get memory of their own.
const FRAME: u32 = 4096;

/// Exit status: the process could not be confined.
const UNCONFINED: i32 = 70;
/// Exit status: the socket failed.
const UNREACHABLE: i32 = 71;

/// Works until the other end says that it is enough. Returns the exit status of the process.
pub(super) fn serve(memory: &Shared, socket: OwnedFd, confine: Confine) -> i32 {
    if let Err(why) = confine(Phase::BeforeLoading) {
        eprintln!("braid: an isolated function cannot be confined: {why}");
        return UNCONFINED;
    }
    let mut worker = Worker {
        memory,
        socket: UnixStream::from(socket),
        confine,
        instance: None,
        bytes: Vec::new(),
        pool: Pool::new(1, FRAME),
    };
    let mut done = 0;
    // Whether a call must run alone before this process goes on with the ones ahead of it.
    let mut waits = false;
    loop {
        let look = || match memory.turn().is_multiple_of(2) {
            false => Some(ALONE),
            true => (!waits && memory.given() != done).then(|| place_of(done)),
        };
        let next = look().map_or_else(
            || {
                // The other end may have gone to sleep since the last answer.
                memory.ring(Side::Worker);
                memory.wait(Side::Worker, SPINS, None, look)
            },
            Waited::Found,
        );
        let Waited::Found(place) = next else { continue };
        let reply = match worker.run(&Call::of(memory.call(place)), place) {
            Ok(Some(reply)) => reply,
            Ok(None) => return 0,
            Err(_) => return UNREACHABLE,
        };
        memory.set_reply(place, reply.words());
        if place == ALONE {
            waits = false;
            memory.pass(memory.turn(), Side::Worker);
        } else {
            (done, waits) = (done.wrapping_add(1), reply.waits());
            memory.answer(done);
            memory.ring_soon(Side::Worker);
        }
    }
}

struct Worker<'a> {
    memory: &'a Shared,
    socket: UnixStream,
    confine: Confine,
    instance: Option<Local>,
    /// Memory for the bytes of a long packet, or of what a connection brings.
    bytes: Vec<u8>,
    /// The frame of a packet.
    pool: Option<Pool>,
}

impl Worker<'_> {
    /// Runs the call in a place. `None` for the last one.
    fn run(&mut self, call: &Call, place: usize) -> io::Result<Option<Reply>> {
        let mut reply = Reply::default();
        match call.op {
            Op::End => return Ok(None),
            Op::Talk => self.talk(call.now)?,
            Op::GoOn => {}
            Op::Advance => {
                if let Some(instance) = &mut self.instance {
                    instance.advance(call.now);
                }
            }
            Op::Packet => self.packet(call, place, &mut reply),
            Op::Connection => self.connection(call, &mut reply),
        }
        if let Some(instance) = &self.instance {
            reply.wake = instance.wake();
            reply.has_outputs = instance.has_outputs();
        }
        Ok(Some(reply))
    }

    fn packet(&mut self, call: &Call, place: usize, reply: &mut Reply) {
        let frame = self.frame(place, call.length as usize);
        let Some(instance) = &mut self.instance else { return };
        let mut packet = Packet::in_frame(call.link, call.time_ns, frame, call.wire_len);
        packet.ingress = call.ingress;
        packet.backward = call.backward;
        packet.held = call.held;
        for (tag, value) in instance.tags().iter().zip(self.memory.tags(place)) {
            packet.tags.set(&tag.name, value);
        }
        reply.code = instance.packet(&mut packet, call.now).ok().map(Verdict::code);
        let bytes = packet.data();
        reply.length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        reply.fits = !call.gives_back || self.memory.put(place, bytes);
        if !reply.fits && place != ALONE {
            reply.fits = self.memory.put(ALONE, bytes);
            reply.is_long = reply.fits;
        }
        let values = instance.tags().iter().map(|tag| packet.tags.value(&tag.name));
        self.memory.set_tags(place, values);
    }

    /// A frame with the bytes in a place.
    fn frame(&mut self, place: usize, length: usize) -> Frame {
        if let Some(mut frame) = self.pool.as_mut().and_then(Pool::take)
            && let Some(room) = frame.room().get_mut(..length)
        {
            let length = self.memory.get(place, room);
            frame.extend(length);
            return frame;
        }
        self.memory.fetch(place, length, &mut self.bytes);
        Frame::of(&self.bytes)
    }

    fn connection(&mut self, call: &Call, reply: &mut Reply) {
        self.memory.fetch(ALONE, call.length as usize, &mut self.bytes);
        let Some(instance) = &mut self.instance else { return };
        let Some(news) = news::get(&self.bytes) else { return };
        reply.code = instance.connection(news, call.now).ok().map(Decision::code);
        reply.fits = true;
    }

    /// Answers a message.
    fn talk(&mut self, now: u64) -> io::Result<()> {
        let (request, bytes): (Request, _) = receive(&mut self.socket, LARGE)?;
        let mut saved = Vec::new();
        if let Some(instance) = &mut self.instance {
            instance.advance(now);
        }
        let answer = match (request, &mut self.instance) {
            (Request::Describe { library, function }, _) => {
                let found = find(&library, &function);
                let found = found.map(|found| (*found.description).clone());
                Answer::Description(Box::new(found))
            }
            (Request::Create { job, config }, None) => {
                let found = find(&job.library, &job.function).map_err(|why| why.to_string());
                let made = found
                    .and_then(|found| Local::of(&found, &job.node, config, job.part, job.checks))
                    .and_then(|made| (self.confine)(Phase::BeforePackets).map(|()| made));
                Answer::Done(made.map(|made| self.instance = Some(made)))
            }
            (_, None) => Answer::Done(Err("it has no instance".to_owned())),
            (Request::Create { .. }, Some(_)) => {
                Answer::Done(Err("it has an instance already".to_owned()))
            }
            (Request::Report, Some(instance)) => Answer::Report(instance.report()),
            (Request::Problems, Some(instance)) => Answer::Problems(instance.problems()),
            (Request::Observed, Some(instance)) => Answer::Observed(instance.observed()),
            (Request::TimersSkipped, Some(instance)) => Answer::Count(instance.timers_skipped()),
            (Request::Outputs, Some(instance)) => Answer::Outputs(instance.take_outputs()),
            (Request::Change { name, value }, Some(instance)) => {
                Answer::Done(instance.change(&name, value))
            }
            (Request::Save, Some(instance)) => {
                let found = instance.save();
                let is_saved = found.is_some();
                saved = found.unwrap_or_default();
                Answer::Saved(is_saved)
            }
            (Request::Restore, Some(instance)) => Answer::Done(instance.restore(&bytes)),
        };
        send(&mut self.socket, &answer, &saved)
    }
}
