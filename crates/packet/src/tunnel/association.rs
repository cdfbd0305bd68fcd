//! What both ends of a tunnel by ESP or AH know.

use arrayvec::ArrayVec;
use braid_crypto::Key;

/// What both ends of a security association (RFC 4301 §4) know of a packet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Association {
    /// The key.
    pub key: Key,
    /// The upper half of the packet's extended sequence number, which is not sent, but which the
    /// check value covers (RFC 4302 §2.5.1, RFC 4303 §2.2.1). `None` if sequence numbers have 32
    /// bits.
    pub high: Option<u32>,
}

impl Association {
    /// The bytes of the upper half, if there is one.
    pub(super) fn high(&self) -> ArrayVec<u8, 4> {
        self.high.into_iter().flat_map(u32::to_be_bytes).collect()
    }
}
