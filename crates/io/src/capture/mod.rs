//! Capture files: pcap and pcapng, plain or compressed.

mod bytes;
mod pcap;
mod pcapng;
mod read_ahead;
mod reader;
mod write_behind;
mod writer;

pub use reader::{CaptureReader, read_all};
pub use writer::{CaptureWriter, Format, Precision};

/// The most captured bytes of a packet, as in libpcap. A record with a larger length is damaged.
pub const MAX_PACKET: u32 = 262_144;
