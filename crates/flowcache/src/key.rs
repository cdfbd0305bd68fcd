//! What a flow is, for a program: the bits of its packets that it looks at and that stay the same.

use crate::guard::{Link, Number, WIRE};
use braid_ir::model::Op;
use braid_ir::residual::{HeaderMask, Residual, What};
use braid_packet::blend::{NARROW, Outline, WIDE, WIDE_BYTES, Window, narrowed, widened, words};
use braid_packet::{Base, FIELDS, Field, Header, Layout, Packet, Spot};

/// Where the protocol is in a narrow key: above what else it may be made of.
const PROTO_SHIFT: u32 = 56;

/// The number of the first entry of packets that may meet native functions ([`crate::natives::Entry`]), behind those of
/// programs.
pub(crate) const OPEN: u32 = 1 << 16;

/// Where VLAN tags begin, and the bytes of each.
pub(crate) const TAGS: usize = 12;
pub(crate) const TAG_LEN: usize = 4;

/// Outlines that packets with records have.
const OUTLINES: usize = 6;

/// The keys of a program's flows.
#[derive(Clone, Debug)]
pub(crate) struct KeyExtractor {
    /// Bits of the key in packets with the outline [`Outline::PLAIN`] and bytes enough, beside the protocol, if it
    /// is a narrow one.
    narrow: Option<Window<NARROW>>,
    /// Bits of the link's addresses that belong to it then, too. Templates have them, not the keys.
    link: [u64; 2],
    /// Bits of the key in other packets, by outline; `None` where those have no records.
    wide: [Option<Box<Window<WIDE>>>; OUTLINES],
    /// Attempts in a row to make a record that would have saved no time, and how many are left out since.
    losses: u32,
    left_out: u32,
}

/// Once so many attempts in a row would have saved no time, one in 2^12 is made.
const MOST_LOSSES: u32 = 12;

/// Bits of a packet's first bytes: of a big-endian number of `len` bytes at `at`, `width` bits from
/// `shift` up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Bits {
    pub(crate) at: usize,
    pub(crate) len: usize,
    pub(crate) shift: u32,
    pub(crate) width: u32,
}

impl KeyExtractor {
    /// The keys of a program's flows, where they belong to several workers if so.
    #[inline(never)]
    pub(crate) fn of(residual: &Residual, many_workers: bool) -> Self {
        Self::by(|outline| key_mask(residual.shape, outline, looked_at(residual), many_workers))
    }

    /// Keys of these bits.
    fn by(mask: impl Fn(Outline) -> Option<[u8; WIDE_BYTES]>) -> Self {
        let wide = std::array::from_fn(|at| mask(outline(at)).map(|mask| Box::new(words(&mask))));
        let narrow = mask(Outline::PLAIN).and_then(|mask| narrow_mask(&mask));
        let (narrow, link) = narrow.unzip();
        Self { narrow, link: link.unwrap_or_default(), wide, losses: 0, left_out: 0 }
    }

    /// The keys of flows of which anything may be looked at that is the same in all packets of one.
    pub(crate) fn open(shape: HeaderMask, many_workers: bool) -> Self {
        let all = FIELDS.iter().map(|info| LookedAt::Loaded(info.field)).chain([LookedAt::Tags]);
        Self::by(|outline| key_mask(shape, outline, all.clone(), many_workers))
    }

    /// Bits of the link's addresses that belong to the key of a packet with a narrow one, and what they are.
    pub(crate) fn link(&self, packet: &Packet) -> Link {
        let [one, two, ..]: Window<WIDE> = words(&packet.wide_window());
        Link { mask: self.link, is: [one & self.link[0], two & self.link[1]] }
    }

    /// Whether the next attempt to make a record is left out.
    pub(crate) fn is_left_out(&self) -> bool {
        self.left_out > 0
    }

    /// An attempt is left out.
    pub(crate) fn leave_out(&mut self) {
        self.left_out -= 1;
    }

    /// An attempt shows whether a record would save time. The more in a row do not, the fewer are made.
    pub(crate) fn learn(&mut self, pays: bool) {
        self.losses = if pays { 0 } else { MOST_LOSSES.min(self.losses + 1) };
        self.left_out = (1 << self.losses) - 1;
    }

