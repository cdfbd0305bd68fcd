//! The `virtio_net_hdr` in front of a frame, and flags of TCP.

/// Length of the header in front of a frame.
pub(crate) const HEADER: usize = 10;

pub(super) const NEEDS_CHECKSUM: u8 = 1;
pub(super) const NO_SEGMENTS: u8 = 0;
pub(super) const TCP4: u8 = 1;
pub(super) const TCP6: u8 = 4;
pub(super) const UDP: u8 = 5;
/// A flag of the TCP kinds: the sender uses ECN.
pub(super) const ECN: u8 = 0x80;

/// The most segments of a frame. The kernel makes no more.
pub(super) const MAX_SEGMENTS: usize = 0x1_0000;

pub(super) const CWR: u8 = 0x80;
pub(super) const ECE: u8 = 0x40;
pub(super) const PSH: u8 = 0x08;
pub(super) const FIN: u8 = 0x01;
