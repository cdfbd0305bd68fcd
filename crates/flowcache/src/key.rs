//! Flow keys: the bits that a program reads of its packets and that stay the same in a flow.
#![expect(
    clippy::cast_possible_truncation,
    reason = "an outline's number is below `OUTLINES`, and fields have at most 16 bytes"
)]
#![expect(clippy::indexing_slicing, reason = "the headers of an outline lie in the wide words")]

use crate::guard::{Link, Number, WIRE};
use crate::peel::{KeyMask, PROTO_SHIFT, Peel};
use braid_ir::chain::Chain;
use braid_ir::model::Op;
use braid_ir::residual::{End, HeaderMask, Residual, Step, What};
use braid_packet::field::Cover;
use braid_packet::rewrite::{
    NARROW, Outline, WIDE, WIDE_BYTES, Window, bytes, narrow_words, narrowed, wide_words, widened,
    words,
};
use braid_packet::{Bits, FIELDS, Field, Header, Layout, Packet};

/// The number of the first extractor of a chain with native functions
/// ([`crate::extractors::Extractors`]). Smaller numbers are numbers of programs.
pub(crate) const OPEN: u32 = 1 << 16;

/// The offset of the first VLAN tag, and the length of a tag, in bytes.
pub(crate) const TAGS: usize = Field::VlanTpid.offset();
pub(crate) const TAG_LEN: usize = Field::Vlan2Id.offset() - Field::VlanId.offset();

/// The number of outlines that packets with records may have.
const OUTLINES: usize = 6;

/// The keys of a program's flows.
#[derive(Clone, Debug)]
pub(crate) struct KeyExtractor {
    /// The mask of a narrow key without the protocol. Packets with the outline [`Outline::PLAIN`]
    /// and enough bytes have narrow keys.
    narrow: Option<Window<NARROW>>,
    /// The mask of the link addresses that belong to narrow keys, too. Their values are in the
    /// templates, not in the keys.
    link: [u64; 2],
    /// The masks of the wide keys, by outline. `None` where packets with this outline have no
    /// records.
    wide: [Option<Box<Window<WIDE>>>; OUTLINES],
    /// The number of attempts in a row that led to no record that saves time, and the number of
    /// next attempts to leave out.
    pub(crate) losses: u32,
    left_out: u32,
    /// The tunnel whose end the program is. Flows are those of the packets inside then.
    pub(crate) peel: Option<Peel>,
    /// The masks of the keys of such flows, by outline.
    peeled: [Option<Box<KeyMask>>; OUTLINES],
    /// Whether it may get one.
    pub(crate) may_peel: bool,
    /// Whether records end where a tunnel begins, because no record was found to go through it.
    pub(crate) ends_at_tunnels: bool,
    /// Whether the keys have all bits that the packets of a flow have in common.
    pub(crate) is_whole: bool,
}

/// The number of attempts in a row that may fail before any is left out. Some flows of a program
/// can have records while others cannot.
const FREE_LOSSES: u32 = 8;
/// The largest number of failed attempts in a row that counts. From then on, one attempt in 2^12 is
/// made.
const MOST_LOSSES: u32 = FREE_LOSSES + 12;

/// The fields that decide a packet's worker.
#[derive(Debug)]
pub(crate) struct Steered {
    fields: Vec<Field>,
    /// Whether the packets that ICMP errors quote decide about these errors.
    by_quotes: bool,
}

impl Steered {
    /// The fields that decide the workers of a chain's packets, if one engine acts as several
    /// workers.
    pub(crate) fn of(chain: &Chain) -> Option<Self> {
        let interfaces = u16::try_from(chain.interfaces.len()).unwrap_or(u16::MAX);
        let steering = &chain.steering;
        chain.steers().then(|| Self {
            fields: steering.fields(interfaces),
            by_quotes: steering.errors_follow,
        })
    }
}

impl KeyExtractor {
    /// An extractor for the flows of a program. The keys include the fields that decide a packet's
    /// worker, so that a flow belongs to one worker.
    #[inline(never)]
    pub(crate) fn of(residual: &Residual, steered: Option<&Steered>) -> Self {
        Self::by(|outline| key_mask(residual.shape, outline, looked_at(residual), steered))
    }

