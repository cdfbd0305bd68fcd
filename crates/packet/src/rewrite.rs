//! Masked rewrites: one operation changes all headers of a packet (SpeedyBox §V-B). Bits that all
//! packets of a flow share are written under a mask, the TTL is decremented, amounts are added to
//! numbers, and each checksum is updated.

use crate::amounts::add_all;
pub use crate::amounts::{Add, Adds, Follows, MOST_ADDS};
use crate::checksum::{self, Delta, Sum16};
use crate::field::Header;
use crate::layout::{Layout, Sum};
pub use crate::retag::Retag;
use crate::wire::{ethernet, ipv4, ipv6, proto, vlan};

/// Number of narrow words. A masked rewrite reads and writes only these where they suffice: they
/// hold the addresses of plain IPv4 and the first 8 bytes behind them.
pub const NARROW: usize = 2;
/// Offset of the narrow words.
pub const NARROW_AT: usize = ethernet::LEN + ipv4::SRC;
/// Offset of the first byte behind the narrow words.
pub const NARROW_BYTES: usize = NARROW_AT + 8 * NARROW;
/// Number of words at the start of a packet, for packets with VLAN tags or IPv6 addresses.
pub const WIDE: usize = 10;
/// Number of bytes in the wide words: Ethernet, two tags, IPv6 and the first 18 bytes behind it.
pub const WIDE_BYTES: usize = 8 * WIDE;

/// The first bytes of a packet, with the first byte lowest in the first word. Bytes past the end of
/// the packet are zero.
pub type Window<const W: usize> = [u64; W];

/// Where the headers of an Ethernet packet are. The packet has IP without options or extension
/// headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Outline {
    /// Offset of the IP header, behind up to two VLAN tags.
    pub ip: usize,
    /// Whether the IP header is IPv6.
    pub is_ip6: bool,
}

/// A masked rewrite of the headers of a flow's packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rewrite {
    /// Mask of the bits that stay.
    pub keep: Window<WIDE>,
    /// How much the TTL is decremented.
    pub ttl: u8,
    /// Whether the IPv4 header's checksum and the transport checksum are updated, in this order.
    pub sums: [bool; 2],
    /// The fields to which amounts are added. The amounts are among the new bytes.
    pub adds: Adds,
}

/// A masked rewrite for packets with the outline [`Outline::PLAIN`]. It writes the narrow words and
/// the first two words. Flows that share it differ only in the bits written to the narrow words.
#[derive(Clone, Copy, Debug)]
pub struct NarrowRewrite {
    /// Mask of the bits that stay in the narrow words.
    keep: Window<NARROW>,
    /// Mask of the bits that stay in the first two words, which hold the Ethernet addresses.
    keep_first: [u64; 2],
    /// Bits written to the first two words.
    first: [u64; 2],
    ttl: u8,
    sums: [bool; 2],
}

impl Rewrite {
    /// A masked rewrite that keeps no bits, decrements no TTL, adds nothing and updates no
    /// checksum.
    pub const NONE: Rewrite =
        Rewrite { keep: [0; WIDE], ttl: 0, sums: [false; 2], adds: Adds::NONE };

    /// Whether the masked rewrite touches only the first two words, the narrow words, TTL and
    /// checksums.
    #[must_use]
    pub fn is_narrow(&self) -> bool {
        let may = widened(&[u64::MAX; NARROW]);
        let is_in = self.keep[2..].iter().zip(&may[2..]).all(|(keep, may)| keep | may == u64::MAX);
        is_in && self.adds.is_empty()
    }

    /// Whether the masked rewrite changes nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        let adds_nothing = self.adds.is_empty() && self.sums == [false; 2];
        self.keep == [u64::MAX; WIDE] && self.ttl == 0 && adds_nothing
    }

    /// The narrow form of this masked rewrite. It writes `first` to the first two words.
    #[must_use]
    pub fn narrow(&self, first: [u64; 2]) -> NarrowRewrite {
        let Self { keep, ttl, sums, .. } = *self;
        let [one, two, ..] = keep;
        NarrowRewrite { keep: narrowed(&keep), keep_first: [one, two], first, ttl, sums }
    }
}

