//! The HTTP of a connection as bytes, so that another engine goes on from it.

use crate::body::{Chunk, Framing, Method};
use crate::connection::Http;
use crate::limits::{MAX_HEAD, MAX_PIPELINED};
use crate::messages::{Messages, State};
use crate::wire::{list, number, read_list, read_number, take};

impl Http {
    /// Writes it. All parts of the bytes that have come must have been taken.
    pub fn put(&self, out: &mut Vec<u8>) {
        for messages in [&self.requests, &self.responses] {
            let (kind, first, second) = state(messages.state);
            out.push(kind);
            number(first, out);
            number(second, out);
            // A head that has been given is not needed any more.
            let is_in_head = matches!(messages.state, State::Start | State::Head);
            list(if is_in_head { &messages.head } else { &[] }, out);
        }
        let methods = self.waiting.iter().map(|method| match method {
            Method::Other => 0,
            Method::Head => 1,
            Method::Connect => 2,
        });
        list(&methods.collect::<Vec<u8>>(), out);
    }

    /// Reads it. `None` if the bytes are damaged.
    #[must_use]
    pub fn read(from: &mut &[u8]) -> Option<Self> {
        let (requests, responses) = (messages(from, true)?, messages(from, false)?);
        let waiting = read_list(from, MAX_PIPELINED)?.iter().map(|method| match method {
            0 => Some(Method::Other),
            1 => Some(Method::Head),
            2 => Some(Method::Connect),
            _ => None,
        });
        let waiting = waiting.collect::<Option<_>>()?;
        Some(Self { requests, responses, waiting, is_crowded: false })
    }
}

fn messages(from: &mut &[u8], is_request: bool) -> Option<Messages> {
    let kind = *take(from, 1)?.first()?;
    let (first, second) = (read_number(from)?, read_number(from)?);
    let state = read_state(kind, first, second)?;
    let head = read_list(from, MAX_HEAD - 1)?.to_vec();
    let is_in_head = matches!(state, State::Start | State::Head);
    (is_in_head || head.is_empty()).then_some(Messages { is_request, state, head })
}

fn state(state: State) -> (u8, u64, u64) {
    match state {
        State::Start => (0, 0, 0),
        State::Head | State::End => (1, 0, 0),
        State::Over | State::LastEnd | State::Broken => (2, 0, 0),
        State::Body(Framing::UntilEnd) => (3, 0, 0),
        State::Body(Framing::Length(left)) => (4, left, 0),
        State::Body(Framing::Chunked(chunk)) => match chunk {
            Chunk::Size(size, digits) => (5, size, digits.into()),
            Chunk::Extension(size, len) => (6, size, len.into()),
            Chunk::Data(left) => (7, left, 0),
            Chunk::DataEnd(has_cr) => (8, has_cr.into(), 0),
            Chunk::Trailer(line, all) => (9, line.into(), all.into()),
        },
    }
}

fn read_state(kind: u8, first: u64, second: u64) -> Option<State> {
    let small = |number: u64| u32::try_from(number).ok().filter(|small| *small <= 1 << 24);
    let chunked = |chunk| Some(State::Body(Framing::Chunked(chunk)));
    match kind {
        0 => Some(State::Start),
        1 => Some(State::Head),
        2 => Some(State::Over),
        3 => Some(State::Body(Framing::UntilEnd)),
        4 => Some(State::Body(Framing::Length(first))),
        5 => chunked(Chunk::Size(first, u8::try_from(second).ok()?)),
        6 => chunked(Chunk::Extension(first, small(second)?)),
        7 => chunked(Chunk::Data(first)),
        8 => chunked(Chunk::DataEnd(first == 1)),
        9 => chunked(Chunk::Trailer(small(first)?, small(second)?)),
        _ => None,
    }
}
