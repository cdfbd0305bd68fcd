//! The endpoint: what it holds, and what its user does with it.

use braid_tcp::{Seq, State};

use crate::options::{Options, TIMESTAMPS_LEN};
use crate::receiver::Receiver;
use crate::rtt::Rtt;
use crate::segment::Incoming;
use crate::sender::{Bounds, Sender};
use crate::settings::{DEFAULT_MSS, LEAST_MSS, Settings};
use crate::status::{Agreed, Failure, Status};

/// How far the connection is. The states that follow ESTABLISHED come from the FINs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// The own SYN waits for an answer.
    SynSent,
    /// Both SYNs are there, and the own one is not acknowledged.
    SynReceived,
    /// Both are acknowledged.
    Open,
    /// Both FINs are acknowledged, and the peer may not know it.
    TimeWait,
    /// The connection is over.
    Over,
}

/// One end of a TCP connection.
///
/// Call [`send`](Self::send) after each other call that changes the endpoint, and when
/// [`deadline`](Self::deadline) is reached. Times are in ns, and never go back.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) settings: Settings,
    pub(crate) agreed: Agreed,
    pub(crate) phase: Phase,
    /// Whether the answer to the peer's SYN has to wait.
    pub(crate) is_deferred: bool,
    /// Whether the connection was ever established.
    pub(crate) was_established: bool,
    /// Whether this end was closed before the peer's FIN came.
    pub(crate) has_closed_first: bool,
    pub(crate) failure: Option<Failure>,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) rtt: Rtt,
    /// The end of the segment that is being timed, and when it was sent.
    pub(crate) timed: Option<(u64, u64)>,
    /// When the last new segment was sent.
    pub(crate) sent_at: u64,
    /// When to retransmit or, if nothing is under way, when to probe the window.
    pub(crate) retry_at: Option<u64>,
    /// How often that has happened in a row without an answer.
    pub(crate) retries: u8,
    /// Whether the window is to be probed.
    pub(crate) is_probe_due: bool,
    /// When to acknowledge what has come.
    pub(crate) ack_at: Option<u64>,
    /// Whether to do it now.
    pub(crate) is_ack_due: bool,
    /// How many segments out of order are to be told one by one, because the peer counts duplicate
    /// acknowledgements (RFC 5681 §3.2). With SACK, one acknowledgement tells all of them.
    pub(crate) duplicates_due: u8,
    /// How many segments in order have come since the last acknowledgement.
    pub(crate) unanswered: u8,
    /// The last acknowledgement that was sent, as an offset.
    pub(crate) acknowledged: u64,
    /// The peer's clock to echo, and when it was taken (RFC 7323 §4.3).
    pub(crate) recent: Option<(u32, u64)>,
    /// When the current period for challenges began, and how many it has had.
    pub(crate) challenges: (u64, u8),
    /// The number of a RST against a wrong acknowledgement. The connection goes on.
    pub(crate) rejection: Option<Seq>,
    /// Whether a RST is to be sent for the connection.
    pub(crate) is_reset_due: bool,
    /// When TIME-WAIT ends.
    pub(crate) over_at: Option<u64>,
}

impl Endpoint {
    /// An active open: the SYN leaves with the next `send`. The caller chooses `isn`, its initial
    /// sequence number, so that nobody can guess it (RFC 6528).
    #[must_use]
    pub fn connect(settings: &Settings, isn: u32, now: u64) -> Self {
        Self::new(settings, isn, Phase::SynSent, now)
    }

    /// A passive open: this SYN has come. Its answer leaves with the next `send`, unless it is
    /// [deferred](Self::defer). A payload of the SYN is left out, and the peer repeats it.
    #[must_use]
    pub fn accept(settings: &Settings, syn: &Incoming<'_>, isn: u32, now: u64) -> Self {
        let mut endpoint = Self::new(settings, isn, Phase::SynReceived, now);
        endpoint.synchronize(syn, &Options::parse(syn.options), now);
        endpoint
    }

    /// An endpoint in front of the first segment.
    fn new(settings: &Settings, isn: u32, phase: Phase, now: u64) -> Self {
        let settings = settings.bounded();
        let agreed = Agreed {
            mss: settings.mss.min(DEFAULT_MSS),
            wscale: None,
            sack: false,
            timestamps: false,
        };
        Self {
            settings,
            agreed,
            phase,
            is_deferred: false,
            was_established: false,
            has_closed_first: false,
            failure: None,
            sender: Sender::new(Seq(isn), agreed.mss.into()),
            receiver: Receiver::default(),
            rtt: Rtt::default(),
            timed: None,
            sent_at: now,
            retry_at: None,
            retries: 0,
            is_probe_due: false,
            ack_at: None,
            is_ack_due: false,
            duplicates_due: 0,
            unanswered: 0,
            acknowledged: 0,
            recent: None,
            challenges: (now, 0),
            rejection: None,
            is_reset_due: false,
            over_at: None,
        }
    }

    /// The bytes that have come in order and have not been read.
    #[must_use]
    pub fn readable(&self) -> (&[u8], &[u8]) {
        self.receiver.readable()
    }

    /// The first `bytes` readable bytes have been read. The window opens.
    pub fn consume(&mut self, bytes: usize) {
        self.receiver.consume(bytes);
        let is_open = matches!(self.phase, Phase::Open) && !self.receiver.is_closed();
        let least = self.settings.receive.div_ceil(2).min(2 * u32::from(self.settings.mss));
        if is_open && self.receiver.can_open(self.settings.receive, self.own_scale(), least) {
            self.is_ack_due = true;
        }
    }

