//! What rules ask of the headers of packets.

use braid_intervals::IntervalSet;

/// A kind of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Segments of TCP.
    Tcp,
    /// Datagrams of UDP.
    Udp,
    /// ICMP and ICMPv6.
    Icmp,
    /// Packets of other protocols over IP.
    Other,
    /// Fragments of packets over IP, of any protocol. They are not put together.
    Fragment,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub(crate) const ALL: [Self; 5] =
        [Self::Tcp, Self::Udp, Self::Icmp, Self::Other, Self::Fragment];

    /// Whether packets of the kind have ports, and belong to a flow.
    #[must_use]
    pub fn has_flow(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp)
    }
}

/// A number in the headers of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Number {
    /// The flags of TCP. CWR has the highest of the 8 bits, and FIN the lowest one.
    Flags,
    /// The sequence number of TCP.
    Seq,
    /// The acknowledgement number of TCP.
    Ack,
    /// The window of TCP, not scaled.
    Window,
    /// The bytes that the packet carries, also where a capture has cut them.
    Length,
    /// The type of ICMP or ICMPv6.
    IcmpType,
    /// The code of ICMP or ICMPv6.
    IcmpCode,
    /// The identifier of an ICMP or ICMPv6 echo.
    IcmpId,
    /// The sequence number of such an echo.
    IcmpSeq,
    /// The time to live of IPv4, or the hop limit of IPv6.
    Ttl,
    /// The type of service of IPv4.
    Tos,
    /// The identification of IPv4.
    Id,
    /// The protocol over IP, behind the extension headers of IPv6.
    Protocol,
    /// 1 if source and destination have the same address, else 0.
    HasSameEnds,
    /// The flags of IPv4: the reserved one, don't fragment, and more fragments, which is the lowest
    /// of the 3 bits.
    FragmentBits,
    /// The offset of a fragment in units of 8 bytes, 0 for other packets of IPv4.
    FragmentOffset,
    /// 1 if the header of IPv4 has an option of this type, or any option, else 0.
    HasOption(Option<u8>),
}

impl Number {
    /// Its bits.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Seq | Self::Ack => 32,
            Self::Window | Self::Length | Self::IcmpId | Self::IcmpSeq | Self::Id => 16,
            Self::Flags | Self::IcmpType | Self::IcmpCode => 8,
            Self::Ttl | Self::Tos | Self::Protocol => 8,
            Self::FragmentOffset => 13,
            Self::FragmentBits => 3,
            Self::HasSameEnds | Self::HasOption(_) => 1,
        }
    }

    /// Whether packets of a kind may have the number.
    pub(crate) fn is_of(self, kind: Kind) -> bool {
        match self {
            Self::Flags | Self::Seq | Self::Ack | Self::Window => kind == Kind::Tcp,
            Self::IcmpType | Self::IcmpCode | Self::IcmpId | Self::IcmpSeq => kind == Kind::Icmp,
            Self::Length => kind != Kind::Fragment,
            Self::Ttl | Self::Tos | Self::Id | Self::Protocol | Self::HasSameEnds => true,
            Self::FragmentBits | Self::FragmentOffset | Self::HasOption(_) => true,
        }
    }
}

/// What a rule asks of the packets that it sees one by one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OfPackets {
    /// The kinds of packets.
    pub kinds: Vec<Kind>,
    /// The values of numbers that the rule is about. A packet without the number does not match.
    pub numbers: Vec<(Number, IntervalSet)>,
    /// The protocols of fragments that the rule is about. None for all.
    pub protocols: &'static [u8],
}
