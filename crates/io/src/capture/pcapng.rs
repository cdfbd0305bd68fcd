//! Reads pcapng: sections of either byte order, and several interfaces, each with a link type and a
//! time resolution; enhanced, simple and obsolete packet blocks. Other blocks are skipped.

use super::bytes::Bytes;
use super::pcap::packet;
use super::record::MAX_PACKET;
use crate::error::ReadError;
use crate::link::link_of_number;
use braid_packet::{Frame, Packet, Pool};
use pcap_parser::{Block, InterfaceDescriptionBlock, PcapNGOption, parse_block_be, parse_block_le};

/// Block types.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// The most bytes of a block that is parsed, as in libpcap.
const MAX_BLOCK: u32 = 16 << 20;
/// The most interfaces of a section.
const MAX_INTERFACES: usize = 65_536;

const OPT_END: u16 = 0;
const OPT_TSRESOL: u16 = 9;
const OPT_FCSLEN: u16 = 13;
const OPT_TSOFFSET: u16 = 14;

/// The state of the reader: the current section.
#[derive(Default)]
pub(super) struct PcapNg {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Simple packets have no time stamp; they get the time of the previous packet.
    last_time_ns: u64,
    block: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Interface {
    link_number: u32,
    snap_len: u32,
    fcs_len: u32,
    clock: Clock,
}

/// The time stamps of an interface.
#[derive(Clone, Copy)]
struct Clock {
    /// `if_tsresol`: the exponent of a negative power of 10, or of 2 when the top bit is set.
    resolution: u8,
    offset_s: i64,
}

/// The result of reading a block.
enum Step {
    Packet(Packet),
    Other,
    /// The file ended in the block or before it.
    End,
}

/// The contents of a packet block.
struct Recorded<'a> {
    interface: u32,
    time: Option<u64>,
    captured: u32,
    original: u32,
    data: &'a [u8],
}

impl PcapNg {
    /// Whether a pcapng file begins with these bytes.
    pub(super) fn recognises(magic: [u8; 4]) -> bool {
        u32::from_le_bytes(magic) == SECTION
    }

    /// The next packet; `None` at the end, also where the file is cut off. `start` is set to the
    /// place where the last block began. `magic` is the first four bytes of the file, if they were
    /// read already.
    pub(super) fn next(
        &mut self,
        mut magic: Option<[u8; 4]>,
        bytes: &mut Bytes,
        (start, mut pool): (&mut u64, Option<&mut Pool>),
    ) -> Result<Option<Packet>, ReadError> {
        loop {
            *start = bytes.offset() - if magic.is_some() { 4 } else { 0 };
            match self.step(magic.take(), bytes, (*start, pool.as_deref_mut()))? {
                Step::Packet(packet) => return Ok(Some(packet)),
                Step::Other => {}
                Step::End => return Ok(None),
            }
        }
    }

    fn step(
        &mut self,
        magic: Option<[u8; 4]>,
        bytes: &mut Bytes,
        (start, pool): (u64, Option<&mut Pool>),
    ) -> Result<Step, ReadError> {
        let mut head = [0; 12];
        let rest = match magic {
            Some(magic) => {
                head[..4].copy_from_slice(&magic);
                &mut head[4..]
            }
            None => &mut head[..],
        };
        if bytes.fill(rest)? < rest.len() {
            return Ok(Step::End);
        }
        if le(&head, 0) == SECTION {
            self.begin_section(&head, start)?;
        }
        let (kind, len) = (self.word(&head, 0), self.word(&head, 4));
        if len < 12 || len % 4 != 0 {
            let what = format!("a block claims a length of {len}, which no block can have");
            return Err(ReadError::Corrupt { offset: start, what });
        }
        match kind {
            SECTION | INTERFACE | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET => {
                self.read_block(&head, len, bytes, (start, pool))
            }
            _ => self.skip_block(&head, len, bytes, start),
        }
    }

    fn begin_section(&mut self, head: &[u8; 12], start: u64) -> Result<(), ReadError> {
        self.big_endian = match le(head, 8) {
            BYTE_ORDER_MAGIC => false,
            swapped if swapped.swap_bytes() == BYTE_ORDER_MAGIC => true,
            _ => {
                let what = "a section header has no byte-order magic".into();
                return Err(ReadError::Corrupt { offset: start, what });
            }
        };
        self.interfaces.clear();
        Ok(())
    }

