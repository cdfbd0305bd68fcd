//! An inspection as bytes, so that another engine goes on from it.
//!
//! Which rules have been selected is not part of it: they are selected again from the bytes that are
//! kept. So the rules may change in between.

use crate::flowbits::Bits;
use crate::http::{Chunk, Framing, Http, Messages, Method, State};
use crate::inspection::Inspection;
use crate::limits::{
    BODY_DEPTH, MAX_DONE, MAX_HEAD, MAX_PIPELINED, RAW_BODY_DEPTH, STREAM_DEPTH, STREAM_WORK,
};
use crate::outcome::Done;
use crate::stream::{Direction, Passed};
use crate::wire::{list, number, read_bool, read_list, read_number, take};
use crate::work::Work;

/// The version of the form.
const VERSION: u8 = 2;

impl Inspection {
    /// The inspection as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        write(self)
    }

    /// Reads the bytes of an inspection. `None` if they are damaged.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        read(bytes)
    }
}

fn write(inspection: &Inspection) -> Vec<u8> {
    let out = &mut vec![VERSION];
    for (direction, next) in
        [&inspection.client, &inspection.server].into_iter().zip(inspection.next)
    {
        number(next, out);
        number(direction.is_over.into(), out);
        number(direction.work.0, out);
        list(&direction.kept, out);
        direction.passed.put(out);
    }
    for messages in [&inspection.http.requests, &inspection.http.responses] {
        let (kind, first, second) = state(messages.state);
        out.push(kind);
        number(first, out);
        number(second, out);
        number(messages.head_len as u64, out);
        number(messages.is_evaluated.into(), out);
        list(&messages.raw, out);
        list(&messages.body, out);
    }
    let methods = inspection.http.methods.iter().map(|method| match method {
        Method::Other => 0,
        Method::Head => 1,
        Method::Connect => 2,
    });
    list(&methods.collect::<Vec<u8>>(), out);
    let done = inspection.done.0.iter().flat_map(|key| key.to_le_bytes());
    list(&done.collect::<Vec<u8>>(), out);
    inspection.bits.put(out);
    std::mem::take(out)
}

fn read(mut bytes: &[u8]) -> Option<Inspection> {
    let from = &mut bytes;
    if take(from, 1)? != [VERSION] {
        return None;
    }
    let (client, server) = (direction(from, true)?, direction(from, false)?);
    let (requests, responses) = (messages(from, true)?, messages(from, false)?);
    let methods = read_list(from, MAX_PIPELINED)?.iter().map(|method| match method {
        0 => Some(Method::Other),
        1 => Some(Method::Head),
        2 => Some(Method::Connect),
        _ => None,
    });
    let http = Http { requests, responses, methods: methods.collect::<Option<_>>()? };
    let done = read_list(from, MAX_DONE * 8)?.chunks(8);
    let done = done.map(|key| key.try_into().ok().map(u64::from_le_bytes));
    let done: Vec<u64> = done.collect::<Option<_>>()?;
    let bits = Bits::read(from)?;
    let next = [client.0, server.0];
    let (client, server) = (client.1, server.1);
    let is_sorted = done.is_sorted_by(|a, b| a < b);
    let read = Inspection { client, server, http, done: Done(done), bits, next };
    (from.is_empty() && is_sorted).then_some(read)
}

/// The offset of the next byte, and the direction.
fn direction(from: &mut &[u8], from_client: bool) -> Option<(u64, Direction)> {
    let next = read_number(from)?;
    let mut direction = Direction::new(from_client);
    direction.is_over = read_bool(from)?;
    direction.work = Work(read_number(from).filter(|work| *work <= STREAM_WORK)?);
    direction.kept = read_list(from, STREAM_DEPTH)?.to_vec();
    direction.passed = Passed::read(from, direction.kept.len())?;
    Some((next, direction))
}

fn messages(from: &mut &[u8], is_request: bool) -> Option<Messages> {
    let kind = *take(from, 1)?.first()?;
    let (first, second) = (read_number(from)?, read_number(from)?);
    let state = read_state(kind, first, second)?;
    let head_len = usize::try_from(read_number(from)?).ok().filter(|len| *len <= MAX_HEAD)?;
    let is_evaluated = read_bool(from)?;
    let raw = read_list(from, MAX_HEAD + RAW_BODY_DEPTH)?.to_vec();
    let body = read_list(from, BODY_DEPTH)?.to_vec();
    let in_body = matches!(state, State::Body(_)) && !is_evaluated;
    if in_body && head_len > raw.len() || !matches!(state, State::Body(_)) && raw.len() > MAX_HEAD {
        return None;
    }
    let new = Messages::new(is_request);
    Some(Messages { state, raw, head_len, body, is_evaluated, ..new })
}

fn state(state: State) -> (u8, u64, u64) {
    match state {
        State::Start => (0, 0, 0),
        State::Head => (1, 0, 0),
        State::Over => (2, 0, 0),
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
