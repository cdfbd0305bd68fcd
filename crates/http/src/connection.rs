//! Both directions of a connection.

use crate::body::{Framing, Method};
use crate::head::{Head, Line};
use crate::limits::MAX_PIPELINED;
use crate::messages::{Messages, State, Step};
use std::collections::VecDeque;

/// The HTTP of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Http {
    pub(crate) requests: Messages,
    pub(crate) responses: Messages,
    /// Of the requests that wait for their responses.
    pub(crate) waiting: VecDeque<Method>,
    /// Too many requests have waited, and that has not been told yet.
    pub(crate) is_crowded: bool,
}

/// A part of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part<'h, 'b> {
    /// The head of a message is complete.
    Head(Head<'h>),
    /// The next bytes of its body as they came, and whether they are its data. Otherwise they say
    /// how long the data is.
    Body(&'b [u8], bool),
    /// The message is complete.
    End,
    /// The message is malformed. The direction is over.
    Malformed,
    /// Too many requests wait for their responses. The direction of the responses is over.
    Crowded,
}

impl Default for Http {
    fn default() -> Self {
        let (requests, responses) = (Messages::new(true), Messages::new(false));
        Self { requests, responses, waiting: VecDeque::new(), is_crowded: false }
    }
}

impl Http {
    /// Takes the next part from the bytes of an end, which shrink. `None` if no part is left in
    /// them. Until then, more bytes must not come.
    pub fn next<'b>(&mut self, from_client: bool, bytes: &mut &'b [u8]) -> Option<Part<'_, 'b>> {
        if self.responses.state == State::LastEnd {
            self.requests.leave();
            self.waiting = VecDeque::new();
        }
        if std::mem::take(&mut self.is_crowded) {
            self.responses.leave();
            return Some(Part::Crowded);
        }
        match self.of_mut(from_client).step(bytes) {
            Step::Nothing => None,
            Step::Head => Some(self.begin(from_client)),
            Step::Body(bytes, is_data) => Some(Part::Body(bytes, is_data)),
            Step::End => Some(Part::End),
            Step::Malformed => Some(Part::Malformed),
        }
    }

    /// A head is complete.
    fn begin(&mut self, from_client: bool) -> Part<'_, 'static> {
        let Self { requests, responses, waiting, is_crowded } = self;
        let is_answered = responses.state != State::Over;
        let of = if from_client { requests } else { responses };
        let Ok(head) = Head::parse(&of.head, of.is_request) else {
            of.state = State::Over;
            return Part::Malformed;
        };
        let mut is_tunnel = false;
        let method = match head.line {
            Line::Request { method, .. } => Method::of(method),
            Line::Response { code: 101, .. } => {
                is_tunnel = true;
                Method::Other
            }
            Line::Response { code: 100..=199, .. } => Method::Other,
            Line::Response { code, .. } => {
                let method = waiting.pop_front().unwrap_or(Method::Other);
                is_tunnel = method == Method::Connect && (200..=299).contains(&code);
                method
            }
        };
        of.state = match Framing::of(&head, method) {
            _ if is_tunnel => State::LastEnd,
            Ok(Some(framing)) => State::Body(framing),
            Ok(None) => State::End,
            Err(_) => State::Broken,
        };
        if from_client && is_answered {
            waiting.push_back(method);
            if waiting.len() > MAX_PIPELINED {
                // Which response belongs to which request is not known any more.
                *waiting = VecDeque::new();
                *is_crowded = true;
            }
        }
        Part::Head(head)
    }

    /// The last request gets its response from somebody else than the server.
    pub fn answer(&mut self) {
        self.waiting.pop_back();
    }

    /// This number of bytes of an end are missing. Goes on behind them if they can only be bytes of
    /// a body. Returns false if the direction is over for their sake.
    pub fn skip(&mut self, from_client: bool, missing: u64) -> bool {
        self.is_over(from_client) || self.of_mut(from_client).skip(missing)
    }

    /// No more bytes of an end come. Returns whether a head is incomplete.
    pub fn finish(&mut self, from_client: bool) -> bool {
        let of = self.of_mut(from_client);
        let is_cut = !of.head.is_empty();
        of.leave();
        is_cut
    }

    /// The bytes of an end are not parsed from now on.
    pub fn leave(&mut self, from_client: bool) {
        self.of_mut(from_client).leave();
    }

    /// Whether the bytes of an end are not parsed.
    #[must_use]
    pub fn is_over(&self, from_client: bool) -> bool {
        self.of(from_client).state == State::Over
    }

    /// Whether the next byte of an end belongs to a body.
    #[must_use]
    pub fn is_in_body(&self, from_client: bool) -> bool {
        matches!(self.of(from_client).state, State::Body(_))
    }

    /// The number of requests that wait for their responses.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Its memory beside its own size (bytes).
    #[must_use]
    pub fn memory(&self) -> usize {
        let heads = self.requests.head.capacity() + self.responses.head.capacity();
        heads + self.waiting.capacity() * size_of::<Method>()
    }

    fn of(&self, from_client: bool) -> &Messages {
        if from_client { &self.requests } else { &self.responses }
    }

    fn of_mut(&mut self, from_client: bool) -> &mut Messages {
        if from_client { &mut self.requests } else { &mut self.responses }
    }
}
