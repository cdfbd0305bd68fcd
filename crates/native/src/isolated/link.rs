//! The way to an isolated function's process.

use super::ahead::Ahead;
use super::call::{Call, Op};
use super::caller::{Caller, Lost, PATIENCE};
use super::launcher::{self, Number};
use super::message::{Answer, Request, receive, send};
use crate::sys::Shared;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long calls may take for which no packet waits: loading a library, a new instance, a list of
/// its state.
const LONG_PATIENCE: Duration = Duration::from_secs(10);

/// A process, and the way to it. The process ends with this value.
pub(super) struct Link {
    pub(super) caller: Caller,
    /// The packets whose calls were handed over ahead.
    pub(super) ahead: Ahead,
    socket: UnixStream,
    number: Number,
}

impl Link {
    /// Starts a process.
    pub(super) fn new() -> io::Result<Self> {
        let (memory, file) = Shared::new()?;
        let (socket, end) = UnixStream::pair()?;
        let number = launcher::start(end.as_fd(), file.as_fd())?;
        Ok(Self { caller: Caller::new(memory), ahead: Ahead::default(), socket, number })
    }

    /// Sends a message with bytes behind it, and waits for the answer.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        bytes: &[u8],
        now: u64,
    ) -> Result<(Answer, Vec<u8>), Lost> {
        // The process waits until its outputs are taken, with further calls ahead of it.
        if self.caller.is_ahead() && !matches!(request, Request::Outputs) {
            return Err(Lost::Strays);
        }
        let patience = match request {
            Request::Save | Request::Outputs => PATIENCE,
            _ => LONG_PATIENCE,
        };
        self.caller.begin(&Call::new(Op::Talk, now));
        let mut socket = Timed { socket: &self.socket, until: Instant::now() + patience };
        let sent = send(&mut socket, request, bytes);
        let answer = sent.and_then(|()| receive(&mut socket, request.limits()));
        match answer {
            Ok(answer) => self.caller.finish(patience).map(|_| answer),
            Err(why) if is_late(&why) => Err(Lost::Late),
            // The launcher may not have noticed yet that the process has ended.
            Err(why) => match self.caller.finish(PATIENCE) {
                Err(Lost::Ended(how)) => Err(Lost::Ended(how)),
                _ => Err(Lost::Ended(format!("cannot be understood: {why}"))),
            },
        }
    }
}

/// A socket until a time, however slowly the other end reads or writes.
struct Timed<'a> {
    socket: &'a UnixStream,
    until: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(into)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_late(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Drop for Link {
    fn drop(&mut self) {
        // A process that waits for a call may end by itself.
        let is_idle = self.caller.is_idle();
        if is_idle {
            self.caller.begin(&Call::new(Op::End, 0));
        }
        launcher::end(self.number, !is_idle);
    }
}
