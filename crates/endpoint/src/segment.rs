//! Segments that come and go.

use arrayvec::ArrayVec;
use braid_tcp::{Flags, Seq};

/// TCP options: at most 40 bytes.
pub type OptionBytes = ArrayVec<u8, 40>;

/// A segment that has come. Its checksum and its lengths are right.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The sequence number.
    pub seq: Seq,
    /// The acknowledgement number; it has a meaning if ACK is set.
    pub ack: Seq,
    /// The flags.
    pub flags: Flags,
    /// The window, not scaled.
    pub window: u16,
    /// The bytes of its options.
    pub options: &'a [u8],
    /// The payload.
    pub payload: &'a [u8],
}

impl Incoming<'_> {
    /// Whether a flag is set.
    pub(crate) fn has(&self, flag: Flags) -> bool {
        self.flags.has(flag)
    }

    /// How many sequence numbers it takes: its bytes, SYN and FIN. IP bounds it to 64 KiB, except
    /// for a wrong caller; a count beyond 32 bits is cut.
    pub(crate) fn len(&self) -> u32 {
        let flags = u32::from(self.has(Flags::SYN)) + u32::from(self.has(Flags::FIN));
        u32::try_from(self.payload.len()).unwrap_or(u32::MAX).saturating_add(flags)
    }
}

/// A segment to send. The caller adds ports, checksum and the headers in front.
#[derive(Clone, Debug)]
pub struct Outgoing<'a> {
    /// The sequence number.
    pub seq: Seq,
    /// The acknowledgement number; 0 if ACK is not set.
    pub ack: Seq,
    /// The flags.
    pub flags: Flags,
    /// The window, as it stands in the header.
    pub window: u16,
    /// The options. Their length is a multiple of four.
    pub options: OptionBytes,
    /// The payload: the second part follows the first one.
    pub payload: (&'a [u8], &'a [u8]),
}

impl Outgoing<'_> {
    /// The length of the payload (bytes).
    #[must_use]
    pub fn payload_len(&self) -> usize {
        self.payload.0.len() + self.payload.1.len()
    }
}

/// The RST that answers a segment for which there is no connection (RFC 9293 §3.10.7.1). Nothing
/// answers a RST.
#[must_use]
pub fn refusal(segment: &Incoming<'_>) -> Option<Outgoing<'static>> {
    if segment.has(Flags::RST) {
        return None;
    }
    let (seq, ack, flags) = if segment.has(Flags::ACK) {
        (segment.ack, Seq(0), Flags::RST)
    } else {
        (Seq(0), segment.seq.plus(segment.len()), Flags::RST.with(Flags::ACK))
    };
    Some(Outgoing { seq, ack, flags, window: 0, options: OptionBytes::new(), payload: (&[], &[]) })
}
