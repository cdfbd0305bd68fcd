//! Where the headers of a packet are.

use crate::malformed::Malformed;
use crate::names::{Base, Header};
use crate::window::Window;

/// The protocol whose rules a transport checksum follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SumKind {
    /// TCP, with a pseudo header.
    Tcp = 1,
    /// UDP, with a pseudo header. 0 stands for "no checksum".
    Udp = parts::SUM_UDP,
    /// ICMP for IPv4, without a pseudo header.
    Icmp = parts::SUM_ICMP,
    /// ICMPv6, with a pseudo header.
    Icmp6 = 4,
}

/// A transport checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sum {
    /// The protocol whose rules it follows.
    pub kind: SumKind,
    /// Offset of the checksum field: in a packet if the checksum is captured, in the header if the
    /// header's declaration gives it.
    pub at: usize,
}

impl Sum {
    /// Whether a pseudo header with the IP addresses is covered.
    #[must_use]
    pub fn has_pseudo(self) -> bool {
        self.kind != SumKind::Icmp
    }

    /// Whether 0 stands for "no checksum", and 0xffff for a sum of 0.
    #[must_use]
    pub fn is_udp(self) -> bool {
        self.kind == SumKind::Udp
    }
}

/// Where a packet's headers are, and why the packet is malformed if it is. Offsets count from the
/// packet's first byte. They have a meaning only for headers that are present.
///
/// A layout describes the packet as it was parsed. It stays right while fields are assigned, with
/// one exception: writing `icmp.type`, `icmp6.type` or `udp.dport` may make `icmp.echo`, `quoted`
/// or `vxlan` present or absent. Parse again to see that. Adding or removing a VLAN tag invalidates
/// the layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// The headers that are present, as bits by header number.
    pub(crate) present: [u64; 2],
    pub(crate) captured: u32,
    pub(crate) payload: u32,
    pub(crate) payload_end: u32,
    pub(crate) ip_end: u32,
    pub(crate) ether_type: u16,
    /// Offset of the field that holds the EtherType behind all VLAN tags (not behind SNAP).
    pub(crate) ether_type_at: u16,
    /// Offset of the header behind the link header, unless that is an IP header.
    pub(crate) network: u16,
    pub(crate) ip: u16,
    pub(crate) pseudo_dst: u16,
    pub(crate) ah: u16,
    /// Offset behind the IP header, its extensions and AH.
    pub(crate) l4: u16,
    /// The following offsets are 0 when their part is absent.
    pub(crate) sum_at: u16,
    pub(crate) mss: u16,
    pub(crate) wscale: u16,
    pub(crate) ts: u16,
    pub(crate) gre_key: u16,
    pub(crate) gre_sum: u16,
    pub(crate) sum: Option<SumKind>,
    pub(crate) proto: u8,
    pub(crate) fragment: Fragment,
    pub(crate) malformed: Option<Malformed>,
    pub(crate) plain: bool,
    /// Whether a jumbo payload option holds the IPv6 packet's length.
    pub(crate) jumbo: bool,
    pub(crate) quote: Quote,
}

/// Whether a packet is a fragment, and whether it is a fragment behind the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fragment {
    pub(crate) any: bool,
    pub(crate) later: bool,
}

/// The facts in an IP header about the bytes behind it.
pub(crate) struct Network {
    pub(crate) proto: u8,
    pub(crate) fragment: Fragment,
    /// Absolute offset of the destination address in the pseudo header.
    pub(crate) pseudo_dst: usize,
    pub(crate) jumbo: bool,
}

/// The contents of a quote. The IP header is complete, including IPv6 extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quoted {
    /// 4 or 6.
    pub(crate) version: u8,
    /// Absolute offset of the IP header.
    pub(crate) ip: usize,
    /// Upper-layer protocol.
    pub(crate) proto: u8,
    /// Absolute offset of the pseudo header's destination address.
    pub(crate) pseudo_dst: usize,
    /// Absolute offset behind the IP headers.
    pub(crate) l4: usize,
    /// Whether both ports of TCP or UDP are in the quote.
    pub(crate) ports: bool,
    /// Whether the quote is an ICMP echo whose identifier is in the quote.
    pub(crate) echo: bool,
    /// The transport checksum, if it is in the quote.
    pub(crate) sum: Option<Sum>,
}

/// The parts of the packet that an ICMP error quotes. Everything is 0 if it quotes nothing. (Behind
/// 33 KB of extension headers, 16 bits may not reach the quoted packet's transport header.)
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Quote {
    pub(crate) ip: u32,
    pub(crate) l4: u32,
    pub(crate) pseudo_dst: u32,
    pub(crate) sum_at: u32,
    pub(crate) sum: Option<SumKind>,
    pub(crate) proto: u8,
}

