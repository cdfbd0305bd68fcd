//! Reads a stream on a thread of its own, ahead of the reader. So the stream is decompressed while
//! earlier bytes are used.

use std::io::{self, Read};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// The size of a piece in bytes.
const PIECE: usize = 1 << 17;
/// The largest number of pieces that wait.
const PIECES: usize = 4;

/// A stream that is read ahead. The thread ends with the stream, or after this value.
pub(super) struct ReadAhead {
    /// Until the end of the stream was read.
    thread: Option<JoinHandle<()>>,
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// Pieces that were used up go back to the thread.
    used: Sender<Vec<u8>>,
    piece: Vec<u8>,
    /// The position in the piece.
    at: usize,
}

impl ReadAhead {
    /// Starts to read.
    pub(super) fn new(read: impl Read + Send + 'static) -> Self {
        let (send, pieces) = sync_channel(PIECES);
        let (used, again) = channel();
        let thread = Some(std::thread::spawn(move || read_pieces(read, &send, &again)));
        Self { thread, pieces, used, piece: Vec::new(), at: 0 }
    }
}

/// Reads until the end, an error, or until nobody receives the pieces.
fn read_pieces(
    mut read: impl Read,
    send: &SyncSender<io::Result<Vec<u8>>>,
    again: &Receiver<Vec<u8>>,
) {
    loop {
        let mut piece = again.try_recv().unwrap_or_default();
        piece.clear();
        let got = read.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        let is_end = piece.is_empty();
        // The bytes before the error come first.
        if !is_end && send.send(Ok(piece)).is_err() {
            return;
        }
        match got {
            Err(error) => {
                // The reader may have gone.
                let _ = send.send(Err(error));
                return;
            }
            Ok(_) if is_end => return,
            Ok(_) => {}
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            // The thread has ended if it does not take pieces back.
            let _ = self.used.send(std::mem::take(&mut self.piece));
            self.at = 0;
            match self.pieces.recv() {
                Ok(piece) => self.piece = piece?,
                Err(_) => {
                    // Nobody else waits for the thread. If it has panicked, this thread panics,
                    // too.
                    if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
                        resume_unwind(panic);
                    }
                    return Ok(0);
                }
            }
        }
        let mut rest = self.piece.get(self.at..).unwrap_or_default();
        let got = rest.read(buffer)?;
        self.at += got;
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives some bytes, then fails.
    struct Failing(usize);

    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("broken"));
            }
            let count = self.0.min(buffer.len()).min(1000);
            buffer[..count].fill(7);
            self.0 -= count;
            Ok(count)
        }
    }

    #[test]
    fn all_bytes_come_in_order() {
        let bytes: Vec<u8> = (0..3 * PIECE + 5).map(|at| (at % 251) as u8).collect();
        let mut got = Vec::new();
        ReadAhead::new(io::Cursor::new(bytes.clone())).read_to_end(&mut got).unwrap();
        assert!(got == bytes);
        let mut nothing = Vec::new();
        assert_eq!(ReadAhead::new(io::empty()).read_to_end(&mut nothing).unwrap(), 0);
    }

    #[test]
    fn bytes_before_an_error_come_first() {
        let mut got = Vec::new();
        let error = ReadAhead::new(Failing(PIECE + 10)).read_to_end(&mut got).unwrap_err();
        assert_eq!((got.len(), error.to_string()), (PIECE + 10, "broken".to_owned()));
    }

    #[test]
    fn thread_ends_when_nobody_reads() {
        let mut ahead = ReadAhead::new(io::repeat(1));
        assert_eq!(ahead.read(&mut [0; 10]).unwrap(), 10);
        drop(ahead);
    }
}
