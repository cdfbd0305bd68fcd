//! One end of a connection: what it has sent.

use crate::report::{Began, Ended, SideReport, State, Traffic};
use crate::segment::{Flags, Segment, Syn};
use crate::seq::Seq;
use crate::stream::Stream;

/// The scale of windows that is assumed where the handshake was not seen, and the largest one
/// (RFC 7323 §2.3).
pub(crate) const MOST_SCALE: u8 = 14;
/// How far behind the frontier segments are believed while the receiver's window is not known.
const UNKNOWN_WINDOW: u64 = 1 << 30;
/// The least distance behind the window's end at which segments are believed, because the packet
/// that moved the window may be missing in the capture or stand behind the segment.
const SLACK: u64 = 1 << 18;
/// The time for which a receiver's window is known. A receiver of data acknowledges every half
/// second (RFC 9293 §3.8.6.3); if the capture has no acknowledgement, it lacks packets.
const WINDOW_LIFE_NS: u64 = 2 * 1_000_000_000;
/// A timestamp is no measure after this idle time: 24 days (RFC 7323 §5.5).
const TIMESTAMP_LIFE_NS: u64 = 24 * 24 * 3_600 * 1_000_000_000;

/// One end, as a sender.
#[derive(Clone, Debug)]
pub struct Side {
    /// The state of this end.
    pub state: State,
    /// The sequence number of its SYN.
    pub isn: Option<Seq>,
    /// The sequence number of the stream's first byte.
    pub base: Option<Seq>,
    /// The bytes that it sends.
    pub stream: Stream,
    /// The highest acknowledgement that it has sent.
    pub ack: Option<Seq>,
    /// The window that it announced last.
    pub(crate) window: u16,
    /// The time of its last acknowledgement (ns).
    pub(crate) heard_ns: u64,
    /// The window scale option of its SYN.
    pub offered_scale: Option<u8>,
    /// Whether its SYN had the timestamps option.
    pub offers_timestamps: bool,
    /// The last timestamp that counts, with the time when it came (ns).
    pub(crate) recent: Option<(u32, u64)>,
    /// A SYN for a new connection, which nobody has answered yet.
    pub candidate: Option<Syn>,
    /// Whether the other end has received the FIN.
    pub is_fin_received: bool,
    /// Whether it has sent a segment with a right checksum.
    pub has_right: bool,
    /// The numbers. `state` and `stream` are filled in at the end.
    pub report: SideReport,
}

impl Side {
    /// An end that has sent nothing.
    pub fn new(stream: Stream) -> Self {
        Self {
            state: State::Closed,
            isn: None,
            base: None,
            stream,
            ack: None,
            window: 0,
            heard_ns: 0,
            offered_scale: None,
            offers_timestamps: false,
            recent: None,
            candidate: None,
            is_fin_received: false,
            has_right: false,
            report: SideReport::default(),
        }
    }

    /// Takes over a segment's acknowledgement and window.
    pub fn hear(&mut self, segment: &Segment<'_>, now_ns: u64) {
        let is_later = self.ack.is_none_or(|ack| segment.ack.from(ack) >= 0);
        if segment.has(Flags::ACK) {
            self.heard_ns = now_ns;
        }
        if segment.has(Flags::ACK) && is_later {
            self.ack = Some(segment.ack);
            self.window = segment.window;
        }
    }

    /// The network level's numbers.
    pub fn traffic(&mut self) -> &mut Traffic {
        &mut self.report.traffic
    }

    /// Takes over a SYN with its options.
    pub fn open(&mut self, syn: Syn) {
        self.isn = Some(syn.isn);
        self.base = Some(syn.isn.plus(1));
        self.report.began = Began::Syn;
        self.report.sack_permitted = syn.sack_ok;
        self.offered_scale = syn.wscale.map(|scale| scale.min(MOST_SCALE));
        self.offers_timestamps = syn.timestamp.is_some();
        self.has_right |= syn.is_right;
        self.recent = None;
    }

    /// The SYN that it has sent. The value of a timestamp is not kept.
    pub fn syn(&self) -> Option<Syn> {
        Some(Syn {
            isn: self.isn?,
            wscale: self.offered_scale,
            sack_ok: self.report.sack_permitted,
            timestamp: self.offers_timestamps.then_some(0),
            is_right: self.has_right,
        })
    }

