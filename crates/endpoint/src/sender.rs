//! The sending side: bytes that wait or are under way, what the peer has of them, and what is sent
//! next.
//!
//! Offsets count from the own SYN, which has offset 0. The stream's first byte has offset 1, and
//! the FIN has the offset behind the last byte.
//!
//! What is under way is counted as in RFC 6675: the bytes that are not acknowledged, except what
//! the peer has and what is lost and has not been repeated. Without SACK, each duplicate
//! acknowledgement stands for a segment that the peer has.

use braid_tcp::Seq;

use crate::congestion::{Congestion, Recovery};
use crate::ranges::Ranges;
use crate::ring::Buffer;
use crate::settings::MOST_RANGES;

/// How many duplicates tell of a loss (RFC 5681 §3.2).
const DUPLICATES: u32 = 3;

/// The sending side.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// The number of the own SYN.
    pub isn: Seq,
    /// The first offset that is not acknowledged (SND.UNA).
    pub unacked: u64,
    /// The offset behind all that was sent (SND.NXT).
    pub next: u64,
    /// How many offsets were not acknowledged when something new was sent last.
    pub sent_flight: u64,
    /// The offset of the buffer's first byte.
    pub base: u64,
    /// The bytes that are not acknowledged.
    pub buffer: Buffer,
    /// Whether a FIN stands behind the buffer.
    pub has_fin: bool,
    /// The peer's window (bytes).
    pub window: u64,
    /// The largest window that the peer has told (bytes).
    pub most_window: u64,
    /// The offsets of the segment that told the window: its own, and its acknowledgement.
    pub window_told: (u64, u64),
    /// What the peer has behind `unacked`.
    pub sacked: Ranges,
    /// Lost offsets in front of this one have been repeated.
    pub resent: u64,
    /// What is in front of this offset, and neither acknowledged nor in `sacked`, is lost.
    pub lost: u64,
    /// Whether the next lost segment is repeated whatever the congestion window says.
    pub is_urgent: bool,
    /// Duplicate acknowledgements since the last one that was new.
    pub duplicates: u32,
    /// The congestion window.
    pub congestion: Congestion,
}

/// What a segment carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Load {
    /// The offset of its first byte.
    pub start: u64,
    /// The number of its bytes.
    pub len: u64,
    /// Whether it has the FIN.
    pub has_fin: bool,
}

/// What bounds a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The most bytes of this segment.
    pub most: u64,
    /// The most bytes of a segment without SACK blocks. Congestion windows count in it.
    pub segment: u64,
    /// Whether the peer tells what it has.
    pub has_sack: bool,
}

impl Sender {
    /// A sender that has sent nothing.
    pub fn new(isn: Seq, segment: u64) -> Self {
        Self {
            isn,
            unacked: 0,
            next: 0,
            sent_flight: 0,
            base: 1,
            buffer: Buffer::default(),
            has_fin: false,
            window: 0,
            most_window: 0,
            window_told: (0, 0),
            sacked: Ranges::default(),
            resent: 0,
            lost: 0,
            is_urgent: false,
            duplicates: 0,
            congestion: Congestion::new(segment),
        }
    }

    /// The offset of a sequence number. It is negative in front of the SYN.
    pub fn offset(&self, seq: Seq) -> i64 {
        self.isn.offset_of(seq, self.unacked)
    }

