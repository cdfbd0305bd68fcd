//! The way to an isolated function's process.

use super::ahead::{Coming, Expected, Known};
use super::call::{Call, Op, Reply};
use super::caller::{Caller, Lost, PATIENCE};
use super::grant::Grant;
use super::launcher::{self, Number};
use super::message::{Answer, Request, receive, send};
use crate::sys::{ALONE, Shared};
use braid_packet::Packet;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long calls may take for which no packet waits: loading a library, a new instance, a list of
/// its state.
const LONG_PATIENCE: Duration = Duration::from_secs(10);

/// A process, and the way to it. The process ends with this value.
pub(super) struct Link {
    pub(super) caller: Caller,
    /// The packets whose calls were handed over ahead.
    pub(super) expected: Expected,
    socket: UnixStream,
    number: Number,
}

impl Link {
    /// Starts a process.
    pub(super) fn new() -> io::Result<Self> {
        let (memory, file) = Shared::new()?;
        let (socket, end) = UnixStream::pair()?;
        let number = launcher::start(end.as_fd(), file.as_fd())?;
        Ok(Self { caller: Caller::new(memory), expected: Expected::default(), socket, number })
    }

    /// Hands the call of a packet over ahead. Returns false if it has to run alone.
    pub(super) fn hand_over(&mut self, grant: &Grant, coming: &Coming<'_>) -> bool {
        let Coming { packet, layout, backward, now } = *coming;
        let Some(place) = self.caller.place() else { return false };
        let call = Call { time_ns: now, backward, held: false, ..Call::of_packet(packet, now) };
        let memory = &self.caller.memory;
        let Some(call) = grant.put((packet, Some(layout)), call, memory, place) else {
            return false;
        };
        self.caller.give(&call);
        if self.expected.is_empty() {
            self.caller.wake();
        }
        self.expected.push_back(Known::of(packet, now));
        true
    }

    /// Lets the process run a packet, unless it has done so ahead, and takes back what it may have
    /// changed. Returns the process's answer.
    pub(super) fn run(
        &mut self,
        grant: &mut Grant,
        packet: &mut Packet,
        now: u64,
    ) -> Result<Reply, Lost> {
        let (place, reply) = match self.expected.pop_front() {
            Some(known) if known == Known::of(packet, now) => self.caller.take()?,
            Some(_) => return Err(Lost::Strays),
            None => {
                let call = Call::of_packet(packet, now);
                let put = grant.put((packet, None), call, &self.caller.memory, ALONE);
                (ALONE, self.caller.call(&put.ok_or(Lost::TooLong)?)?)
            }
        };
        if reply.fits {
            grant.take(packet, &reply, &self.caller.memory, place);
        }
        Ok(reply)
    }

    /// Sends a message with bytes behind it, and waits for the answer.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        bytes: &[u8],
        now: u64,
    ) -> Result<(Answer, Vec<u8>), Lost> {
        // The process waits until its outputs are taken, with further calls ahead of it.
        if self.caller.is_ahead() && !matches!(request, Request::Outputs) {
            return Err(Lost::Strays);
        }
        let patience = match request {
            Request::Save | Request::Outputs => PATIENCE,
            _ => LONG_PATIENCE,
        };
        self.caller.begin(&Call::new(Op::Talk, now));
        let mut socket = Timed { socket: &self.socket, until: Instant::now() + patience };
        let sent = send(&mut socket, request, bytes);
        let answer = sent.and_then(|()| receive(&mut socket, request.limits()));
        match answer {
            Ok(answer) => self.caller.finish(patience).map(|_| answer),
            Err(why) if is_late(&why) => Err(Lost::Late),
            // The launcher may not have noticed yet that the process has ended.
            Err(why) => match self.caller.finish(PATIENCE) {
                Err(Lost::Ended(how)) => Err(Lost::Ended(how)),
                _ => Err(Lost::Ended(format!("cannot be understood: {why}"))),
            },
        }
    }
}

/// A socket until a time, however slowly the other end reads or writes.
struct Timed<'a> {
    socket: &'a UnixStream,
    until: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(into)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_late(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Drop for Link {
    fn drop(&mut self) {
        // A process that waits for a call may end by itself.
        let is_idle = self.caller.is_idle();
        if is_idle {
            self.caller.begin(&Call::new(Op::End, 0));
        }
        launcher::end(self.number, !is_idle);
    }
}
