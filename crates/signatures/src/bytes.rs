//! An inspection as bytes, so that another engine goes on from it.
//!
//! Which rules have been selected is not part of it: they are selected again from the bytes that
//! are kept. So the rules may change in between.

use crate::flowbits::Bits;
use crate::inspection::Inspection;
use crate::limits::{BODY_DEPTH, MAX_DONE, MAX_HEAD, RAW_BODY_DEPTH, STREAM_DEPTH, STREAM_WORK};
use crate::messages::{Kept, Messages};
use crate::outcome::Done;
use crate::stream::{Direction, Passed};
use crate::work::Work;
use braid_http::Http;
use braid_http::wire::{list, number, read_bool, read_list, read_number, take};

/// The version of the form.
const VERSION: u8 = 3;

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
    inspection.http.http.put(out);
    for kept in [&inspection.http.request, &inspection.http.response] {
        number(kept.head_len as u64, out);
        number(kept.is_evaluated.into(), out);
        list(&kept.raw, out);
        list(&kept.body, out);
    }
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
    let http = Http::read(from)?;
    let request = kept(from, true, http.is_in_body(true))?;
    let response = kept(from, false, http.is_in_body(false))?;
    let http = Messages { http, request, response };
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

/// What is kept of a message, which is there only in its body.
fn kept(from: &mut &[u8], is_request: bool, in_body: bool) -> Option<Kept> {
    let head_len = usize::try_from(read_number(from)?).ok().filter(|len| *len <= MAX_HEAD)?;
    let is_evaluated = read_bool(from)?;
    let raw = read_list(from, MAX_HEAD + RAW_BODY_DEPTH)?.to_vec();
    let body = read_list(from, BODY_DEPTH)?.to_vec();
    let read = Kept { raw, head_len, body, is_evaluated, ..Kept::new(is_request) };
    let is_right = match in_body {
        true => is_evaluated || head_len <= read.raw.len(),
        false => read == Kept::new(is_request),
    };
    is_right.then_some(read)
}
