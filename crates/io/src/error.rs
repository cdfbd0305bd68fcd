//! What can go wrong with capture files, in words for the person at the keyboard.
//!
//! Messages don't name the file: who opened it knows its name and puts it in front.

use std::fmt;
use std::io;

/// Why a capture can't be read (any further).
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system says no.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The compressed data is damaged.
    #[error("the {format} compression is damaged: {error}")]
    Decompress {
        /// `gzip` or `zstd`.
        format: &'static str,
        /// What the decompressor says.
        error: io::Error,
    },
    /// Nothing in it.
    #[error("the file is empty; expected a pcap or pcapng capture")]
    Empty,
    /// The first bytes are those of no capture format.
    #[error(
        "not a capture: expected pcap or pcapng (plain, gzip or zstd), found a file that starts \
         with {}", hex(.found)
    )]
    NotACapture {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// A format that is known and not read.
    #[error("{name} is not supported; {remedy}")]
    Format {
        /// Its name.
        name: &'static str,
        /// What to do.
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
    /// The file contradicts its format.
    #[error("damaged at byte {offset}: {what}")]
    Corrupt {
        /// Where the record starts, in the decompressed file.
        offset: u64,
        /// What is wrong.
        what: String,
    },
}

/// Why a packet can't be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The operating system says no.
    #[error("cannot be written: {0}")]
    Io(#[from] io::Error),
    /// A pcap file has one link type for all its packets.
    #[error(
        "a pcap file holds one link type, and this one began with {first} and now gets {now}; \
         give the output a name that ends in .pcapng"
    )]
    MixedLinks {
        /// Link type of the file.
        first: &'static str,
        /// Link type of the packet.
        now: &'static str,
    },
    /// The name asks for something that is not written.
    #[error("{what} is not written; {remedy}")]
    Unsupported {
        /// What the name asks for.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
}

/// A capture that ends in the middle of a record: its whole packets were given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// Whole packets before the end.
    pub packets: u64,
    /// Where the incomplete record starts, in the decompressed file.
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
