//! Headers changed all at once: what a flow's packets have in common is written over them under a mask,
//! what they count down is counted down, and each checksum is updated once (SpeedyBox §V-B).

use crate::checksum::{self, Delta, Sum16};
use crate::layout::{Layout, Sum};
use crate::packet::Packet;
use crate::wire::{ethernet, ipv4, proto};

/// Words at the start of a packet that are changed together.
pub const WORDS: usize = 6;
/// Bytes of those: Ethernet, IPv4 and the first 14 bytes behind.
pub const BYTES: usize = 8 * WORDS;

/// Where the IPv4 header and what is behind it begin in packets without tags and options.
pub const IP: usize = ethernet::LEN;
/// See [`IP`].
pub const L4: usize = IP + ipv4::LEN;
/// Where the TTL is.
pub const TTL: usize = IP + ipv4::TTL;

const IP_SUM: usize = IP + ipv4::CHECKSUM;

/// A packet's first bytes as words, the first byte lowest.
pub type Window = [u64; WORDS];

/// What happens to the headers of a flow's packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Blend {
    /// Bits that stay.
    pub keep: Window,
    /// What the TTL goes down by.
    pub ttl: u8,
    /// Whether the IPv4 header's checksum, and the transport's, are updated.
    pub sums: [bool; 2],
}

/// The words of these bytes.
#[must_use]
#[inline(always)]
pub fn words(bytes: &[u8; BYTES]) -> Window {
    let (chunks, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(chunks[at]))
}

/// What is to be added to the checksums of the IPv4 header and of the transport when the packet with this
/// layout, which is without tags and options, has these bytes instead of those.
#[must_use]
pub fn sums(layout: &Layout, old: &[u8; BYTES], new: &[u8; BYTES]) -> [u16; 2] {
    let change = |from: usize, to: usize, but: usize| {
        let ranges = [from..but.clamp(from, to), (but + 2).clamp(from, to)..to];
        let sum = ranges.into_iter().fold(Sum16::default(), |sum, range| {
            let gone: Vec<u8> = old[range.clone()].iter().map(|byte| !byte).collect();
            sum.with(&new[range]).with(&gone)
        });
        sum.folded()
    };
    let ip = change(IP, L4, IP_SUM);
    let Some(sum) = layout.sum() else { return [ip, 0] };
    let addresses = if sum.has_pseudo() { change(IP + ipv4::SRC, L4, BYTES) } else { 0 };
    let both = Sum16::default().with_word(u32::from(change(L4, BYTES, sum.at)));
    [ip, both.with_word(u32::from(addresses)).folded()]
}

impl Layout {
    /// Offsets of the outermost IP header and of what is behind it and its extensions. They mean something
    /// only where there is one.
    #[must_use]
    #[inline(always)]
    pub fn offsets(&self) -> (usize, usize) {
        (self.ip(), self.l4())
    }

    /// Whether there is a transport checksum that covers the IP addresses; `None` if the capture lacks it.
    #[must_use]
    pub fn has_pseudo_sum(&self) -> Option<bool> {
        let has_one = matches!(self.proto(), proto::TCP | proto::UDP);
        match self.sum() {
            None if has_one => None,
            sum => Some(sum.is_some_and(Sum::has_pseudo)),
        }
    }
}

impl Packet {
    /// Its first bytes, if it has so many.
    #[must_use]
    #[inline(always)]
    pub fn window(&self) -> Option<&[u8; BYTES]> {
        self.data().first_chunk()
    }

