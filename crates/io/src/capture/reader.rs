//! Reads a capture file of any supported format.

use super::bytes::Bytes;
use super::pcap::Pcap;
use super::pcapng::PcapNg;
use crate::error::{ReadError, Warning};
use crate::source::{PacketSource, Progress};
use braid_packet::{Burst, Packet, Pool};
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

/// Reads a capture file packet by packet, in constant memory.
///
/// The first bytes determine the format and the compression; the name does not matter. For a file
/// that is cut off, the reader returns all complete packets and then a [`Warning`].
pub struct CaptureReader {
    bytes: Bytes,
    format: Format,
    packets: u64,
    /// The start of the record that was read last.
    record: u64,
    warning: Option<Warning>,
}

enum Format {
    Pcap(Pcap),
    PcapNg {
        state: PcapNg,
        /// The first four bytes, until they are used.
        magic: Option<[u8; 4]>,
    },
    /// The end was reached, an error has occurred, or the file header was cut off.
    Done,
}

/// Formats that are recognised but not supported: first bytes, name, and the remedy.
const REFUSED: &[(&[u8], &str, &str)] = &[
    (&[0x34, 0xcd, 0xb2, 0xa1], "pcap as modified by A. Kuznetzov", CONVERT),
    (&[0xa1, 0xb2, 0xcd, 0x34], "pcap as modified by A. Kuznetzov", CONVERT),
    (&[0x4d, 0x3c, 0x2b, 0xa1], "pcap as modified by Navtel", CONVERT),
    (&[0xa1, 0x2b, 0x3c, 0x4d], "pcap as modified by Navtel", CONVERT),
    (&[0x1c, 0x00, 0x01, 0xab], "pcap as modified by Ixia (software)", CONVERT),
    (&[0xab, 0x01, 0x00, 0x1c], "pcap as modified by Ixia (software)", CONVERT),
    (&[0x1c, 0x00, 0x01, 0xac], "pcap as modified by Ixia (hardware)", CONVERT),
    (&[0xac, 0x01, 0x00, 0x1c], "pcap as modified by Ixia (hardware)", CONVERT),
    (b"snoo", "snoop", CONVERT),
    (b"GMBU", "Microsoft Network Monitor", CONVERT),
    (b"btsn", "btsnoop", CONVERT),
    (b"BZh", "bzip2", "decompress the file first (`bunzip2 FILE`)"),
    (&[0xfd, b'7', b'z', b'X'], "xz", "decompress the file first (`unxz FILE`)"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4", "decompress the file first (`unlz4 FILE`)"),
    (&[b'P', b'K', 3, 4], "zip", "unpack the file first (`unzip FILE`)"),
];
const CONVERT: &str = "convert it with `editcap -F pcap FILE NEW`";

impl CaptureReader {
    /// Opens a file.
    ///
    /// # Errors
    /// When the file can't be opened, is not a capture, or has an unsupported format.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let total = metadata.is_file().then_some(metadata.len());
        Self::start(file, total)
    }

    /// Reads from a stream, such as the standard input.
    ///
    /// # Errors
    /// As for [`CaptureReader::open`].
    pub fn new(read: impl Read + Send + 'static) -> Result<Self, ReadError> {
        Self::start(read, None)
    }

    fn start(read: impl Read + Send + 'static, total: Option<u64>) -> Result<Self, ReadError> {
        let mut bytes = Bytes::new(read, total)?;
        let mut magic = [0; 4];
        let known = bytes.fill(&mut magic)?;
        if known == 0 && !bytes.cut() {
            return Err(ReadError::Empty);
        }
        let format = if bytes.cut() && known < 4 {
            Format::Done
        } else {
            recognise(magic, known, &mut bytes)?
        };
        if matches!(format, Format::Done) {
            return Err(ReadError::CutHeader);
        }
        Ok(Self { bytes, format, packets: 0, record: 0, warning: None })
    }

    /// Whether time stamps may be finer than microseconds. An output should then have nanoseconds
    /// too.
    #[must_use]
    pub fn nanoseconds(&self) -> bool {
        match &self.format {
            Format::Pcap(pcap) => pcap.nanoseconds(),
            Format::PcapNg { .. } => true,
            Format::Done => false,
        }
    }

    fn read(&mut self, pool: Option<&mut Pool>) -> Result<Option<Packet>, ReadError> {
        if matches!(self.format, Format::Done) {
            return Ok(None);
        }
        self.record = self.bytes.offset();
        let next = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.bytes, pool),
            Format::PcapNg { state, magic } => {
                state.next(magic.take(), &mut self.bytes, (&mut self.record, pool))
            }
            Format::Done => Ok(None),
        };
        match &next {
            Ok(Some(_)) => self.packets += 1,
            Ok(None) => {
                self.format = Format::Done;
                if self.bytes.offset() > self.record || self.bytes.cut() {
                    // The first record of pcapng is its header.
                    if self.record == 0 {
                        return Err(ReadError::CutHeader);
                    }
                    self.warning = Some(Warning { packets: self.packets, offset: self.record });
                }
            }
            Err(_) => self.format = Format::Done,
        }
        next
    }
}

impl PacketSource for CaptureReader {
    fn next_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        self.read(None)
    }

    fn next_in(&mut self, pool: &mut Pool) -> Result<Option<Packet>, ReadError> {
        self.read(Some(pool))
    }

    fn fill(&mut self, burst: &mut Burst, pool: &mut Pool) -> Result<bool, ReadError> {
        while !burst.is_full() {
            if let Format::Pcap(pcap) = &self.format {
                self.packets += pcap.fill(&mut self.bytes, burst, pool);
            }
            // The next packet must be read from the file, or from a pipe where it may not yet be.
            if burst.is_full() || self.bytes.buffered().is_empty() && !burst.packets().is_empty() {
                break;
            }
            match self.read(Some(pool))? {
                Some(packet) => burst.push(packet),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn warning(&self) -> Option<Warning> {
        self.warning.clone()
    }

    fn progress(&self) -> Option<Progress> {
        self.bytes.progress()
    }
}

fn recognise(magic: [u8; 4], known: usize, bytes: &mut Bytes) -> Result<Format, ReadError> {
    if Pcap::recognises(magic) {
        return Ok(Pcap::open(magic, bytes)?.map_or(Format::Done, Format::Pcap));
    }
    if PcapNg::recognises(magic) {
        return Ok(Format::PcapNg { state: PcapNg::default(), magic: Some(magic) });
    }
    let found = magic.get(..known).unwrap_or(&magic);
    match REFUSED.iter().find(|(start, ..)| found.starts_with(start)) {
        Some(&(_, name, remedy)) => Err(ReadError::Format { name, remedy }),
        None => Err(ReadError::NotACapture { found: found.to_vec() }),
    }
}

/// All packets of a capture in memory, with the warning or the error at its end.
#[must_use]
pub fn read_all(capture: &[u8]) -> (Vec<Packet>, Option<Warning>, Option<ReadError>) {
    let mut packets = Vec::new();
    let mut reader = match CaptureReader::new(Cursor::new(capture.to_vec())) {
        Ok(reader) => reader,
        Err(error) => return (packets, None, Some(error)),
    };
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => packets.push(packet),
            Ok(None) => return (packets, reader.warning(), None),
            Err(error) => return (packets, None, Some(error)),
        }
    }
}
