//! Writes a stream on a thread of its own, behind the writer. So the stream is compressed and
//! written while the next bytes are made.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// The size of a piece in bytes.
const PIECE: usize = 1 << 17;
/// The largest number of pieces that wait.
const PIECES: usize = 4;

/// A stream that is written behind. An error of the stream comes with a later piece or at the end.
pub(super) struct WriteBehind {
    /// The bytes that the thread does not have yet.
    piece: Vec<u8>,
    state: State,
}

enum State {
    /// Nothing was written yet. The thread starts with the first piece.
    Begins(Box<dyn FnOnce() -> Thread + Send>),
    Runs(Thread),
    Ended,
}

struct Thread {
    pieces: SyncSender<Vec<u8>>,
    /// Pieces that were written come back.
    written: Receiver<Vec<u8>>,
    handle: JoinHandle<io::Result<()>>,
}

impl WriteBehind {
    /// Starts to write. `finish` writes the bytes that the stream has buffered.
    pub(super) fn new<W: Write + Send + 'static>(
        write: W,
        finish: impl FnOnce(W) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let begin = Box::new(|| {
            let (pieces, full) = sync_channel(PIECES);
            let (empty, written) = channel();
            let handle = std::thread::spawn(move || finish(write_pieces(write, &full, &empty)?));
            Thread { pieces, written, handle }
        });
        Self { piece: Vec::new(), state: State::Begins(begin) }
    }

    /// The bytes that the thread does not have yet, to append more.
    pub(super) fn piece(&mut self) -> &mut Vec<u8> {
        &mut self.piece
    }

    /// Gives the piece to the thread if it is large enough.
    #[inline]
    pub(super) fn pass_on(&mut self) -> io::Result<()> {
        let is_kept = self.piece.len() < PIECE && !matches!(self.state, State::Ended);
        if is_kept { Ok(()) } else { self.send() }
    }

    #[cold]
    fn send(&mut self) -> io::Result<()> {
        self.state = match std::mem::replace(&mut self.state, State::Ended) {
            State::Begins(begin) => State::Runs(begin()),
            other => other,
        };
        let State::Runs(thread) = &self.state else {
            return Err(io::Error::other("a packet was written after the end"));
        };
        let next = thread.written.try_recv().unwrap_or_default();
        let piece = std::mem::replace(&mut self.piece, next);
        // A thread that takes no pieces has failed.
        if thread.pieces.send(piece).is_ok() { Ok(()) } else { self.end() }
    }

    /// Writes everything.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self.state {
            State::Ended => Ok(()),
            State::Begins(_) | State::Runs(_) => self.send().and_then(|()| self.end()),
        }
    }

    /// Waits for the thread.
    fn end(&mut self) -> io::Result<()> {
        let state = std::mem::replace(&mut self.state, State::Ended);
        let State::Runs(Thread { pieces, handle, .. }) = state else { return Ok(()) };
        drop(pieces);
        handle.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Writes pieces until no more come.
fn write_pieces<W: Write>(
    mut write: W,
    pieces: &Receiver<Vec<u8>>,
    written: &Sender<Vec<u8>>,
) -> io::Result<W> {
    for mut piece in pieces {
        write.write_all(&piece)?;
        piece.clear();
        // The writer may have ended.
        let _ = written.send(piece);
    }
    Ok(write)
}

impl Drop for WriteBehind {
    /// Writes everything. Errors are ignored.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(self.finish());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Takes some bytes, then fails.
    #[derive(Clone)]
    struct Limited(Arc<Mutex<Vec<u8>>>, usize);

    impl Write for Limited {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut all = self.0.lock().unwrap();
            let room = (self.1 - all.len()).min(1000).min(bytes.len());
            all.extend_from_slice(&bytes[..room]);
            if room == 0 { Err(io::Error::other("full")) } else { Ok(room) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn limited(most: usize) -> (WriteBehind, Arc<Mutex<Vec<u8>>>) {
        let all = Arc::new(Mutex::new(Vec::new()));
        let behind = WriteBehind::new(Limited(Arc::clone(&all), most), |mut write| write.flush());
        (behind, all)
    }

    fn write(behind: &mut WriteBehind, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(77).try_for_each(|some| {
            behind.piece().extend_from_slice(some);
            behind.pass_on()
        })
    }

    fn bytes() -> Vec<u8> {
        (0..9 * PIECE + 5).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn all_bytes_are_written_in_order() {
        for finishes in [true, false] {
            let (mut behind, all) = limited(usize::MAX);
            write(&mut behind, &bytes()).unwrap();
            if finishes {
                behind.finish().unwrap();
                behind.finish().unwrap();
            }
            drop(behind);
            assert!(*all.lock().unwrap() == bytes());
        }
    }

    #[test]
    fn error_comes_once_with_a_later_piece_or_at_the_end() {
        let (mut behind, all) = limited(PIECE + 10);
        assert_eq!(write(&mut behind, &bytes()).unwrap_err().to_string(), "full");
        behind.finish().unwrap();
        assert_eq!(all.lock().unwrap().len(), PIECE + 10);
        let (mut behind, _) = limited(10);
        write(&mut behind, &bytes()[..20]).unwrap();
        assert_eq!(behind.finish().unwrap_err().to_string(), "full");
    }

    #[test]
    fn bytes_behind_the_end_are_refused() {
        let (mut behind, _) = limited(usize::MAX);
        behind.finish().unwrap();
        assert!(write(&mut behind, &[1]).is_err());
    }
}
