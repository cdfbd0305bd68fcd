//! What the monitor says about a connection when it ends.

use braid_packet::FlowKey;

use crate::direction::Pair;
use crate::place::ConnectionId;
use crate::segment::Segment;
use crate::stream::StreamCounts;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Default)]
        pub enum $name { $($(#[$of])* $variant,)* }

        impl $name {
            /// The name in listings.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

named! {
    /// The state of one end of a connection (RFC 9293 §3.3.2). The monitor sees segments on their
    /// way, and takes each as sent and received at the same time.
    State {
        /// The end has sent nothing. CLOSED and LISTEN look alike from outside.
        #[default]
        Closed "closed",
        /// It has sent a SYN.
        SynSent "syn-sent",
        /// It has sent and received a SYN, and its own is not acknowledged.
        SynReceived "syn-received",
        /// Both sides may send.
        Established "established",
        /// It has sent a FIN.
        FinWait1 "fin-wait-1",
        /// Its FIN is acknowledged.
        FinWait2 "fin-wait-2",
        /// It has received a FIN and may go on to send.
        CloseWait "close-wait",
        /// Both have sent a FIN, and its own is not acknowledged.
        Closing "closing",
        /// It received a FIN first, has sent its own, and waits for the acknowledgement.
        LastAck "last-ack",
        /// Both FINs are acknowledged, and this end was the first to send one.
        TimeWait "time-wait",
        /// The connection is over.
        Ended "ended",
    }
}

named! {
    /// How a connection began.
    Opening {
        /// The start was not seen.
        #[default]
        MidStream "mid-stream",
        /// SYNs were seen, and no complete handshake.
        Incomplete "incomplete",
        /// SYN, SYN with ACK, ACK.
        Handshake "handshake",
        /// Both sides sent a SYN without ACK: they opened at the same time, or the server answered
        /// with a SYN of its own (a split handshake).
        Simultaneous "simultaneous",
    }
}

named! {
    /// How a stream began.
    Began {
        /// The sender was not seen.
        #[default]
        Unseen "unseen",
        /// With a SYN.
        Syn "syn",
        /// With another segment.
        MidStream "mid-stream",
    }
}

named! {
    /// How a stream ended.
    Ended {
        /// The capture ended first.
        #[default]
        Capture "capture end",
        /// With a FIN.
        Fin "fin",
        /// With a RST of its sender.
        Reset "reset",
        /// With a RST of its receiver.
        ResetByReceiver "reset by receiver",
        /// With a RST in the window, but not at the next byte. A host asks its sender first
        /// (RFC 5961 §3), so it is not certain that the connection ended.
        DoubtfulReset "doubtful reset",
        /// The monitor gave the connection up, because it needed the memory.
        GivenUp "given up",
        /// A SYN opened a new connection between the same ends.
        Reopened "reopened",
    }
}

/// The network level (Microboxes §5): the packets of one direction of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
    /// The time of the first packet (ns); 0 without packets.
    pub first_ns: u64,
    /// The time of the last packet (ns).
    pub last_ns: u64,
}

impl Traffic {
    /// Counts a packet.
    pub(crate) fn count(&mut self, segment: &Segment<'_>, now_ns: u64) {
        if self.packets == 0 {
            self.first_ns = now_ns;
        }
        self.packets += 1;
        self.bytes += u64::from(segment.wire_len);
        self.last_ns = now_ns;
    }
}

/// One direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SideReport {
    /// The packets.
    pub traffic: Traffic,
    /// The state of the sender.
    pub state: State,
    /// How the stream began.
    pub began: Began,
    /// How it ended.
    pub ended: Ended,
    /// The stream's numbers.
    pub stream: StreamCounts,
    /// Segments with bytes, a SYN or a FIN that came before.
    pub retransmissions: u64,
    /// Segments with new bytes that came after bytes behind them.
    pub out_of_order: u64,
    /// Keep-alives (RFC 9293 §3.8.4).
    pub keep_alives: u64,
    /// Segments outside of the receiver's window; their bytes are left out.
    pub out_of_window: u64,
    /// Segments with an old timestamp (PAWS, RFC 7323 §5); their bytes are left out.
    pub old_timestamps: u64,
    /// Segments that a receiver drops for other reasons: without ACK, or a SYN that fits no state.
    pub unacceptable: u64,
    /// RSTs that reset nothing, because they are not at the next byte (RFC 5961 §3).
    pub wrong_resets: u64,
    /// Segments behind the end of the connection.
    pub after_end: u64,
    /// Bytes that these segments carried: outside of the window, old, unacceptable or too late.
    pub ignored_bytes: u64,
    /// The window scale in effect, if both sides sent the option (RFC 7323 §2.2).
    pub window_scale: Option<u8>,
    /// Whether the sender permits SACK.
    pub sack_permitted: bool,
    /// Whether timestamps are in effect: both sides sent the option in their SYN.
    pub timestamps: bool,
}

/// A connection that has ended, or that the monitor has given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// The connection's number.
    pub connection: ConnectionId,
    /// The 5-tuple in the forward direction.
    pub flow: FlowKey,
    /// How it began.
    pub opening: Opening,
    /// Both directions.
    pub sides: Pair<SideReport>,
}
