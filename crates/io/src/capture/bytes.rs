//! The bytes of a capture file, decompressed and counted. A file that was cut off is distinguished
//! from a complete one.

use super::read_ahead::ReadAhead;
use crate::error::ReadError;
use crate::source::Progress;
use braid_packet::{Frame, Pool};
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest zstd window, as a power of two: the default limit of `zstd` itself.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// The size of a read in bytes. It leaves room in the second nearest cache for the packets.
const BUFFER: usize = 1 << 16;

type Stream = Box<dyn Read + Send>;

/// The decompressed bytes of a file.
pub(super) struct Bytes {
    inner: BufReader<Stream>,
    compression: Option<&'static str>,
    offset: u64,
    cut: bool,
    stored: Arc<AtomicU64>,
    total: Option<u64>,
}

impl Bytes {
    /// Detects the compression from the first bytes. `total` is the stored length, if it is known.
    pub(super) fn new(
        read: impl Read + Send + 'static,
        total: Option<u64>,
    ) -> Result<Self, ReadError> {
        let stored = Arc::new(AtomicU64::new(0));
        let mut read = Counted { inner: read, count: Arc::clone(&stored) };
        let mut head = Vec::with_capacity(4);
        (&mut read).take(4).read_to_end(&mut head)?;
        let compression = match head[..] {
            [0x1f, 0x8b, ..] => Some("gzip"),
            [0x28, 0xb5, 0x2f, 0xfd] => Some("zstd"),
            // A skippable frame may come first, as in files of `pzstd`.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Some("zstd"),
            _ => None,
        };
        let whole = Cursor::new(head).chain(read);
        let inner: Stream = match compression {
            Some("gzip") => {
                let decoder = flate2::read::MultiGzDecoder::new(BufReader::new(whole));
                Box::new(ReadAhead::new(decoder))
            }
            Some(_) => {
                let mut decoder = zstd::stream::read::Decoder::new(whole)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Box::new(ReadAhead::new(decoder))
            }
            None => Box::new(whole),
        };
        let inner = BufReader::with_capacity(BUFFER, inner);
        Ok(Self { inner, compression, offset: 0, cut: false, stored, total })
    }

    /// The number of bytes read so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the compressed data was cut off.
    pub(super) fn cut(&self) -> bool {
        self.cut
    }

    /// How much of the file was read, if its length is known.
    pub(super) fn progress(&self) -> Option<Progress> {
        let total = self.total?;
        Some(Progress { read: self.stored.load(Ordering::Relaxed).min(total), total })
    }

    /// Fills the buffer until it is full or no bytes are left. Returns the number of bytes.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let mut filled = 0;
        while !self.cut
            && let Some(rest @ [_, ..]) = buffer.get_mut(filled..)
        {
            match self.inner.read(rest) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) => self.failed(error)?,
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }

    /// The bytes that are in memory already.
    pub(super) fn buffered(&self) -> &[u8] {
        self.inner.buffer()
    }

    /// Skips bytes that are in memory already.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.inner.consume(bytes);
        self.offset += bytes as u64;
    }

    /// Reads this many bytes into a frame, of the pool if they fit. `None` if fewer are left.
    pub(super) fn frame(
        &mut self,
        len: usize,
        pool: Option<&mut Pool>,
    ) -> Result<Option<Frame>, ReadError> {
        if let Some(buffered) = self.inner.buffer().get(..len) {
            let frame = pool.map_or_else(|| Frame::of(buffered), |pool| pool.frame_of(buffered));
            self.consume(len);
            return Ok(Some(frame));
        }
        if let Some(mut frame) = pool.and_then(Pool::take)
            && let Some(room) = frame.room().get_mut(..len)
        {
            let got = self.fill(room)?;
            frame.extend(got);
            return Ok((got == len).then_some(frame));
        }
        let mut bytes = vec![0; len];
        let got = self.fill(&mut bytes)?;
        Ok((got == len).then(|| Frame::of(&bytes)))
    }

    /// Skips this many bytes, or all that are left. Returns the number of bytes.
    #[expect(clippy::indexing_slicing, reason = "`step` is at most the length of `scratch`")]
    pub(super) fn skip(&mut self, bytes: u64) -> Result<u64, ReadError> {
        let mut scratch = [0; 4096];
        let mut left = bytes;
        while left > 0 {
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(scratch.len());
            let got = self.fill(&mut scratch[..step])?;
            left -= got as u64;
            if got < step {
                break;
            }
        }
        Ok(bytes - left)
    }

    fn failed(&mut self, error: io::Error) -> Result<(), ReadError> {
        match (error.kind(), self.compression) {
            (ErrorKind::Interrupted, _) => Ok(()),
            (ErrorKind::UnexpectedEof, Some(_)) => {
                self.cut = true;
                Ok(())
            }
            (_, Some(format)) => Err(ReadError::Decompress { format, error }),
            (_, None) => Err(error.into()),
        }
    }
}

/// Counts the stored bytes that are read, for the progress.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
