//! Where the headers of a packet are: one total, allocation-free parse.

mod fast;

use crate::field::Header;
use crate::malformed::Malformed;
use crate::packet::Link;
use crate::place::Base;
use crate::wire::ipv4::Fragment;
use crate::wire::quoted::Quoted;
use crate::wire::{
    Stop, Window, arp, cooked, ether_type, ethernet, gre, icmp, ipsec, ipv4, ipv6, mpls, proto,
    quoted, tcp, udp, vlan, vxlan,
};

/// Whose rules a transport checksum follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum SumKind {
    Tcp = 1,
    Udp = parts::SUM_UDP,
    Icmp = parts::SUM_ICMP,
    Icmp6 = 4,
}

/// A transport checksum that is captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sum {
    pub(crate) kind: SumKind,
    /// Absolute offset of the checksum field.
    pub(crate) at: usize,
}

impl Sum {
    /// Whether the IP addresses are covered, through a pseudo header.
    pub(crate) fn has_pseudo(self) -> bool {
        self.kind != SumKind::Icmp
    }

    /// Whether 0 stands for "no checksum", and 0xffff for a sum of 0.
    pub(crate) fn is_udp(self) -> bool {
        self.kind == SumKind::Udp
    }
}

/// Where a packet's headers are, and what is wrong with it. Offsets count from the packet's first
/// byte and mean something only for headers that are present.
///
/// A layout describes the packet as it was parsed. It stays right while fields are assigned,
/// except that writing `icmp.type`, `icmp6.type` or `udp.dport` may make `icmp.echo`, `quoted` or
/// `vxlan` present or absent: parse again to see that. Adding or removing a VLAN tag invalidates it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    present: u32,
    captured: u32,
    payload: u32,
    payload_end: u32,
    ip_end: u32,
    ether_type: u16,
    /// Offset of the field that holds the EtherType behind all VLAN tags (not behind SNAP).
    ether_type_at: u16,
    arp: u16,
    mpls: u16,
    ip: u16,
    pseudo_dst: u16,
    ah: u16,
    /// Behind the IP header, its extensions and AH.
    l4: u16,
    /// Of these, 0 means that there is none.
    sum_at: u16,
    mss: u16,
    wscale: u16,
    ts: u16,
    gre_key: u16,
    gre_sum: u16,
    sum: Option<SumKind>,
    proto: u8,
    fragment: Fragment,
    malformed: Option<Malformed>,
    plain: bool,
    quote: Quote,
}

/// What an ICMP error quotes; everything is 0 if it quotes nothing. (Behind 33 KB of extension
/// headers, the quoted packet's transport header may be out of reach of 16 bits.)
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Quote {
    ip: u32,
    l4: u32,
    pseudo_dst: u32,
    sum_at: u32,
    sum: Option<SumKind>,
    proto: u8,
}

/// Where the parts of a [`Layout`] are in its memory, in bytes, for code that is generated.
pub mod parts {
    use super::{Layout, Quote};
    use std::mem::offset_of;

    /// `Layout::presence` (u32).
    pub const PRESENT: usize = offset_of!(Layout, present);
    /// `Layout::payload_offset` (u32).
    pub const PAYLOAD: usize = offset_of!(Layout, payload);
    /// Where the payload ends on the wire (u32).
    pub const PAYLOAD_END: usize = offset_of!(Layout, payload_end);
    /// `eth.type` (u16).
    pub const ETHER_TYPE: usize = offset_of!(Layout, ether_type);
    /// `inet.proto` (u8).
    pub const PROTO: usize = offset_of!(Layout, proto);
    /// `pkt.fragment` (bool).
    pub const FRAGMENT: usize = offset_of!(Layout, fragment.any);
    /// `pkt.later_fragment` (bool).
    pub const LATER_FRAGMENT: usize = offset_of!(Layout, fragment.later);
    /// Offset of the destination address that the pseudo header has (u16).
    pub const PSEUDO_DST: usize = offset_of!(Layout, pseudo_dst);
    /// Offset of the transport checksum, 0 if none is captured (u16).
    pub const SUM_AT: usize = offset_of!(Layout, sum_at);
    /// Whose rules that checksum follows (u8).
    pub const SUM_KIND: usize = offset_of!(Layout, sum);
    /// The one of [`SUM_KIND`] where 0 means "none" and is written as 0xffff.
    pub const SUM_UDP: u8 = 2;
    /// The one of [`SUM_KIND`] without a pseudo header.
    pub const SUM_ICMP: u8 = 3;

