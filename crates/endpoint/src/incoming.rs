//! Segments that come (RFC 9293 §3.10.7.4).

use braid_tcp::{Flags, Seq};

use crate::endpoint::{Endpoint, Phase};
use crate::options::Options;
use crate::receiver::{Receiver, Taken};
use crate::segment::Incoming;
use crate::settings::{
    DEFAULT_MSS, DELAYED_ACK, LEAST_MSS, MILLISECOND, MOST_SCALE, SECOND, TIME_WAIT_NS,
};
use crate::status::{Agreed, Failure};

/// The period for challenge acknowledgements (ns), and how many may be sent in one (RFC 5961 §7).
const CHALLENGES: (u64, u8) = (5 * SECOND, 10);
/// The time for which the peer's last timestamp is a measure of others: 24 days (RFC 7323 §5.5).
const TIMESTAMP_LIFE: u64 = 24 * 24 * 3_600 * SECOND;

impl Endpoint {
    /// Takes a segment that has come.
    pub fn segment(&mut self, segment: &Incoming<'_>, now: u64) {
        let options = Options::parse(segment.options);
        match self.phase {
            Phase::Over => {}
            Phase::SynSent => self.hear_answer(segment, &options, now),
            Phase::SynReceived if self.is_repeated_syn(segment) => {
                // The caller's `send` sends the answer again, unless it is deferred.
                self.sender.repeat_syn();
            }
            _ => self.hear(segment, &options, now),
        }
    }

    /// Whether this SYN opens the next connection between the same ports although the endpoint is
    /// in TIME-WAIT: it is newer than all that came, by its number or its timestamp (RFC 6191 §2).
    /// The caller then drops this endpoint, and accepts the SYN with a new one.
    #[must_use]
    pub fn makes_way_for(&self, syn: &Incoming<'_>) -> bool {
        let is_syn = syn.has(Flags::SYN) && !syn.has(Flags::ACK) && !syn.has(Flags::RST);
        if self.phase != Phase::TimeWait || !is_syn {
            return false;
        }
        let value = Options::parse(syn.options).timestamps.map(|timestamps| timestamps.value);
        let is_newer =
            self.recent.zip(value).map(|((recent, _), value)| value.wrapping_sub(recent));
        is_newer.is_some_and(|distance| distance.cast_signed() > 0)
            || self.receiver.offset(syn.seq) > self.receiver.next.cast_signed()
    }

    fn is_repeated_syn(&self, segment: &Incoming<'_>) -> bool {
        segment.flags.has(Flags::SYN)
            && !segment.has(Flags::ACK)
            && !segment.has(Flags::RST)
            && segment.seq == self.receiver.isn
    }

    fn hear(&mut self, segment: &Incoming<'_>, options: &Options, now: u64) {
        let mut segment = *segment;
        if self.phase == Phase::SynReceived
            && segment.has(Flags::SYN)
            && segment.seq == self.receiver.isn
        {
            // In a simultaneous open, the acknowledgement comes with the peer's SYN again.
            segment.flags = segment.flags.without(Flags::SYN);
            segment.seq = segment.seq.plus(1);
        }
        let at = self.receiver.offset(segment.seq);
        let is_reset = segment.has(Flags::RST);
        if !is_reset && self.agreed.timestamps && options.timestamps.is_none() {
            // RFC 7323 §3.2: the peer has promised timestamps.
            return;
        }
        let is_old = !is_reset && self.is_old(options, now);
        if is_old || !self.receiver.is_acceptable(at, segment.len()) {
            self.answer_unacceptable(&segment, now);
        } else if is_reset {
            self.hear_reset(at, now);
        } else if segment.has(Flags::SYN) {
            self.challenge(now);
        } else if segment.has(Flags::ACK) {
            self.keep_timestamp(options, at, now);
            if self.hear_acknowledgement(&segment, at, options, now) {
                self.hear_data(&segment, at, now);
            }
        }
    }

    /// Whether a segment's timestamp is older than the last one (PAWS, RFC 7323 §5.3).
    fn is_old(&self, options: &Options, now: u64) -> bool {
        let (Some((recent, at)), Some(timestamps)) = (self.recent, options.timestamps) else {
            return false;
        };
        let is_older = timestamps.value.wrapping_sub(recent).cast_signed() < 0;
        is_older && now.saturating_sub(at) < TIMESTAMP_LIFE
    }

    fn keep_timestamp(&mut self, options: &Options, at: i64, now: u64) {
        let is_next = at <= self.acknowledged.cast_signed();
        if let Some(timestamps) = options.timestamps.filter(|_| self.agreed.timestamps && is_next) {
            self.recent = Some((timestamps.value, now));
        }
    }

