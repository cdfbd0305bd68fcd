//! Writes pcap and pcapng, optionally gzip-compressed.
//!
//! A pcap file has one link type, taken from the first packet (Ethernet without packets). The
//! caller chooses microseconds or nanoseconds: in a stream the header comes before the time stamps,
//! so the writer can't choose. A pcapng file has an interface for each link type, and nanoseconds.

use super::record::MAX_PACKET;
use super::write_behind::WriteBehind;
use crate::error::WriteError;
use crate::link::{link_name, number_of_link};
use crate::source::PacketSink;
use braid_packet::{Link, Packet};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The unit of time stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// Microseconds, rounded down.
    Micro,
    /// Nanoseconds.
    Nano,
}

/// A file format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Classic pcap, version 2.4, little-endian.
    Pcap(Precision),
    /// pcapng 1.0, little-endian.
    PcapNg,
}

/// A capture file that is being written. A thread of its own writes to the file, so an error may
/// come with a later packet or at the end.
pub struct CaptureWriter {
    out: WriteBehind,
    format: Format,
    /// The link types so far: of the file (pcap), or of the interfaces by number (pcapng).
    links: Vec<Link>,
    begun: bool,
}

/// The longest comment (bytes). The rest is cut off.
const MOST_COMMENT: usize = 1_000;

const MICRO_MAGIC: u32 = 0xa1b2_c3d4;
const NANO_MAGIC: u32 = 0xa1b2_3c4d;

impl CaptureWriter {
    /// Creates a file, or replaces a file of the same name. The format is pcapng when the name ends
    /// in `.pcapng` or `.pcapng.gz`, otherwise pcap. The file is compressed when the name ends in
    /// `.gz`.
    ///
    /// # Errors
    /// When the file can't be created, or the name ends in `.zst`.
    pub fn create(path: &Path, precision: Precision) -> Result<Self, WriteError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if name.ends_with(".zst") {
            let remedy = "give the output a name that ends in .gz, or compress it afterwards";
            return Err(WriteError::Unsupported { what: "zstd", remedy });
        }
        let stem = name.strip_suffix(".gz");
        let format = match stem.unwrap_or(&name).ends_with(".pcapng") {
            true => Format::PcapNg,
            false => Format::Pcap(precision),
        };
        Ok(Self::new(File::create(path)?, format, stem.is_some()))
    }

    /// Writes to a stream.
    pub fn new(write: impl Write + Send + 'static, format: Format, gzip: bool) -> Self {
        let out = if gzip {
            let write = GzEncoder::new(BufWriter::new(write), Compression::default());
            WriteBehind::new(write, |write| write.finish()?.flush())
        } else {
            WriteBehind::new(write, |mut write| write.flush())
        };
        Self { out, format, links: Vec::new(), begun: false }
    }

    fn begin(&mut self, first: Link) {
        self.begun = true;
        let header = self.out.piece();
        match self.format {
            Format::Pcap(precision) => {
                let magic = if precision == Precision::Nano { NANO_MAGIC } else { MICRO_MAGIC };
                put(header, magic);
                put(header, u32::from_le_bytes([2, 0, 4, 0]));
                put(header, 0);
                put(header, 0);
                put(header, MAX_PACKET);
                put(header, number_of_link(first));
                self.links.push(first);
            }
            Format::PcapNg => {
                put(header, 0x0a0d_0d0a);
                put(header, 28);
                put(header, 0x1a2b_3c4d);
                put(header, u32::from_le_bytes([1, 0, 0, 0]));
                // The section's length is unknown.
                put(header, u32::MAX);
                put(header, u32::MAX);
                put(header, 28);
            }
        }
    }

    fn write_pcap(&mut self, packet: &Packet, precision: Precision) -> Result<(), WriteError> {
        if let Some(&first) = self.links.first().filter(|&&first| first != packet.link) {
            let name = |link| link_name(number_of_link(link));
            return Err(WriteError::MixedLinks { first: name(first), now: name(packet.link) });
        }
        let seconds = packet.time_ns / 1_000_000_000;
        let fraction = (packet.time_ns % 1_000_000_000) as u32;
        let fraction = if precision == Precision::Nano { fraction } else { fraction / 1_000 };
        // The format's times end in the year 2106.
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        let record = [seconds, fraction, number(packet.data().len()), packet.wire_len];
        let out = self.out.piece();
        out.extend_from_slice(record.map(u32::to_le_bytes).as_flattened());
        out.extend_from_slice(packet.data());
        Ok(())
    }

    /// Writes a packet with a comment, which only pcapng has.
    ///
    /// # Errors
    /// As for [`PacketSink::write_packet`].
    pub fn write_with_comment(&mut self, packet: &Packet, comment: &str) -> Result<(), WriteError> {
        if !self.begun {
            self.begin(packet.link);
        }
        match self.format {
            Format::Pcap(precision) => self.write_pcap(packet, precision)?,
            Format::PcapNg => self.write_pcapng(packet, comment),
        }
        Ok(self.out.pass_on()?)
    }

    #[expect(clippy::indexing_slicing, reason = "padding is at most 3, and a comment is cut")]
    fn write_pcapng(&mut self, packet: &Packet, comment: &str) {
        let interface = match self.links.iter().position(|&link| link == packet.link) {
            Some(number) => number,
            None => self.describe(packet.link),
        };
        let data = packet.data();
        let padding = data.len().wrapping_neg() % 4;
        let comment = &comment.as_bytes()[..comment.floor_char_boundary(MOST_COMMENT)];
        let comment_padding = comment.len().wrapping_neg() % 4;
        // The comment's code and length, and the end of the options.
        let options = if comment.is_empty() { 0 } else { 8 + comment.len() + comment_padding };
        let len = number(32 + data.len() + padding + options);
        let (high, low) = ((packet.time_ns >> 32) as u32, (packet.time_ns & 0xffff_ffff) as u32);
        let head = [6, len, number(interface), high, low, number(data.len()), packet.wire_len];
        let out = self.out.piece();
        out.extend_from_slice(head.map(u32::to_le_bytes).as_flattened());
        out.extend_from_slice(data);
        out.extend_from_slice(&[0; 3][..padding]);
        if !comment.is_empty() {
            out.extend_from_slice(&[1, 0]);
            out.extend_from_slice(&u16::try_from(comment.len()).unwrap_or(0).to_le_bytes());
            out.extend_from_slice(comment);
            out.extend_from_slice(&[0; 3][..comment_padding]);
            put(out, 0);
        }
        put(out, len);
    }

    /// Writes an interface description with nanosecond resolution, and returns the interface's
    /// number.
    fn describe(&mut self, link: Link) -> usize {
        let block = self.out.piece();
        put(block, 1);
        put(block, 32);
        put(block, number_of_link(link));
        put(block, MAX_PACKET);
        // if_tsresol: code 9, one byte, 10^-9, padded; then the end of the options.
        put(block, u32::from_le_bytes([9, 0, 1, 0]));
        put(block, 9);
        put(block, 0);
        put(block, 32);
        self.links.push(link);
        self.links.len() - 1
    }
}

impl PacketSink for CaptureWriter {
    fn write_packet(&mut self, packet: &Packet) -> Result<(), WriteError> {
        self.write_with_comment(packet, "")
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        if !self.begun {
            self.begin(Link::Ethernet);
        }
        Ok(self.out.finish()?)
    }
}

/// A length or a number in 32 bits. No packet is longer than [`braid_packet::MOST`].
fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn put(out: &mut Vec<u8>, word: u32) {
    out.extend_from_slice(&word.to_le_bytes());
}