    /// The offset behind the buffer's last byte, where the FIN stands.
    pub fn end(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// How many offsets are not acknowledged.
    pub fn flight(&self) -> u64 {
        self.next - self.unacked
    }

    /// Whether something has never been sent.
    pub fn has_unsent(&self) -> bool {
        self.next < self.end() + u64::from(self.has_fin)
    }

    /// Whether all that was written is acknowledged.
    pub fn is_all_acknowledged(&self) -> bool {
        self.unacked >= self.end() + u64::from(self.has_fin)
    }

    /// Whether the FIN is acknowledged.
    pub fn is_fin_acknowledged(&self) -> bool {
        self.has_fin && self.is_all_acknowledged()
    }

    /// How much is under way.
    fn under_way(&self, bounds: Bounds) -> u64 {
        let all = self.sacked.missing(self.unacked..self.next);
        let lost = self.sacked.missing(self.resent.max(self.unacked)..self.lost.min(self.next));
        let guessed = if bounds.has_sack { 0 } else { bounds.segment * u64::from(self.duplicates) };
        all.saturating_sub(lost).saturating_sub(guessed)
    }

    /// Takes a new acknowledgement, in front of `next`.
    pub fn acknowledge(&mut self, ack: u64, bounds: Bounds) {
        let count = ack - self.unacked;
        // A window that is not used says nothing of the path, so it does not grow.
        let was_used = 2 * self.sent_flight >= self.congestion.window;
        self.unacked = ack;
        let gone = ack.min(self.end()).saturating_sub(self.base);
        self.buffer.drop_front(usize::try_from(gone).unwrap_or(usize::MAX));
        self.base += gone;
        self.sacked.advance(ack);
        let recovery = self.congestion.recovery;
        if recovery == Recovery::Fast && ack < self.congestion.until {
            self.acknowledge_part(count, bounds);
            return;
        }
        self.duplicates = 0;
        if ack >= self.congestion.until {
            self.congestion.recovery = Recovery::None;
            self.is_urgent = false;
            (self.resent, self.lost) = (ack, ack);
        }
        if recovery == Recovery::Timeout || recovery == Recovery::None && was_used {
            self.congestion.grow(count, bounds.segment);
        }
    }

    /// An acknowledgement in fast recovery: the segment behind it is lost, too (RFC 6582 §3.2).
    fn acknowledge_part(&mut self, count: u64, bounds: Bounds) {
        let segments = u32::try_from(count.div_ceil(bounds.segment)).unwrap_or(u32::MAX);
        self.duplicates = self.duplicates.saturating_sub(segments.saturating_sub(1));
        if self.resent <= self.unacked {
            self.lose_first(bounds);
        }
    }

    fn lose_first(&mut self, bounds: Bounds) {
        self.resent = self.unacked;
        self.lost = self.lost.max(self.unacked + bounds.segment).min(self.next);
        self.is_urgent = true;
    }

    /// The peer has a range. Whether that is new.
    pub fn hear_block(&mut self, start: i64, end: i64) -> bool {
        let (Ok(start), Ok(end)) = (u64::try_from(start), u64::try_from(end)) else {
            return false;
        };
        let is_right = self.unacked < start && start < end && end <= self.next;
        is_right
            && self.sacked.missing(start..end) > 0
            && self.sacked.insert(start..end, MOST_RANGES)
    }

    /// Looks for losses behind each acknowledgement. `is_duplicate` tells whether it was one.
    pub fn look_for_loss(&mut self, is_duplicate: bool, bounds: Bounds) {
        self.duplicates = self.duplicates.saturating_add(is_duplicate.into());
        if self.flight() == 0 {
            return;
        }
        let behind = self.sacked.with_behind(u64::from(DUPLICATES - 1) * bounds.segment);
        let is_lost = self.duplicates >= DUPLICATES || behind.is_some();
        if self.congestion.recovery == Recovery::None && is_lost {
            self.congestion.lose(self.flight(), bounds.segment, self.next);
            self.lose_first(bounds);
        }
        if self.congestion.recovery == Recovery::Fast {
            self.lost = self.lost.max(behind.unwrap_or(0));
        }
    }

    /// Takes the window of a segment, unless a later one has told it. Whether it has opened.
    pub fn hear_window(&mut self, told: (u64, u64), window: u64) -> bool {
        let (seq, ack) = self.window_told;
        if seq > told.0 {
            return false;
        }
        let has_opened = told.1 + window > ack + self.window;
        (self.window_told, self.window) = (told, window);
        self.most_window = self.most_window.max(window);
        has_opened
    }

    /// The retransmission timer ran out. What the peer told of ranges is forgotten, because it may
    /// have dropped them (RFC 2018 §8).
    pub fn time_out(&mut self, segment: u64) {
        if self.unacked == 0 {
            // A lost SYN says nothing of the path's capacity.
            self.congestion.begin(segment, true);
        } else {
            self.congestion.time_out(self.flight(), segment, self.next);
        }
        self.sacked = Ranges::default();
        (self.resent, self.lost, self.duplicates) = (self.unacked, self.next, 0);
        self.is_urgent = true;
    }

    /// All that is under way is lost, because its segments were too long.
    pub fn repeat(&mut self) {
        self.congestion.repeat(self.next);
        (self.resent, self.lost, self.is_urgent) = (self.unacked, self.next, true);
    }

    /// The SYN is sent again.
    pub fn repeat_syn(&mut self) {
        (self.resent, self.lost) = (0, self.next.min(1));
    }

    /// Whether the SYN is to be sent.
    pub fn is_syn_due(&self) -> bool {
        self.next == 0 || self.unacked == 0 && self.resent < self.lost
    }

    /// The lost bytes that are repeated next.
    pub fn repeated(&self, bounds: Bounds) -> Option<Load> {
        let start = self.sacked.gap(self.resent.max(self.unacked));
        if start >= self.lost.min(self.next) {
            return None;
        }
        let stop = self.sacked.next_start(start).unwrap_or(self.next).min(self.next);
        let len = stop.min(self.end()).saturating_sub(start).min(bounds.most);
        let under_way = self.under_way(bounds);
        let has_room = under_way == 0 || under_way + len <= self.congestion.window;
        let has_fin = start + len == self.end() && stop > self.end();
        (has_room || self.is_urgent).then_some(Load { start, len, has_fin })
    }

    /// The bytes that are sent next for the first time. The peer's window bounds them, and small
    /// parts of what waits are not sent (RFC 9293 §3.8.6.2.1) unless `is_forced`.
    pub fn fresh(&self, bounds: Bounds, is_forced: bool) -> Option<Load> {
        if !self.has_unsent() {
            return None;
        }
        let (start, waiting) = (self.next, self.end().saturating_sub(self.next));
        let room = (self.unacked + self.window).saturating_sub(start);
        let len = waiting.min(room).min(bounds.most);
        let has_fin = self.has_fin && len == waiting && len < room;
        if len == 0 && !has_fin {
            return None;
        }
        let under_way = self.under_way(bounds);
        if under_way > 0 && under_way + len > self.congestion.window {
            return None;
        }
        let is_much = len == bounds.most || len == waiting || 2 * len >= self.most_window;
        (is_much || is_forced).then_some(Load { start, len, has_fin })
    }

    /// A segment has been sent.
    pub fn sent(&mut self, load: Load) {
        let end = load.start + load.len + u64::from(load.has_fin);
        if load.start < self.next {
            self.resent = end;
            self.is_urgent = false;
            return;
        }
        self.next = end;
        self.sent_flight = self.flight();
    }

    /// The bytes of a segment.
    pub fn bytes(&self, load: Load) -> (&[u8], &[u8]) {
        let from = usize::try_from(load.start.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.buffer.slices(from, usize::try_from(load.len).unwrap_or(usize::MAX))
    }

    /// The memory besides the structure (bytes).
    pub fn memory(&self) -> usize {
        self.buffer.memory() + self.sacked.memory()
    }
}