    /// How many bytes [`write`](Self::write) takes now. None after [`close`](Self::close).
    #[must_use]
    pub fn room(&self) -> usize {
        let is_open = !self.sender.has_fin && !matches!(self.phase, Phase::TimeWait | Phase::Over);
        let send = usize::try_from(self.settings.send).unwrap_or(usize::MAX);
        if is_open { send.saturating_sub(self.sender.buffer.len()) } else { 0 }
    }

    /// Takes bytes to send, as far as there is room, and returns their number. Bytes may be written
    /// before the connection is established.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.get(..self.room()).unwrap_or(bytes);
        self.sender.buffer.extend(taken);
        taken.len()
    }

    /// Ends the own stream: a FIN follows what was written. The peer may go on to send. An endpoint
    /// in SYN-SENT is over at once.
    pub fn close(&mut self) {
        match self.phase {
            Phase::SynSent => self.end(None),
            Phase::SynReceived | Phase::Open if !self.sender.has_fin => {
                self.sender.has_fin = true;
                self.has_closed_first = !self.receiver.is_closed();
            }
            _ => {}
        }
    }

    /// A router has dropped the segment with this number, because its next link takes `most` bytes
    /// of TCP without its header at most (RFC 1191, RFC 8201). From now on, segments are as short.
    /// What is under way leaves again. Returns whether the message was believed: one about a
    /// segment that is not under way may be forged (RFC 5927 §7).
    pub fn too_long(&mut self, seq: Seq, most: u16) -> bool {
        let (unacked, next) = (self.sender.unacked.cast_signed(), self.sender.next.cast_signed());
        let is_under_way = (unacked..next).contains(&self.sender.offset(seq));
        let most = most.max(LEAST_MSS);
        if self.phase != Phase::Open || !is_under_way || most >= self.agreed.mss {
            return false;
        }
        self.agreed.mss = most;
        self.sender.repeat();
        // Acknowledgements could be those of either copy.
        self.timed = None;
        true
    }

    /// Gives the connection up. A RST leaves with the next `send`, if the peer knows of the
    /// connection.
    pub fn abort(&mut self) {
        if self.phase != Phase::Over {
            self.is_reset_due = matches!(self.phase, Phase::SynReceived | Phase::Open);
            self.end(Some(Failure::Aborted));
        }
    }

    /// Lets the answer to the peer's SYN wait until [`proceed`](Self::proceed). Meanwhile there is
    /// no deadline: the caller bounds the wait.
    pub fn defer(&mut self) {
        self.is_deferred = self.phase == Phase::SynReceived && self.sender.next == 0;
    }

    /// The answer to the peer's SYN leaves with the next `send`.
    pub fn proceed(&mut self) {
        self.is_deferred = false;
    }

    /// How the endpoint stands.
    #[must_use]
    pub fn status(&self) -> Status {
        let is_quiet = !self.is_reset_due && self.rejection.is_none();
        Status {
            state: self.state(),
            is_established: self.was_established,
            has_peer_closed: self.receiver.is_closed(),
            is_all_acknowledged: self.sender.is_all_acknowledged(),
            failure: self.failure,
            is_over: self.phase == Phase::Over && is_quiet,
        }
    }

    /// What both SYNs agreed on.
    #[must_use]
    pub fn agreed(&self) -> Agreed {
        self.agreed
    }

    /// The memory that the endpoint uses, with its own structure (bytes).
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.sender.memory() + self.receiver.memory()
    }

    pub(crate) fn state(&self) -> State {
        let is_acknowledged = self.sender.is_fin_acknowledged();
        match (self.phase, self.sender.has_fin, self.receiver.is_closed()) {
            (Phase::SynSent, ..) => State::SynSent,
            (Phase::SynReceived, ..) => State::SynReceived,
            (Phase::TimeWait, ..) => State::TimeWait,
            (Phase::Over, ..) => State::Ended,
            (Phase::Open, false, false) => State::Established,
            (Phase::Open, false, true) => State::CloseWait,
            (Phase::Open, true, false) if is_acknowledged => State::FinWait2,
            (Phase::Open, true, false) => State::FinWait1,
            (Phase::Open, true, true) if self.has_closed_first => State::Closing,
            (Phase::Open, true, true) => State::LastAck,
        }
    }

    /// The connection is over. What has come can still be read.
    pub(crate) fn end(&mut self, failure: Option<Failure>) {
        self.phase = Phase::Over;
        self.failure = failure;
        (self.retry_at, self.ack_at, self.over_at) = (None, None, None);
        (self.is_ack_due, self.duplicates_due, self.is_probe_due) = (false, 0, false);
    }

    /// The scale of own windows.
    pub(crate) fn own_scale(&self) -> u8 {
        self.agreed.wscale.map_or(0, |(own, _)| own)
    }

    /// The scale of the peer's windows.
    pub(crate) fn peer_scale(&self) -> u8 {
        self.agreed.wscale.map_or(0, |(_, peer)| peer)
    }

    /// The bounds of a segment with `options` bytes of options.
    pub(crate) fn bounds(&self, options: usize) -> Bounds {
        let timestamps = if self.agreed.timestamps { TIMESTAMPS_LEN } else { 0 };
        let mss = u64::from(self.agreed.mss);
        Bounds {
            most: mss.saturating_sub(options as u64),
            segment: mss.saturating_sub(timestamps.into()),
            has_sack: self.agreed.sack,
        }
    }
}