    /// Skips a block that is not needed, whatever its length.
    fn skip_block(
        &self,
        head: &[u8; 12],
        len: u32,
        bytes: &mut Bytes,
        start: u64,
    ) -> Result<Step, ReadError> {
        let mut trailer = [0; 4];
        if len == 12 {
            trailer.copy_from_slice(&head[8..]);
        } else {
            let body = u64::from(len) - 16;
            if bytes.skip(body)? < body || bytes.fill(&mut trailer)? < 4 {
                return Ok(Step::End);
            }
        }
        self.check_trailer(len, self.word(&trailer, 0), start)?;
        Ok(Step::Other)
    }

    fn read_block(
        &mut self,
        head: &[u8; 12],
        len: u32,
        bytes: &mut Bytes,
        (start, pool): (u64, Option<&mut Pool>),
    ) -> Result<Step, ReadError> {
        if len > MAX_BLOCK {
            let what = format!("a block claims {len} bytes; at most {MAX_BLOCK} are possible");
            return Err(ReadError::Corrupt { offset: start, what });
        }
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        block.extend_from_slice(head);
        block.resize(len as usize, 0);
        let body = block.get_mut(head.len()..).unwrap_or_default();
        let whole = bytes.fill(body)? == body.len();
        let step = if whole { self.parse_block(&block, (start, pool)) } else { Ok(Step::End) };
        self.block = block;
        step
    }

    fn parse_block(
        &mut self,
        block: &[u8],
        (start, pool): (u64, Option<&mut Pool>),
    ) -> Result<Step, ReadError> {
        let len = u32::try_from(block.len()).unwrap_or(u32::MAX);
        self.check_trailer(len, self.word(block, block.len() - 4), start)?;
        let parse = if self.big_endian { parse_block_be } else { parse_block_le };
        let malformed = |what: &str| ReadError::Corrupt { offset: start, what: what.into() };
        let (_, parsed) =
            parse(block).map_err(|_| malformed("a block's parts do not fit into it"))?;
        match parsed {
            Block::SectionHeader(section) if section.major_version != 1 => {
                let what = format!(
                    "pcapng version {}.{} is not supported; expected 1.0",
                    section.major_version, section.minor_version
                );
                Err(malformed(&what))
            }
            Block::InterfaceDescription(interface) => {
                if self.interfaces.len() == MAX_INTERFACES {
                    return Err(malformed("a section has too many interfaces"));
                }
                self.interfaces.push(self.interface(&interface));
                Ok(Step::Other)
            }
            Block::EnhancedPacket(p) => self.packet(
                Recorded {
                    interface: p.if_id,
                    time: Some(u64::from(p.ts_high) << 32 | u64::from(p.ts_low)),
                    captured: p.caplen,
                    original: p.origlen,
                    data: p.data,
                },
                (start, pool),
            ),
            Block::SimplePacket(p) => {
                // The captured bytes are the packet's, up to the interface's snap length.
                let snap = self.interfaces.first().map_or(0, |interface| interface.snap_len);
                let captured = if snap == 0 { p.origlen } else { p.origlen.min(snap) };
                let recorded = Recorded {
                    interface: 0,
                    time: None,
                    captured,
                    original: p.origlen,
                    data: p.data,
                };
                self.packet(recorded, (start, pool))
            }
            Block::Unknown(other) if self.word(block, 0) == OBSOLETE_PACKET => {
                let recorded = self
                    .obsolete_packet(other.data)
                    .ok_or_else(|| malformed("a packet block is too short"))?;
                self.packet(recorded, (start, pool))
            }
            _ => Ok(Step::Other),
        }
    }

    fn packet(
        &mut self,
        recorded: Recorded<'_>,
        (start, pool): (u64, Option<&mut Pool>),
    ) -> Result<Step, ReadError> {
        let corrupt = |what: String| ReadError::Corrupt { offset: start, what };
        let number = recorded.interface;
        let interface = *self.interfaces.get(number as usize).ok_or_else(|| {
            corrupt(format!("a packet is of interface {number}, which was not described"))
        })?;
        let captured = recorded.captured;
        if captured > MAX_PACKET {
            return Err(corrupt(format!(
                "a packet claims {captured} captured bytes; at most {MAX_PACKET} are possible"
            )));
        }
        let data = recorded.data.get(..captured as usize).ok_or_else(|| {
            corrupt(format!("a packet claims {captured} captured bytes, more than its block has"))
        })?;
        let number = interface.link_number;
        let link = link_of_number(number).ok_or(ReadError::LinkType { number })?;
        let time_ns = recorded.time.map_or(self.last_time_ns, |ticks| interface.clock.ns(ticks));
        self.last_time_ns = time_ns;
        let fcs = interface.fcs_len;
        let frame = pool.map_or_else(|| Frame::of(data), |pool| pool.frame_of(data));
        Ok(Step::Packet(packet(link, time_ns, frame, recorded.original, fcs)))
    }