    /// Narrow records cannot publish what the program does: from now on all keys are wide.
    pub(crate) fn make_wide(&mut self) {
        self.narrow = None;
    }

    /// Bits of the keys of wide records for packets with an outline, which contain those of narrow ones.
    pub(crate) fn mask(&self, outline: Outline) -> Option<&Window<WIDE>> {
        self.wide.get(number(outline))?.as_deref()
    }

    /// A packet's key, if it is a narrow one.
    #[inline(always)]
    pub(crate) fn narrow_key(&self, packet: &Packet, layout: &Layout) -> Option<Window<NARROW>> {
        let mask = self.narrow.as_ref()?;
        if !layout.is_plain() {
            return None;
        }
        let (words, proto) = packet.narrow_words()?;
        Some([words[0] & mask[0], words[1] & mask[1] | u64::from(proto) << PROTO_SHIFT])
    }

    /// The key of another packet, and the number of its outline; `None` if it has no records.
    pub(crate) fn wide_key(&self, packet: &Packet, layout: &Layout) -> Option<(Window<WIDE>, u32)> {
        let number = number(Outline::of(layout)?);
        let mask = self.wide.get(number)?.as_ref()?;
        let window: Window<WIDE> = words(&packet.wide_window());
        Some((std::array::from_fn(|at| window[at] & mask[at]), number as u32))
    }
}

/// Records that a flow may have for packets that differ in what guards look at; a power of two.
pub(crate) const VARIANTS: u32 = 4;

/// Among a kind's bits: that records of it are wide ones.
pub(crate) const IS_WIDE: u32 = 1 << 31;

/// What the first record of a flow is for beside its key: the program, and the outline of packets of wide ones.
/// The next numbers are those of its other records.
#[inline(always)]
pub(crate) fn kind(program: u32, outline: Option<u32>) -> u32 {
    let outlines = OUTLINES as u32 + 1;
    let kind = program.wrapping_mul(outlines) + outline.map_or(0, |number| number + 1);
    let is_wide = if outline.is_some() { IS_WIDE } else { 0 };
    kind.wrapping_mul(VARIANTS) & !IS_WIDE | is_wide
}

/// The program, the outline of packets that a record of this kind is for, and whether it is a narrow one.
pub(crate) fn of_kind(kind: u32) -> (u32, Outline, bool) {
    let (outlines, first) = (OUTLINES as u32 + 1, (kind & !IS_WIDE) / VARIANTS);
    let (outline, is_narrow) = match first % outlines {
        0 => (Outline::PLAIN, true),
        number => (outline(number as usize - 1), false),
    };
    (first / outlines, outline, is_narrow)
}

/// Where the key of a narrow record is in packets: they are no fragments.
pub(crate) fn unfolded(key: &Window<NARROW>) -> Window<WIDE> {
    let proto = key[1] >> PROTO_SHIFT << PROTO_SHIFT;
    let mut window = widened(&[key[0], key[1] ^ proto]);
    let bytes = Outline::PLAIN.proto();
    window[bytes / 8] |= proto >> PROTO_SHIFT << (bytes % 8 * 8);
    window
}

/// Of the bits of a key those of a narrow one, and those of the link's addresses, which are the same for most flows;
/// `None` if there are others, but for those that publish that the packet is no fragment, has [`Outline::PLAIN`], and
/// which protocol.
fn narrow_mask(mask: &[u8; WIDE_BYTES]) -> Option<(Window<NARROW>, [u64; 2])> {
    let (mut left, ip) = (*mask, Outline::PLAIN.ip);
    left[ip - 2..=ip].fill(0);
    left[ip + 6..ip + 8].fill(0);
    left[Outline::PLAIN.proto()] = 0;
    let [one, two, ..]: Window<WIDE> = words(&left);
    left[..ip - 2].fill(0);
    let window = words(&left);
    let narrow = narrowed(&window);
    let has_proto_room = narrow[1] >> PROTO_SHIFT == 0;
    // Where hosts are told apart by other addresses, they have no flows in common.
    let is_by_ip = narrow[0] == u64::MAX || [one, two] == [0, 0];
    let is_all = widened(&narrow) == window && has_proto_room && is_by_ip;
    is_all.then_some((narrow, [one, two]))
}