impl NarrowRewrite {
    /// The bits of these new narrow words that the masked rewrite writes.
    #[must_use]
    pub fn written(&self, bytes: &Window<NARROW>) -> Window<NARROW> {
        let ([a, b], [keep_a, keep_b]) = (*bytes, self.keep);
        [a & !keep_a, b & !keep_b]
    }
}

/// The narrow words of a packet with these first bytes.
#[must_use]
pub fn narrowed(window: &Window<WIDE>) -> Window<NARROW> {
    let [.., a, b, c, _, _, _, _] = *window;
    [a >> 16 | b << 48, b >> 16 | c << 48]
}

/// The first bytes of a packet with these narrow words, and zeros around them.
#[must_use]
pub fn widened(words: &Window<NARROW>) -> Window<WIDE> {
    let [one, two] = *words;
    [0, 0, 0, one << 16, one >> 48 | two << 16, two >> 48, 0, 0, 0, 0]
}

/// Reads words from bytes, in little-endian order. Missing words are 0.
#[must_use]
#[inline(always)]
pub fn words<const W: usize>(bytes: &[u8]) -> Window<W> {
    let (chunks, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| chunks.get(at).map_or(0, |chunk| u64::from_le_bytes(*chunk)))
}

/// The amounts to add to the IPv4 header's checksum and to the transport checksum when the packet's
/// first bytes change from `old` to `new`. The packet has this layout and outline.
#[must_use]
pub fn sums(
    layout: &Layout,
    outline: Outline,
    old: &[u8; WIDE_BYTES],
    new: &[u8; WIDE_BYTES],
) -> [u16; 2] {
    let mut changes = SumChanges::of(layout, outline);
    let chunks = old.as_chunks::<8>().0.iter().zip(new.as_chunks::<8>().0);
    for (at, (old, new)) in (0..).step_by(8).zip(chunks).filter(|(_, (old, new))| old != new) {
        let pairs = old.as_chunks::<2>().0.iter().zip(new.as_chunks::<2>().0);
        for (at, (old, new)) in (at..).step_by(2).zip(pairs) {
            let number = |pair: &[u8; 2]| u16::from_be_bytes(*pair).into();
            changes.add((at, 2), number(old), number(new));
        }
    }
    changes.sums()
}

/// The changes of a packet's checksums, collected field by field.
#[derive(Clone, Copy, Debug)]
pub struct SumChanges {
    outline: Outline,
    /// The transport checksum, if the packet has one.
    sum: Option<Sum>,
    /// The changes of the IP header before the addresses, of the addresses, and of the bytes behind
    /// the header, as sums of numbers of at most 32 bits.
    header: u64,
    addresses: u64,
    rest: u64,
}

impl SumChanges {
    /// No change yet. The packet has this layout and outline.
    #[must_use]
    pub fn of(layout: &Layout, outline: Outline) -> Self {
        Self { outline, sum: layout.sum(), header: 0, addresses: 0, rest: 0 }
    }

    /// Adds the change of the big-endian number in the `len` bytes at offset `at`, all of them in
    /// one part of the packet: at most 16 bytes, or 14 at an odd offset. Checksums do not count.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a number of at most 4 bytes is cast")]
    pub fn add(&mut self, (at, len): (usize, usize), old: u128, new: u128) {
        let Outline { ip, is_ip6 } = self.outline;
        let is_sum = at == ip + ipv4::CHECKSUM && !is_ip6;
        if at < ip || is_sum || self.sum.is_some_and(|sum| sum.at == at) {
            return;
        }
        let src = ip + if is_ip6 { ipv6::SRC } else { ipv4::SRC };
        let part = match at {
            _ if at < src => &mut self.header,
            _ if at < self.outline.l4() => &mut self.addresses,
            _ => &mut self.rest,
        };
        // Addresses and ports are the most common numbers.
        if at % 2 == 0 && (len == 2 || len == 4) {
            let [old, new] = [old as u64, new as u64];
            *part += (!old & u64::MAX >> (64 - 8 * len)) + new;
            return;
        }
        // The sum is one of numbers of 16 bits, which begin at even offsets. Bytes around the
        // number that belong to such a number count as 0 before and after.
        let shift = 8 * ((at + len) % 2);
        let even = (len + at % 2 + (at + len) % 2).clamp(2, 16);
        let ones = u128::MAX >> (8 * (16 - even));
        *part += quarters(!(old << shift) & ones) + quarters(new << shift);
    }

