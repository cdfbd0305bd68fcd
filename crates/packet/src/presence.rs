//! Lists the sets of headers that a packet can have: every value of [`Layout::presence`].
//!
//! [`Layout::presence`]: crate::Layout::presence

use crate::declare::Parse;
use crate::field::{Field, Header, Parts};

/// Every set of headers that a parse can give, as bits by [`Header`] number, in ascending order.
/// There are fewer than a thousand.
#[must_use]
pub fn presences() -> Vec<u128> {
    let mut all = Vec::new();
    for count in 0..=Header::LINK.len() {
        let link = || Header::LINK.iter().take(count);
        let start = Header::bits(link()) | Header::Pkt.bit();
        all.push(start);
        for header in Header::LIST.iter().filter(|header| announced(**header, Field::EthType)) {
            // A header that needs Ethernet is parsed only behind an Ethernet header.
            if count > 0 || !header.implies().contains(&Header::Eth) {
                all.extend(from(*header).into_iter().map(|headers| start | headers));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The sets of headers that begin with this header.
fn from(header: Header) -> Vec<u128> {
    let own = header.closure();
    let mut all = Vec::new();
    for parts in parts(header) {
        for behind in behind(header) {
            all.push(own | parts | behind);
        }
    }
    all
}

/// The sets of headers that may follow a header, including the empty set.
fn behind(header: Header) -> Vec<u128> {
    let mut all = vec![0];
    for next in Header::LIST {
        let by = next.info().follows.iter().any(|(field, _)| field.info().header == header);
        let by = by || header.info().fields.iter().any(|info| leads(header, info.field, *next));
        if by {
            // Which one of several headers it stands for follows from the header in front.
            let mut one_of = next.info().one_of.iter();
            let one = one_of.find(|one| one.implies().contains(&header)).map_or(0, |one| one.bit());
            all.extend(from(*next).into_iter().map(|headers| headers | one));
        }
    }
    all
}

/// Whether a field's value announces a header in place of another field's value.
fn leads(header: Header, field: Field, next: Header) -> bool {
    let Parse::Rules(rules) = header.info().parse else { return false };
    let follows = next.info().follows;
    let same = |(_, by, value): &(u16, Field, u16)| {
        follows.iter().any(|(field, values)| field == by && values.contains(value))
    };
    rules.next.is_some_and(|(by, ..)| by == field) && rules.same.iter().any(same)
}

/// The sets of parts that a header may have.
fn parts(header: Header) -> Vec<u128> {
    match header.info().parts {
        Parts::Any(parts) => (0..1_usize << parts.len())
            .map(|chosen| {
                let some = parts.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
                some.fold(0, |headers, (_, part)| headers | part.bit())
            })
            .collect(),
        Parts::One(parts) => [0].into_iter().chain(parts.iter().map(|part| part.bit())).collect(),
    }
}

fn announced(header: Header, field: Field) -> bool {
    !header.announced_by(field).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Link};
    use braid_externs::Rng;
    use std::collections::BTreeSet;

    /// Random bytes that often contain values that the parser recognises.
    fn random_frame(rng: &mut Rng) -> Vec<u8> {
        let mut next = || rng.next_u64() as u32;
        let kinds: [[u8; 2]; 8] = [
            [8, 0],
            [0x86, 0xdd],
            [8, 6],
            [0x81, 0],
            [0x88, 0xa8],
            [0x88, 0x47],
            [8, 0],
            [0x88, 0x64],
        ];
        let protos = [6, 17, 1, 58, 47, 51, 50, 4];
        let mut bytes = vec![2; 12];
        for _ in 0..next() % 4 {
            let kind = kinds[next() as usize % kinds.len()];
            bytes.extend(kind);
            match kind {
                [0x81, 0] | [0x88, 0xa8] => {
                    bytes.extend([0, 5]);
                    continue;
                }
                [0x86, 0xdd] => {
                    bytes.extend([0x60, 0, 0, 0, 0, 60, protos[next() as usize % 8], 9]);
                    bytes.extend([1; 32]);
                }
                [0x88, 0x64] => {
                    bytes.extend([0x11, 0, 0, 1, 0, 100, 0, [0x21, 0x57][next() as usize % 2]]);
                    bytes.extend([0x45, 0, 0, 90, 0, 0, 0, 0, 9, protos[next() as usize % 8]]);
                }
                [8, 6] => bytes.extend([0, 1, 8, 0, 6, 4, 0, 1]),
                _ => {
                    bytes.extend([0x45, 0, 0, 100, 0, 0, 0, 0, 9, protos[next() as usize % 8]]);
                    bytes.extend([0; 10]);
                }
            }
            break;
        }
        while bytes.len() < 140 {
            let small: [u8; 18] = [
                0, 1, 2, 3, 4, 8, 11, 17, 0x12, 0xb5, 0x17, 0xc1, 0x45, 0x60, 0x20, 0x50, 0x70, 128,
            ];
            bytes.push(small[next() as usize % small.len()]);
        }
        let cut = if next() % 4 == 0 { next() as usize % bytes.len() } else { bytes.len() };
        bytes.truncate(cut);
        bytes
    }

    #[test]
    fn presences_hold_whatever_a_parse_gives() {
        let all: BTreeSet<u128> = presences().into_iter().collect();
        let mut rng = Rng::new(1);
        let mut seen = BTreeSet::new();
        for _ in 0..braid_cases::at_least(200_000) {
            let frame = random_frame(&mut rng);
            for link in [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2] {
                let skip = if link == Link::RawIp { 14.min(frame.len()) } else { 0 };
                let wire = u32::try_from(frame.len() - skip).unwrap();
                seen.insert(Layout::parse(link, &frame[skip..], wire).presence());
            }
        }
        let strange: Vec<_> = seen.difference(&all).collect();
        assert!(strange.is_empty(), "a parse gives headers that are not listed: {strange:x?}");
        assert!(seen.len() > 60, "the frames reach {} sets of headers only", seen.len());
    }

    #[test]
    fn presences_keep_what_headers_imply() {
        for headers in presences() {
            for (header, _) in crate::HEADERS {
                let implied = Header::bits(header.implies());
                let present = headers & header.bit() != 0;
                assert!(!present || headers & implied == implied, "{headers:x} {header:?}");
            }
        }
    }

    #[test]
    fn presences_are_listed_once() {
        let all = presences();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
