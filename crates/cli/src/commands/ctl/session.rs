//! A connection with a run: requests, answers, and the lines that follow an answer.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::answer::Failure;

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest time between two looks whether enough was read.
const TICK: Duration = Duration::from_millis(100);

/// A connection with a run.
pub struct Session {
    path: PathBuf,
    read: BufReader<UnixStream>,
    /// The part of a line that has arrived.
    line: Vec<u8>,
}

impl Session {
    /// Connects with the run whose socket has this path.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let open = || {
            let socket = UnixStream::connect(path)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Ok(BufReader::new(socket))
        };
        let read = open().map_err(|why| failure(path, &why))?;
        Ok(Self { path: path.to_owned(), read, line: Vec::new() })
    }

    fn failure(&self, why: &io::Error) -> Failure {
        failure(&self.path, why)
    }

    /// The answer to a request.
    pub fn ask(&mut self, request: &Value) -> Result<Value, Failure> {
        // The run may have answered before it was asked: that it has too many clients.
        let asked = writeln!(self.read.get_mut(), "{request}");
        let is_whole = self.read_on().and_then(|is_whole| match (is_whole, asked) {
            (false, Err(why)) => Err(why),
            _ => Ok(is_whole),
        });
        let is_whole = is_whole.map_err(|why| match why.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::input(format!(
                "the run has not answered for {} s; it may still do what was asked",
                PATIENCE.as_secs()
            )),
            _ => self.failure(&why),
        })?;
        if !is_whole {
            return Err(Failure::input("the run ended before it answered"));
        }
        let answer = self.value()?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(Failure::input(error)),
            None => Ok(answer),
        }
    }

    /// The next line after an answer; none at the end, or when enough was read.
    pub fn next(&mut self, is_enough: impl Fn() -> bool) -> Result<Option<Value>, Failure> {
        let ticks = self.read.get_ref().set_read_timeout(Some(TICK));
        ticks.map_err(|why| self.failure(&why))?;
        while !is_enough() {
            match self.read_on() {
                Ok(true) => return self.value().map(Some),
                Ok(false) => return Ok(None),
                Err(why) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&why.kind()) => {}
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(self.failure(&why)),
            }
        }
        Ok(None)
    }

    /// Reads on to the end of a line. Returns false at the end of all lines.
    fn read_on(&mut self) -> io::Result<bool> {
        self.read.read_until(b'\n', &mut self.line)?;
        Ok(self.line.ends_with(b"\n"))
    }

    /// The line that was read.
    fn value(&mut self) -> Result<Value, Failure> {
        let line = std::mem::take(&mut self.line);
        serde_json::from_slice(&line)
            .map_err(|why| Failure::input(format!("the run sent no JSON: {why}")))
    }
}

fn failure(path: &Path, why: &io::Error) -> Failure {
    let help = "; `braid run --ctl PATH` makes the socket";
    Failure::file(path, format!("no run answers: {why}{help}"))
}