/// Offsets in bytes of the parts of a [`Layout`] in memory, for generated code.
pub mod parts {
    use super::{Layout, Quote};
    use std::mem::offset_of;

    /// `Layout::presence` (two u64, the lower half first).
    pub const PRESENT: usize = offset_of!(Layout, present);
    /// `Layout::payload_offset` (u32).
    pub const PAYLOAD: usize = offset_of!(Layout, payload);
    /// End of the payload on the wire (u32).
    pub const PAYLOAD_END: usize = offset_of!(Layout, payload_end);
    /// `eth.type` (u16).
    pub const ETHER_TYPE: usize = offset_of!(Layout, ether_type);
    /// `inet.proto` (u8).
    pub const PROTO: usize = offset_of!(Layout, proto);
    /// `pkt.fragment` (bool).
    pub const FRAGMENT: usize = offset_of!(Layout, fragment.any);
    /// `pkt.later_fragment` (bool).
    pub const LATER_FRAGMENT: usize = offset_of!(Layout, fragment.later);
    /// Offset of the pseudo header's destination address (u16).
    pub const PSEUDO_DST: usize = offset_of!(Layout, pseudo_dst);
    /// Offset of the transport checksum, 0 if none is captured (u16).
    pub const SUM_AT: usize = offset_of!(Layout, sum_at);
    /// The protocol whose rules that checksum follows (u8).
    pub const SUM_KIND: usize = offset_of!(Layout, sum);
    /// The value of [`SUM_KIND`] for UDP: 0 means "none", and a sum of 0 is written as 0xffff.
    pub const SUM_UDP: u8 = 2;
    /// The value of [`SUM_KIND`] for the checksum without a pseudo header.
    pub const SUM_ICMP: u8 = 3;

    pub(crate) const NETWORK: usize = offset_of!(Layout, network);
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

/// A set of headers in two words.
#[expect(clippy::cast_possible_truncation, reason = "the second word has the other half")]
pub(crate) const fn words(headers: u128) -> [u64; 2] {
    [headers as u64, (headers >> 64) as u64]
}

/// A header's offset in 16 bits. Headers begin within 33 KB, because extension headers can push
/// them no farther.
fn short(offset: usize) -> u16 {
    u16::try_from(offset).unwrap_or(u16::MAX)
}

/// An offset in a packet, which has less than 2^32 bytes.
pub(crate) fn long(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// An offset where 0 means absent.
fn found(offset: u16) -> Option<usize> {
    (offset != 0).then_some(usize::from(offset))
}

impl Layout {
    /// Whether a header is present. It is then well-formed and wholly captured (IPv6 with all of
    /// its extension headers), and all of its fields can be read.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "`present` has a bit for every header")]
    pub fn has(&self, header: Header) -> bool {
        let number = header as usize;
        self.present[number / 64] >> (number % 64) & 1 == 1
    }

    /// The headers that are present, as bits by [`Header`] number.
    #[must_use]
    pub fn presence(&self) -> u128 {
        let [low, high] = self.present;
        u128::from(low) | u128::from(high) << 64
    }

    /// Why the packet is malformed, if it is. A packet that the capture cut is not malformed for
    /// that reason.
    #[must_use]
    pub fn malformed(&self) -> Option<&'static str> {
        self.malformed.map(Malformed::name)
    }

    /// The same reason as [`Self::malformed`], as a type.
    #[must_use]
    pub fn malformed_reason(&self) -> Option<Malformed> {
        self.malformed
    }

    /// Whether the capture lacks bytes of the payload.
    #[must_use]
    pub fn payload_truncated(&self) -> bool {
        self.payload_end > self.captured
    }

    /// Offset of the payload, which begins behind the last recognised header. (The packet that an
    /// ICMP error quotes is payload.)
    #[must_use]
    pub fn payload_offset(&self) -> usize {
        self.payload as usize
    }

    /// Length of the payload in bytes on the wire, link padding excluded.
    #[must_use]
    pub fn payload_len(&self) -> usize {
        (self.payload_end - self.payload) as usize
    }

    /// Whether the packet is a fragment of an IP packet, the first one included. An IPv6 packet
    /// with a fragment header but without a missing part (RFC 6946) is not a fragment.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.fragment.any
    }

    /// Whether the packet is a fragment other than the first.
    #[must_use]
    pub fn is_later_fragment(&self) -> bool {
        self.fragment.later
    }

    /// Number of captured bytes. All headers that are present lie in them.
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