    /// The amounts to add to the IPv4 header's checksum and to the transport checksum.
    #[must_use]
    pub fn sums(self) -> [u16; 2] {
        let Self { outline, sum, header, addresses, rest } = self;
        // A number that stays would add ones, which is 0 in one's complement. These ones stand for
        // all numbers that stay.
        let folded = |sum: u64| Sum16::of_numbers(sum + 0xffff).folded();
        let own = if outline.is_ip6 { 0 } else { folded(header + addresses) };
        let Some(sum) = sum else { return [own, 0] };
        [own, folded(rest + if sum.has_pseudo() { addresses } else { 0 })]
    }
}

/// The sum of the quarters of a number.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a half has 64 bits")]
fn quarters(number: u128) -> u64 {
    let halves = |half: u64| (half & u64::from(u32::MAX)) + (half >> 32);
    halves(number as u64) + halves((number >> 64) as u64)
}

impl Outline {
    /// The outline of a packet with IPv4 and without VLAN tags.
    pub const PLAIN: Outline = Outline { ip: ethernet::LEN, is_ip6: false };

    /// The outline of a packet with this layout. `None` if the packet is malformed or its headers
    /// have no outline.
    #[must_use]
    #[inline(always)]
    pub fn of(layout: &Layout) -> Option<Outline> {
        let is_ip6 = layout.has(Header::Ip6);
        let outline = Outline { ip: layout.ip(), is_ip6 };
        let is_it = layout.has(Header::Eth)
            && (is_ip6 || layout.has(Header::Ip4))
            && outline.ip <= ethernet::LEN + 2 * vlan::LEN
            && !layout.is_encapsulated()
            && layout.l4() == outline.l4()
            && layout.malformed_reason().is_none();
        is_it.then_some(outline)
    }

    /// Offset of the first byte behind the IP header.
    #[must_use]
    #[inline(always)]
    pub fn l4(self) -> usize {
        self.ip + if self.is_ip6 { ipv6::LEN } else { ipv4::LEN }
    }

    /// Offset of the protocol byte.
    #[must_use]
    #[inline(always)]
    pub fn proto(self) -> usize {
        self.ip + if self.is_ip6 { ipv6::NEXT } else { ipv4::PROTO }
    }

    /// Number of VLAN tags.
    #[must_use]
    pub fn tags(self) -> usize {
        self.ip.saturating_sub(ethernet::LEN) / vlan::LEN
    }

    /// The outline after the tags changed.
    #[must_use]
    pub fn with(self, tags: &Retag) -> Self {
        Self { ip: self.ip.saturating_add_signed(tags.longer() as isize), ..self }
    }

    /// Offset of the TTL.
    #[must_use]
    #[inline(always)]
    pub fn ttl(self) -> usize {
        self.ip + if self.is_ip6 { ipv6::TTL } else { ipv4::TTL }
    }
}

impl Layout {
    /// Whether the packet has a transport checksum that covers the IP addresses.
    #[must_use]
    pub fn has_pseudo_sum(&self) -> bool {
        self.sum().is_some_and(Sum::has_pseudo)
    }

    /// Whether the transport has a checksum that was not captured.
    #[must_use]
    pub fn lacks_sum(&self) -> bool {
        let has_one = matches!(self.proto(), proto::TCP | proto::UDP | proto::ICMP | proto::ICMP6);
        has_one && self.sum().is_none()
    }

