//! A connection: both ends, and what each segment means for them.

use braid_packet::FlowKey;

use crate::direction::{Direction, Pair};
use crate::finding::{Gap, Overlap};
use crate::lists::List;
use crate::options::Options;
use crate::place::{ConnectionId, Place, Progress, Restored};
use crate::policies::Policies;
use crate::report::{Ended, Opening, Report, State};
use crate::segment::{Flags, Segment, Syn};
use crate::seq::Seq;
use crate::side::Side;
use crate::sink::Sink;
use crate::stream::{Output, Stream};

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    pub id: ConnectionId,
    /// The 5-tuple in the forward direction.
    pub flow: FlowKey,
    pub opening: Opening,
    pub sides: Pair<Side>,
    /// Whether the sink knows that the connection is open.
    pub is_open: bool,
    /// Whether both streams have ended.
    pub is_over: bool,
    /// The time at which both streams had ended (ns).
    pub over_ns: u64,
    /// Gaps that were made because of memory.
    pub memory_gaps: u64,
    /// The memory that somebody else keeps for the connection ([`crate::Monitor::charge`]).
    pub charged: usize,
}

/// A segment has begun a new connection between the same ends.
pub struct Reopened {
    /// The SYN of the new connection, if it came before the segment.
    pub syn: Option<Syn>,
}

/// The output of a stream to a sink.
struct To<'a, S> {
    sink: &'a mut S,
    place: Place,
}

impl<S: Sink> Output for To<'_, S> {
    fn data(&mut self, offset: u64, bytes: &[u8]) {
        self.sink.data(&self.place, offset, bytes);
    }

    fn repeated(&mut self, offset: u64, bytes: &[u8]) {
        self.sink.repeated(&self.place, offset, bytes);
    }

    fn gap(&mut self, gap: Gap) {
        self.sink.gap(&self.place, gap);
    }

    fn overlap(&mut self, overlap: Overlap) {
        self.sink.overlap(&self.place, overlap);
    }
}

impl Connection {
    /// A connection whose first packet is this segment.
    pub fn new(id: ConnectionId, segment: &Segment<'_>, policies: &Policies) -> Self {
        // The end that answers a SYN did not open the connection.
        let is_answer = segment.has(Flags::SYN) && segment.has(Flags::ACK);
        let flow = if is_answer { segment.flow.reversed() } else { segment.flow };
        let side = |receiver| Side::new(Stream::new(policies.of(flow.version, receiver)));
        Self {
            id,
            flow,
            opening: Opening::MidStream,
            sides: Pair { forward: side(flow.dst), backward: side(flow.src) },
            is_open: false,
            is_over: false,
            over_ns: 0,
            memory_gaps: 0,
            charged: 0,
        }
    }

    /// A monitor takes over the connection, which was saved.
    pub fn begin_anew(&mut self, id: ConnectionId, policies: &Policies) {
        self.id = id;
        let FlowKey { version, src, dst, .. } = self.flow;
        self.sides.forward.stream.policy = policies.of(version, dst);
        self.sides.backward.stream.policy = policies.of(version, src);
    }

    /// What a monitor tells of the connection after it was restored.
    pub fn restored(&self, is_same: bool) -> Restored {
        Restored { connection: self.id, flow: self.flow, is_same }
    }

    /// Whether both streams are as far as those of another connection.
    pub fn is_as_far_as(&self, other: &Connection) -> bool {
        self.flow == other.flow && self.progress() == other.progress()
    }

    /// How far both streams are.
    pub fn progress(&self) -> Pair<Progress> {
        // A FIN has a number of its own.
        let next = |stream: &Stream| stream.frontier() + u64::from(stream.is_complete());
        let progress = |side: &Side| Progress { base: side.base, frontier: next(&side.stream) };
        let Pair { forward, backward } = &self.sides;
        Pair { forward: progress(forward), backward: progress(backward) }
    }

    /// The direction of a segment.
    pub fn direction(&self, segment: &Segment<'_>) -> Direction {
        if segment.flow == self.flow { Direction::Forward } else { Direction::Backward }
    }

