//! One direction's messages.

use super::body::{Framing, Method, Next};
use super::head::{Head, Line, Malformed};
use crate::limits::{BODY_DEPTH, MAX_HEAD, MESSAGE_WORK, RAW_BODY_DEPTH};
use crate::outcome::Context;
use crate::rule::{Buffer, Stage};
use crate::whole;
use crate::work::Work;
use std::borrow::Cow;
use std::collections::VecDeque;

/// The most bytes of a method.
const MAX_METHOD: usize = 24;

/// Where the direction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// In the head of the first message.
    Start,
    /// In the head of a later message.
    Head,
    Body(Framing),
    /// The bytes are not inspected.
    Over,
}

/// The messages of a direction, one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Messages {
    pub is_request: bool,
    pub state: State,
    /// The bytes of the message as they came, up to the depth of its body.
    pub raw: Vec<u8>,
    /// The length of its head, when that is complete.
    pub head_len: usize,
    /// The bytes of its body, up to the depth.
    pub body: Vec<u8>,
    /// All rules have seen the message.
    pub is_evaluated: bool,
    /// A response has said that no more HTTP follows.
    pub is_tunnel: bool,
}

impl Messages {
    pub fn new(is_request: bool) -> Self {
        Self {
            is_request,
            state: State::Start,
            raw: Vec::new(),
            head_len: 0,
            body: Vec::new(),
            is_evaluated: false,
            is_tunnel: false,
        }
    }

    /// The next bytes have come.
    pub fn data(
        &mut self,
        mut bytes: &[u8],
        methods: &mut VecDeque<Method>,
        context: &mut Context<'_, '_>,
    ) {
        while !bytes.is_empty() && self.state != State::Over {
            let taken = match self.state {
                State::Body(framing) => self.body(framing, bytes, context),
                _ => self.head(bytes, methods, context),
            };
            match taken {
                Ok(taken) => bytes = bytes.get(taken..).unwrap_or_default(),
                Err(Malformed) => {
                    context.rules.counts.malformed += 1;
                    if matches!(self.state, State::Body(_)) {
                        self.evaluate_all(context);
                    }
                    self.leave();
                }
            }
        }
    }

    /// No more bytes come.
    pub fn finish(&mut self, context: &mut Context<'_, '_>) {
        match self.state {
            State::Body(_) => self.evaluate_all(context),
            // The head is not complete.
            _ if !self.raw.is_empty() => context.rules.counts.malformed += 1,
            _ => {}
        }
        self.leave();
    }

    /// The bytes are not inspected from now on.
    pub fn leave(&mut self) {
        let is_tunnel = self.is_tunnel;
        *self = Self { state: State::Over, is_tunnel, ..Self::new(self.is_request) };
    }

    pub fn memory(&self) -> usize {
        self.raw.capacity() + self.body.capacity()
    }

    /// Takes bytes of a head. Returns their number.
    fn head(
        &mut self,
        bytes: &[u8],
        methods: &mut VecDeque<Method>,
        context: &mut Context<'_, '_>,
    ) -> Result<usize, Malformed> {
        if self.raw.is_empty() {
            let empty = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            if empty > 0 {
                return Ok(empty);
            }
        }
        let before = self.raw.len();
        self.raw.extend(bytes.iter().take(MAX_HEAD - before.min(MAX_HEAD)));
        let end = end_of_head(&self.raw, before);
        if let Some(end) = end {
            self.raw.truncate(end);
        }
        if self.state == State::Start && !is_plausible(&self.raw, self.is_request) {
            self.leave();
            return Ok(bytes.len());
        }
        match end {
            Some(end) => {
                self.head_len = end;
                self.begin(methods, context)?;
                Ok(end - before)
            }
            None if self.raw.len() >= MAX_HEAD => Err(Malformed),
            None => Ok(bytes.len()),
        }
    }

    /// The head is complete.
    fn begin(
        &mut self,
        methods: &mut VecDeque<Method>,
        context: &mut Context<'_, '_>,
    ) -> Result<(), Malformed> {
        let head = Head::parse(&self.raw, self.is_request)?;
        let message = Message { head: &head, raw: &self.raw, body: &[] };
        message.evaluate(Stage::Head, self.is_request, context);
        let mut is_tunnel = false;
        let method = match head.line {
            Line::Request { method, .. } => {
                let method = match method {
                    "HEAD" => Method::Head,
                    "CONNECT" => Method::Connect,
                    _ => Method::Other,
                };
                methods.push_back(method);
                method
            }
            Line::Response { code: 101, .. } => {
                is_tunnel = true;
                Method::Other
            }
            Line::Response { code: 100..=199, .. } => Method::Other,
            Line::Response { code, .. } => {
                let method = methods.pop_front().unwrap_or(Method::Other);
                is_tunnel = method == Method::Connect && (200..=299).contains(&code);
                method
            }
        };
        let framing = Framing::of(&head, method)?;
        if is_tunnel {
            self.is_tunnel = true;
            self.evaluate_all(context);
            self.leave();
            return Ok(());
        }
        match framing {
            Some(framing) => self.state = State::Body(framing),
            None => self.end(context),
        }
        Ok(())
    }

