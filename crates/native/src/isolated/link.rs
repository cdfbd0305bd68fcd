//! The way to an isolated function's process.

use super::call::{Call, Op, Reply};
use super::launcher;
use super::message::{Answer, Request, receive, send};
use crate::sys::{SPINS, Shared, Side, Waited};
use rustix::process::Pid;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long a call for a packet may take. A process that needs more is lost.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long an answer to a message may take: loading a library, or a large table.
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
    pid: Pid,
    /// The turn of the shared memory: even, because no call runs.
    turn: u32,
}

impl Link {
    /// Starts a process.
    pub(super) fn new() -> io::Result<Self> {
        let (memory, file) = Shared::new()?;
        let (socket, end) = UnixStream::pair()?;
        socket.set_read_timeout(Some(LONG_PATIENCE))?;
        socket.set_write_timeout(Some(LONG_PATIENCE))?;
        let pid = launcher::start(end.as_fd(), file.as_fd())?;
        Ok(Self { memory, socket, pid, turn: 0 })
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
        self.begin(&Call::new(Op::Talk, now));
        let sent = send(&mut self.socket, request, bytes);
        let answer = sent.and_then(|()| receive(&mut self.socket));
        match answer {
            Ok(answer) => self.finish(LONG_PATIENCE).map(|_| answer),
            Err(why) if is_late(&why) => Err(Lost::Late),
            // The launcher may not have noticed yet that the process has ended.
            Err(why) => match self.finish(PATIENCE) {
                Err(Lost::Ended(how)) => Err(Lost::Ended(how)),
                _ => Err(Lost::Ended(format!("cannot be understood: {why}"))),
            },
        }
    }
}

fn is_late(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Drop for Link {
    fn drop(&mut self) {
        match self.turn % 2 {
            // The process waits for a call: it may end by itself.
            0 => self.begin(&Call::new(Op::End, 0)),
            _ => launcher::kill(self.pid),
        }
    }
}
