//! Outer headers that are filled in once and then added to many packets.

use super::filling::{Carried, Inner, added_len, carried, fill, fits, length};
use crate::bytes::{self, MAX_WORDS};
use crate::checksum::rfc1071;
use crate::field::{Field, Header};
use crate::layout::Layout;
use crate::lengths::write;
use crate::packet::Packet;
use crate::place::place;
use crate::wire::ipv4;
use arrayvec::ArrayVec;
use std::ops::Range;

/// Outer headers around packets of one kind. Adding them takes fewer steps than
/// [`super::encapsulate`] does, and has the same result: for each packet, only lengths and
/// checksums of IPv4 are computed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Envelope {
    inner: Inner,
    /// The EtherType of the packets inside.
    kind: u16,
    /// The EtherType that announces the headers, if one does.
    announced: Option<u16>,
    /// The headers around a packet without any byte. IPv4 has no checksum.
    bytes: Vec<u8>,
    /// The bits that follow from the kinds of headers and from the packet, whatever the contents.
    filled: Vec<u8>,
    /// The offsets of lengths, which count the bytes inside.
    lengths: ArrayVec<usize, MOST_PARTS>,
    /// The offsets of IPv4 headers.
    ip4: ArrayVec<usize, MOST_PARTS>,
}

/// The most headers with lengths, and the most IPv4 headers.
const MOST_PARTS: usize = 8;

impl Envelope {
    /// Outer headers with these contents (as for [`super::encapsulate`]) around packets of the kind
    /// of this one. `None` if `encapsulate` would refuse this packet, if a checksum would cover
    /// bytes of the packet, or if a header needs a key.
    #[must_use]
    pub fn new(
        packet: &Packet,
        layout: &Layout,
        (inner, parts): (Inner, &[Header]),
        (len, words): (usize, &[u128]),
    ) -> Option<Self> {
        if parts.iter().any(|part| matches!(part, Header::Esp | Header::Ah)) {
            return None;
        }
        let carried = carried(packet, layout, inner)?;
        let empty = Carried { len: 0, ..carried };
        let mut bytes = bytes::of_words(words).get(..len)?.to_vec();
        let (mut zeros, mut ones) = (vec![0; len], vec![u8::MAX; len]);
        let start = fill(&mut bytes, parts, &empty);
        fill(&mut zeros, parts, &empty);
        fill(&mut ones, parts, &empty);
        let can_stand = start.can_stand(&carried) && fits(packet, inner, carried.len, len);
        if start.summed.is_some() || !can_stand {
            return None;
        }
        let mut filled: Vec<u8> =
            zeros.iter().zip(&ones).map(|(zero, one)| !(zero ^ one)).collect();
        let (mut lengths, mut ip4, mut at) = (ArrayVec::new(), ArrayVec::new(), 0);
        for part in parts {
            if let Some((length, _)) = length(*part) {
                lengths.try_push(at + length).ok()?;
            }
            if *part == Header::Ip4 {
                ip4.try_push(at).ok()?;
                let checksum = at + ipv4::CHECKSUM..at + ipv4::CHECKSUM + 2;
                bytes.get_mut(checksum.clone())?.fill(0);
                filled.get_mut(checksum)?.fill(u8::MAX);
            }
            at += added_len(*part)?;
        }
        let (kind, announced) = (carried.kind, start.kind);
        Some(Self { inner, kind, announced, bytes, filled, lengths, ip4 })
    }

    /// What the headers hold.
    #[must_use]
    pub fn inner(&self) -> Inner {
        self.inner
    }

    /// The number of bytes that a packet gets.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "outer headers have bytes")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether these bytes are contents, and nothing else decides any of their bits.
    #[must_use]
    pub fn is_free(&self, at: usize, len: usize) -> bool {
        let bytes = self.filled.get(at..at + len);
        bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    }

    /// Where a field of a packet in these headers is, if it is one of theirs and neither a length
    /// nor a checksum. So it is independent of what the headers are around. Offsets count from the
    /// start of the headers, which is at `start` in the packet. `layout` is that of the whole
    /// packet.
    #[must_use]
    pub fn place(&self, start: usize, layout: &Layout, field: Field) -> Option<Range<usize>> {
        let place = place(layout, field)?;
        let at = place.offset.checked_sub(start)?;
        let range = at..at + place.len;
        let is_apart = |begin: usize| range.end <= begin || begin + 2 <= range.start;
        let mut computed =
            self.lengths.iter().copied().chain(self.ip4.iter().map(|at| at + ipv4::CHECKSUM));
        (range.end <= self.bytes.len() && computed.all(is_apart)).then_some(range)
    }

    /// Whether a field of a packet in these headers is one of their lengths. `start` and `layout`
    /// are as in [`Self::place`].
    #[must_use]
    pub fn counts(&self, start: usize, layout: &Layout, field: Field) -> bool {
        let at = place(layout, field).filter(|place| place.len == 2).map(|place| place.offset);
        self.lengths.iter().any(|length| Some(start + length) == at)
    }

    /// Adds the headers to a packet. `change` assigns contents that are not in the envelope, at
    /// places that [are free](Self::is_free). Returns false, and changes nothing, if the packet is
    /// of another kind, or if a length would not fit. Earlier layouts become invalid.
    pub fn add(
        &self,
        packet: &mut Packet,
        layout: &Layout,
        change: impl FnOnce(&mut [u8]),
    ) -> bool {
        let Some(carried) = carried(packet, layout, self.inner) else { return false };
        let len = self.bytes.len();
        if carried.kind != self.kind || !fits(packet, self.inner, carried.len, len) {
            return false;
        }
        let mut buffer = [0; 16 * MAX_WORDS];
        let Some(bytes) = buffer.get_mut(..len) else { return false };
        bytes.copy_from_slice(&self.bytes);
        change(bytes);
        for at in &self.lengths {
            if let Some(length) = bytes.get_mut(*at..).and_then(<[u8]>::first_chunk_mut) {
                let more = u16::try_from(carried.len).unwrap_or(u16::MAX);
                *length = u16::from_be_bytes(*length).saturating_add(more).to_be_bytes();
            }
        }
        for at in &self.ip4 {
            if let Some(header) = bytes.get_mut(*at..*at + ipv4::LEN) {
                let checksum = rfc1071(header).to_be_bytes();
                let place = header.get_mut(ipv4::CHECKSUM..ipv4::CHECKSUM + 2);
                place.into_iter().for_each(|place| place.copy_from_slice(&checksum));
            }
        }
        let done = packet.insert(carried.at, bytes);
        if let (true, Some(at), Some(kind)) = (done, carried.type_at, self.announced) {
            write(packet, at, &kind.to_be_bytes());
        }
        done
    }
}
