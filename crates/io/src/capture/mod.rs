//! Capture files: pcap and pcapng, plain or compressed.

mod bytes;
mod pcap;
mod pcapng;
mod read_ahead;
mod reader;
mod record;
mod write_behind;
mod writer;

pub use reader::{CaptureReader, read_all};
pub use record::MAX_PACKET;
pub use writer::{CaptureWriter, Format, Precision};
