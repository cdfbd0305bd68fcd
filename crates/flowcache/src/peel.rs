//! Packets in a tunnel that ends on their path. Their flows are those of the packets inside: a
//! record removes the outer headers, and does what the functions behind do.
//!
//! The keys of such flows hold the bits of the outer headers that the program reads, the number of
//! bytes that go, and the addresses and ports of the packet inside, which must be TCP or UDP in
//! IPv4 without options.

use crate::guard::Guard;
use braid_ir::residual::HeaderMask;
use braid_packet::rewrite::{
    Outline, WIDE, WIDE_BYTES, Window, bytes, narrow_words, wide_words, widened, words,
};
use braid_packet::tunnel::{Inner, look_inside};
use braid_packet::{Header, Layout, Packet};

/// The end of a tunnel: what a program removes from packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Peel {
    pub(crate) inner: Inner,
    /// The last of the outer headers, and the number of bytes behind it that go, too.
    pub(crate) last: Header,
    pub(crate) offset: usize,
}

impl Peel {
    /// Whether a packet has a flow of this kind. `mask` is the mask of the keys.
    pub(crate) fn has_flow(
        self,
        (packet, layout): (&Packet, &Layout),
        mask: &Window<WIDE>,
    ) -> bool {
        let (mut packet, mut inside) = (packet.clone(), Layout::default());
        let outer = (self.inner, self.last);
        let less = look_inside(&mut packet, layout, outer, self.offset, &mut inside);
        let mask = KeyMask::of(mask, self.inner);
        let key = mask.zip(less).and_then(|(mask, less)| mask.key(packet.data(), (&inside, less)));
        key.is_some()
    }
}

/// The packet inside, as it will be without the outer headers.
#[derive(Clone, Copy)]
pub(crate) struct Inside<'a> {
    pub(crate) peel: Peel,
    /// The number of bytes that go.
    pub(crate) less: usize,
    pub(crate) packet: &'a Packet,
    pub(crate) layout: &'a Layout,
    /// Its bits that all packets of the flow have in common.
    pub(crate) covered: [u8; WIDE_BYTES],
}

/// A copy of a packet in a tunnel, without the outer headers. The fields are those of [`Inside`].
pub(crate) struct InsidePacket {
    pub(crate) peel: Peel,
    pub(crate) less: usize,
    pub(crate) packet: Packet,
    pub(crate) layout: Layout,
    pub(crate) covered: [u8; WIDE_BYTES],
}

impl InsidePacket {
    pub(crate) fn lent(&self) -> Inside<'_> {
        let Self { peel, less, packet, layout, covered } = self;
        Inside { peel: *peel, less: *less, packet, layout, covered: *covered }
    }
}

/// A packet that is about to enter, and what is in it if it is a tunnel's.
#[derive(Clone, Copy)]
pub(crate) struct Arrived<'a> {
    pub(crate) packet: &'a Packet,
    pub(crate) layout: &'a Layout,
    pub(crate) inside: Option<Inside<'a>>,
}

/// What a record does with a packet before it does everything else: the end of a tunnel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Front {
    pub(crate) inner: Inner,
    /// The number of bytes that go.
    pub(crate) less: usize,
    /// The places of the outer headers.
    pub(crate) outline: Outline,
    /// The headers that the packets inside have.
    pub(crate) shape: HeaderMask,
    /// Whether the narrow form of the rewrite does all of it.
    pub(crate) is_narrow: bool,
    /// Conditions on the whole packets.
    pub(crate) guards: Vec<Guard>,
}

impl Front {
    /// Whether a packet may lose its outer headers. `inside` is the layout of the packet inside.
    pub(crate) fn fits(&self, packet: &Packet, inside: &Layout) -> bool {
        let (data, wire_len) = (packet.data(), packet.wire_len);
        self.shape.fits(inside.presence())
            && self.guards.iter().all(|guard| guard.holds(data, wire_len))
    }
}

/// The number of words of outer headers in a key: bytes 8 to 71 of a packet.
const OUTER: usize = 8;
/// As many of them leave room for the link addresses inside.
const WITH_LINK: usize = OUTER - 2;
/// The half of the first word that holds outer headers. The other half holds the number of bytes
/// that go.
const FIRST_MASK: u64 = u64::MAX << 32;
/// The position of the protocol in a flow's second word: the highest byte.
pub(crate) const PROTO_SHIFT: u32 = 56;
/// The ports in a flow's second word.
const PORTS: u64 = u32::MAX as u64;
/// The link addresses in a packet's second word.
const LINK: u64 = u32::MAX as u64;

/// The bits of a packet in a tunnel that make up its key.
#[derive(Clone, Debug)]
pub(crate) struct KeyMask {
    outer: [u64; OUTER],
    /// The link addresses inside, in the first two words of the packet inside.
    link: [u64; 2],
    /// The bits that the packets inside have in common if they have the same key.
    pub(crate) inside: [u8; WIDE_BYTES],
}

impl KeyMask {
    /// The mask for a program that reads these bits of outer headers. `None` if a key has no room
    /// for them.
    pub(crate) fn of(mask: &Window<WIDE>, inner: Inner) -> Option<Self> {
        let [zero, outer @ .., last] = *mask;
        let has_room = zero == 0 && last == 0 && outer[0] & !FIRST_MASK == 0;
        let has_link = inner == Inner::Frame && outer[WITH_LINK..] == [0; OUTER - WITH_LINK];
        let link = if has_link { [u64::MAX, LINK] } else { [0; 2] };
        let mut inside = widened(&[u64::MAX, PORTS]);
        (inside[0], inside[1]) = (link[0], link[1]);
        has_room.then_some(Self { outer, link, inside: bytes(&inside) })
    }

    /// The key of a packet with these bytes. `inside` is the layout of the packet inside, which is
    /// `less` bytes shorter. `None` if that packet belongs to no flow.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "`at` is below the length of both arrays")]
    pub(crate) fn key(
        &self,
        data: &[u8],
        (inside, less): (&Layout, usize),
    ) -> Option<Window<WIDE>> {
        if !inside.is_plain() || !(inside.has(Header::Tcp) || inside.has(Header::Udp)) {
            return None;
        }
        let inner = data.get(less..)?;
        let ([one, two], proto) = narrow_words(inner)?;
        let link = words::<2>(inner.get(..16)?);
        let [_, outer @ .., _] = wide_words(data);
        let [a, b, c, d, e, f, g, h] = std::array::from_fn(|at| outer[at] & self.outer[at]);
        let two = two & PORTS | u64::from(proto) << PROTO_SHIFT;
        let (g, h) = (g | link[0] & self.link[0], h | link[1] & self.link[1]);
        Some([one, two, a | u64::try_from(less).ok()?, b, c, d, e, f, g, h])
    }
}