    /// Answers a segment outside of the window, or an old one, so that the peer learns where this
    /// end is. A segment with neither data nor FIN could be such an answer itself, so the number of
    /// answers to those is bounded.
    fn answer_unacceptable(&mut self, segment: &Incoming<'_>, now: u64) {
        if segment.has(Flags::RST) {
            return;
        }
        if self.phase == Phase::TimeWait && segment.has(Flags::FIN) {
            self.over_at = Some(now.saturating_add(TIME_WAIT_NS));
        }
        if segment.payload.is_empty() && !segment.has(Flags::FIN) {
            self.challenge(now);
        } else {
            self.is_ack_due = true;
        }
    }

    /// Takes a RST in the window. One that is not exactly the next segment may be forged, so it is
    /// only answered (RFC 5961 §3.2). In TIME-WAIT, none ends the wait (RFC 1337).
    fn hear_reset(&mut self, at: i64, now: u64) {
        if self.phase == Phase::TimeWait {
            return;
        }
        if at == self.receiver.next.cast_signed() {
            // If nothing but the answer to the own FIN is missing, nothing is lost: the peer may
            // have left TIME-WAIT.
            let is_done = self.receiver.is_closed() && self.sender.unacked == self.sender.end();
            self.end(Some(Failure::Reset).filter(|_| !is_done || !self.sender.has_fin));
        } else {
            self.challenge(now);
        }
    }

    /// Answers a segment that may be forged, a few times in each period (RFC 5961).
    fn challenge(&mut self, now: u64) {
        let (period, most) = CHALLENGES;
        if now.saturating_sub(self.challenges.0) >= period {
            self.challenges = (now, 0);
        }
        if self.challenges.1 < most {
            self.challenges.1 += 1;
            self.is_ack_due = true;
        }
    }

    /// Takes the acknowledgement of an acceptable segment. Whether its data counts, too.
    fn hear_acknowledgement(
        &mut self,
        segment: &Incoming<'_>,
        at: i64,
        options: &Options,
        now: u64,
    ) -> bool {
        let ack = self.sender.offset(segment.ack);
        if self.phase == Phase::SynReceived {
            if ack < 1 || ack > self.sender.next.cast_signed() {
                self.rejection = Some(segment.ack);
                return false;
            }
            self.establish();
        }
        let unacked = self.sender.unacked;
        let least = unacked.cast_signed().saturating_sub_unsigned(self.sender.most_window);
        if ack > self.sender.next.cast_signed() || ack < least {
            // RFC 5961 §5.2: such an acknowledgement, with its data, may be forged.
            self.challenge(now);
            return false;
        }
        if let Ok(ack) = u64::try_from(ack)
            && ack >= unacked
        {
            self.hear_current(segment, at, ack, options, now);
        }
        self.phase != Phase::Over
    }

    /// Takes an acknowledgement that is not older than the last one.
    fn hear_current(
        &mut self,
        segment: &Incoming<'_>,
        at: i64,
        ack: u64,
        options: &Options,
        now: u64,
    ) {
        let is_new = ack > self.sender.unacked;
        let window = self.window_of(segment);
        let is_same_window = window == self.sender.window;
        if is_new {
            self.hear_new_acknowledgement(ack, options, now);
        }
        let has_news = self.agreed.sack && self.hear_blocks(&options.sack);
        let is_plain = segment.payload.is_empty() && !segment.has(Flags::FIN);
        let tells = if self.agreed.sack { has_news } else { is_same_window && is_plain };
        let is_duplicate = !is_new && tells && self.sender.flight() > 0;
        let bounds = self.bounds(0);
        self.sender.look_for_loss(is_duplicate, bounds);
        let has_opened = self.sender.hear_window((at.max(0).cast_unsigned(), ack), window);
        if self.sender.window == 0 {
            // The peer answers: it lets the connection wait, and is not gone.
            self.retries = 0;
        }
        if has_opened && !is_new && self.sender.flight() == 0 {
            // The timer was that of probes.
            (self.retry_at, self.rtt.doublings) = (None, 0);
        }
        if self.sender.is_fin_acknowledged() && self.phase == Phase::Open {
            self.hear_both_fins(now);
        }
    }

    fn window_of(&self, segment: &Incoming<'_>) -> u64 {
        u64::from(segment.window) << self.peer_scale()
    }

    /// Takes SACK blocks. Whether one has told something new.
    fn hear_blocks(&mut self, blocks: &[(Seq, Seq)]) -> bool {
        let mut has_news = false;
        for (start, end) in blocks {
            let (start, end) = (self.sender.offset(*start), self.sender.offset(*end));
            has_news |= self.sender.hear_block(start, end);
        }
        has_news
    }