/// The number of an outline.
fn number(outline: Outline) -> usize {
    (outline.ip - Outline::PLAIN.ip) / 4 + if outline.is_ip6 { OUTLINES / 2 } else { 0 }
}

/// The outline with a number.
fn outline(number: usize) -> Outline {
    let half = OUTLINES / 2;
    Outline { ip: Outline::PLAIN.ip + number % half * 4, is_ip6: number >= half }
}

/// What a program looks at.
#[derive(Clone, Copy)]
enum LookedAt {
    Loaded(Field),
    /// What it assigns. How much a checksum that covers it changes depends on the old value.
    Written(Field),
    /// Tags: what is loaded as one's may be another one's.
    Tags,
}

/// All that a program looks at.
fn looked_at(residual: &Residual) -> impl Iterator<Item = LookedAt> {
    let steps = residual.blocks.iter().flat_map(|block| &block.steps);
    steps.flat_map(|step| {
        let (one, fields) = match &step.what {
            What::Op(Op::Load { field, .. }) => (Some(LookedAt::Loaded(*field)), &[][..]),
            What::Op(Op::PushVlan { .. } | Op::PopVlan) => (Some(LookedAt::Tags), &[][..]),
            What::Write(fields) => (None, &fields[..]),
            _ => (None, &[][..]),
        };
        one.into_iter().chain(fields.iter().map(|(field, _)| LookedAt::Written(*field)))
    })
}

/// Bits of the first bytes of packets of a shape with an outline that belong to the key of flows of which this is looked
/// at; `None` if packets of this shape do not have that outline.
fn key_mask(
    shape: HeaderMask,
    outline: Outline,
    looked_at: impl Iterator<Item = LookedAt>,
    many_workers: bool,
) -> Option<[u8; WIDE_BYTES]> {
    let header = if outline.is_ip6 { Header::Ip6 } else { Header::Ip4 };
    if shape.has(header) != Some(true) {
        return None;
    }
    let mut mask = [0; WIDE_BYTES];
    let ip = outline.ip;
    // What the packet is: EtherType, version, length of the header, fragment, protocol.
    mask[ip - 2..=ip].fill(0xff);
    if outline.is_ip6 {
        (mask[ip], mask[ip + 6]) = (0xf0, 0xff);
    } else {
        (mask[ip + 6], mask[ip + 7], mask[ip + 9]) = (0x3f, 0xff, 0xff);
    }
    for one in looked_at {
        let field = match one {
            LookedAt::Loaded(field) => field,
            LookedAt::Written(field) if in_sum(outline, field) => field,
            LookedAt::Written(_) => continue,
            LookedAt::Tags => {
                add_tags(outline, &mut mask);
                continue;
            }
        };
        if is_key(field)
            && let Some(bits) = bits(shape, outline, field)
        {
            bits.set(&mut mask, u128::MAX);
        }
    }
    if many_workers {
        // By these a packet's worker is chosen.
        let fields = [Field::InetSrc, Field::InetDst, Field::InetSport, Field::InetDport];
        for field in fields {
            bits(shape, outline, field)?.set(&mut mask, u128::MAX);
        }
    }
    Some(mask)
}

/// Bits that tell tags of packets with an outline apart: what they are, and their identifiers.
fn add_tags(outline: Outline, mask: &mut [u8; WIDE_BYTES]) {
    for tag in mask[TAGS..outline.ip - 2].chunks_mut(TAG_LEN) {
        tag.copy_from_slice(&[0xff, 0xff, 0x0f, 0xff]);
    }
}

/// Whether a checksum covers a field.
pub(crate) fn in_sum(outline: Outline, field: Field) -> bool {
    match field.info().header {
        Header::Eth | Header::Vlan | Header::Vlan2 => false,
        // The IPv6 header has none of its own, the transport's covers the addresses.
        Header::Ip6 | Header::Inet if outline.is_ip6 => is_address(field),
        _ => true,
    }
}

/// Whether a field is an IP address.
pub(crate) fn is_address(field: Field) -> bool {
    use Field::*;
    matches!(field, IpSrc | IpDst | Ip6Src | Ip6Dst | InetSrc | InetDst)
}

