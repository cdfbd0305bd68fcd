//! Calls that are handed over ahead: those of packets that come to a function next, one behind the
//! other. The process works on them while Braid does other things.

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
    pub(super) fn of(packet: &Packet, now: u64) -> Self {
        Self { at: packet.data().as_ptr().addr(), length: packet.data().len(), now }
    }
}

/// The packets whose calls were handed over ahead, in order.
pub(super) type Expected = VecDeque<Known>;