    /// An extractor with the key masks that `mask` gives for each outline.
    fn by(mask: impl Fn(Outline) -> Option<[u8; WIDE_BYTES]>) -> Self {
        let wide = std::array::from_fn(|at| mask(outline(at)).map(|mask| Box::new(words(&mask))));
        let narrow = mask(Outline::PLAIN).and_then(|mask| narrow_mask(&mask));
        let (narrow, link) = narrow.unzip();
        Self {
            narrow,
            link: link.unwrap_or_default(),
            wide,
            losses: 0,
            left_out: 0,
            peel: None,
            peeled: [const { None }; OUTLINES],
            may_peel: true,
            ends_at_tunnels: false,
            is_whole: false,
        }
    }

    /// An extractor for the flows of a chain with native functions, and for the flows of a program
    /// behind which other programs read more. Functions may read any field, so the keys have all
    /// bits that are the same in all packets of a flow.
    pub(crate) fn open(shape: HeaderMask, steered: Option<&Steered>) -> Self {
        let all = FIELDS.iter().map(|info| LookedAt::Loaded(info.field)).chain([LookedAt::Tags]);
        let by = Self::by(|outline| key_mask(shape, outline, all.clone(), steered));
        Self { is_whole: true, ..by }
    }

    /// The link addresses of a packet with a narrow key, as far as they belong to its flow.
    pub(crate) fn link(&self, packet: &Packet) -> Link {
        let [one, two, ..]: Window<WIDE> = wide_words(packet.data());
        Link { mask: self.link, is: [one & self.link[0], two & self.link[1]] }
    }

    /// Whether the next attempt to make a record is left out.
    pub(crate) fn is_left_out(&self) -> bool {
        self.left_out > 0
    }

    /// Counts an attempt that is left out.
    pub(crate) fn leave_out(&mut self) {
        self.left_out -= 1;
    }

    /// Records whether an attempt led to a record that saves time. After several failures in a row,
    /// fewer attempts are made.
    pub(crate) fn learn(&mut self, pays: bool) {
        self.losses = if pays { 0 } else { MOST_LOSSES.min(self.losses + 1) };
        self.left_out = (1 << self.losses.saturating_sub(FREE_LOSSES)) - 1;
    }

    /// From now on, all keys are wide, because narrow records cannot hold the program's changes.
    pub(crate) fn make_wide(&mut self) {
        self.narrow = None;
    }

    /// From now on, the flows of packets in tunnels are those of the packets inside, or (`None`)
    /// never.
    pub(crate) fn look_inside(&mut self, peel: Option<Peel>) {
        self.make_wide();
        (self.peel, self.may_peel) = (peel, false);
        self.peeled = self.wide.each_ref().map(|mask| {
            let mut mask = KeyMask::of(mask.as_deref()?, peel?.inner)?;
            let kind = kind_mask(Outline::PLAIN);
            mask.inside.iter_mut().zip(kind).for_each(|(byte, kind)| *byte |= kind);
            Some(Box::new(mask))
        });
    }

    /// The mask of wide keys for packets with an outline. It includes the bits of narrow keys.
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
        let (words, proto) = narrow_words(packet.data())?;
        Some([words[0] & mask[0], words[1] & mask[1] | u64::from(proto) << PROTO_SHIFT])
    }

    /// The key of a packet in a tunnel, and the number of its outline. The rest is as in
    /// [`KeyMask::key`].
    pub(crate) fn peeled_key(
        &self,
        (packet, layout): (&Packet, &Layout),
        inside: (&Layout, usize),
    ) -> Option<(Window<WIDE>, u32)> {
        let outline = Outline::of(layout)?;
        let number = number(outline);
        let mask = self.peeled.get(number)?.as_deref()?;
        Some((mask.key(packet.data(), inside)?, number as u32))
    }

    /// The bits that the packets inside such a tunnel have in common if they have the same key. The
    /// outer headers have an outline.
    pub(crate) fn inside_mask(&self, outline: Outline) -> Option<[u8; WIDE_BYTES]> {
        self.peeled.get(number(outline))?.as_deref().map(|mask| mask.inside)
    }

    /// A packet's wide key, and the number of its outline. `None` if packets with this outline have
    /// no records.
    pub(crate) fn wide_key(&self, packet: &Packet, layout: &Layout) -> Option<(Window<WIDE>, u32)> {
        let number = number(Outline::of(layout)?);
        let mask = self.wide.get(number)?.as_ref()?;
        let window: Window<WIDE> = wide_words(packet.data());
        Some((std::array::from_fn(|at| window[at] & mask[at]), number as u32))
    }
}

/// The bit of a kind that marks wide records.
pub(crate) const IS_WIDE: u32 = 1 << 31;
/// The bit of a kind that marks the flows of packets in tunnels. Their records are wide.
pub(crate) const IS_PEELED: u32 = 1 << 30;