    /// Changes its headers; `bytes` are zero where bits stay, `added` as from [`sums`]. The packet is without
    /// tags and options, and this its layout.
    #[inline(always)]
    pub fn blend(&mut self, layout: &Layout, blend: &Blend, bytes: &Window, added: [u16; 2]) {
        let data = self.data_mut();
        let Some(head) = data.first_chunk_mut::<BYTES>() else { return };
        let (chunks, _) = head.as_chunks_mut::<8>();
        for ((chunk, keep), bytes) in chunks.iter_mut().zip(&blend.keep).zip(bytes) {
            *chunk = (u64::from_le_bytes(*chunk) & keep | bytes).to_le_bytes();
        }
        head[TTL] = head[TTL].wrapping_sub(blend.ttl);
        if blend.sums[0] {
            checksum::update(data, IP_SUM, Delta::of(added[0]), false);
        }
        if blend.sums[1]
            && let Some(sum) = layout.sum()
        {
            checksum::update(data, sum.at, Delta::of(added[1]), sum.is_udp());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Shape, build_fresh};
    use crate::field::Field;
    use crate::packet::Link;

    /// Numbers of 31 bits.
    fn random() -> impl FnMut() -> u64 {
        let mut seed = 7_u64;
        move || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        }
    }

    /// Assigning fields one by one is the definition.
    #[test]
    fn headers_are_blended_as_fields_are_assigned() {
        let mut next = random();
        let fields = [
            (Field::EthDst, 48),
            (Field::EthSrc, 48),
            (Field::IpSrc, 32),
            (Field::IpDst, 32),
            (Field::IpTos, 8),
            (Field::L4Sport, 16),
            (Field::L4Dport, 16),
        ];
        let mut unlike = 0;
        for case in 0..20_000 {
            let shape = [Shape::Tcp4, Shape::Udp4, Shape::Icmp][case % 3];
            let mut packet = build_fresh(Link::Ethernet, 0, shape, &[], &[7; 20]).unwrap();
            let at = [IP_SUM, L4 + 16, L4 + 6, L4 + 2][case % 4];
            // Sums of all kinds, none of them right.
            let odd = [0, 0xffff, 0xfffe, 1, next() as u16][case % 5];
            packet.data_mut()[at..at + 2].copy_from_slice(&odd.to_be_bytes());
            packet.data_mut()[TTL] = 9;
            let layout = packet.parse();
            let before = *packet.window().unwrap();
            let mut expected = packet.clone();
            let mut mask = Window::default();
            let mut assigned = Vec::new();
            for (field, bits) in fields {
                if !next().is_multiple_of(3)
                    || shape == Shape::Icmp && field.info().header != crate::Header::Ip4
                {
                    continue;
                }
                let old = expected.get(&layout, field).unwrap();
                let value = [old, 0, (1 << bits) - 1, u128::from(next()) & ((1 << bits) - 1)];
                assert!(expected.set(&layout, field, value[next() as usize % 4]));
                assigned.push(field);
                let (mut zeros, mut ones) = (packet.clone(), packet.clone());
                zeros.write(&layout, field, 0);
                ones.write(&layout, field, u128::MAX);
                let (zeros, ones) = (words(zeros.window().unwrap()), words(ones.window().unwrap()));
                mask.iter_mut().zip(zeros.iter().zip(ones)).for_each(|(m, (z, o))| *m |= z ^ o);
            }
            let ttl = (next() % 3) as u8;
            if ttl > 0 {
                expected.set(&layout, Field::IpTtl, u128::from(9 - ttl));
                assigned.push(Field::IpTtl);
            }
            let after = *expected.window().unwrap();
            let is_ip = |field: &Field| field.info().header == crate::Header::Ip4;
            let in_sum = |field: &Field| {
                let address = matches!(field, Field::IpSrc | Field::IpDst) && shape != Shape::Icmp;
                address || field.info().header == crate::Header::L4
            };
            let blend = Blend {
                keep: mask.map(|word| !word),
                ttl,
                sums: [assigned.iter().any(is_ip), assigned.iter().any(in_sum)],
            };
            let mut bytes = words(&after);
            bytes.iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
            let added = sums(&layout, &before, &after);
            packet.blend(&layout, &blend, &bytes, added);
            assert_eq!(packet, expected, "{shape:?} {assigned:?} ttl -{ttl}");
            unlike += usize::from(before != after);
        }
        assert!(unlike > 15_000, "{unlike}");
    }
}
