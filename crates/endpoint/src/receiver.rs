//! The receiving side: bytes in order and out of order, and the window.
//!
//! Offsets count from the peer's SYN, which has offset 0. The stream's first byte has offset 1, and
//! the FIN has the offset behind the last byte.

use arrayvec::ArrayVec;
use braid_tcp::Seq;

use crate::ranges::Ranges;
use crate::ring::Buffer;
use crate::settings::MOST_RANGES;

/// How many ranges can be told in a segment that also has timestamps.
const TOLD: usize = 3;

/// An offset in each range that came last, the latest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Latest(pub ArrayVec<u64, TOLD>);

/// The receiving side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    /// The number of the peer's SYN.
    pub isn: Seq,
    /// The bytes from `read` on. Those behind `next` have come out of order, with holes between.
    pub buffer: Buffer,
    /// The offset of the next byte to read.
    pub read: u64,
    /// The offset that is expected next (RCV.NXT).
    pub next: u64,
    /// The end of the window, as it was announced at the most. It never moves back, though scaled
    /// windows may be told a bit smaller (RFC 7323 §2.4).
    pub edge: u64,
    /// Where the FIN stands.
    pub fin: Option<u64>,
    /// What has come out of order.
    pub early: Ranges,
    /// What came out of order last (RFC 2018 §4).
    pub latest: Latest,
}

/// What a segment was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// The next bytes, and nothing out of order is left or was there.
    InOrder,
    /// Something else, which is acknowledged at once (RFC 5681 §4.2).
    Other,
}

impl Receiver {
    /// A receiver behind the peer's SYN, with the window that a SYN can tell.
    pub fn new(isn: Seq, receive: u32) -> Self {
        let edge = 1 + u64::from(receive.min(0xffff));
        Self { isn, read: 1, next: 1, edge, ..Self::default() }
    }

    /// The offset of a sequence number. It is negative in front of the SYN.
    pub fn offset(&self, seq: Seq) -> i64 {
        self.isn.offset_of(seq, self.next)
    }

    /// Whether the FIN has come, and all bytes in front of it.
    pub fn is_closed(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.next)
    }

    /// Whether a segment touches the window (RFC 9293 §3.10.7.4). One at the next offset does so
    /// even if the window is closed: its acknowledgement counts.
    pub fn is_acceptable(&self, at: i64, len: u32) -> bool {
        let (next, edge) = (self.next.cast_signed(), self.edge.cast_signed());
        let is_before_edge = at < edge || at == next;
        is_before_edge && (at == next || at.saturating_add(len.into()) > next)
    }

    /// Takes the payload of an acceptable segment. What lies outside of the window is cut off.
    pub fn take(&mut self, at: i64, payload: &[u8], has_fin: bool) -> Taken {
        let end = at.saturating_add_unsigned(payload.len() as u64).cast_unsigned();
        let old = usize::try_from(self.next.cast_signed().saturating_sub(at)).unwrap_or(0);
        let payload = payload.get(old..).unwrap_or_default();
        let at = self.next.max(at.max(0).cast_unsigned());
        let top = self.early.top().unwrap_or(self.next);
        if has_fin && self.fin.is_none() && end >= top && end <= self.edge.max(self.next) {
            self.fin = Some(end);
        }
        let limit = self.edge.min(self.fin.unwrap_or(u64::MAX)).saturating_sub(at);
        let bytes = payload.get(..usize::try_from(limit).unwrap_or(usize::MAX)).unwrap_or(payload);
        let is_next = old == 0 && at == self.next && bytes.len() == payload.len();
        let was_whole = self.early.0.is_empty();
        if !bytes.is_empty() {
            self.keep(at, bytes);
        }
        if self.fin == Some(self.next) {
            self.next += 1;
            return Taken::Other;
        }
        if is_next && was_whole { Taken::InOrder } else { Taken::Other }
    }

    fn keep(&mut self, at: u64, bytes: &[u8]) {
        let end = at + bytes.len() as u64;
        if at > self.next && !self.early.insert(at..end, MOST_RANGES) {
            return;
        }
        let index = usize::try_from(at - self.read).unwrap_or(usize::MAX);
        self.buffer.put_at(index, bytes);
        if at > self.next {
            let latest = &mut self.latest.0;
            latest.retain(|offset| *offset != at);
            latest.truncate(TOLD - 1);
            latest.insert(0, at);
            return;
        }
        self.next = self.early.gap(end);
        self.early.advance(self.next);
        let next = self.next;
        self.latest.0.retain(|offset| *offset > next);
    }

    /// The ranges to tell the peer: the latest one first, each once.
    pub fn blocks(&self) -> ArrayVec<(Seq, Seq), 4> {
        let mut blocks = ArrayVec::new();
        for range in self.latest.0.iter().filter_map(|offset| self.early.holding(*offset)) {
            let block = (self.isn.at(range.start), self.isn.at(range.end));
            if !blocks.contains(&block) && !blocks.is_full() {
                blocks.push(block);
            }
        }
        blocks
    }

    /// How many bytes can be read.
    fn readable_len(&self) -> usize {
        let fin = u64::from(self.is_closed());
        usize::try_from(self.next.saturating_sub(self.read + fin)).unwrap_or(0)
    }

    /// The bytes that can be read.
    pub fn readable(&self) -> (&[u8], &[u8]) {
        self.buffer.slices(0, self.readable_len())
    }

    /// Bytes have been read.
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.readable_len());
        self.buffer.drop_front(count);
        self.read += count as u64;
    }

    /// Where the window would end if it told all room.
    fn wanted(&self, receive: u32, scale: u8) -> u64 {
        (self.read + u64::from(receive)).min(self.next + (0xffff << scale))
    }

    /// Moves the window's end, unless it would move by less than `least` bytes (RFC 9293
    /// §3.8.6.2.2), and returns the window as it stands in the header.
    pub fn open(&mut self, receive: u32, scale: u8, least: u32) -> u16 {
        if self.can_open(receive, scale, least) {
            self.edge = self.wanted(receive, scale);
        }
        u16::try_from(self.edge.saturating_sub(self.next) >> scale).unwrap_or(u16::MAX)
    }

    /// Whether the window's end could move by `least` bytes.
    pub fn can_open(&self, receive: u32, scale: u8, least: u32) -> bool {
        self.wanted(receive, scale) >= self.edge.saturating_add(least.into())
    }

    /// The memory besides the structure (bytes).
    pub fn memory(&self) -> usize {
        self.buffer.memory() + self.early.memory()
    }
}
