//! One direction of a connection: bytes in any order come in, the stream in order goes out.
//!
//! The *frontier* is the offset of the next byte to deliver (Microboxes §4.2 keeps it, too).
//! Segments at the frontier are delivered as they are, without a copy and without allocation.
//! Segments behind it wait, as *pieces*, until the bytes between have come or are given up.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::finding::{Gap, Overlap, Why};
use crate::policy::{Kept, Policy};

/// The memory that a piece needs besides its bytes: its entry in the map and the allocator's part.
const PIECE_BYTES: usize = 64;
/// The number of gaps that a stream remembers, to tell bytes that come too late from repeated ones.
pub(crate) const GAPS: usize = 16;

/// Takes what a stream finds; see [`crate::Sink`], which takes it for all streams.
pub trait Output {
    /// The next bytes.
    fn data(&mut self, offset: u64, bytes: &[u8]);
    /// Bytes that were delivered before.
    fn repeated(&mut self, offset: u64, bytes: &[u8]);
    /// The next bytes are missing.
    fn gap(&mut self, gap: Gap);
    /// Two segments disagree.
    fn overlap(&mut self, overlap: Overlap);
}

/// The numbers of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamCounts {
    /// Bytes delivered.
    pub delivered: u64,
    /// Gaps.
    pub gaps: u64,
    /// Bytes in gaps.
    pub gap_bytes: u64,
    /// Overlaps that disagree, among bytes that waited.
    pub overlaps: u64,
    /// Bytes that came again, after they were delivered or while they waited.
    pub repeated_bytes: u64,
    /// Bytes in front of the stream's first byte.
    pub early_bytes: u64,
    /// Bytes of gaps that came after the gap was declared.
    pub late_bytes: u64,
    /// Bytes behind the FIN.
    pub surplus_bytes: u64,
}

/// What a segment was for a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// It had bytes that came before.
    pub is_repeated: bool,
    /// Bytes behind it had come before.
    pub is_out_of_order: bool,
}

/// The bytes of one direction of a connection.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    pub(crate) policy: Policy,
    pub(crate) frontier: u64,
    /// The end of the last byte that was sent, as far as the capture shows.
    pub(crate) top: u64,
    /// Where the FIN stands.
    pub(crate) fin: Option<u64>,
    /// The end of the bytes that the receiver has acknowledged.
    pub(crate) acked: u64,
    /// The time since which the frontier is behind `acked` (ns).
    pub(crate) behind_since: Option<u64>,
    /// Bytes that wait, by offset. They do not overlap, and all lie behind the frontier.
    pub(crate) pieces: BTreeMap<u64, Box<[u8]>>,
    memory: usize,
    /// The last gaps.
    pub(crate) lost: VecDeque<Range<u64>>,
    counts: StreamCounts,
}

impl Stream {
    /// A stream without bytes.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// The offset of the next byte to deliver.
    #[must_use]
    pub fn frontier(&self) -> u64 {
        self.frontier
    }

    /// The end of the last byte that was sent, as far as the capture shows.
    #[must_use]
    pub fn top(&self) -> u64 {
        self.top
    }

    /// The offset of the FIN.
    #[must_use]
    pub fn fin(&self) -> Option<u64> {
        self.fin
    }