/// The kind of a flow's record: the number of the extractor and, if the record is wide, the
/// packets' outline.
#[inline(always)]
pub(crate) fn kind(program: u32, outline: Option<u32>) -> u32 {
    let outlines = OUTLINES as u32 + 1;
    let kind = program.wrapping_mul(outlines) + outline.map_or(0, |number| number + 1);
    let is_wide = if outline.is_some() { IS_WIDE } else { 0 };
    kind & !IS_WIDE | is_wide
}

/// Whether records of a kind are for packets that come in a tunnel.
#[inline(always)]
pub(crate) fn is_peeled(kind: u32) -> bool {
    kind & IS_PEELED != 0
}

/// The extractor and the outline of a kind of records, and whether the records are narrow.
pub(crate) fn of_kind(kind: u32) -> (u32, Outline, bool) {
    let (outlines, kind) = (OUTLINES as u32 + 1, kind & !(IS_WIDE | IS_PEELED));
    let (outline, is_narrow) = match kind % outlines {
        0 => (Outline::PLAIN, true),
        number => (outline(number as usize - 1), false),
    };
    (kind / outlines, outline, is_narrow)
}

/// The bits of a narrow key at their places in a packet, for a packet that is no fragment.
pub(crate) fn unfolded(key: &Window<NARROW>) -> Window<WIDE> {
    let proto = key[1] >> PROTO_SHIFT << PROTO_SHIFT;
    let mut window = widened(&[key[0], key[1] ^ proto]);
    let bytes = Outline::PLAIN.proto();
    window[bytes / 8] |= proto >> PROTO_SHIFT << (bytes % 8 * 8);
    window
}

/// The first bytes of the packet inside a tunnel, as far as its key tells them.
pub(crate) fn bytes_inside(key: &Window<WIDE>) -> [u8; WIDE_BYTES] {
    let [one, two, .., addresses, rest] = *key;
    let mut window = unfolded(&[one, two]);
    (window[0], window[1]) = (addresses, rest);
    bytes(&window)
}

