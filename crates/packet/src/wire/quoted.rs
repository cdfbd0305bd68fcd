//! The packet that an ICMP or ICMPv6 error quotes, as far as the quote goes.

use super::{Window, icmp, ipsec, ipv4, ipv6, proto, tcp, udp};
use crate::layout::{Sum, SumKind};

/// What is in a quote. The IP header, IPv6 extension headers included, is whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quoted {
    /// 4 or 6.
    pub(crate) version: u8,
    /// Absolute offset of the IP header.
    pub(crate) ip: usize,
    /// Upper-layer protocol.
    pub(crate) proto: u8,
    /// Absolute offset of the address in the pseudo header.
    pub(crate) pseudo_dst: usize,
    /// Absolute offset behind the IP headers.
    pub(crate) l4: usize,
    /// Both ports of TCP or UDP are in the quote.
    pub(crate) ports: bool,
    /// It is an ICMP echo, and its identifier is in the quote.
    pub(crate) echo: bool,
    /// The transport checksum, where it is in the quote.
    pub(crate) sum: Option<Sum>,
}

/// Looks at a quote; `None` when its IP header is not whole or makes no sense.
pub(crate) fn check(window: Window<'_>, version: u8) -> Option<Quoted> {
    let (mut proto, later, pseudo_dst, mut rest);
    if version == 4 {
        let ip = ipv4::check_quoted(window).ok()?;
        (proto, later, pseudo_dst, rest) = (ip.proto, ip.fragment.later, ip.pseudo_dst, ip.rest);
        if proto == proto::AH
            && !later
            && let Ok((next, behind)) = ipsec::check_ah(rest)
        {
            (proto, rest) = (next, behind);
        }
    } else {
        let ip = ipv6::check_quoted(window).ok()?;
        (proto, later, pseudo_dst, rest) = (ip.proto, ip.fragment.later, ip.pseudo_dst, ip.rest);
    }
    let mut quoted = Quoted {
        version,
        ip: window.at(),
        proto,
        pseudo_dst,
        l4: rest.at(),
        ports: false,
        echo: false,
        sum: None,
    };
    if !later {
        quoted.transport(rest);
    }
    Some(quoted)
}

impl Quoted {
    fn transport(&mut self, rest: Window<'_>) {
        let bytes = rest.bytes();
        let (kind, offset) = match (self.version, self.proto) {
            (_, proto::TCP) => (SumKind::Tcp, tcp::CHECKSUM),
            (_, proto::UDP) => (SumKind::Udp, udp::CHECKSUM),
            (4, proto::ICMP) => (SumKind::Icmp, icmp::CHECKSUM),
            (6, proto::ICMP6) => (SumKind::Icmp6, icmp::CHECKSUM),
            _ => return,
        };
        self.sum = rest.captured16(offset).map(|at| Sum { kind, at });
        let Some(message) = bytes.first() else { return };
        match kind {
            SumKind::Tcp | SumKind::Udp => self.ports = bytes.len() >= 4,
            SumKind::Icmp => self.echo = icmp::is_echo(*message) && bytes.len() >= 6,
            SumKind::Icmp6 => self.echo = icmp::is_echo6(*message) && bytes.len() >= 6,
        }
    }
}
