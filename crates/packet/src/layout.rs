//! Where the headers of a packet are: one total, allocation-free parse.

use crate::field::Header;
use crate::malformed::Malformed;
use crate::packet::Link;
use crate::wire::ipv4::Fragment;
use crate::wire::{
    Stop, Window, arp, cooked, ether_type, ethernet, gre, icmp, ipsec, ipv4, ipv6, mpls, proto,
    quoted, tcp, udp, vlan, vxlan,
};

/// Whose rules a transport checksum follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SumKind {
    Tcp,
    Udp,
    Icmp,
    Icmp6,
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    present: u32,
    malformed: Option<Malformed>,
    captured: usize,
    pub(crate) payload: usize,
    pub(crate) payload_end: usize,
    pub(crate) ether_type: u16,
    /// Offset of the field that holds the EtherType behind all VLAN tags (not behind SNAP).
    pub(crate) ether_type_at: usize,
    pub(crate) vlan: usize,
    pub(crate) arp: usize,
    pub(crate) mpls: usize,
    pub(crate) ip: usize,
    pub(crate) ip_end: usize,
    pub(crate) proto: u8,
    pub(crate) fragment: Fragment,
    pub(crate) pseudo_dst: usize,
    pub(crate) ah: usize,
    /// Behind the IP header, its extensions and AH.
    pub(crate) l4: usize,
    pub(crate) sum: Option<Sum>,
    pub(crate) options: tcp::Options,
    pub(crate) gre_key: usize,
    pub(crate) gre_sum: Option<usize>,
    pub(crate) quoted: Option<quoted::Quoted>,
}

impl Layout {
    /// Parses a packet of `wire_len` bytes of which `data` was captured. Never fails: what cannot
    /// be recognised is payload, what contradicts itself makes the packet [malformed](Self::malformed).
    #[must_use]
    pub fn parse(link: Link, data: &[u8], wire_len: u32) -> Layout {
        let window = Window::new(data, usize::try_from(wire_len).unwrap_or(usize::MAX));
        let mut layout = Layout {
            present: 1 << Header::Pkt as u32,
            malformed: None,
            captured: data.len(),
            payload: 0,
            payload_end: window.end(),
            ether_type: 0,
            ether_type_at: 0,
            vlan: 0,
            arp: 0,
            mpls: 0,
            ip: 0,
            ip_end: 0,
            proto: 0,
            fragment: Fragment::default(),
            pseudo_dst: 0,
            ah: 0,
            l4: 0,
            sum: None,
            options: tcp::Options::default(),
            gre_key: 0,
            gre_sum: None,
            quoted: None,
        };
        if let Err(Stop::Bad(reason)) = layout.link(link, window) {
            layout.malformed = Some(reason);
        }
        layout
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
        self.payload
    }

    /// Length of the payload in bytes on the wire, link padding excluded.
    #[must_use]
    pub fn payload_len(&self) -> usize {
        self.payload_end - self.payload
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

    pub(crate) fn add(&mut self, header: Header) {
        self.present |= 1 << header as u32;
    }

    /// What is behind a header that was recognised is payload until shown otherwise.
    fn behind(&mut self, rest: Window<'_>) {
        self.payload = rest.at();
        self.payload_end = rest.end();
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
        (self.ether_type, self.ether_type_at) = (kind, ethernet::TYPE);
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
                self.vlan = ethernet::TYPE;
                (self.ether_type, self.ether_type_at) = (kind, ethernet::TYPE + tags * vlan::LEN);
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
        self.arp = window.at();
        // What is behind an ARP message can only be padding.
        self.behind(rest.limit(0));
        Ok(())
    }

    fn mpls(&mut self, window: Window<'_>) -> Result<(), Stop> {
        let rest = mpls::check(window)?;
        self.add(Header::Mpls);
        self.mpls = window.at();
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
        self.ip = window.at();
        self.ip_end = rest.end();
        (self.proto, self.fragment, self.pseudo_dst) = (proto, fragment, pseudo_dst);
        self.l4 = rest.at();
        self.behind(rest);
    }

    fn auth(&mut self, at: usize, rest: Window<'_>) {
        self.add(Header::Ah);
        self.ah = at;
        self.l4 = rest.at();
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
        self.sum = window.captured16(offset).map(|at| Sum { kind, at });
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
        self.options = options;
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
        self.quoted = Some(quote);
    }

    fn gre(&mut self, window: Window<'_>) -> Result<(), Stop> {
        let gre = gre::check(window)?;
        self.add(Header::Gre);
        if let Some(key) = gre.key {
            self.add(Header::GreKey);
            self.gre_key = key;
        }
        self.gre_sum = gre.checksum;
        self.behind(gre.rest);
        Ok(())
    }
}
