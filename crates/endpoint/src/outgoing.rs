//! Segments to send, and the timers that send them.

use braid_tcp::{Flags, Seq};

use crate::endpoint::{Endpoint, Phase};
use crate::options::{Options, Timestamps};
use crate::segment::{OptionBytes, Outgoing};
use crate::sender::Load;
use crate::settings::{MILLISECOND, most_retries};
use crate::status::Failure;

type Out<'a> = &'a mut dyn FnMut(Outgoing<'_>);

impl Endpoint {
    /// When `send` has something to do although nothing else was called (ns).
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        [self.retry_at, self.ack_at, self.over_at].into_iter().flatten().min()
    }

    /// Hands out the segments that are to be sent now, at most `most`, and returns their number. If
    /// it is `most`, there may be others.
    pub fn send(&mut self, now: u64, most: usize, out: Out<'_>) -> usize {
        self.expire(now);
        let mut count = 0;
        while count < most && self.send_one(now, out) {
            count += 1;
        }
        self.arm(now);
        count
    }

    /// Does what is due.
    fn expire(&mut self, now: u64) {
        let is_due = |at: Option<u64>| at.is_some_and(|at| at <= now);
        if is_due(self.over_at) {
            self.end(None);
        }
        if is_due(self.ack_at) {
            self.ack_at = None;
            self.is_ack_due = true;
        }
        if is_due(self.retry_at) {
            self.retry_at = None;
            self.retry();
        }
    }

    fn retry(&mut self) {
        if self.retries >= most_retries(self.state()) {
            self.end(Some(Failure::TimedOut));
            return;
        }
        self.retries += 1;
        self.rtt.back_off();
        if self.sender.flight() > 0 {
            let segment = self.bounds(0).segment;
            self.sender.time_out(segment);
            // A segment that is repeated measures nothing (RFC 6298 §3).
            self.timed = None;
        } else {
            self.is_probe_due = true;
        }
    }

    /// Starts the timer for what is under way, or for a window that lets nothing through.
    fn arm(&mut self, now: u64) {
        let is_blocked = self.phase == Phase::Open && self.sender.has_unsent();
        if self.phase == Phase::Over || self.sender.flight() == 0 && !is_blocked {
            self.retry_at = None;
        } else if self.retry_at.is_none() {
            self.retry_at = Some(now.saturating_add(self.rtt.timeout()));
        }
    }

    fn send_one(&mut self, now: u64, out: Out<'_>) -> bool {
        if let Some(seq) = self.rejection.take() {
            out(bare(Flags::RST, seq, Seq(0)));
            return true;
        }
        if std::mem::take(&mut self.is_reset_due) {
            let (seq, ack) = (self.sender.isn.at(self.sender.next), self.acknowledgement());
            out(bare(Flags::RST.with(Flags::ACK), seq, ack));
            return true;
        }
        match self.phase {
            Phase::Over => false,
            Phase::SynSent | Phase::SynReceived => self.send_syn(now, out),
            Phase::Open | Phase::TimeWait => {
                self.send_data(now, out) || self.send_acknowledgement(now, out)
            }
        }
    }

    fn send_syn(&mut self, now: u64, out: Out<'_>) -> bool {
        if self.is_deferred || !self.sender.is_syn_due() {
            return false;
        }
        let is_answer = self.phase == Phase::SynReceived;
        let (settings, agreed) = (self.settings, self.agreed);
        let has = |offered: bool, agreed: bool| if is_answer { agreed } else { offered };
        let options = Options {
            mss: Some(settings.mss),
            wscale: has(settings.wscale, agreed.wscale.is_some()).then(|| settings.scale()),
            sack_permitted: has(settings.sack, agreed.sack),
            timestamps: has(settings.timestamps, agreed.timestamps).then(|| self.timestamps(now)),
            ..Options::default()
        };
        let flags = if is_answer { Flags::SYN.with(Flags::ACK) } else { Flags::SYN };
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        let window = u16::try_from(settings.receive).unwrap_or(u16::MAX);
        let ack = if is_answer { self.acknowledgement() } else { Seq(0) };
        let (seq, options) = (self.sender.isn, options.bytes());
        out(Outgoing { seq, ack, flags, window, options, payload: (&[], &[]) });
        self.note_sent(Load { start: 0, len: 1, has_fin: false }, now);
        self.note_acknowledged();
        true
    }

    /// Sends lost bytes again, or else new ones.
    fn send_data(&mut self, now: u64, out: Out<'_>) -> bool {
        let options = self.options(now);
        let bounds = self.bounds(options.len());
        let load = self.sender.repeated(bounds).or_else(|| {
            if self.sender.flight() == 0 && now.saturating_sub(self.sent_at) > self.rtt.timeout() {
                self.sender.congestion.rest(bounds.segment);
            }
            self.sender.fresh(bounds, self.is_probe_due)
        });
        let Some(load) = load else {
            return false;
        };
        let is_last = load.start + load.len == self.sender.end();
        let mut flags = Flags::ACK;
        if load.len > 0 && is_last {
            flags = flags.with(Flags::PSH);
        }
        if load.has_fin {
            flags = flags.with(Flags::FIN);
        }
        self.emit(flags, load, options, out);
        self.note_sent(load, now);
        self.is_probe_due = false;
        true
    }

    /// Sends an acknowledgement that is due, or a probe of the window: a segment in front of it,
    /// which each receiver answers.
    fn send_acknowledgement(&mut self, now: u64, out: Out<'_>) -> bool {
        let is_probe = std::mem::take(&mut self.is_probe_due);
        if !is_probe && !self.is_ack_due && self.duplicates_due == 0 {
            return false;
        }
        self.duplicates_due = self.duplicates_due.saturating_sub(1);
        let (unacked, next) = (self.sender.unacked, self.sender.next);
        let start = if is_probe { unacked.saturating_sub(1) } else { next };
        let options = self.options(now);
        self.emit(Flags::ACK, Load { start, len: 0, has_fin: false }, options, out);
        true
    }

    fn emit(&mut self, flags: Flags, load: Load, options: OptionBytes, out: Out<'_>) {
        let receive = self.settings.receive;
        let least = receive.div_ceil(2).min(self.settings.mss.into());
        let window = self.receiver.open(receive, self.own_scale(), least);
        out(Outgoing {
            seq: self.sender.isn.at(load.start),
            ack: self.acknowledgement(),
            flags,
            window,
            options,
            payload: if load.len > 0 { self.sender.bytes(load) } else { (&[], &[]) },
        });
        self.note_acknowledged();
    }

    /// Notes a segment with data, SYN or FIN: it may start the timer and a measurement.
    fn note_sent(&mut self, load: Load, now: u64) {
        let is_new = load.start >= self.sender.next;
        if !is_new {
            // Later acknowledgements could be those of either copy.
            self.timed = None;
        }
        if self.sender.is_urgent || self.sender.flight() == 0 {
            self.retry_at = None;
        }
        self.sender.sent(load);
        if is_new {
            self.sent_at = now;
            self.timed.get_or_insert((self.sender.next, now));
        }
    }

    fn note_acknowledged(&mut self) {
        (self.is_ack_due, self.ack_at, self.unanswered) = (false, None, 0);
        self.acknowledged = self.receiver.next;
    }

    fn acknowledgement(&self) -> Seq {
        self.receiver.isn.at(self.receiver.next)
    }

    /// The options of a segment without SYN.
    fn options(&self, now: u64) -> OptionBytes {
        let options = Options {
            timestamps: self.agreed.timestamps.then(|| self.timestamps(now)),
            sack: if self.agreed.sack { self.receiver.blocks() } else { Default::default() },
            ..Options::default()
        };
        options.bytes()
    }

    fn timestamps(&self, now: u64) -> Timestamps {
        Timestamps { value: self.clock(now), echo: self.recent.map_or(0, |(value, _)| value) }
    }

    /// The clock of timestamps, in milliseconds. It starts from the SYN's number, so that it does
    /// not tell how long the machine has been running.
    #[expect(clippy::cast_possible_truncation, reason = "the clock wraps")]
    pub(crate) fn clock(&self, now: u64) -> u32 {
        ((now / MILLISECOND) as u32).wrapping_add(self.sender.isn.0)
    }
}

/// A segment with flags and numbers only.
fn bare(flags: Flags, seq: Seq, ack: Seq) -> Outgoing<'static> {
    Outgoing { seq, ack, flags, window: 0, options: OptionBytes::new(), payload: (&[], &[]) }
}