    /// Applies a masked rewrite to a packet with the outline [`Outline::PLAIN`]. `bytes` holds the
    /// new bits and is zero where bits stay. `added` comes from [`sums`].
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "the TTL of a plain packet is in `head`")]
    pub fn rewrite_narrow(
        &self,
        data: &mut [u8],
        rewrite: &NarrowRewrite,
        bytes: &Window<NARROW>,
        added: [u16; 2],
    ) {
        let Some(head) = data.first_chunk_mut::<NARROW_BYTES>() else { return };
        let (first, rest) = head.split_at_mut(16);
        let (_, narrow) = rest.split_at_mut(NARROW_AT - 16);
        write(first, &rewrite.keep_first, &rewrite.first);
        write(narrow, &rewrite.keep, bytes);
        let ttl = &mut head[Outline::PLAIN.ttl()];
        *ttl = ttl.wrapping_sub(rewrite.ttl);
        if rewrite.sums[0] {
            update_ip(head, Outline::PLAIN, added[0]);
        }
        if rewrite.sums[1] {
            self.update_transport(data, added[1]);
        }
    }

    /// Does the same as [`Layout::rewrite_narrow`] for any outline. Where bits stay, `bytes` may
    /// hold other numbers: the amounts that the rewrite adds, and what else the caller keeps there.
    #[expect(
        clippy::indexing_slicing,
        reason = "`at` is the number of a wide word, and the last word has fewer than eight bytes"
    )]
    pub fn rewrite_wide(
        &self,
        (data, outline): (&mut [u8], Outline),
        rewrite: &Rewrite,
        bytes: &Window<WIDE>,
        added: [u16; 2],
    ) {
        let written = std::array::from_fn::<_, WIDE, _>(|at| bytes[at] & !rewrite.keep[at]);
        write(data, &rewrite.keep, &written);
        let (chunks, end) = data.as_chunks_mut::<8>();
        if let Some(keep) = rewrite.keep.get(chunks.len()) {
            let word = word(end) & keep | written[chunks.len()];
            end.copy_from_slice(&word.to_le_bytes()[..end.len()]);
        }
        if let Some(ttl) = data.get_mut(outline.ttl()) {
            *ttl = ttl.wrapping_sub(rewrite.ttl);
        }
        if rewrite.sums[0] {
            update_ip(data, outline, added[0]);
        }
        if rewrite.sums[1] {
            self.update_transport(data, added[1]);
        }
        if !rewrite.adds.is_empty() {
            let amounts = bytes.map(u64::to_le_bytes);
            add_all(self, data, &rewrite.adds, amounts.as_flattened());
        }
    }

    #[inline(always)]
    fn update_transport(&self, data: &mut [u8], added: u16) {
        if let Some(sum) = self.sum() {
            checksum::update(data, sum.at, Delta::of(added), sum.is_udp());
        }
    }
}

/// A packet's narrow words and its protocol. `None` if the packet is too short. The packet must
/// have the outline [`Outline::PLAIN`].
#[must_use]
#[inline(always)]
#[expect(clippy::indexing_slicing, reason = "the protocol of a plain packet is in `head`")]
pub fn narrow_words(data: &[u8]) -> Option<(Window<NARROW>, u8)> {
    let head = data.first_chunk::<NARROW_BYTES>()?;
    Some((words(&head[NARROW_AT..]), head[Outline::PLAIN.proto()]))
}

/// A packet's first words. Bytes past its end are zero.
///
/// Words are loaded one by one. A copy of the bytes would have to be stored completely before the
/// first load from it.
#[must_use]
#[inline(always)]
pub fn wide_words(data: &[u8]) -> Window<WIDE> {
    let (_, end) = data.as_chunks::<8>();
    let mut window = words(data);
    if let Some(last) = window.get_mut(data.len() / 8) {
        *last = word(end);
    }
    window
}

/// A word of fewer than eight bytes, in little-endian order.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// A packet's first bytes. Bytes past its end are zero.
#[must_use]
#[inline]
pub fn wide_window(data: &[u8]) -> [u8; WIDE_BYTES] {
    if let Some(first) = data.first_chunk() {
        return *first;
    }
    let mut window = [0; WIDE_BYTES];
    window.iter_mut().zip(data).for_each(|(byte, given)| *byte = *given);
    window
}

/// The bytes of words, in little-endian order.
#[must_use]
pub fn bytes(window: &Window<WIDE>) -> [u8; WIDE_BYTES] {
    let mut bytes = [0; WIDE_BYTES];
    let (chunks, _) = bytes.as_chunks_mut::<8>();
    chunks.iter_mut().zip(window).for_each(|(chunk, word)| *chunk = word.to_le_bytes());
    bytes
}

/// Updates the IPv4 header's checksum.
#[inline(always)]
fn update_ip(data: &mut [u8], outline: Outline, added: u16) {
    checksum::update(data, outline.ip + ipv4::CHECKSUM, Delta::of(added), false);
}