    /// Whether all bytes up to the FIN have been delivered or given up.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.frontier >= fin)
    }

    /// The memory that waiting bytes need (bytes).
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The numbers.
    #[must_use]
    pub fn counts(&self) -> StreamCounts {
        self.counts
    }

    /// Takes a segment: its payload begins at `offset` and had `len` bytes on the wire, and the
    /// capture has the first ones, `bytes`. An offset below 0 is in front of the stream.
    pub fn segment(&mut self, offset: i64, len: u32, bytes: &[u8], out: &mut impl Output) -> Found {
        let mut found = Found::default();
        let end = offset.saturating_add(i64::from(len));
        if let Ok(end) = u64::try_from(end) {
            self.top = self.top.max(self.fin.map_or(end, |fin| fin.min(end)));
        }
        let early = usize::try_from(offset.saturating_neg()).unwrap_or(0).min(bytes.len());
        self.counts.early_bytes += early as u64;
        let bytes = bytes.get(early..).unwrap_or_default();
        let start = u64::try_from(offset).unwrap_or(0);
        let bytes = self.before_fin(start, bytes);
        if bytes.is_empty() {
            return found;
        }
        let known = usize::try_from(self.frontier.saturating_sub(start)).unwrap_or(usize::MAX);
        let (old, new) = bytes.split_at(known.min(bytes.len()));
        if !old.is_empty() {
            found.is_repeated = self.again(start, old, out);
        }
        if new.is_empty() {
            return found;
        }
        let start = start.max(self.frontier);
        let end = start + new.len() as u64;
        let next = self.pieces.first_key_value().map(|(at, _)| *at);
        let last = self.pieces.last_key_value();
        found.is_out_of_order = last.is_some_and(|(at, _)| *at > start);
        if start == self.frontier && next.is_none_or(|next| next >= end) {
            self.deliver(new, out);
        } else {
            found.is_repeated |= self.wait(start, new, out);
        }
        self.drain(out);
        found
    }

    /// The stream ends at `offset`. The first FIN counts, unless bytes behind it were delivered.
    pub fn end_at(&mut self, offset: i64) {
        let Ok(offset) = u64::try_from(offset) else { return };
        if self.fin.is_none() && offset >= self.frontier {
            self.fin = Some(offset);
            self.top = offset;
            self.cut(offset);
        }
    }

    /// The receiver has acknowledged all bytes in front of `offset`. Bytes that are missing there
    /// are given up `patience_ns` later, because a capture may hold packets out of order. Returns
    /// whether bytes were given up.
    pub fn acknowledge(
        &mut self,
        offset: i64,
        now_ns: u64,
        patience_ns: u64,
        out: &mut impl Output,
    ) -> bool {
        self.acked = self.acked.max(u64::try_from(offset).unwrap_or(0));
        // Nobody can acknowledge bytes that were not sent, so such a number is no reason to skip.
        let acked = self.acked.min(self.top);
        if acked <= self.frontier {
            self.behind_since = None;
            return false;
        }
        let since = *self.behind_since.get_or_insert(now_ns);
        if now_ns.saturating_sub(since) < patience_ns {
            return false;
        }
        self.behind_since = None;
        while self.frontier < acked {
            self.skip(acked, Why::Acknowledged, out);
        }
        true
    }

    /// Gives up missing bytes until the waiting ones need at most `limit` bytes of memory. Returns
    /// the number of gaps.
    pub fn shrink(&mut self, limit: usize, out: &mut impl Output) -> u64 {
        let before = self.counts.gaps;
        while self.memory > limit {
            self.skip(u64::MAX, Why::Memory, out);
        }
        self.counts.gaps - before
    }

    /// Delivers what waits, with gaps between. No segment may follow.
    pub fn finish(&mut self, out: &mut impl Output) {
        let last = self.fin.map_or(self.acked.max(self.top), |fin| fin);
        while self.frontier < last {
            let next = self.pieces.first_key_value().map_or(last, |(at, _)| *at);
            let why = if next <= self.acked { Why::Acknowledged } else { Why::End };
            self.skip(last, why, out);
        }
    }

    /// Forgets the bytes that wait.
    pub fn discard(&mut self) {
        self.pieces.clear();
        self.memory = 0;
    }

    /// The part of these bytes in front of the FIN.
    fn before_fin<'b>(&mut self, start: u64, bytes: &'b [u8]) -> &'b [u8] {
        let Some(fin) = self.fin else { return bytes };
        let room = usize::try_from(fin.saturating_sub(start)).unwrap_or(usize::MAX);
        let (kept, surplus) = bytes.split_at(room.min(bytes.len()));
        self.counts.surplus_bytes += surplus.len() as u64;
        kept
    }

    /// Takes bytes in front of the frontier. Returns whether they came before.
    fn again(&mut self, start: u64, bytes: &[u8], out: &mut impl Output) -> bool {
        let end = start + bytes.len() as u64;
        let mut at = start;
        let mut is_repeated = false;
        let lost = self.lost.iter().filter(|lost| lost.start < end && lost.end > start);
        let nothing = end..end;
        for gap in lost.chain(std::iter::once(&nothing)) {
            let known = part(bytes, start, at..gap.start.clamp(at, end));
            if !known.is_empty() {
                out.repeated(at, known);
                self.counts.repeated_bytes += known.len() as u64;
                is_repeated = true;
            }
            let late = gap.start.clamp(at, end)..gap.end.clamp(at, end);
            self.counts.late_bytes += late.end - late.start;
            at = late.end;
        }
        is_repeated
    }

    /// Keeps bytes behind the frontier as pieces, where the policy prefers them to the pieces that
    /// are there. Returns whether there are some.
    fn wait(&mut self, start: u64, bytes: &[u8], out: &mut impl Output) -> bool {
        let later = start..start + bytes.len() as u64;
        let before = self.pieces.range(..start).next_back();
        let before = before.filter(|(at, piece)| **at + piece.len() as u64 > start);
        let first = before.map_or(start, |(at, _)| *at);
        let shared: Vec<u64> = self.pieces.range(first..later.end).map(|(at, _)| *at).collect();
        let mut at = start;
        for key in &shared {
            let Some(piece) = self.pieces.get(key) else { continue };
            let earlier = *key..*key + piece.len() as u64;
            let both = earlier.start.max(later.start)..earlier.end.min(later.end);
            let (old, new) =
                (part(piece, earlier.start, both.clone()), part(bytes, start, both.clone()));
            let kept = self.policy.decide(&earlier, &later);
            if let Some(overlap) = Overlap::between(both.start, old, new, kept) {
                self.counts.overlaps += 1;
                out.overlap(overlap);
            }
            self.counts.repeated_bytes += old.len() as u64;
            match kept {
                Kept::Earlier => {
                    self.keep(at, part(bytes, start, at..both.start));
                    at = both.end;
                }
                Kept::Later => {
                    let piece = self.take(*key);
                    self.keep(
                        earlier.start,
                        part(&piece, earlier.start, earlier.start..both.start),
                    );
                    self.keep(both.end, part(&piece, earlier.start, both.end..earlier.end));
                }
            }
        }
        self.keep(at, part(bytes, start, at..later.end));
        !shared.is_empty()
    }

    pub(crate) fn keep(&mut self, at: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.memory += bytes.len() + PIECE_BYTES;
            self.pieces.insert(at, bytes.into());
        }
    }

    fn take(&mut self, at: u64) -> Box<[u8]> {
        let piece = self.pieces.remove(&at).unwrap_or_default();
        if !piece.is_empty() {
            self.memory = self.memory.saturating_sub(piece.len() + PIECE_BYTES);
        }
        piece
    }

    fn deliver(&mut self, bytes: &[u8], out: &mut impl Output) {
        out.data(self.frontier, bytes);
        self.frontier += bytes.len() as u64;
        self.counts.delivered += bytes.len() as u64;
    }

    /// Delivers the pieces that begin at the frontier.
    fn drain(&mut self, out: &mut impl Output) {
        while let Some((&at, _)) = self.pieces.first_key_value()
            && at <= self.frontier
        {
            let piece = self.take(at);
            self.deliver(&piece, out);
        }
    }

    /// Moves the frontier over missing bytes, to the first piece or to `most`, and delivers.
    fn skip(&mut self, most: u64, why: Why, out: &mut impl Output) {
        let next = self.pieces.first_key_value().map_or(most, |(at, _)| *at).min(most);
        let gap = Gap { offset: self.frontier, len: next.saturating_sub(self.frontier), why };
        self.counts.gaps += 1;
        self.counts.gap_bytes += gap.len;
        match self.lost.back_mut().filter(|last| last.end == self.frontier) {
            Some(last) => last.end = next,
            None => {
                if self.lost.len() == GAPS {
                    self.lost.pop_front();
                }
                self.lost.push_back(self.frontier..next);
            }
        }
        self.frontier = next;
        out.gap(gap);
        self.drain(out);
    }

    /// Removes waiting bytes from `offset` on.
    fn cut(&mut self, offset: u64) {
        while let Some((&at, piece)) = self.pieces.last_key_value()
            && at + piece.len() as u64 > offset
        {
            let piece = self.take(at);
            let kept = part(&piece, at, at..offset.max(at));
            self.counts.surplus_bytes += (piece.len() - kept.len()) as u64;
            self.keep(at, kept);
        }
    }
}

/// The bytes of a range of offsets, of bytes that begin at `start`.
fn part(bytes: &[u8], start: u64, range: Range<u64>) -> &[u8] {
    let index = |offset: u64| usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
    bytes.get(index(range.start)..index(range.end)).unwrap_or_default()
}