    /// The memory that the connection needs besides itself: for waiting bytes, and what is charged.
    pub fn memory(&self) -> usize {
        let waiting = self.sides.forward.stream.memory() + self.sides.backward.stream.memory();
        waiting + self.charged
    }

    /// The list of the connection. A connection is confirmed when it is open and each end has
    /// acknowledged what the other one has sent. A forged sender cannot do so, because it does not
    /// see the other end's numbers.
    pub fn list(&self) -> List {
        let Pair { forward, backward } = &self.sides;
        let acknowledges =
            |from: &Side, to: &Side| from.ack.is_some_and(|ack| to.is_answered_by(ack));
        match self.is_open && acknowledges(forward, backward) && acknowledges(backward, forward) {
            _ if self.is_over => List::Done,
            true => List::Live,
            false => List::Unconfirmed,
        }
    }

    fn place(&self, direction: Direction) -> Place {
        let flow = match direction {
            Direction::Forward => self.flow,
            Direction::Backward => self.flow.reversed(),
        };
        Place { connection: self.id, direction, flow }
    }

    fn to<'a, S: Sink>(&self, direction: Direction, sink: &'a mut S) -> To<'a, S> {
        To { sink, place: self.place(direction) }
    }

    /// Takes over the SYN of the end that opens the connection, which came before its first
    /// segment.
    pub fn open(&mut self, syn: Syn) {
        let from = &mut self.sides.forward;
        from.open(syn);
        from.state = State::SynSent;
        self.opening = Opening::Incomplete;
    }

    /// Whether a segment shows that a new connection between the same ends has begun. A SYN shows
    /// that if the old connection is over, also with the number of the last SYN: a host that has
    /// forgotten the old connection takes it. Otherwise it may be forged, so it waits for the
    /// answer.
    pub fn reopened_by(&mut self, segment: &Segment<'_>, now_ns: u64) -> Option<Reopened> {
        let direction = self.direction(segment);
        let has_ended = self.is_over;
        let is_over = has_ended || self.is_closing();
        let (from, to) = self.sides.split(direction);
        let waits = |side: &Side, seq: Seq| side.candidate.filter(|syn| syn.isn.plus(1) == seq);
        if segment.has(Flags::RST) {
            return None;
        }
        if !segment.has(Flags::SYN) {
            // The side goes on in the new connection, whose answer the capture does not have.
            let syn = waits(from, segment.seq);
            let is_new =
                syn.is_some() && segment.is_plain() && !Self::fits(from, to, segment, now_ns);
            return is_new.then_some(Reopened { syn });
        }
        if segment.has(Flags::ACK) {
            let syn = waits(to, segment.ack);
            return syn.is_some().then_some(Reopened { syn });
        }
        if from.isn == Some(segment.seq) && !has_ended {
            return None;
        }
        if is_over {
            return Some(Reopened { syn: None });
        }
        if !from.takes_syn(to, segment.seq) {
            from.candidate = Some(Syn::of(segment));
        }
        None
    }

    /// Whether both ends have sent their FIN.
    fn is_closing(&self) -> bool {
        let has_fin = |side: &Side| side.stream.fin().is_some();
        has_fin(&self.sides.forward) && has_fin(&self.sides.backward)
    }

    /// Whether a segment lies in the window.
    fn fits(from: &Side, to: &Side, segment: &Segment<'_>, now_ns: u64) -> bool {
        let end = from.offset(segment.first_byte()).saturating_add(segment.len.into());
        u64::try_from(end).is_ok_and(|end| end <= from.limit(to, now_ns))
    }

    /// Whether a segment is left out because of its wrong checksum. After the end, which may have
    /// come by a RST of somebody else, nothing is known of an end's checksums.
    pub fn refuses(&self, segment: &Segment<'_>) -> bool {
        !segment.is_right && !self.is_over && self.sides.of(self.direction(segment)).has_right
    }

    /// Takes a segment.
    pub fn segment<S: Sink>(
        &mut self,
        segment: &Segment<'_>,
        now_ns: u64,
        options: &Options,
        sink: &mut S,
    ) {
        let direction = self.direction(segment);
        self.sides.of_mut(direction).traffic().count(segment, now_ns);
        if self.is_over {
            let report = &mut self.sides.of_mut(direction).report;
            report.after_end += 1;
            report.ignored_bytes += segment.payload.len() as u64;
            return;
        }
        // What comes after the end may be of somebody else, such as a RST for the end.
        self.sides.of_mut(direction).has_right |= segment.is_right;
        if segment.has(Flags::RST) {
            self.reset(direction, segment, (now_ns, options), sink);
            return;
        }
        if !self.is_acceptable(direction, segment, now_ns) {
            let report = &mut self.sides.of_mut(direction).report;
            report.ignored_bytes += segment.payload.len() as u64;
            return;
        }
        if segment.has(Flags::SYN) {
            self.syn(direction, segment);
        } else if self.opening == Opening::MidStream && self.is_new() {
            self.sides.forward.state = State::Established;
            self.sides.backward.state = State::Established;
        }
        self.bytes(direction, segment, now_ns, options, sink);
        self.acknowledge(direction, segment, now_ns, options, sink);
        let is_established = |side: &Side| side.state >= State::Established;
        if !self.is_open && Direction::BOTH.iter().all(|of| is_established(self.sides.of(*of))) {
            self.is_open = true;
            sink.opened(&self.place(Direction::Forward));
        }
        self.receive_fin(direction);
        self.receive_fin(direction.reversed());
        let is_complete = |side: &Side| side.stream.is_complete();
        if is_complete(&self.sides.forward) && is_complete(&self.sides.backward) {
            let is_done = |side: &Side| matches!(side.state, State::TimeWait | State::Ended);
            if is_done(&self.sides.forward) && is_done(&self.sides.backward) {
                self.end(now_ns, options, sink);
            }
        }
    }

    /// Both streams have ended.
    fn end<S: Sink>(&mut self, now_ns: u64, options: &Options, sink: &mut S) {
        (self.is_over, self.over_ns) = (true, now_ns);
        self.finish(options, sink);
        sink.over(&self.place(Direction::Forward));
    }

    /// Ends the connection as if each end had sent a RST. Returns how far both streams were.
    pub fn abort<S: Sink>(
        &mut self,
        now_ns: u64,
        options: &Options,
        sink: &mut S,
    ) -> Pair<Progress> {
        let reached = self.progress();
        if !self.is_over {
            for direction in Direction::BOTH {
                let side = self.sides.of_mut(direction);
                side.state = State::Ended;
                side.end(Ended::Reset);
            }
            self.end(now_ns, options, sink);
        }
        reached
    }

    /// Whether nothing is known of either end.
    fn is_new(&self) -> bool {
        self.sides.forward.state == State::Closed && self.sides.backward.state == State::Closed
    }

    /// Whether the receiver takes a segment (RFC 9293 §3.10.7, RFC 7323 §5.3). Counts it if not.
    fn is_acceptable(&mut self, direction: Direction, segment: &Segment<'_>, now_ns: u64) -> bool {
        let (from, to) = self.sides.split(direction);
        if segment.has(Flags::SYN) {
            // An answer must acknowledge the SYN of the other end.
            let answers = !segment.has(Flags::ACK) || to.is_answered_by(segment.ack);
            let is_right = from.takes_syn(to, segment.seq) && answers;
            from.report.unacceptable += u64::from(!is_right);
            return is_right;
        }
        if !segment.has(Flags::ACK) {
            from.report.unacceptable += 1;
            return false;
        }
        if from.base.is_none() {
            return true;
        }
        if from.has_timestamps(to) && from.is_old(segment, now_ns) {
            from.report.old_timestamps += 1;
            return false;
        }
        let fits = Self::fits(from, to, segment, now_ns);
        let offset = from.offset(segment.seq);
        let is_next = offset <= i64::try_from(from.stream.frontier()).unwrap_or(i64::MAX);
        if !fits && !is_next {
            from.report.out_of_window += 1;
        }
        fits || is_next
    }

    /// A SYN that opens the stream of one end.
    fn syn(&mut self, direction: Direction, segment: &Segment<'_>) {
        let has_ack = segment.has(Flags::ACK);
        let (from, to) = self.sides.split(direction);
        if from.isn.is_some() {
            from.report.retransmissions += 1;
        } else {
            from.open(Syn::of(segment));
        }
        from.state = match from.state {
            State::Closed if has_ack => State::SynReceived,
            State::Closed => State::SynSent,
            state => state,
        };
        to.state = match to.state {
            // The receiver of an answer whose SYN the capture does not have.
            State::Closed if has_ack => State::SynSent,
            State::SynSent if !has_ack => State::SynReceived,
            state => state,
        };
        if !has_ack && to.isn.is_some() {
            self.opening = Opening::Simultaneous;
            from.state = if from.state == State::SynSent { State::SynReceived } else { from.state };
        } else if self.opening == Opening::MidStream {
            self.opening = Opening::Incomplete;
        }
    }

    /// The segment's bytes, its FIN, and what it says of the sender.
    fn bytes<S: Sink>(
        &mut self,
        direction: Direction,
        segment: &Segment<'_>,
        now_ns: u64,
        options: &Options,
        sink: &mut S,
    ) {
        let mut out = self.to(direction, sink);
        let (from, to) = self.sides.split(direction);
        from.pick_up(segment);
        let offset = from.offset(segment.first_byte());
        from.keep_timestamp(segment, offset, now_ns);
        if is_keep_alive(from, to, segment, offset) {
            from.report.keep_alives += 1;
        } else {
            let found = from.stream.segment(offset, segment.len, segment.payload, &mut out);
            let is_fin_repeated = segment.has(Flags::FIN) && from.stream.fin().is_some();
            from.report.retransmissions += u64::from(found.is_repeated || is_fin_repeated);
            from.report.out_of_order += u64::from(found.is_out_of_order && !found.is_repeated);
        }
        if segment.has(Flags::FIN) {
            from.stream.end_at(offset.saturating_add(segment.len.into()));
            from.state = match from.state {
                State::Established | State::SynReceived => State::FinWait1,
                State::CloseWait => State::LastAck,
                state => state,
            };
        }
        self.memory_gaps += from.stream.shrink(options.stream_memory, &mut out);
    }

    /// The segment's acknowledgement.
    fn acknowledge<S: Sink>(
        &mut self,
        direction: Direction,
        segment: &Segment<'_>,
        now_ns: u64,
        options: &Options,
        sink: &mut S,
    ) {
        let other = direction.reversed();
        let mut out = self.to(other, sink);
        let (from, to) = self.sides.split(direction);
        from.hear(segment, now_ns);
        if let Some(ack) = from.ack {
            // The other end's first number, if the capture has nothing of it yet.
            let is_heard = segment.has(Flags::ACK);
            if is_heard && to.base.is_none() {
                to.base = Some(ack);
            }
            let patience = options.patience_ns;
            to.stream.acknowledge(to.offset(ack), now_ns, patience, &mut out);
        }
        if !segment.has(Flags::ACK) {
            return;
        }
        let has_syn = segment.has(Flags::SYN);
        if to.syn_is_in(segment.ack) {
            to.state = match to.state {
                State::SynSent if has_syn => State::Established,
                State::SynReceived => State::Established,
                state => state,
            };
            let is_done = to.state >= State::Established && from.state >= State::Established;
            if is_done && self.opening == Opening::Incomplete && from.isn.is_some() {
                self.opening = Opening::Handshake;
            }
        }
        if to.fin_is_in(segment.ack) {
            to.state = match to.state {
                State::FinWait1 => State::FinWait2,
                State::Closing => State::TimeWait,
                State::LastAck => State::Ended,
                state => state,
            };
        }
        // The third segment of a handshake also shows that its sender has the answer.
        if !has_syn && from.state == State::SynSent && to.syn_is_in(segment.ack) {
            from.state = State::Established;
        }
    }

    /// The receiver of a direction has its FIN once all bytes in front have come, or once it
    /// acknowledges the FIN.
    fn receive_fin(&mut self, direction: Direction) {
        let (from, to) = self.sides.split(direction);
        let is_acked = to.ack.is_some_and(|ack| from.fin_is_in(ack));
        let is_in = from.stream.is_complete() || is_acked;
        if from.is_fin_received || from.stream.fin().is_none() || !is_in {
            return;
        }
        from.is_fin_received = true;
        from.end(Ended::Fin);
        to.state = match to.state {
            State::Established | State::SynReceived | State::SynSent => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            state => state,
        };
    }

    /// A RST counts if it is at the next byte, as far as the monitor can know that (RFC 9293
    /// §3.10.7.4, RFC 5961 §3).
    fn reset<S: Sink>(
        &mut self,
        direction: Direction,
        segment: &Segment<'_>,
        (now_ns, options): (u64, &Options),
        sink: &mut S,
    ) {
        let (from, to) = self.sides.split(direction);
        from.report.ignored_bytes += segment.payload.len() as u64;
        let is_exact = match (from.base, to.state) {
            // The answer to a SYN must acknowledge it.
            (_, State::SynSent) => segment.has(Flags::ACK) && to.is_answered_by(segment.ack),
            (None, _) => true,
            (Some(_), _) => is_next(from, to, segment.seq, options),
        };
        if !is_exact {
            from.report.wrong_resets += 1;
            if Self::fits(from, to, segment, now_ns) {
                from.report.ended = match from.report.ended {
                    Ended::Capture => Ended::DoubtfulReset,
                    ended => ended,
                };
            }
            return;
        }
        // The receiver may ignore a forged answer to its SYN, for its time stamp. Then the right
        // answer still comes.
        if to.state == State::SynSent {
            to.candidate = to.syn();
        }
        for (side, ended) in [(from, Ended::Reset), (to, Ended::ResetByReceiver)] {
            side.state = State::Ended;
            side.end(ended);
        }
        self.end(now_ns, options, sink);
    }

    /// Delivers what waits, with gaps between, or forgets it.
    fn finish<S: Sink>(&mut self, options: &Options, sink: &mut S) {
        for direction in Direction::BOTH {
            let mut out = self.to(direction, sink);
            let stream = &mut self.sides.of_mut(direction).stream;
            match options.is_inline {
                true => stream.discard(),
                false => stream.finish(&mut out),
            }
        }
    }

    /// Ends the connection and tells the sink.
    pub fn close<S: Sink>(&mut self, ended: Ended, options: &Options, sink: &mut S) {
        self.finish(options, sink);
        let Pair { forward, backward } = &mut self.sides;
        forward.end(ended);
        backward.end(ended);
        let sides =
            Pair { forward: forward.reported(backward), backward: backward.reported(forward) };
        let (connection, flow, opening) = (self.id, self.flow, self.opening);
        sink.closed(&Report { connection, flow, opening, sides });
    }
}

/// Whether a number is that of the next byte: the one behind all bytes that were delivered. A
/// monitor that may lack packets also takes the one behind all that were sent, and the one that the
/// receiver has acknowledged last.
fn is_next(from: &Side, to: &Side, seq: Seq, options: &Options) -> bool {
    let offset = from.offset(seq);
    let fin = u64::from(from.stream.fin().is_some());
    let at = |known: u64| u64::try_from(offset).is_ok_and(|o| o == known || o == known + fin);
    let is_exact = at(from.stream.frontier());
    is_exact || !options.is_inline && (at(from.stream.top()) || to.ack == Some(seq))
}

/// Whether a segment is a keep-alive: it repeats the number of the last byte, which has been
/// acknowledged, with at most one byte (RFC 9293 §3.8.4).
fn is_keep_alive(from: &Side, to: &Side, segment: &Segment<'_>, offset: i64) -> bool {
    let top = i64::try_from(from.stream.top()).unwrap_or(i64::MAX);
    let is_acked = to.ack.is_some_and(|ack| from.offset(ack) == top);
    segment.is_plain() && segment.len <= 1 && offset == top - 1 && is_acked
}
