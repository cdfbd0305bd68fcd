//! Builds capture files byte by byte for the tests, independently of the writer.
#![allow(dead_code, reason = "each test program uses a part")]

/// Byte order of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Little,
    Big,
}
pub use Order::{Big, Little};

pub const BOTH: [Order; 2] = [Little, Big];

impl Order {
    pub fn u16(self, value: u16) -> Vec<u8> {
        match self {
            Little => value.to_le_bytes().to_vec(),
            Big => value.to_be_bytes().to_vec(),
        }
    }

    pub fn u32(self, value: u32) -> Vec<u8> {
        match self {
            Little => value.to_le_bytes().to_vec(),
            Big => value.to_be_bytes().to_vec(),
        }
    }

    pub fn u64(self, value: u64) -> Vec<u8> {
        match self {
            Little => value.to_le_bytes().to_vec(),
            Big => value.to_be_bytes().to_vec(),
        }
    }

    fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|&word| self.u32(word)).collect()
    }

    /// A pcap file header.
    pub fn pcap(self, magic: u32, minor: u16, link: u32) -> Vec<u8> {
        let mut file = self.u32(magic);
        file.extend(self.u16(2));
        file.extend(self.u16(minor));
        file.extend(self.words(&[0, 0, 65_535, link]));
        file
    }

    /// A pcap record with any values in its header.
    pub fn record(self, time: (u32, u32), captured: u32, wire: u32, data: &[u8]) -> Vec<u8> {
        let mut record = self.words(&[time.0, time.1, captured, wire]);
        record.extend(data);
        record
    }

    /// A pcapng block with this body, padded.
    pub fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let len = padded as u32 + 12;
        let mut block = self.words(&[kind, len]);
        block.extend(body);
        block.resize(8 + padded, 0);
        block.extend(self.u32(len));
        block
    }

    /// A section header block.
    pub fn section(self) -> Vec<u8> {
        let mut body = self.u32(0x1a2b_3c4d);
        body.extend(self.u16(1));
        body.extend(self.u16(0));
        body.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &body)
    }

    /// An option of a block.
    pub fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = self.u16(code);
        option.extend(self.u16(value.len() as u16));
        option.extend(value);
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    /// An interface description block.
    pub fn interface(self, link: u16, snap: u32, options: &[Vec<u8>]) -> Vec<u8> {
        let mut body = self.u16(link);
        body.extend([0, 0]);
        body.extend(self.u32(snap));
        body.extend(options.concat());
        if !options.is_empty() {
            body.extend([0; 4]);
        }
        self.block(1, &body)
    }

    /// An enhanced packet block.
    pub fn enhanced(self, interface: u32, ticks: u64, wire: u32, data: &[u8]) -> Vec<u8> {
        let captured = data.len() as u32;
        let mut body = self.words(&[interface, (ticks >> 32) as u32, ticks as u32, captured, wire]);
        body.extend(data);
        self.block(6, &body)
    }

    /// A simple packet block.
    pub fn simple(self, wire: u32, data: &[u8]) -> Vec<u8> {
        let mut body = self.u32(wire);
        body.extend(data);
        self.block(3, &body)
    }

    /// An obsolete packet block.
    pub fn obsolete(self, interface: u16, ticks: u64, wire: u32, data: &[u8]) -> Vec<u8> {
        let mut body = self.u16(interface);
        body.extend(self.u16(0xffff));
        body.extend(self.words(&[(ticks >> 32) as u32, ticks as u32, data.len() as u32, wire]));
        body.extend(data);
        self.block(2, &body)
    }
}

pub const MICRO: u32 = 0xa1b2_c3d4;
pub const NANO: u32 = 0xa1b2_3c4d;
pub const ETHERNET: u32 = 1;

/// A pcap with three packets of 4, 0 and 9 bytes at seconds 1, 2 and 3.
pub fn small_pcap() -> Vec<u8> {
    [
        Little.pcap(MICRO, 4, ETHERNET),
        Little.record((1, 0), 4, 4, b"abcd"),
        Little.record((2, 0), 0, 60, b""),
        Little.record((3, 0), 9, 9, b"123456789"),
    ]
    .concat()
}

/// A pcapng with the same packets in two sections and three kinds of blocks.
pub fn small_pcapng() -> Vec<u8> {
    [
        Little.section(),
        Little.interface(1, 0, &[]),
        Little.block(0x0bad, &[7; 13]),
        Little.enhanced(0, 1_000_000, 4, b"abcd"),
        Big.section(),
        Big.interface(1, 0, &[Big.option(9, &[9])]),
        Big.enhanced(0, 2_000_000_000, 60, b""),
        Big.obsolete(0, 3_000_000_000, 9, b"123456789"),
    ]
    .concat()
}

pub fn gzip(data: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(data: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(data, 3).unwrap()
}
