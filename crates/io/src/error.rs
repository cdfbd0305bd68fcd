//! Errors of capture files, worded for the user.
//!
//! Messages don't name the file: the caller that opened it puts the name in front.

use std::fmt;
use std::io;

/// The reasons why a capture can't be read (any further).
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refuses.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The compressed data is damaged.
    #[error("the {format} compression is damaged: {error}")]
    Decompress {
        /// `gzip` or `zstd`.
        format: &'static str,
        /// The decompressor's error.
        error: io::Error,
    },
    /// The file is empty.
    #[error("the file is empty; expected a pcap or pcapng capture")]
    Empty,
    /// The file ends within its header.
    #[error(
        "the file is cut off within its header, so no packet can be read; expected a whole pcap \
         or pcapng capture"
    )]
    CutHeader,
    /// No capture format begins with these bytes.
    #[error(
        "not a capture: expected pcap or pcapng (plain, gzip or zstd), found a file that starts \
         with {}", hex(.found)
    )]
    NotACapture {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// A format that is recognised but not supported.
    #[error("{name} is not supported; {remedy}")]
    Format {
        /// Its name.
        name: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// A link type that Braid can't parse.
    #[error(
        "link type {number} ({}) is not supported; supported are Ethernet, raw IP and Linux cooked \
         captures", crate::link::link_name(*.number)
    )]
    LinkType {
        /// Its LINKTYPE number.
        number: u32,
    },
    /// The file violates its format.
    #[error("damaged at byte {offset}: {what}")]
    Corrupt {
        /// The start of the record, in the decompressed file.
        offset: u64,
        /// The violation.
        what: String,
    },
}

/// The reasons why a packet can't be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The operating system refuses.
    #[error("cannot be written: {0}")]
    Io(#[from] io::Error),
    /// A pcap file has one link type for all its packets.
    #[error(
        "a pcap file holds one link type, and this one began with {first} and now gets {now}; \
         give the output a name that ends in .pcapng"
    )]
    MixedLinks {
        /// The link type of the file.
        first: &'static str,
        /// The link type of the packet.
        now: &'static str,
    },
    /// The name of the output asks for something that is not supported.
    #[error("{what} is not written; {remedy}")]
    Unsupported {
        /// The unsupported thing.
        what: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
}

/// A capture that ends in the middle of a record. All complete packets were returned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// The number of complete packets.
    pub packets: u64,
    /// The start of the incomplete record, in the decompressed file.
    pub offset: u64,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { packets, offset } = self;
        write!(
            f,
            "the file is cut off: its last record, at byte {offset}, is incomplete and was left \
             out; {packets} whole packets were read"
        )
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ")
}
