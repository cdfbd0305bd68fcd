//! Fields and packets as text, for traces and comparisons.

use crate::field::{Field, Header};
use crate::layout::Layout;
use crate::packet::Packet;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A field's value as people write it: addresses in their notation, type and flag bytes in
/// hexadecimal, the rest in decimal.
#[must_use]
pub fn format_field(field: Field, value: u128) -> String {
    use Field::*;
    match field {
        EthDst | EthSrc | ArpSha | ArpTha => mac(value),
        IpSrc | IpDst | ArpSpa | ArpTpa | QuotedIpSrc | QuotedIpDst => ip4(value),
        Ip6Src | Ip6Dst | QuotedIp6Src | QuotedIp6Dst => Ipv6Addr::from(value).to_string(),
        InetSrc | InetDst | QuotedInetSrc | QuotedInetDst if value >> 32 == 0 => ip4(value),
        InetSrc | InetDst | QuotedInetSrc | QuotedInetDst => Ipv6Addr::from(value).to_string(),
        EthType | VlanTpid | GreProto | IpChecksum | L4Checksum => format!("{value:#06x}"),
        IpTos | Ip6Tc => format!("{value:#04x}"),
        IcmpRest | Icmp6Rest | AhSpi | EspSpi => format!("{value:#010x}"),
        TcpFlags => flags(value),
        _ => value.to_string(),
    }
}

fn ip4(value: u128) -> String {
    let low = u32::try_from(value & u128::from(u32::MAX)).unwrap_or(0);
    Ipv4Addr::from(low).to_string()
}

fn mac(value: u128) -> String {
    let bytes = value.to_be_bytes();
    let parts: Vec<_> = bytes[10..].iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}

fn flags(value: u128) -> String {
    const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
    let set: Vec<_> = NAMES
        .iter()
        .enumerate()
        .filter(|(bit, _)| value >> bit & 1 == 1)
        .map(|(_, name)| *name)
        .collect();
    if set.is_empty() { "none".to_owned() } else { set.join(",") }
}

impl Packet {
    /// The packet in one line, such as `10.0.0.1:1234 > 8.8.8.8:53 UDP len 60`. `len` is that on
    /// the wire; what is wrong or missing comes at the end.
    #[must_use]
    pub fn summary(&self) -> String {
        let layout = self.parse();
        let mut line = self.subject(&layout);
        let _ = write!(line, " len {}", self.wire_len);
        if layout.is_fragment() {
            line.push_str(if layout.is_later_fragment() { " later-fragment" } else { " fragment" });
        }
        if self.data().len() < usize::try_from(self.wire_len).unwrap_or(usize::MAX) {
            let _ = write!(line, " captured {}", self.data().len());
        }
        if let Some(reason) = layout.malformed() {
            let _ = write!(line, " malformed {reason}");
        }
        line
    }

    /// Who talks to whom, and how.
    fn subject(&self, layout: &Layout) -> String {
        let text = |field: Field| {
            let value = self.get(layout, field);
            value.map_or_else(|| "?".to_owned(), |value| format_field(field, value))
        };
        let vlan = match layout.has(Header::Vlan) {
            true => format!("vlan {} ", text(Field::VlanId)),
            false => String::new(),
        };
        let rest = if layout.has(Header::Inet) {
            self.inet_subject(layout)
        } else if layout.has(Header::Arp) {
            let (spa, tpa) = (text(Field::ArpSpa), text(Field::ArpTpa));
            format!("{spa} > {tpa} ARP op {}", text(Field::ArpOp))
        } else if layout.has(Header::Mpls) {
            format!("MPLS label {} ttl {}", text(Field::MplsLabel), text(Field::MplsTtl))
        } else if layout.has(Header::Eth) {
            let (src, dst) = (text(Field::EthSrc), text(Field::EthDst));
            format!("{src} > {dst} type {}", text(Field::EthType))
        } else {
            "unrecognised".to_owned()
        };
        vlan + &rest
    }

    fn inet_subject(&self, layout: &Layout) -> String {
        let text = |field: Field| {
            let value = self.get(layout, field);
            value.map_or_else(|| "?".to_owned(), |value| format_field(field, value))
        };
        let version4 = layout.has(Header::Ip4);
        let (src, dst) = match version4 {
            true => (text(Field::IpSrc), text(Field::IpDst)),
            false => (text(Field::Ip6Src), text(Field::Ip6Dst)),
        };
        if layout.has(Header::L4) {
            let (sport, dport) = (text(Field::L4Sport), text(Field::L4Dport));
            let end = |address: String, port: String| match version4 {
                true => format!("{address}:{port}"),
                false => format!("[{address}]:{port}"),
            };
            let proto = match layout.has(Header::Tcp) {
                true => format!("TCP {}", text(Field::TcpFlags)),
                false if layout.has(Header::Vxlan) => format!("VXLAN {}", text(Field::VxlanVni)),
                false => "UDP".to_owned(),
            };
            return format!("{} > {} {proto}", end(src, sport), end(dst, dport));
        }
        let proto = if layout.has(Header::Icmp) {
            format!("ICMP type {} code {}", text(Field::IcmpType), text(Field::IcmpCode))
        } else if layout.has(Header::Icmp6) {
            format!("ICMPv6 type {} code {}", text(Field::Icmp6Type), text(Field::Icmp6Code))
        } else if layout.has(Header::Gre) {
            format!("GRE {}", text(Field::GreProto))
        } else if layout.has(Header::Esp) {
            format!("ESP spi {}", text(Field::EspSpi))
        } else {
            format!("proto {}", text(Field::InetProto))
        };
        format!("{src} > {dst} {proto}")
    }
}
