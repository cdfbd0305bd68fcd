//! The kinds of link headers.

/// The header at the start of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Link {
    /// An Ethernet header.
    Ethernet,
    /// An IPv4 or IPv6 header.
    RawIp,
    /// A Linux cooked header, version 1 (SLL).
    Cooked,
    /// A Linux cooked header, version 2 (SLL2).
    Cooked2,
}