/// Fields that are the same in all packets of a flow.
pub(crate) fn is_key(field: Field) -> bool {
    field.info().is_flow
}

/// Where a field is in packets with an outline, if it is in their first bytes.
pub(crate) fn bits(shape: HeaderMask, outline: Outline, field: Field) -> Option<Bits> {
    bits_where(&|header| shape.has(header), outline, field)
}

/// The same in packets that have these headers.
pub(crate) fn bits_where(
    has: &dyn Fn(Header) -> Option<bool>,
    outline: Outline,
    field: Field,
) -> Option<Bits> {
    let whole = |at, len| Bits { at, len, shift: 0, width: 8 * len as u32 };
    match field {
        Field::EthType => return Some(whole(outline.ip - 2, 2)),
        Field::IpProto | Field::InetProto if !outline.is_ip6 => {
            return Some(whole(outline.ip + 9, 1));
        }
        Field::Ip6Proto | Field::InetProto if outline.is_ip6 => {
            return Some(whole(outline.ip + 6, 1));
        }
        _ => {}
    }
    let spot = Spot::of(field, has)?;
    let base = match spot.base {
        Base::Packet => 0,
        Base::Ip => outline.ip,
        Base::L4 => outline.l4(),
        _ => return None,
    };
    let (at, len) = (base + usize::from(spot.offset), usize::from(spot.len));
    let bits = Bits { at, len, shift: spot.shift.into(), width: spot.width.into() };
    (at + len <= WIDE_BYTES).then_some(bits)
}

impl Bits {
    /// Assigns them.
    pub(crate) fn set(self, bytes: &mut [u8], value: u128) {
        let range = self.at..self.at + self.len;
        if self.width as usize == 8 * self.len {
            bytes[range].copy_from_slice(&value.to_be_bytes()[16 - self.len..]);
            return;
        }
        let mask = self.most();
        let old = bytes[range.clone()].iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
        let new = old & !(mask << self.shift) | (value & mask) << self.shift;
        bytes[range].copy_from_slice(&new.to_be_bytes()[16 - self.len..]);
    }

    /// Their value.
    pub(crate) fn get(self, bytes: &[u8]) -> u128 {
        let bytes = &bytes[self.at..self.at + self.len];
        let all = match *bytes {
            [one] => one.into(),
            [a, b] => u16::from_be_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
            _ => bytes.iter().fold(0, |all, byte| all << 8 | u128::from(*byte)),
        };
        all >> self.shift & self.most()
    }

    /// Whether some of them, and whether all of them, are set in a mask.
    pub(crate) fn are_in(self, mask: &[u8]) -> (bool, bool) {
        let set = self.get(mask);
        (set != 0, set == self.most())
    }

    /// Their greatest value.
    fn most(self) -> u128 {
        u128::MAX.checked_shr(128 - self.width).unwrap_or(0)
    }

    /// The same as a number that guards can look at.
    pub(crate) fn number(self) -> Option<Number> {
        let mask = ((1_u64 << self.width.min(32)) - 1) << self.shift;
        let (at, len) = (u8::try_from(self.at).ok()?, u8::try_from(self.len).ok()?);
        matches!(len, 1 | 2 | 4).then_some(Number { at, len, mask: u32::try_from(mask).ok()? })
    }
}

/// The number of bytes on the wire.
pub(crate) const LENGTH: Number = Number { at: WIRE, len: 4, mask: u32::MAX };

#[cfg(test)]
mod tests {
    use super::KeyExtractor;

    #[test]
    fn attempts_that_do_not_pay_become_rare_until_one_does() {
        let mut extractor = KeyExtractor::by(|_| None);
        let mut tried = 0;
        for _ in 0..100_000 {
            match extractor.is_left_out() {
                true => extractor.leave_out(),
                false => {
                    extractor.learn(false);
                    tried += 1;
                }
            }
        }
        // The first twelve leave out 2^12 - 2 in all, each further one 2^12 - 1.
        assert_eq!(tried, 12 + (100_000 - 12 - (8192 - 14)) / 4096 + 1);
        extractor.learn(true);
        assert!(!extractor.is_left_out());
    }
}
