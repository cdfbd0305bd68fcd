//! A function in Rust describes itself.

use super::abi::RawProfile;
use std::ffi::CStr;

/// What one flow number stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A 5-tuple in one direction.
    Flow,
    /// A 5-tuple in both directions.
    Biflow,
}

/// The treatment of a new flow when there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// The new flow gets no number.
    Refuse,
    /// The oldest flow ends.
    EvictOldest,
}

/// A function's description of itself.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The purpose of the function, in a line.
    pub about: &'static CStr,
    /// What one flow number stands for.
    pub scope: Scope,
    /// The treatment of a new flow when there is no room.
    pub full: Full,
    /// Time-out of a flow (ns); 0: never.
    pub idle_ns: u64,
    /// Reasons for drops, one per line.
    pub reasons: &'static CStr,
    /// Ports beside left and right, one per line.
    pub ports: &'static CStr,
    /// The declared action profile, if there is one.
    pub profile: Option<&'static ProfileInfo>,
    /// The types of the events that it publishes, such as `c"SCAN { src: ip4 }"`.
    pub events: &'static CStr,
    /// The tags that it reads or sets, such as `c"colour: u8"`.
    pub tags: &'static CStr,
    /// The most packets that it sends for each packet; at most 64.
    pub sends: u32,
    /// Whether it is a stream function: it gets what TCP connections bring, and no packets.
    pub stream: bool,
    /// What it keeps from packet to packet.
    pub keeps: Keeps,
}

/// What a function keeps from packet to packet. It says which packets need the same instance, if a
/// chain has several workers. A packet that a function of connections sends belongs to the
/// connection of the packet that made it do so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeps {
    /// Anything: all packets need one instance.
    Anything,
    /// Nothing that matters to later packets.
    Nothing,
    /// Something for each flow, in the [`Scope`] of the function. An ICMP error that quotes a
    /// packet may come to any instance.
    Flows,
    /// Something for each connection of TCP or UDP, in both directions. ICMP errors belong to the
    /// connection of the packet that they quote. For other packets, the function keeps nothing.
    Connections,
}

impl Info {
    /// A description with a purpose and defaults.
    #[must_use]
    pub const fn new(about: &'static CStr) -> Self {
        let (scope, full) = (Scope::Flow, Full::Refuse);
        let (reasons, ports, events, tags) = (c"", c"", c"", c"");
        let (idle_ns, profile, sends) = (0, None, 0);
        let (stream, keeps) = (false, Keeps::Anything);
        Self {
            about,
            scope,
            full,
            idle_ns,
            reasons,
            ports,
            profile,
            events,
            tags,
            sends,
            stream,
            keeps,
        }
    }
}

/// A declared action profile.
#[derive(Debug)]
pub struct ProfileInfo(pub(super) RawProfile);

impl ProfileInfo {
    /// A profile: the fields that the function reads and writes, by names separated by blanks, and
    /// its other actions (see the header).
    #[must_use]
    pub const fn new(reads: &'static CStr, writes: &'static CStr, may: u32) -> Self {
        let (reads, writes) = (reads.as_ptr(), writes.as_ptr());
        Self(RawProfile { reads, writes, may, reserved: 0 })
    }
}