/// Writes words over bytes. Bits of the mask `keep` stay.
#[inline(always)]
fn write(over: &mut [u8], keep: &[u64], bytes: &[u64]) {
    let (chunks, _) = over.as_chunks_mut::<8>();
    for ((chunk, keep), bytes) in chunks.iter_mut().zip(keep).zip(bytes) {
        *chunk = (u64::from_le_bytes(*chunk) & keep | bytes).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Shape, build_fresh};
    use crate::field::Field::{self, *};
    use crate::packet::Link;
    use crate::packet::Packet;

    #[test]
    fn changes_of_fields_add_up_to_the_changes_of_all_bytes() {
        let mut random = random();
        for case in 0..braid_cases::cases(2_000) as usize {
            let packet = tagged(SHAPES[case % SHAPES.len()], case / 6 % 3);
            let layout = packet.parse();
            let outline = Outline::of(&layout).expect("an outline");
            let before = wide_window(packet.data());
            let (mut after, mut changes) = (before, SumChanges::of(&layout, outline));
            for _ in 0..1 + random() % 5 {
                let len = [1, 2, 3, 4, 16][random() as usize % 5];
                let at = random() as usize % (WIDE_BYTES - len);
                let at = if len > 14 { at & !1 } else { at };
                let bytes = at..at + len;
                // All bytes are in one part of the packet.
                let src = outline.ip + if outline.is_ip6 { ipv6::SRC } else { ipv4::SRC };
                let sums = [outline.ip + ipv4::CHECKSUM, layout.sum().map_or(0, |sum| sum.at)];
                let crosses = |offset: usize| bytes.start < offset && offset < bytes.end;
                let covers = |sum: usize| bytes.start < sum + 2 && sum < bytes.end;
                if [outline.ip, src, outline.l4()].into_iter().any(crosses)
                    || sums.into_iter().any(covers)
                {
                    continue;
                }
                let number =
                    |bytes: &[u8]| bytes.iter().fold(0, |all, b| all << 8 | u128::from(*b));
                let old = number(&after[bytes.clone()]);
                after[bytes.clone()].iter_mut().for_each(|byte| *byte = random() as u8);
                changes.add((at, len), old, number(&after[bytes]));
            }
            assert_eq!(changes.sums(), sums(&layout, outline, &before, &after));
        }
    }

    /// A generator of 64-bit numbers.
    fn random() -> impl FnMut() -> u64 {
        let mut rng = braid_externs::Rng::new(7);
        move || rng.next_u64()
    }

    /// A packet of a shape behind `tags` VLAN tags.
    fn tagged(shape: Shape, tags: usize) -> Packet {
        let mut packet = build_fresh(Link::Ethernet, 0, shape, &[], &[7; 20]).unwrap();
        (0..tags).for_each(|tag| assert!(packet.push_vlan(5 + tag as u16)));
        packet
    }

    #[test]
    fn tags_are_exchanged_as_they_are_removed_and_added() {
        let mut next = random();
        for case in 0..braid_cases::cases(2_000) as usize {
            let mut packet = tagged(SHAPES[case % SHAPES.len()], case / 6 % 3);
            let came = packet.clone();
            let outline = Outline::of(&packet.parse()).unwrap();
            let mut tags = Retag::default();
            for _ in 0..next() % 6 {
                let now = outline.tags() - tags.lost + tags.got.len() / 4;
                if now > 0 && next().is_multiple_of(2) {
                    assert!(packet.pop_vlan());
                    match tags.got.is_empty() {
                        true => tags.lost += 1,
                        false => drop(tags.got.drain(..4)),
                    }
                } else if now < 2 {
                    let id = next() as u16 & 0xfff;
                    assert!(packet.push_vlan(id));
                    let [high, low] = id.to_be_bytes();
                    tags.got.splice(..0, [0x81, 0, high, low]);
                }
            }
            let mut at_once = came.clone();
            at_once.retag(&tags);
            assert_eq!(at_once, packet);
            assert_eq!(Outline::of(&packet.parse()), Some(outline.with(&tags)));
            for (at, byte) in packet.data().iter().enumerate() {
                let origin = tags.origin(at).map(|origin| came.data()[origin]);
                assert_eq!(origin.unwrap_or(*byte), *byte, "byte {at} of {tags:?}");
            }
        }
    }

    /// The bits that a field occupies.
    fn bits(packet: &Packet, layout: &Layout, field: Field) -> Window<WIDE> {
        let (mut zeros, mut ones) = (packet.clone(), packet.clone());
        zeros.write(layout, field, 0);
        ones.write(layout, field, u128::MAX);
        let (zeros, ones): (Window<WIDE>, Window<WIDE>) =
            (wide_words(zeros.data()), wide_words(ones.data()));
        std::array::from_fn(|at| zeros[at] ^ ones[at])
    }

    const SHAPES: [Shape; 6] =
        [Shape::Tcp4, Shape::Udp4, Shape::Icmp, Shape::Tcp6, Shape::Udp6, Shape::Icmp6];
    const FIELDS: [Field; 10] =
        [EthDst, EthSrc, VlanId, IpSrc, IpDst, IpTos, Ip6Src, Ip6Dst, L4Sport, L4Dport];

    /// Assigning the fields one by one defines the right result.
    #[test]
    fn headers_are_rewritten_as_fields_are_assigned() {
        let mut next = random();
        let (mut unlike, mut narrow) = (0, 0);
        for case in 0..braid_cases::at_least(40_000) as usize {
            let shape = SHAPES[case % SHAPES.len()];
            let mut packet = tagged(shape, (case / 6 % 5).saturating_sub(2));
            let layout = packet.parse();
            let outline = Outline::of(&layout).unwrap();
            let l4 = outline.l4();
            let at = [outline.ip + ipv4::CHECKSUM, l4 + 16, l4 + 6, l4 + 2][case % 4];
            // Checksums of all kinds, none of them right.
            let odd = [0, 0xffff, 0xfffe, 1, next() as u16][case % 5];
            packet.data_mut()[at..at + 2].copy_from_slice(&odd.to_be_bytes());
            packet.data_mut()[outline.ttl()] = 9;
            let layout = packet.parse();
            if Outline::of(&layout) != Some(outline) {
                continue;
            }
            let before = wide_window(packet.data());
            let mut expected = packet.clone();
            let mut mask = Window::<WIDE>::default();
            let mut assigned = Vec::new();
            for field in FIELDS {
                if next().is_multiple_of(3) || !layout.has(field.info().header) {
                    continue;
                }
                let old = expected.get(&layout, field).unwrap();
                let most = u128::MAX >> (128 - field.info().width);
                let value = [old, 0, most, u128::from(next()) & most][next() as usize % 4];
                assert!(expected.set(&layout, field, value));
                assigned.push(field);
                let bits = bits(&packet, &layout, field);
                mask.iter_mut().zip(bits).for_each(|(mask, bits)| *mask |= bits);
            }
            let ttl = (next() % 3) as u8;
            if ttl > 0 {
                expected.set(&layout, InetTtl, u128::from(9 - ttl));
                assigned.push(InetTtl);
            }
            let after = wide_window(expected.data());
            let is_ip = |field: &Field| matches!(field.info().header, Header::Ip4 | Header::Inet);
            let in_sum = |field: &Field| {
                let is_address = matches!(field, IpSrc | IpDst | Ip6Src | Ip6Dst);
                is_address && layout.has_pseudo_sum() || field.info().header == Header::L4
            };
            let keep: Window<WIDE> = mask.map(|word| !word);
            let rewrite = Rewrite {
                keep,
                ttl,
                sums: [!outline.is_ip6 && assigned.iter().any(is_ip), assigned.iter().any(in_sum)],
                adds: Adds::NONE,
            };
            let mut bytes: Window<WIDE> = words(&after);
            bytes.iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
            let added = sums(&layout, outline, &before, &after);
            let mut wide = packet.clone();
            layout.rewrite_wide((wide.data_mut(), outline), &rewrite, &bytes, added);
            assert_eq!(wide, expected, "{shape:?} {assigned:?} ttl -{ttl}");
            if outline == Outline::PLAIN && rewrite.is_narrow() {
                let own = rewrite.narrow([bytes[0], bytes[1]]);
                layout.rewrite_narrow(packet.data_mut(), &own, &narrowed(&bytes), added);
                assert_eq!(packet, expected, "{shape:?} {assigned:?} ttl -{ttl}");
                narrow += 1;
            }
            unlike += usize::from(before != after);
        }
        assert!(unlike > 30_000 && narrow > 10_000, "{unlike} {narrow}");
    }
}
