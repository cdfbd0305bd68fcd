//! The messages of one direction.

use crate::body::{Framing, Next};
use crate::head::Malformed;
use crate::limits::{MAX_HEAD, MAX_METHOD};

/// Where a direction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// In the head of the first message.
    Start,
    /// In the head of a later message.
    Head,
    /// In a body.
    Body(Framing),
    /// At the end of a message.
    End,
    /// At the end of the last message: what follows is no HTTP.
    LastEnd,
    /// Behind a head that does not say where the body ends.
    Broken,
    /// The bytes are not parsed.
    Over,
}

/// The messages of a direction, one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Messages {
    pub is_request: bool,
    pub state: State,
    /// The bytes of the head that is on its way, or of the one that has just been given.
    pub head: Vec<u8>,
}

/// What comes next.
pub enum Step<'b> {
    /// More bytes are needed, or the direction is over.
    Nothing,
    /// The head is complete.
    Head,
    /// Bytes of the body: of its data, or else of its framing.
    Body(&'b [u8], bool),
    /// The message is complete.
    End,
    Malformed,
}

impl Messages {
    pub fn new(is_request: bool) -> Self {
        Self { is_request, state: State::Start, head: Vec::new() }
    }

    /// The bytes are not parsed from now on.
    pub fn leave(&mut self) {
        *self = Self { state: State::Over, ..Self::new(self.is_request) };
    }

    /// Takes what comes next from the bytes.
    pub fn step<'b>(&mut self, bytes: &mut &'b [u8]) -> Step<'b> {
        if !matches!(self.state, State::Start | State::Head) {
            self.head = Vec::new();
        }
        let step = match self.state {
            State::Start | State::Head => self.take_head(bytes),
            State::Body(framing) => self.take_body(framing, bytes),
            State::End => {
                self.state = State::Head;
                Ok(Step::End)
            }
            State::LastEnd => {
                self.state = State::Over;
                Ok(Step::End)
            }
            State::Broken => Err(Malformed),
            State::Over => {
                *bytes = &[];
                Ok(Step::Nothing)
            }
        };
        step.unwrap_or_else(|Malformed| {
            self.leave();
            Step::Malformed
        })
    }

    /// Takes bytes of a head.
    fn take_head<'b>(&mut self, bytes: &mut &'b [u8]) -> Result<Step<'b>, Malformed> {
        if self.head.is_empty() {
            let empty = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            *bytes = bytes.get(empty..).unwrap_or_default();
        }
        if bytes.is_empty() {
            return Ok(Step::Nothing);
        }
        let before = self.head.len();
        self.head.extend(bytes.iter().take(MAX_HEAD - before.min(MAX_HEAD)));
        let end = end_of_head(&self.head, before);
        self.head.truncate(end.unwrap_or(MAX_HEAD));
        *bytes = bytes.get(self.head.len() - before..).unwrap_or_default();
        if self.state == State::Start && !is_plausible(&self.head, self.is_request) {
            self.leave();
            *bytes = &[];
            return Ok(Step::Nothing);
        }
        match end {
            Some(_) => Ok(Step::Head),
            None if self.head.len() >= MAX_HEAD => Err(Malformed),
            None => Ok(Step::Nothing),
        }
    }

    /// Takes bytes of a body.
    fn take_body<'b>(
        &mut self,
        mut framing: Framing,
        bytes: &mut &'b [u8],
    ) -> Result<Step<'b>, Malformed> {
        if bytes.is_empty() {
            return Ok(Step::Nothing);
        }
        let (count, is_data, is_last) = match framing.next(bytes)? {
            Next::Data(count) => (count, true, framing.is_complete()),
            Next::Framing => (1, false, false),
            Next::Last => (1, false, true),
        };
        self.state = if is_last { State::End } else { State::Body(framing) };
        let (taken, rest) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
        *bytes = rest;
        Ok(Step::Body(taken, is_data))
    }

    /// Goes on behind bytes that are missing, if they can only be bytes of a body. Returns whether
    /// that is so. Otherwise, the direction is over.
    pub fn skip(&mut self, missing: u64) -> bool {
        let is_known = match &mut self.state {
            State::Body(framing) => framing.skip(missing),
            _ => false,
        };
        match self.state {
            _ if !is_known => self.leave(),
            State::Body(framing) if framing.is_complete() => self.state = State::End,
            _ => {}
        }
        is_known
    }
}

/// The end of a head, behind its empty line, if it lies behind these bytes.
fn end_of_head(head: &[u8], before: usize) -> Option<usize> {
    let ends = memchr::memchr_iter(b'\n', head.get(before..)?).map(|at| before + at);
    let mut ends = ends.filter(|at| {
        let line = head.get(..*at).unwrap_or_default();
        line.ends_with(b"\n") || line.ends_with(b"\n\r")
    });
    ends.next().map(|at| at + 1)
}

/// Whether bytes can be the beginning of the first message of a direction.
fn is_plausible(head: &[u8], is_request: bool) -> bool {
    if !is_request {
        return head.iter().zip(b"HTTP/1.").all(|(byte, wanted)| byte == wanted);
    }
    let method = head.iter().take_while(|byte| **byte != b' ');
    let is_method = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if method.clone().count() > MAX_METHOD || !method.into_iter().all(is_method) {
        return false;
    }
    let line = memchr::memchr(b'\n', head).and_then(|end| head.get(..end));
    line.is_none_or(|line| memchr::memmem::find(line, b" HTTP/1.").is_some())
}