    /// The predecessor of enhanced packet blocks: the interface number has 16 bits, and a count of
    /// drops follows it.
    fn obsolete_packet<'a>(&self, body: &'a [u8]) -> Option<Recorded<'a>> {
        let (head, data) = body.split_first_chunk::<20>()?;
        let interface = [head[0], head[1]];
        let interface = if self.big_endian {
            u16::from_be_bytes(interface)
        } else {
            u16::from_le_bytes(interface)
        };
        Some(Recorded {
            interface: u32::from(interface),
            time: Some(u64::from(self.word(head, 4)) << 32 | u64::from(self.word(head, 8))),
            captured: self.word(head, 12),
            original: self.word(head, 16),
            data,
        })
    }

    fn interface(&self, block: &InterfaceDescriptionBlock<'_>) -> Interface {
        let fcs_len = match option(block, OPT_FCSLEN) {
            // The specification says bits; its example and some writers use bytes.
            Some(&[bits @ (16 | 32), ..]) => u32::from(bits) / 8,
            Some(&[length @ ..=8, ..]) => u32::from(length),
            _ => 0,
        };
        let resolution = option(block, OPT_TSRESOL).and_then(|value| value.first()).copied();
        let offset_s = option(block, OPT_TSOFFSET).and_then(|value| value.first_chunk::<8>());
        let offset_s = offset_s.map_or(0, |&value| {
            if self.big_endian { i64::from_be_bytes(value) } else { i64::from_le_bytes(value) }
        });
        Interface {
            link_number: block.linktype.0.cast_unsigned(),
            snap_len: block.snaplen,
            fcs_len,
            clock: Clock { resolution: resolution.unwrap_or(6), offset_s },
        }
    }

    fn check_trailer(&self, len: u32, trailer: u32, start: u64) -> Result<(), ReadError> {
        if len == trailer {
            return Ok(());
        }
        let what = format!("a block's two lengths differ ({len} and {trailer})");
        Err(ReadError::Corrupt { offset: start, what })
    }

    fn word(&self, bytes: &[u8], at: usize) -> u32 {
        if self.big_endian { le(bytes, at).swap_bytes() } else { le(bytes, at) }
    }
}

impl Clock {
    /// Nanoseconds since the epoch, limited to the range of times.
    fn ns(self, ticks: u64) -> u64 {
        let exponent = u32::from(self.resolution & 0x7f);
        let scaled = u128::from(ticks) * 1_000_000_000;
        let ns = if self.resolution & 0x80 != 0 {
            scaled.checked_shr(exponent).unwrap_or(0)
        } else {
            10_u128.checked_pow(exponent).map_or(0, |divisor| scaled / divisor)
        };
        // The values are below 2^94 and 2^93: neither the casts nor the sum can overflow.
        let ns = ns as i128 + i128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

/// The value of a block's first option with this code, without padding.
fn option<'a>(block: &'a InterfaceDescriptionBlock<'_>, code: u16) -> Option<&'a [u8]> {
    let before_end = |option: &&PcapNGOption<'_>| option.code.0 != OPT_END;
    let mut options = block.options.iter().take_while(before_end);
    options.find(|option| option.code.0 == code)?.as_bytes().ok()
}

fn le(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.first_chunk::<4>());
    word.map_or(0, |&word| u32::from_le_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_counts_in_powers_of_ten_and_two() {
        let at = |resolution, offset_s, ticks| Clock { resolution, offset_s }.ns(ticks);
        assert_eq!(at(6, 0, 1_500_000), 1_500_000_000);
        assert_eq!(at(9, 0, 1_500_000_001), 1_500_000_001);
        assert_eq!(at(0, 0, 2), 2_000_000_000);
        assert_eq!(at(12, 0, 2_999), 2);
        // 3 ticks of a quarter second.
        assert_eq!(at(0x82, 0, 3), 750_000_000);
        assert_eq!(at(6, 100, 0), 100_000_000_000);
        assert_eq!(at(6, -1, 1_500_000), 500_000_000);
    }

    #[test]
    fn clock_stops_at_the_ends_of_the_range() {
        let at = |resolution, offset_s, ticks| Clock { resolution, offset_s }.ns(ticks);
        assert_eq!(at(0, 0, u64::MAX), u64::MAX);
        assert_eq!(at(6, i64::MIN, 7), 0);
        assert_eq!(at(6, i64::MAX, 7), u64::MAX);
        assert_eq!(at(127, 0, u64::MAX), 0);
        assert_eq!(at(0xff, 0, u64::MAX), 0);
    }
}