    /// Whether a SYN with this number can be this end's, as far as is known.
    pub fn takes_syn(&self, other: &Side, isn: Seq) -> bool {
        match (self.isn, self.base) {
            (Some(own), _) => own == isn,
            (None, None) => true,
            // In a split handshake, an ACK comes in front of the SYN.
            (None, Some(base)) => {
                base == isn.plus(1) || self.stream.top() == 0 && other.isn.is_some()
            }
        }
    }

    /// Takes a segment as the first one of this end, if no other one was seen.
    pub fn pick_up(&mut self, segment: &Segment<'_>) {
        self.base.get_or_insert(segment.first_byte());
        if self.report.began == Began::Unseen {
            self.report.began = Began::MidStream;
        }
    }

    /// The offset in the stream of a sequence number.
    pub fn offset(&self, seq: Seq) -> i64 {
        self.base.map_or(0, |base| base.offset_of(seq, self.stream.frontier()))
    }

    /// Whether an acknowledgement covers the SYN of this end.
    pub fn syn_is_in(&self, ack: Seq) -> bool {
        self.isn.is_some_and(|isn| ack.from(isn) >= 1)
    }

    /// Whether the answer to the SYN of this end acknowledges it, and no byte that was not sent.
    pub fn is_answered_by(&self, ack: Seq) -> bool {
        let most = i64::try_from(self.stream.top()).unwrap_or(i64::MAX);
        self.isn.is_none() || (0..=most).contains(&self.offset(ack))
    }

    /// Whether an acknowledgement covers the FIN of this end.
    pub fn fin_is_in(&self, ack: Seq) -> bool {
        let fin = self.stream.fin().and_then(|fin| i64::try_from(fin).ok());
        fin.is_some_and(|fin| self.offset(ack) > fin)
    }

    /// The end of the bytes that this end may send, if `receiver` has told enough and was heard
    /// lately.
    pub fn limit(&self, receiver: &Side, now_ns: u64) -> u64 {
        let frontier = self.stream.frontier();
        let is_fresh = now_ns.saturating_sub(receiver.heard_ns) < WINDOW_LIFE_NS;
        let Some(ack) = receiver.ack.filter(|_| is_fresh) else {
            return frontier.saturating_add(UNKNOWN_WINDOW);
        };
        let scale = match (self.isn, receiver.isn) {
            (Some(_), Some(_)) => receiver.scale(self),
            _ => MOST_SCALE,
        };
        let window = u64::from(receiver.window) << scale;
        let edge = u64::try_from(self.offset(ack)).unwrap_or(0).saturating_add(window);
        edge.max(frontier).saturating_add(window.max(SLACK))
    }

    /// The scale of this end's windows: 0 unless both SYNs had the option (RFC 7323 §2.2).
    pub fn scale(&self, other: &Side) -> u8 {
        self.offered_scale.filter(|_| other.offered_scale.is_some()).unwrap_or(0)
    }

    /// Whether timestamps are in effect.
    pub fn has_timestamps(&self, other: &Side) -> bool {
        self.offers_timestamps && other.offers_timestamps
    }

    /// Whether a segment's timestamp is older than the last one that counts (PAWS, RFC 7323 §5.3).
    pub fn is_old(&self, segment: &Segment<'_>, now_ns: u64) -> bool {
        let (Some((recent, at)), Some(timestamp)) = (self.recent, segment.timestamp) else {
            return false;
        };
        let is_older = timestamp.wrapping_sub(recent).cast_signed() < 0;
        is_older && now_ns.saturating_sub(at) < TIMESTAMP_LIFE_NS
    }

    /// Keeps a segment's timestamp if the segment begins at or in front of the next byte.
    pub fn keep_timestamp(&mut self, segment: &Segment<'_>, offset: i64, now_ns: u64) {
        let frontier = i64::try_from(self.stream.frontier()).unwrap_or(i64::MAX);
        if let Some(timestamp) = segment.timestamp
            && offset <= frontier
        {
            self.recent = Some((timestamp, now_ns));
        }
    }

    /// Notes how the stream ended, unless that is known.
    pub fn end(&mut self, ended: Ended) {
        let is_open = matches!(self.report.ended, Ended::Capture | Ended::DoubtfulReset);
        if is_open && ended != Ended::Capture {
            self.report.ended = ended;
        }
    }

    /// The report.
    pub fn reported(&self, other: &Side) -> SideReport {
        let both = self.offered_scale.is_some() && other.offered_scale.is_some();
        SideReport {
            state: self.state,
            stream: self.stream.counts(),
            window_scale: self.offered_scale.filter(|_| both),
            timestamps: self.has_timestamps(other),
            ..self.report
        }
    }
}
