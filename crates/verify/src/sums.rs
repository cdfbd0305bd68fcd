//! The checksums of a packet, by name.

/// A checksum of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sum {
    /// Of the IPv4 header.
    Ip,
    /// Of TCP, UDP, ICMP or ICMPv6.
    Transport,
    /// Of the quoted IPv4 header.
    QuotedIp,
    /// Of the quoted packet's transport header.
    QuotedTransport,
    /// Of GRE.
    Gre,
}

/// All checksums, with the names that reports print.
pub(crate) const SUMS: [(Sum, &str); 5] = [
    (Sum::Ip, "ip.checksum"),
    (Sum::Transport, "l4.checksum"),
    (Sum::QuotedIp, "quoted ip checksum"),
    (Sum::QuotedTransport, "quoted l4 checksum"),
    (Sum::Gre, "gre checksum"),
];