    /// Offset of the IP header.
    #[must_use]
    pub fn ip(&self) -> usize {
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

    /// Offset of the bytes behind the IP header, its extensions and AH.
    #[must_use]
    pub fn l4(&self) -> usize {
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
            Base::Network => self.network,
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

    /// Whether a jumbo payload option holds the IPv6 packet's length.
    pub(crate) fn is_jumbo(&self) -> bool {
        self.jumbo
    }

    /// Whether the packet is a whole, well-formed IPv4 packet without tags and options.
    #[must_use]
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether a header lies between the link header and the IP header.
    #[must_use]
    #[inline(always)]
    pub fn is_encapsulated(&self) -> bool {
        self.network != 0
    }
}

/// The methods that a parse calls.
impl Layout {
    /// The layout of a packet before any header is recognised.
    pub(crate) fn of_nothing(window: Window<'_>, captured: usize) -> Layout {
        Layout {
            present: words(Header::Pkt.bit()),
            captured: long(captured),
            payload_end: long(window.end()),
            ..Layout::default()
        }
    }

    #[expect(clippy::indexing_slicing, reason = "`present` has a bit for every header")]
    pub(crate) fn add(&mut self, header: Header) {
        let number = header as usize;
        self.present[number / 64] |= 1 << (number % 64);
    }

    /// Makes everything behind a recognised header payload. A later header may change that.
    pub(crate) fn behind(&mut self, rest: Window<'_>) {
        self.payload = long(rest.at());
        self.payload_end = long(rest.end());
    }

    /// Sets the base that fields count from to the start of the window.
    pub(crate) fn begin(&mut self, base: Base, window: Window<'_>) {
        self.begin_at(base, window.at());
    }

    /// Sets the base that fields count from to an offset.
    pub(crate) fn begin_at(&mut self, base: Base, at: usize) {
        let place = match base {
            Base::Network => &mut self.network,
            Base::Ah => &mut self.ah,
            Base::Mss => &mut self.mss,
            Base::Wscale => &mut self.wscale,
            Base::Ts => &mut self.ts,
            Base::GreKey => &mut self.gre_key,
            // An IP header sets these together with its other offsets. Quotes have bases of their
            // own.
            Base::Packet | Base::Ip | Base::L4 | Base::QuotedIp | Base::QuotedL4 => return,
        };
        *place = short(at);
    }

    /// Sets the EtherType, and its offset if it is in the link header or a tag.
    pub(crate) fn set_ether_type(&mut self, kind: u16, at: Option<usize>) {
        self.ether_type = kind;
        if let Some(at) = at {
            self.ether_type_at = short(at);
        }
    }

    /// Records an IP header, and the bytes behind it and its extensions.
    pub(crate) fn network(&mut self, window: Window<'_>, ip: Network, rest: Window<'_>) {
        self.add(Header::Inet);
        self.ip = short(window.at());
        self.ip_end = long(rest.end());
        (self.proto, self.fragment) = (ip.proto, ip.fragment);
        (self.pseudo_dst, self.jumbo) = (short(ip.pseudo_dst), ip.jumbo);
        self.l4 = short(rest.at());
        self.behind(rest);
    }

    /// Records an authentication header and the bytes behind it.
    pub(crate) fn authenticated(&mut self, at: usize, rest: Window<'_>) {
        self.add(Header::Ah);
        self.ah = short(at);
        self.l4 = short(rest.at());
        self.behind(rest);
    }

    /// Sets the upper-layer protocol where it differs from the one in the IP header.
    pub(crate) fn set_proto(&mut self, proto: u8) {
        self.proto = proto;
    }

    /// Records a transport checksum, even when the header around it turns out to be cut or wrong.
    /// Address rewrites then keep the checksum as right or wrong as it was.
    pub(crate) fn checksum(&mut self, window: Window<'_>, sum: Sum) {
        if let Some(at) = window.captured16(sum.at) {
            (self.sum, self.sum_at) = (Some(sum.kind), short(at));
        }
    }

    /// Records the offset of the GRE checksum, if there is one.
    pub(crate) fn gre_checksum(&mut self, at: Option<usize>) {
        self.gre_sum = at.map_or(0, short);
    }

    /// Records the packet that an ICMP error quotes.
    pub(crate) fn quote(&mut self, quote: &Quoted) {
        self.add(Header::Quoted);
        self.add(if quote.version == 4 { Header::Quoted4 } else { Header::Quoted6 });
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

    /// Records that the packet contradicts itself.
    pub(crate) fn set_malformed(&mut self, reason: Malformed) {
        self.malformed = Some(reason);
    }

    /// Ends the parse: decides whether this is a plain packet.
    pub(crate) fn finish(&mut self) {
        let is_there = (self.ip(), self.l4()) == (PLAIN_IP, PLAIN_L4);
        let is_whole = self.malformed.is_none() && !self.fragment.any;
        self.plain = self.has(Header::Ip4) && is_there && is_whole;
    }
}

/// Offsets of IPv4 and of the transport header in a packet without tags and options.
const PLAIN_IP: usize = 14;
const PLAIN_L4: usize = 34;
