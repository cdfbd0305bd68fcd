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

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 header of protocol `proto` with a total length that no quote reaches.
    fn header(proto: u8, rest: &[u8]) -> Vec<u8> {
        let mut data = vec![0x45, 0, 0xff, 0xff, 0, 0, 0, 0, 64, proto];
        data.extend([0; 10]);
        data.extend(rest);
        data
    }

    fn look(data: &[u8]) -> Option<Quoted> {
        check(Window::new(data, data.len()), 4)
    }

    #[test]
    fn quote_is_not_bound_by_the_total_length() {
        let quoted = look(&header(proto::UDP, &[0, 1, 0, 2])).unwrap();
        assert!(quoted.ports && quoted.sum.is_none());
        let quoted = look(&header(proto::UDP, &[0, 1, 0, 2, 0, 8, 0, 0])).unwrap();
        assert_eq!(quoted.sum, Some(Sum { kind: SumKind::Udp, at: 26 }));
    }

    #[test]
    fn quote_of_another_version_is_none() {
        assert!(look(&[0x60; 60]).is_none());
        assert!(check(Window::new(&header(6, &[0; 20]), 40), 6).is_none());
    }

    #[test]
    fn authentication_header_in_a_quote_is_walked() {
        let ah = [proto::TCP, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 80, 0, 81];
        let quoted = look(&header(proto::AH, &ah)).unwrap();
        assert_eq!((quoted.proto, quoted.l4, quoted.ports), (proto::TCP, 32, true));
        let cut = look(&header(proto::AH, &ah[..10])).unwrap();
        assert_eq!((cut.proto, cut.l4, cut.ports), (proto::AH, 20, false));
    }
}
