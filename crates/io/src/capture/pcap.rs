//! Reads classic pcap: microseconds and nanoseconds, both byte orders.

use super::bytes::Bytes;
use super::record::MAX_PACKET;
use crate::error::ReadError;
use crate::link::link_of_number;
use braid_packet::{Burst, Frame, Link, Packet, Pool};
use pcap_parser::PcapHeader;

const HEADER_LEN: usize = 24;
const RECORD_LEN: usize = 16;

/// The properties of all packets, from the file header.
pub(super) struct Pcap {
    link: Link,
    /// Length of the frame check sequence at the end of each packet (bytes).
    fcs_len: u32,
    big_endian: bool,
    nanoseconds: bool,
    swapped: Swapped,
}

/// Whether to exchange the captured and the original length: old versions have them in the other
/// order.
#[derive(Clone, Copy)]
enum Swapped {
    Never,
    /// Programs wrote version 2.3 in either order.
    WhenCapturedIsLarger,
    Always,
}

impl Pcap {
    /// Whether a pcap file begins with these bytes.
    pub(super) fn recognises(magic: [u8; 4]) -> bool {
        matches!(u32::from_le_bytes(magic), 0xa1b2_c3d4 | 0xa1b2_3c4d | 0xd4c3_b2a1 | 0x4d3c_b2a1)
    }

    /// Reads the rest of the file header; `None` when the file ends inside it.
    pub(super) fn open(magic: [u8; 4], bytes: &mut Bytes) -> Result<Option<Self>, ReadError> {
        let mut header = [0; HEADER_LEN];
        header[..4].copy_from_slice(&magic);
        if bytes.fill(&mut header[4..])? < HEADER_LEN - 4 {
            return Ok(None);
        }
        let (_, header) = pcap_parser::parse_pcap_header(&header).map_err(|_| {
            ReadError::Corrupt { offset: 0, what: "the pcap file header is invalid".into() }
        })?;
        let swapped = swapped(&header)?;
        let network = header.network.0 as u32;
        // The upper bits are the length of a frame check sequence (in units of 16 bits), if there
        // is one.
        let number = network & 0x03ff_ffff;
        let fcs_len = if network & 0x0400_0000 != 0 { (network >> 28) * 2 } else { 0 };
        let link = link_of_number(number).ok_or(ReadError::LinkType { number })?;
        let nanoseconds = header.is_nanosecond_precision();
        Ok(Some(Self { link, fcs_len, big_endian: header.is_bigendian(), nanoseconds, swapped }))
    }

    /// Whether time stamps are in nanoseconds.
    pub(super) fn nanoseconds(&self) -> bool {
        self.nanoseconds
    }

    /// The next packet; `None` at the end, also where the file is cut off.
    pub(super) fn next(
        &self,
        bytes: &mut Bytes,
        pool: Option<&mut Pool>,
    ) -> Result<Option<Packet>, ReadError> {
        let offset = bytes.offset();
        let mut record = [[0; 4]; RECORD_LEN / 4];
        if bytes.fill(record.as_flattened_mut())? < RECORD_LEN {
            return Ok(None);
        }
        let (time_ns, captured, original) = self.record(record);
        if captured > MAX_PACKET {
            let what = format!(
                "the packet's record claims {captured} captured bytes; at most {MAX_PACKET} are \
                 possible"
            );
            return Err(ReadError::Corrupt { offset, what });
        }
        let Some(frame) = bytes.frame(captured as usize, pool)? else { return Ok(None) };
        Ok(Some(packet(self.link, time_ns, frame, original, self.fcs_len)))
    }

    /// Adds packets to a burst until it is full, without reading more of the file. Leaves an
    /// incomplete or damaged record to [`Self::next`]. Returns the number of packets.
    pub(super) fn fill(&self, bytes: &mut Bytes, burst: &mut Burst, pool: &mut Pool) -> u64 {
        let (mut rest, mut added) = (bytes.buffered(), 0);
        let all = rest.len();
        while !burst.is_full()
            && let Some((record, behind)) = rest.split_first_chunk::<RECORD_LEN>()
        {
            let words = record.as_chunks::<4>().0;
            let (time_ns, captured, original) =
                self.record(std::array::from_fn(|at| words.get(at).copied().unwrap_or_default()));
            let Some((data, behind)) = behind.split_at_checked(captured as usize) else { break };
            if captured > MAX_PACKET {
                break;
            }
            rest = behind;
            added += 1;
            let (kept, wire_len) = without_fcs(captured, original, self.fcs_len);
            let data = data.get(..kept as usize).unwrap_or(data);
            burst.add(self.link, time_ns, data, wire_len, pool);
        }
        let used = all - rest.len();
        bytes.consume(used);
        added
    }

    /// The time, the captured length and the original length that a record has.
    fn record(&self, words: [[u8; 4]; RECORD_LEN / 4]) -> (u64, u32, u32) {
        let [seconds, fraction, captured, original] = words.map(|word| self.word(word));
        let (captured, original) = self.lengths(captured, original);
        let unit = if self.nanoseconds { 1 } else { 1_000 };
        // This cannot overflow: all factors are below 2^32 and the sum is below 2^63.
        let time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit;
        (time_ns, captured, original)
    }

    fn word(&self, word: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }

    fn lengths(&self, captured: u32, original: u32) -> (u32, u32) {
        match self.swapped {
            Swapped::Always => (original, captured),
            Swapped::WhenCapturedIsLarger if captured > original => (original, captured),
            _ => (captured, original),
        }
    }
}

fn swapped(header: &PcapHeader) -> Result<Swapped, ReadError> {
    match (header.version_major, header.version_minor) {
        (2, 0..=2) => Ok(Swapped::Always),
        (2, 3) => Ok(Swapped::WhenCapturedIsLarger),
        (2, 4) => Ok(Swapped::Never),
        (major, minor) => {
            let what = format!("pcap version {major}.{minor} is not supported; expected 2.4");
            Err(ReadError::Corrupt { offset: 4, what })
        }
    }
}

/// A packet as recorded, without its frame check sequence.
pub(super) fn packet(
    link: Link,
    time_ns: u64,
    mut frame: Frame,
    original: u32,
    fcs: u32,
) -> Packet {
    let captured = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let (kept, wire_len) = without_fcs(captured, original, fcs);
    frame.truncate(kept as usize);
    Packet::in_frame(link, time_ns, frame, wire_len)
}

/// The captured length of a packet and its length on the wire, without the frame check sequence. If
/// its captured length is above its original length, it was captured as a whole.
#[inline]
fn without_fcs(captured: u32, original: u32, fcs: u32) -> (u32, u32) {
    let wire = original.max(captured).saturating_sub(fcs);
    (wire.min(captured), wire)
}
