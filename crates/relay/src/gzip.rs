//! A body in gzip's format (RFC 1952), made as its bytes come. It can go on in another instance.

use braid_http::wire::{number, read_number};
use crc32fast::Hasher;
use flate2::{Compress, Compression, FlushCompress};

/// Magic number, method, no flags, no time, no extra flags, an unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// How much of its output a call makes at a time (bytes).
const STEP: usize = 4 << 10;

/// The most compressors that are kept for later bodies. A new one takes as long as some KB of text.
const MOST_IDLE: usize = 16;

/// Compressors without work.
#[derive(Debug, Default)]
pub struct Idle(Vec<Compress>);

/// A body on its way.
#[derive(Debug)]
pub struct Gzip {
    deflate: Compress,
    /// Of the bytes so far.
    sum: Hasher,
}

impl Gzip {
    /// Begins a body.
    pub fn begin(idle: &mut Idle, out: &mut Vec<u8>) -> Self {
        out.extend(HEADER);
        let deflate = idle.0.pop().unwrap_or_else(deflate);
        Self { deflate, sum: Hasher::new() }
    }

    /// The next bytes. With `at_once`, the receiver can read all of them from what has been given.
    pub fn data(&mut self, bytes: &[u8], at_once: bool, out: &mut Vec<u8>) {
        self.sum.update(bytes);
        let flush = if at_once { FlushCompress::Sync } else { FlushCompress::None };
        self.compress(bytes, flush, out);
    }

    /// The end of the body.
    pub fn end(mut self, length: u64, idle: &mut Idle, out: &mut Vec<u8>) {
        self.compress(&[], FlushCompress::Finish, out);
        out.extend(self.sum.finalize().to_le_bytes());
        // The length modulo 2^32.
        out.extend(length.to_le_bytes().iter().take(4));
        if idle.0.len() < MOST_IDLE {
            self.deflate.reset();
            idle.0.push(self.deflate);
        }
    }

    /// Writes what another instance needs to go on: it begins with a new block.
    pub fn put(&mut self, length: u64, given: &mut Vec<u8>, out: &mut Vec<u8>) {
        self.compress(&[], FlushCompress::Full, given);
        number(self.sum.clone().finalize().into(), out);
        number(length, out);
    }

    /// Reads what [`Self::put`] has written, and the length so far.
    pub fn read(from: &mut &[u8]) -> Option<(Self, u64)> {
        let sum = u32::try_from(read_number(from)?).ok()?;
        let length = read_number(from)?;
        let sum = Hasher::new_with_initial_len(sum, length);
        Some((Self { deflate: deflate(), sum }, length))
    }

    fn compress(&mut self, mut bytes: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        loop {
            out.reserve(STEP);
            let (taken, given) = (self.deflate.total_in(), self.deflate.total_out());
            // It fails only where a stream goes on behind its end.
            let status = self.deflate.compress_vec(bytes, out, flush);
            let taken = usize::try_from(self.deflate.total_in() - taken).unwrap_or(usize::MAX);
            bytes = bytes.get(taken..).unwrap_or_default();
            let has_room = out.len() < out.capacity();
            let is_idle = taken == 0 && self.deflate.total_out() == given;
            if status.is_err() || (bytes.is_empty() && has_room) || is_idle {
                return;
            }
        }
    }
}

fn deflate() -> Compress {
    Compress::new(Compression::fast(), false)
}

#[cfg(test)]
mod tests {
    use super::{Gzip, Idle};
    use flate2::read::GzDecoder;
    use std::io::Read as _;

    /// Bytes that compress a little.
    fn body(len: usize) -> Vec<u8> {
        let mut state = 1u32;
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"a few letters"[(state >> 24) as usize % 13]
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    fn unzipped(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn bytes_come_back_whatever_their_pieces() {
        // The next body takes the compressor of the last one.
        let mut idle = Idle::default();
        for (len, piece) in [(0, 1), (1, 1), (50_000, 1), (300_000, 1_460), (1_000_000, 65_536)] {
            let body = body(len);
            let mut out = Vec::new();
            let mut gzip = Gzip::begin(&mut idle, &mut out);
            for (at, piece) in body.chunks(piece).enumerate() {
                gzip.data(piece, at % 3 == 0, &mut out);
            }
            gzip.end(len as u64, &mut idle, &mut out);
            assert_eq!(unzipped(&out), body);
            assert!(len < 1000 || piece == 1 || out.len() < len * 3 / 4, "{len} {}", out.len());
        }
    }

    #[test]
    fn what_was_given_at_once_can_be_read() {
        let mut out = Vec::new();
        let mut gzip = Gzip::begin(&mut Idle::default(), &mut out);
        gzip.data(b"an event\n", true, &mut out);
        let mut read = [0; 9];
        GzDecoder::new(&out[..]).read_exact(&mut read).unwrap();
        assert_eq!(&read, b"an event\n");
    }

    #[test]
    fn another_instance_goes_on() {
        let body = body(100_000);
        let (first, second) = body.split_at(70_001);
        let (mut out, mut saved) = (Vec::new(), Vec::new());
        let mut gzip = Gzip::begin(&mut Idle::default(), &mut out);
        gzip.data(first, false, &mut out);
        gzip.put(70_001, &mut out, &mut saved);
        let (mut gzip, length) = Gzip::read(&mut &saved[..]).unwrap();
        assert_eq!(length, 70_001);
        gzip.data(second, false, &mut out);
        gzip.end(100_000, &mut Idle::default(), &mut out);
        assert_eq!(unzipped(&out), body);
    }
}