    /// Takes bytes of a body. Returns their number.
    fn body(
        &mut self,
        mut framing: Framing,
        bytes: &[u8],
        context: &mut Context<'_, '_>,
    ) -> Result<usize, Malformed> {
        let next = framing.next(bytes)?;
        self.state = State::Body(framing);
        let (taken, is_data, is_last) = match next {
            Next::Data(taken) => (taken, true, framing.is_complete()),
            Next::Framing => (1, false, false),
            Next::Last => (1, false, true),
        };
        self.keep(bytes.get(..taken).unwrap_or_default(), is_data, context);
        if is_last {
            self.end(context);
        }
        Ok(taken)
    }

    /// Keeps bytes of a body up to the depth, and then evaluates the rules.
    fn keep(&mut self, bytes: &[u8], is_data: bool, context: &mut Context<'_, '_>) {
        if self.is_evaluated {
            return;
        }
        let raw = RAW_BODY_DEPTH.saturating_sub(self.raw.len() - self.head_len);
        let room = match is_data {
            true => raw.min(BODY_DEPTH.saturating_sub(self.body.len())),
            false => raw,
        };
        self.raw.extend(bytes.iter().take(room));
        if is_data {
            self.body.extend(bytes.iter().take(room));
        }
        if bytes.len() >= room {
            self.evaluate_all(context);
        }
    }

    /// The message is complete.
    fn end(&mut self, context: &mut Context<'_, '_>) {
        self.evaluate_all(context);
        *self = Self { state: State::Head, ..Self::new(self.is_request) };
    }

    /// Evaluates the rules about whole messages.
    fn evaluate_all(&mut self, context: &mut Context<'_, '_>) {
        if self.is_evaluated {
            return;
        }
        let head = self.raw.get(..self.head_len).unwrap_or_default();
        if let Ok(head) = Head::parse(head, self.is_request) {
            let message = Message { head: &head, raw: &self.raw, body: &self.body };
            message.evaluate(Stage::Body, self.is_request, context);
        }
        self.is_evaluated = true;
        self.raw = Vec::new();
        self.body = Vec::new();
    }
}

/// A message that rules see.
struct Message<'a> {
    head: &'a Head<'a>,
    raw: &'a [u8],
    body: &'a [u8],
}

impl<'a> Message<'a> {
    fn buffer(&self, buffer: Buffer, is_request: bool) -> Option<Cow<'a, [u8]>> {
        match buffer {
            Buffer::Raw => Some(self.raw.into()),
            Buffer::RequestBody | Buffer::ResponseBody => {
                let is_its = (buffer == Buffer::RequestBody) == is_request;
                (is_its && !self.body.is_empty()).then(|| self.body.into())
            }
            _ => self.head.buffer(buffer),
        }
    }

    /// Evaluates the rules of a stage. The rules that hold alert.
    fn evaluate(&self, stage: Stage, is_request: bool, context: &mut Context<'_, '_>) {
        let (rules, buffers) = context.rules.set.messages(stage);
        if rules.is_empty() {
            return;
        }
        let seen = buffers.iter().filter_map(|of| Some((*of, self.buffer(*of, is_request)?)));
        let seen: Vec<(Buffer, Cow<'_, [u8]>)> = seen.collect();
        whole::evaluate(rules, &seen, (is_request, true), Work(MESSAGE_WORK), context);
    }
}

/// The end of a head, behind its empty line, if it lies behind these bytes.
fn end_of_head(raw: &[u8], before: usize) -> Option<usize> {
    let ends = memchr::memchr_iter(b'\n', raw.get(before..)?).map(|at| before + at);
    let mut ends = ends.filter(|at| {
        let line = raw.get(..*at).unwrap_or_default();
        line.ends_with(b"\n") || line.ends_with(b"\n\r")
    });
    ends.next().map(|at| at + 1)
}

/// Whether bytes can be the beginning of the first message of a direction.
fn is_plausible(raw: &[u8], is_request: bool) -> bool {
    if !is_request {
        return raw.iter().zip(b"HTTP/1.").all(|(byte, wanted)| byte == wanted);
    }
    let method = raw.iter().take_while(|byte| **byte != b' ');
    let is_method = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if method.clone().count() > MAX_METHOD || !method.into_iter().all(is_method) {
        return false;
    }
    let line = memchr::memchr(b'\n', raw).and_then(|end| raw.get(..end));
    line.is_none_or(|line| memchr::memmem::find(line, b" HTTP/1.").is_some())
}
