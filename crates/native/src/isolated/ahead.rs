//! Calls that are handed over ahead: those of packets that come to a function next, one behind the
//! other. The process works on them while Braid does other things.

use super::call::{Call, Op, Reply};
use super::caller::Lost;
use super::grant::Grant;
use super::link::Link;
use crate::sys::ALONE;
use braid_packet::{Layout, Packet};
use std::collections::VecDeque;

/// A packet that comes to a function next.
pub struct Coming<'a> {
    /// The packet, with the bytes and tags that it will have.
    pub packet: &'a Packet,
    /// Its layout.
    pub layout: &'a Layout,
    /// Whether it goes backward.
    pub backward: bool,
    /// The time at which it comes (ns).
    pub now: u64,
}

/// A packet as it was when its call was handed over: where its bytes are, how many, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Known {
    at: usize,
    length: usize,
    now: u64,
}

impl Known {
    fn of(packet: &Packet, now: u64) -> Self {
        Self { at: packet.data().as_ptr().addr(), length: packet.data().len(), now }
    }
}

/// The packets whose calls were handed over ahead, in order.
pub(super) type Ahead = VecDeque<Known>;

impl Link {
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
        if self.ahead.is_empty() {
            self.caller.wake();
        }
        self.ahead.push_back(Known::of(packet, now));
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
        let (place, reply) = match self.ahead.pop_front() {
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
}

impl Call {
    /// The call for a packet at a time (ns).
    fn of_packet(packet: &Packet, now: u64) -> Self {
        Self {
            time_ns: packet.time_ns,
            wire_len: packet.wire_len,
            ingress: packet.ingress,
            link: packet.link,
            backward: packet.backward,
            held: packet.held,
            ..Call::new(Op::Packet, now)
        }
    }
}
