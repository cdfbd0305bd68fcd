//! Settings of an endpoint, and the limits that no setting changes.

use braid_tcp::State;

/// A millisecond (ns).
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// A second (ns).
pub(crate) const SECOND: u64 = 1_000 * MILLISECOND;

/// How long an endpoint stays in TIME-WAIT (ns).
///
/// RFC 9293 asks for twice the life of a segment, which is four minutes. A proxy would keep
/// thousands of dead connections for that long. Ten seconds are enough for several retransmissions
/// of the peer's FIN, which is what the state is mostly for.
pub const TIME_WAIT_NS: u64 = 10 * SECOND;

/// How long an acknowledgement may wait for data or for a second segment (ns).
pub(crate) const DELAYED_ACK: u64 = 40 * MILLISECOND;
/// The least MSS that is believed. A smaller one makes a connection mostly headers.
pub(crate) const LEAST_MSS: u16 = 88;
/// The MSS of a peer that does not tell it (RFC 9293 §3.7.1).
pub(crate) const DEFAULT_MSS: u16 = 536;
/// The largest scale of a window (RFC 7323 §2.3).
pub(crate) const MOST_SCALE: u8 = 14;
/// The largest buffer (bytes): no window can be larger.
const MOST_BUFFER: u32 = 0xffff << MOST_SCALE;
/// How many ranges of data out of order an endpoint keeps, in either direction.
pub(crate) const MOST_RANGES: usize = 128;
/// A bound for offsets in saved endpoints. Streams stay far below, and sums have room.
pub(crate) const MOST_OFFSET: u64 = 1 << 56;

/// Settings of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The largest payload of a segment that the path carries (bytes). It is announced as the
    /// option MSS. At least 88 count.
    pub mss: u16,
    /// How many bytes may wait to be read. The windows and their scale follow from it. At least one
    /// segment, at most 1 GiB count.
    pub receive: u32,
    /// How many bytes may wait to be acknowledged. At least one segment, at most 1 GiB count.
    pub send: u32,
    /// Whether windows may be scaled (RFC 7323 §2).
    pub wscale: bool,
    /// Whether selective acknowledgements may be used (RFC 2018).
    pub sack: bool,
    /// Whether timestamps may be used (RFC 7323 §3).
    pub timestamps: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mss: 1460,
            receive: 256 << 10,
            send: 256 << 10,
            wscale: true,
            sack: true,
            timestamps: true,
        }
    }
}

impl Settings {
    /// The settings with each value in its bounds.
    pub(crate) fn bounded(self) -> Self {
        let mss = self.mss.max(LEAST_MSS);
        Self {
            mss,
            receive: self.receive.clamp(mss.into(), MOST_BUFFER),
            send: self.send.clamp(mss.into(), MOST_BUFFER),
            ..self
        }
    }

    /// The smallest scale with which a window can tell the receive buffer.
    pub(crate) fn scale(&self) -> u8 {
        (0..MOST_SCALE).find(|scale| self.receive >> scale <= 0xffff).unwrap_or(MOST_SCALE)
    }
}

/// How often a segment is retransmitted, or a window probed, before the connection fails.
///
/// A SYN is repeated for three minutes (RFC 9293 §3.8.3). The answer to a SYN is repeated for one
/// minute, because a flood of SYNs leaves many of them. Data is repeated for at least 100 s.
pub(crate) fn most_retries(state: State) -> u8 {
    match state {
        State::SynSent => 7,
        State::SynReceived => 5,
        _ => 10,
    }
}