    pub(crate) const ARP: usize = offset_of!(Layout, arp);
    pub(crate) const MPLS: usize = offset_of!(Layout, mpls);
    pub(crate) const IP: usize = offset_of!(Layout, ip);
    pub(crate) const AH: usize = offset_of!(Layout, ah);
    pub(crate) const L4: usize = offset_of!(Layout, l4);
    pub(crate) const MSS: usize = offset_of!(Layout, mss);
    pub(crate) const WSCALE: usize = offset_of!(Layout, wscale);
    pub(crate) const TS: usize = offset_of!(Layout, ts);
    pub(crate) const GRE_KEY: usize = offset_of!(Layout, gre_key);
    pub(crate) const QUOTED_IP: usize = offset_of!(Layout, quote) + offset_of!(Quote, ip);
    pub(crate) const QUOTED_L4: usize = offset_of!(Layout, quote) + offset_of!(Quote, l4);
}

/// An offset of a header in 16 bits. Headers begin within 33 KB, as far as that many bytes of
/// extension headers can push them.
fn short(offset: usize) -> u16 {
    u16::try_from(offset).unwrap_or(u16::MAX)
}

/// An offset in a packet, which has less than 2^32 bytes.
fn long(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// An offset of which 0 means that there is none.
fn found(offset: u16) -> Option<usize> {
    (offset != 0).then_some(usize::from(offset))
}

impl Layout {
    /// Parses a packet of `wire_len` bytes of which `data` was captured. Never fails: what cannot
    /// be recognised is payload, what contradicts itself makes the packet [malformed](Self::malformed).
    #[inline]
    #[must_use]
    pub fn parse(link: Link, data: &[u8], wire_len: u32) -> Layout {
        let mut layout = Layout::default();
        layout.parse_here(link, data, wire_len);
        layout
    }

    /// As [`Self::parse`], into this layout: one that is copied so soon after it was written takes longer to
    /// copy than to make.
    #[inline(always)]
    pub fn parse_here(&mut self, link: Link, data: &[u8], wire_len: u32) {
        let wire = usize::try_from(wire_len).unwrap_or(usize::MAX).max(data.len());
        if link != Link::Ethernet || fast::parse(self, data, wire).is_none() {
            *self = Self::parse_any(link, data, wire_len);
        }
    }

    /// Parses any packet.
    #[inline(never)]
    fn parse_any(link: Link, data: &[u8], wire_len: u32) -> Layout {
        let window = Window::new(data, usize::try_from(wire_len).unwrap_or(usize::MAX));
        let mut layout = Layout {
            present: 1 << Header::Pkt as u32,
            captured: long(data.len()),
            payload_end: long(window.end()),
            ..Layout::default()
        };
        if let Err(Stop::Bad(reason)) = layout.link(link, window) {
            layout.malformed = Some(reason);
        }
        Layout { plain: layout.has_plain_headers(), ..layout }
    }

    /// Whether a header is present: well-formed and captured as a whole (IPv6 with all of its
    /// extension headers). All of its fields can then be read.
    #[must_use]
    pub fn has(&self, header: Header) -> bool {
        self.present & (1 << header as u32) != 0
    }

    /// The headers that are present, as bits by [`Header`] number.
    #[must_use]
    pub fn presence(&self) -> u32 {
        self.present
    }

    /// Why the packet is malformed, if it is. Being cut by the capture is no reason.
    #[must_use]
    pub fn malformed(&self) -> Option<&'static str> {
        self.malformed.map(Malformed::name)
    }

    /// As [`Self::malformed`], typed.
    #[must_use]
    pub fn malformed_reason(&self) -> Option<Malformed> {
        self.malformed
    }

    /// Whether the capture lacks bytes of the payload.
    #[must_use]
    pub fn payload_truncated(&self) -> bool {
        self.payload_end > self.captured
    }

    /// Offset of the payload: what is behind the last recognised header. (The packet that an ICMP
    /// error quotes is payload.)
    #[must_use]
    pub fn payload_offset(&self) -> usize {
        self.payload as usize
    }

    /// Length of the payload in bytes on the wire, link padding excluded.
    #[must_use]
    pub fn payload_len(&self) -> usize {
        (self.payload_end - self.payload) as usize
    }

    /// Whether the packet is a fragment of an IP packet, the first included. An IPv6 packet with
    /// a fragment header but nothing missing (RFC 6946) is none.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.fragment.any
    }

    /// Whether the packet is a fragment other than the first.
    #[must_use]
    pub fn is_later_fragment(&self) -> bool {
        self.fragment.later
    }

    /// How many bytes were captured. All headers that are present lie in them.
    #[must_use]
    pub fn captured(&self) -> usize {
        self.captured as usize
    }

    pub(crate) fn payload_end(&self) -> usize {
        self.payload_end as usize
    }

    pub(crate) fn ether_type(&self) -> u16 {
        self.ether_type
    }

    pub(crate) fn ether_type_at(&self) -> usize {
        usize::from(self.ether_type_at)
    }

    pub(crate) fn ip(&self) -> usize {
        usize::from(self.ip)
    }

    pub(crate) fn ip_end(&self) -> usize {
        self.ip_end as usize
    }

    pub(crate) fn proto(&self) -> u8 {
        self.proto
    }

    pub(crate) fn pseudo_dst(&self) -> usize {
        usize::from(self.pseudo_dst)
    }

    pub(crate) fn l4(&self) -> usize {
        usize::from(self.l4)
    }

    pub(crate) fn sum(&self) -> Option<Sum> {
        Some(Sum { kind: self.sum?, at: usize::from(self.sum_at) })
    }

    pub(crate) fn gre_sum(&self) -> Option<usize> {
        found(self.gre_sum)
    }

    pub(crate) fn quoted(&self) -> Option<Quoted> {
        let quote = self.quote;
        self.has(Header::Quoted).then(|| Quoted {
            version: if self.has(Header::Quoted4) { 4 } else { 6 },
            ip: quote.ip as usize,
            proto: quote.proto,
            pseudo_dst: quote.pseudo_dst as usize,
            l4: quote.l4 as usize,
            ports: self.has(Header::QuotedL4),
            echo: self.has(Header::QuotedEcho),
            sum: quote.sum.map(|kind| Sum { kind, at: quote.sum_at as usize }),
        })
    }

    /// The offset that fields of this base count from.
    pub(crate) fn base(&self, base: Base) -> usize {
        let short = match base {
            Base::Packet => 0,
            Base::Arp => self.arp,
            Base::Mpls => self.mpls,
            Base::Ip => self.ip,
            Base::L4 => self.l4,
            Base::Ah => self.ah,
            Base::Mss => self.mss,
            Base::Wscale => self.wscale,
            Base::Ts => self.ts,
            Base::GreKey => self.gre_key,
            Base::QuotedIp => return self.quote.ip as usize,
            Base::QuotedL4 => return self.quote.l4 as usize,
        };
        usize::from(short)
    }

    pub(crate) fn add(&mut self, header: Header) {
        self.present |= 1 << header as u32;
    }

    /// What is behind a header that was recognised is payload until shown otherwise.
    fn behind(&mut self, rest: Window<'_>) {
        self.payload = long(rest.at());
        self.payload_end = long(rest.end());
    }

    fn link(&mut self, link: Link, window: Window<'_>) -> Result<(), Stop> {
        let (kind, rest) = match link {
            Link::Ethernet => return self.ethernet(window),
            Link::RawIp => return self.raw_ip(window),
            Link::Cooked => cooked::check(window)?,
            Link::Cooked2 => cooked::check2(window)?,
        };
        self.behind(rest);
        let (kind, rest) = self.tags(kind, rest, false)?;
        self.network(kind, rest)
    }

    fn ethernet(&mut self, window: Window<'_>) -> Result<(), Stop> {
        let (kind, rest) = ethernet::check(window)?;
        self.add(Header::Eth);
        self.behind(rest);
        (self.ether_type, self.ether_type_at) = (kind, short(ethernet::TYPE));
        let (kind, rest) = self.tags(kind, rest, true)?;
        let (kind, rest) = ethernet::length_or_type(kind, rest)?;
        self.ether_type = kind;
        self.behind(rest);
        match kind {
            ether_type::ARP => self.arp(rest),
            _ => self.network(kind, rest),
        }
    }

    /// Walks VLAN tags; behind Ethernet the first two are headers that models can name.
    fn tags<'a>(
        &mut self,
        mut kind: u16,
        mut rest: Window<'a>,
        named: bool,
    ) -> Result<(u16, Window<'a>), Stop> {
        let mut tags = 0;
        while vlan::is_tag(kind) {
            if tags == vlan::MAX {
                return Err(Stop::Bad(Malformed::VlanDepth));
            }
            (kind, rest) = vlan::check(rest)?;
            tags += 1;
            self.behind(rest);
            if named {
                self.ether_type = kind;
                self.ether_type_at = short(ethernet::TYPE + tags * vlan::LEN);
                match tags {
                    1 => self.add(Header::Vlan),
                    2 => self.add(Header::Vlan2),
                    _ => {}
                }
            }
        }
        Ok((kind, rest))
    }

    fn raw_ip(&mut self, window: Window<'_>) -> Result<(), Stop> {
        let first = window.fixed::<1>(Malformed::IpShort)?;
        match first[0] >> 4 {
            4 => self.ip4(window),
            6 => self.ip6(window),
            _ => Err(Stop::Bad(Malformed::IpVersion)),
        }
    }

    fn network(&mut self, kind: u16, rest: Window<'_>) -> Result<(), Stop> {
        match kind {
            ether_type::IPV4 => self.ip4(rest),
            ether_type::IPV6 => self.ip6(rest),
            ether_type::MPLS | ether_type::MPLS_UPSTREAM => self.mpls(rest),
            _ => Ok(()),
        }
    }

    fn arp(&mut self, window: Window<'_>) -> Result<(), Stop> {
        let rest = arp::check(window)?;
        self.add(Header::Arp);
        self.arp = short(window.at());
        // What is behind an ARP message can only be padding.
        self.behind(rest.limit(0));
        Ok(())
    }

    fn mpls(&mut self, window: Window<'_>) -> Result<(), Stop> {
        let rest = mpls::check(window)?;
        self.add(Header::Mpls);
        self.mpls = short(window.at());
        self.behind(rest);
        self.behind(mpls::bottom(window)?);
        Ok(())
    }

    fn ip4(&mut self, window: Window<'_>) -> Result<(), Stop> {
        let ip = ipv4::check(window)?;
        self.add(Header::Ip4);
        self.inet(window, ip.proto, ip.fragment, ip.pseudo_dst, ip.rest);
        if ip.fragment.later {
            return Ok(());
        }
        let mut rest = ip.rest;
        if ip.proto == proto::AH {
            (self.proto, rest) = ipsec::check_ah(rest)?;
            self.auth(ip.rest.at(), rest);
        }
        self.transport(rest, false)
    }

    fn ip6(&mut self, window: Window<'_>) -> Result<(), Stop> {
        let ip = ipv6::check(window)?;
        self.add(Header::Ip6);
        self.inet(window, ip.proto, ip.fragment, ip.pseudo_dst, ip.rest);
        if let Some(at) = ip.ah {
            self.auth(at, ip.rest);
        }
        if ip.fragment.later {
            return Ok(());
        }
        self.transport(ip.rest, ip.jumbo)
    }

    fn inet(
        &mut self,
        window: Window<'_>,
        proto: u8,
        fragment: Fragment,
        pseudo_dst: usize,
        rest: Window<'_>,
    ) {
        self.add(Header::Inet);
        self.ip = short(window.at());
        self.ip_end = long(rest.end());
        (self.proto, self.fragment, self.pseudo_dst) = (proto, fragment, short(pseudo_dst));
        self.l4 = short(rest.at());
        self.behind(rest);
    }

    fn auth(&mut self, at: usize, rest: Window<'_>) {
        self.add(Header::Ah);
        self.ah = short(at);
        self.l4 = short(rest.at());
        self.behind(rest);
    }

    fn transport(&mut self, window: Window<'_>, jumbo: bool) -> Result<(), Stop> {
        let version6 = self.has(Header::Ip6);
        match (self.proto, version6) {
            (proto::TCP, _) => self.tcp(window),
            (proto::UDP, _) => self.udp(window, jumbo),
            (proto::ICMP, false) => self.icmp(window),
            (proto::ICMP6, true) => self.icmp6(window),
            (proto::GRE, _) => self.gre(window),
            (proto::ESP, _) => {
                let rest = ipsec::check_esp(window)?;
                self.add(Header::Esp);
                self.behind(rest);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Notes a transport checksum, also when the header around it turns out to be cut or wrong:
    /// address rewrites keep it as right or wrong as it was.
    fn checksum(&mut self, window: Window<'_>, kind: SumKind, offset: usize) {
        if let Some(at) = window.captured16(offset) {
            (self.sum, self.sum_at) = (Some(kind), short(at));
        }
    }

    fn tcp(&mut self, window: Window<'_>) -> Result<(), Stop> {
        self.checksum(window, SumKind::Tcp, tcp::CHECKSUM);
        let (options, rest) = tcp::check(window)?;
        self.add(Header::L4);
        self.add(Header::Tcp);
        for (found, header) in [
            (options.mss.is_some(), Header::TcpMss),
            (options.wscale.is_some(), Header::TcpWscale),
            (options.sack_ok, Header::TcpSackOk),
            (options.ts.is_some(), Header::TcpTs),
        ] {
            if found {
                self.add(header);
            }
        }
        let offset = |option: Option<usize>| option.map_or(0, short);
        self.mss = offset(options.mss);
        self.wscale = offset(options.wscale);
        self.ts = offset(options.ts);
        self.behind(rest);
        Ok(())
    }

    fn udp(&mut self, window: Window<'_>, jumbo: bool) -> Result<(), Stop> {
        self.checksum(window, SumKind::Udp, udp::CHECKSUM);
        let (port, rest) = udp::check(window, self.fragment.any, jumbo)?;
        self.add(Header::L4);
        self.add(Header::Udp);
        self.behind(rest);
        if port == vxlan::PORT {
            let rest = vxlan::check(rest)?;
            self.add(Header::Vxlan);
            self.behind(rest);
        }
        Ok(())
    }

    fn icmp(&mut self, window: Window<'_>) -> Result<(), Stop> {
        self.checksum(window, SumKind::Icmp, icmp::CHECKSUM);
        let (kind, rest) = icmp::check(window, Malformed::IcmpShort)?;
        self.add(Header::Icmp);
        self.behind(rest);
        if icmp::is_echo(kind) {
            self.add(Header::IcmpEcho);
        } else if icmp::is_error(kind) {
            self.quote(rest, 4);
        }
        Ok(())
    }

    fn icmp6(&mut self, window: Window<'_>) -> Result<(), Stop> {
        self.checksum(window, SumKind::Icmp6, icmp::CHECKSUM);
        let (kind, rest) = icmp::check(window, Malformed::Icmp6Short)?;
        self.add(Header::Icmp6);
        self.behind(rest);
        if icmp::is_echo6(kind) {
            self.add(Header::Icmp6Echo);
        } else if icmp::is_error6(kind) {
            self.quote(rest, 6);
        }
        Ok(())
    }

    fn quote(&mut self, window: Window<'_>, version: u8) {
        let Some(quote) = quoted::check(window, version) else { return };
        self.add(Header::Quoted);
        self.add(if version == 4 { Header::Quoted4 } else { Header::Quoted6 });
        if quote.ports {
            self.add(Header::QuotedL4);
        }
        if quote.echo {
            self.add(Header::QuotedEcho);
        }
        self.quote = Quote {
            ip: long(quote.ip),
            l4: long(quote.l4),
            pseudo_dst: long(quote.pseudo_dst),
            sum_at: quote.sum.map_or(0, |sum| long(sum.at)),
            sum: quote.sum.map(|sum| sum.kind),
            proto: quote.proto,
        };
    }

    fn gre(&mut self, window: Window<'_>) -> Result<(), Stop> {
        let gre = gre::check(window)?;
        self.add(Header::Gre);
        if let Some(key) = gre.key {
            self.add(Header::GreKey);
            self.gre_key = short(key);
        }
        self.gre_sum = gre.checksum.map_or(0, short);
        self.behind(gre.rest);
        Ok(())
    }
}
