//! The way to an isolated function's process.

use super::call::{Call, Op, Reply};
use super::launcher::{self, Number};
use super::message::{Answer, Request, receive, send};
use crate::sys::{SPINS, Shared, Side, Waited};
use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a call may take while packets wait. A process that needs more is lost.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long others may take: loading a library, a new instance, a list of its state.
const LONG_PATIENCE: Duration = Duration::from_secs(10);

/// Why a process is of no use any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Lost {
    /// It has ended, in words.
    Ended(String),
    /// It does not answer.
    Late,
    /// The packet does not fit in the shared memory. The process is well.
    TooLong,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(how) => write!(f, "{how}"),
            Self::Late => write!(f, "does not answer"),
            Self::TooLong => write!(f, "gets a packet that is too long"),
        }
    }
}

/// A process, and the way to it. The process ends with this value.
pub(super) struct Link {
    pub(super) memory: Shared,
    socket: UnixStream,
    number: Number,
    /// The turn of the shared memory: even, because no call runs.
    turn: u32,
}

impl Link {
    /// Starts a process.
    pub(super) fn new() -> io::Result<Self> {
        let (memory, file) = Shared::new()?;
        let (socket, end) = UnixStream::pair()?;
        let number = launcher::start(end.as_fd(), file.as_fd())?;
        Ok(Self { memory, socket, number, turn: 0 })
    }

    /// Calls the process, and waits for its answer.
    pub(super) fn call(&mut self, call: &Call) -> Result<Reply, Lost> {
        self.begin(call);
        self.finish(PATIENCE)
    }

    fn begin(&mut self, call: &Call) {
        call.write(&self.memory);
        self.memory.pass(self.turn, Side::Caller);
        self.turn = self.turn.wrapping_add(1);
    }

    fn finish(&mut self, patience: Duration) -> Result<Reply, Lost> {
        match self.memory.wait(self.turn, Side::Caller, SPINS, Some(patience)) {
            Waited::Turn => {
                self.turn = self.turn.wrapping_add(1);
                Ok(Reply::read(&self.memory))
            }
            Waited::Ended(status) => Err(Lost::Ended(launcher::say(status))),
            Waited::Late => Err(Lost::Late),
        }
    }

    /// Sends a message with bytes behind it, and waits for the answer.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        bytes: &[u8],
        now: u64,
    ) -> Result<(Answer, Vec<u8>), Lost> {
        let patience = match request {
            Request::Save | Request::Outputs => PATIENCE,
            _ => LONG_PATIENCE,
        };
        self.begin(&Call::new(Op::Talk, now));
        let mut socket = Timed { socket: &self.socket, until: Instant::now() + patience };
        let sent = send(&mut socket, request, bytes);
        let answer = sent.and_then(|()| receive(&mut socket, request.limits()));
        match answer {
            Ok(answer) => self.finish(patience).map(|_| answer),
            Err(why) if is_late(&why) => Err(Lost::Late),
            // The launcher may not have noticed yet that the process has ended.
            Err(why) => match self.finish(PATIENCE) {
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
        let is_idle = self.turn.is_multiple_of(2);
        if is_idle {
            self.begin(&Call::new(Op::End, 0));
        }
        launcher::end(self.number, !is_idle);
    }
}