    /// Takes an acknowledgement of something new.
    fn hear_new_acknowledgement(&mut self, ack: u64, options: &Options, now: u64) {
        self.measure(ack, options, now);
        let bounds = self.bounds(0);
        self.sender.acknowledge(ack, bounds);
        (self.retry_at, self.retries) = (None, 0);
    }

    /// Measures the round trip: with a segment that was sent once (Karn), which is exact, or else
    /// with the timestamp that comes back (RFC 7323 §4.1).
    fn measure(&mut self, ack: u64, options: &Options, now: u64) {
        if let Some((_, sent_at)) = self.timed.filter(|(end, _)| ack >= *end) {
            self.rtt.sample(now.saturating_sub(sent_at));
            self.timed = None;
            return;
        }
        let has_none = self.timed.is_none() || self.rtt.doublings > 0;
        let is_used = self.agreed.timestamps && has_none;
        if let Some(timestamps) = options.timestamps.filter(|_| is_used) {
            let time = self.clock(now).wrapping_sub(timestamps.echo);
            if time.cast_signed() >= 0 {
                self.rtt.sample(u64::from(time) * MILLISECOND);
            }
        }
    }

    fn hear_data(&mut self, segment: &Incoming<'_>, at: i64, now: u64) {
        let has_fin = segment.has(Flags::FIN);
        if segment.payload.is_empty() && !has_fin {
            return;
        }
        if self.receiver.is_closed() {
            self.is_ack_due = true;
            return;
        }
        let next = self.receiver.next;
        let taken = self.receiver.take(at, segment.payload, has_fin);
        if self.receiver.next > next {
            self.duplicates_due = 0;
        }
        if taken == Taken::InOrder {
            self.unanswered = self.unanswered.saturating_add(1);
            self.ack_at.get_or_insert(now.saturating_add(DELAYED_ACK));
            self.is_ack_due |= self.unanswered >= 2;
        } else if self.receiver.next == next && !self.agreed.sack {
            self.duplicates_due = self.duplicates_due.saturating_add(1);
        } else {
            self.is_ack_due = true;
        }
        if self.sender.is_fin_acknowledged() {
            self.hear_both_fins(now);
        }
    }

    /// The own FIN is acknowledged. If the peer's has come, too, the connection ends.
    fn hear_both_fins(&mut self, now: u64) {
        if !self.receiver.is_closed() {
            return;
        }
        if self.has_closed_first {
            self.phase = Phase::TimeWait;
            self.retry_at = None;
            self.over_at = Some(now.saturating_add(TIME_WAIT_NS));
        } else {
            self.end(None);
        }
    }

    /// Takes the peer's SYN.
    pub(crate) fn synchronize(&mut self, syn: &Incoming<'_>, options: &Options, now: u64) {
        let settings = self.settings;
        let peer_scale = options.wscale.filter(|_| settings.wscale);
        self.agreed = Agreed {
            mss: options.mss.unwrap_or(DEFAULT_MSS).clamp(LEAST_MSS, settings.mss),
            wscale: peer_scale.map(|peer| (settings.scale(), peer.min(MOST_SCALE))),
            sack: settings.sack && options.sack_permitted,
            timestamps: settings.timestamps && options.timestamps.is_some(),
        };
        self.receiver = Receiver::new(syn.seq, settings.receive);
        self.recent = options.timestamps.filter(|_| self.agreed.timestamps).map(|t| (t.value, now));
        // A lost SYN leaves one segment as the window (RFC 5681 §3.1).
        let was_lost = self.retries > 0;
        let segment = self.bounds(0).segment;
        self.sender.congestion.begin(segment, was_lost);
        self.sender.hear_window((0, 0), syn.window.into());
    }

    /// Takes a segment in SYN-SENT (RFC 9293 §3.10.7.3).
    fn hear_answer(&mut self, segment: &Incoming<'_>, options: &Options, now: u64) {
        let has_ack = segment.has(Flags::ACK);
        let is_right = has_ack && self.sender.next == 1 && self.sender.offset(segment.ack) == 1;
        if segment.has(Flags::RST) {
            if is_right {
                self.end(Some(Failure::Refused));
            }
            return;
        }
        if has_ack && !is_right {
            self.rejection = Some(segment.ack);
            return;
        }
        if !segment.has(Flags::SYN) {
            return;
        }
        self.synchronize(segment, options, now);
        if is_right {
            self.hear_new_acknowledgement(1, options, now);
            self.establish();
            self.is_ack_due = true;
        } else {
            // Simultaneous open: the answer is the own SYN again, with an acknowledgement.
            self.phase = Phase::SynReceived;
            self.sender.repeat_syn();
        }
    }

    /// Both SYNs are acknowledged.
    fn establish(&mut self) {
        self.phase = Phase::Open;
        self.was_established = true;
        self.rtt.distrust();
    }
}