/// Splits a key mask into the mask of a narrow key and the mask of the link addresses, which have
/// the same values for most flows. `None` if the mask has other bits. The bits of the EtherType,
/// the version, the header length, the fragment and the protocol do not count.
fn narrow_mask(mask: &[u8; WIDE_BYTES]) -> Option<(Window<NARROW>, [u64; 2])> {
    let (mut left, ip) = (*mask, Outline::PLAIN.ip);
    left.iter_mut().zip(kind_mask(Outline::PLAIN)).for_each(|(left, kind)| *left &= !kind);
    let [one, two, ..]: Window<WIDE> = words(&left);
    left[..ip - 2].fill(0);
    let window = words(&left);
    let narrow = narrowed(&window);
    let has_proto_room = narrow[1] >> PROTO_SHIFT == 0;
    // The link addresses may be left to the templates if the key has both IP addresses: packets
    // with different link addresses then rarely share the other bits of the key.
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

/// A part of a packet that a program reads or changes.
#[derive(Clone, Copy)]
enum LookedAt {
    Loaded(Field),
    /// A field that the program assigns. The update of a checksum that covers the field depends on
    /// the old value.
    Written(Field),
    /// VLAN tags. The program may load bits of a tag at the place of another tag.
    Tags,
}

/// The steps of a program in front of the end of a tunnel. Behind it, packets have other headers.
fn steps_in_front(residual: &Residual) -> impl Iterator<Item = &Step> {
    let (mut seen, mut found) = (vec![false; residual.blocks.len()], Vec::new());
    let mut left = vec![0];
    while let Some(at) = left.pop() {
        let Some(block) = residual.blocks.get(at) else { continue };
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let is_end = |step: &Step| matches!(step.what, What::Op(Op::Decapsulate { .. }));
        let end = block.steps.iter().position(is_end);
        found.extend(&block.steps[..end.unwrap_or(block.steps.len())]);
        match &block.end {
            _ if end.is_some() => {}
            End::Jump(to) => left.push(to.block.index()),
            End::Branch { yes, no, .. } => left.extend([yes, no].map(|to| to.block.index())),
            End::Exit(_) | End::Hold { .. } => {}
        }
    }
    found.into_iter()
}

/// Everything that a program reads or changes. No record is for packets that do not leave a tunnel
/// where the program tries to end it.
fn looked_at(residual: &Residual) -> impl Iterator<Item = LookedAt> {
    steps_in_front(residual).flat_map(|step| {
        let (one, fields) = match &step.what {
            What::Op(Op::Load { field, .. }) => (Some(LookedAt::Loaded(*field)), &[][..]),
            // No tunnel holds a packet behind SNAP, whose IP header lies where two tags would put
            // it.
            What::Op(Op::PushVlan { .. } | Op::PopVlan | Op::Encapsulate { .. }) => {
                (Some(LookedAt::Tags), &[][..])
            }
            What::Write(fields) => (None, &fields[..]),
            _ => (None, &[][..]),
        };
        one.into_iter().chain(fields.iter().map(|(field, _)| LookedAt::Written(*field)))
    })
}

/// The key mask of a program that reads or changes `looked_at`, for packets of a header shape with
/// an outline. `None` if packets of this shape do not have the outline.
fn key_mask(
    shape: HeaderMask,
    outline: Outline,
    looked_at: impl Iterator<Item = LookedAt>,
    steered: Option<&Steered>,
) -> Option<[u8; WIDE_BYTES]> {
    let header = if outline.is_ip6 { Header::Ip6 } else { Header::Ip4 };
    if shape.has(header) != Some(true) {
        return None;
    }
    let mut mask = kind_mask(outline);
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
    if let Some(steered) = steered {
        if steered.by_quotes
            && [Header::Tcp, Header::Udp].iter().all(|l4| shape.has(*l4) != Some(true))
        {
            return None;
        }
        for field in &steered.fields {
            bits(shape, outline, *field)?.set(&mut mask, u128::MAX);
        }
    }
    Some(mask)
}

/// The bits that identify the kind of packet: EtherType, version, header length, fragment,
/// protocol.
pub(crate) fn kind_mask(outline: Outline) -> [u8; WIDE_BYTES] {
    let mut mask = [0; WIDE_BYTES];
    let absent = if outline.is_ip6 { Header::Ip4 } else { Header::Ip6 };
    for field in [Field::EthType, Field::IpMf, Field::IpFrag, Field::InetProto] {
        if let Some(bits) = Bits::of(field, outline, &|header| Some(header != absent)) {
            bits.set(&mut mask, u128::MAX);
        }
    }
    // In IPv6, the lower half belongs to the traffic class.
    mask[outline.ip] = if outline.is_ip6 { 0xf0 } else { 0xff };
    mask
}

/// Adds the bits that distinguish VLAN tags: their types and identifiers.
fn add_tags(outline: Outline, mask: &mut [u8; WIDE_BYTES]) {
    for tag in mask[TAGS..outline.ip - 2].chunks_mut(TAG_LEN) {
        tag.copy_from_slice(&[0xff, 0xff, 0x0f, 0xff]);
    }
}

/// Whether a checksum covers a field.
pub(crate) fn in_sum(outline: Outline, field: Field) -> bool {
    let info = field.info();
    match info.header.info().sum {
        Cover::None => false,
        // The IPv6 header has no checksum. The transport checksum covers its addresses.
        Cover::Ip6 | Cover::Inet if outline.is_ip6 => info.address.is_some(),
        _ => true,
    }
}

/// Whether a field is the same in all packets of a flow.
pub(crate) fn is_key(field: Field) -> bool {
    field.info().is_flow
}

/// Whether a field belongs to the Ethernet header or to a VLAN tag. Assigning it changes no other
/// field.
pub(crate) fn is_link(field: Field) -> bool {
    Header::LINK.contains(&field.info().header)
}

/// The place of a field in packets of a header shape with an outline, if it is in their first
/// bytes.
pub(crate) fn bits(shape: HeaderMask, outline: Outline, field: Field) -> Option<Bits> {
    Bits::of(field, outline, &|header| shape.has(header))
}

/// The start of packets, as far as all packets of a flow or of a path share it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedBytes {
    /// The shared bits.
    pub mask: [u8; WIDE_BYTES],
    /// The bytes. Bits that are not in the mask mean nothing.
    pub bytes: [u8; WIDE_BYTES],
}

/// The packet's length on the wire, in bytes.
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
        // The first eight attempts leave out none. The next twelve leave out 2^13 - 14 attempts in
        // all. Each further attempt leaves out 2^12 - 1.
        assert_eq!(tried, 20 + (100_000 - 20 - (8192 - 14)) / 4096 + 1);
        extractor.learn(true);
        assert!(!extractor.is_left_out());
    }
}
