//! A proxy for HTTP/1 that compresses what servers leave uncompressed, and keeps what they say may
//! be kept.

use crate::application::{Application, At, Queues};
use crate::cache::{self, Cache, Coming, Key};
use crate::gzip::{Gzip, Idle};
use crate::queue::Queue;
use braid_connections::Side;
use braid_http::wire::{list, number, read_bool, read_list};
use braid_http::{Head, Line, Part};
use braid_http::{Http as Messages, limits};
use braid_native::Host;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::CStr;
use std::sync::Arc;

/// A shorter response is not worth the effort (bytes).
const LEAST: u64 = 256;
/// How many responses are compressed at a time: others stay as they are.
const MOST_AT_A_TIME: u64 = 1_000;
/// The memory for compressing a response (bytes).
const COMPRESSOR: usize = 300 << 10;
/// How many requests of a connection that wait for their responses have a key.
const MOST_KEYS: usize = 8;
/// The types of content that compression makes smaller, besides texts.
const TYPES: [&[u8]; 9] = [
    b"application/javascript",
    b"application/json",
    b"application/manifest+json",
    b"application/wasm",
    b"application/xhtml+xml",
    b"application/xml",
    b"application/rss+xml",
    b"application/x-javascript",
    b"image/svg+xml",
];

/// What is counted, by the place of its counter.
#[derive(Clone, Copy, Debug)]
enum Count {
    /// Responses that were compressed, and their bytes.
    Compressed,
    Before,
    After,
    /// Responses that were left as they are because too many others were being compressed.
    TooMany,
    /// Responses that are kept for others.
    Kept,
    /// Requests that were answered by a response that was kept.
    Answered,
}

/// The names of the counters, in the order of [`Count`].
const COUNTERS: [&str; 6] =
    ["compressed", "bytes before", "bytes after", "too many at a time", "kept", "answered"];

/// What all connections share.
#[derive(Debug)]
pub struct Shared {
    /// Whether responses are compressed.
    compresses: bool,
    cache: Cache,
    idle: Idle,
    /// Each response that is being compressed has a clone.
    running: Arc<()>,
    /// The most of these.
    most_running: usize,
    /// What has been counted since the host was told.
    counts: [u64; COUNTERS.len()],
}

impl Shared {
    fn count(&mut self, what: Count, times: u64) {
        if let Some(count) = self.counts.get_mut(what as usize) {
            *count += times;
        }
    }
}

/// A request that waits for its response.
#[derive(Clone, Debug)]
struct Asked {
    /// Whether its client takes compressed responses.
    takes_gzip: bool,
    /// Under which key its response may be kept.
    key: Option<Key>,
}

/// A response that is on its way.
#[derive(Debug, Default)]
struct Response {
    body: Option<Body>,
    coming: Option<Coming>,
}

/// A body that is being compressed.
#[derive(Debug)]
struct Body {
    gzip: Gzip,
    /// The bytes so far.
    length: u64,
    /// Whether its bytes leave as they come: the server does not say how many they are.
    at_once: bool,
    /// Whether it has all bytes up to the end of the server's connection.
    until_end: bool,
    _running: Arc<()>,
}

/// The HTTP of a connection.
#[derive(Debug)]
pub struct Http {
    messages: Messages,
    /// The bytes of the head that is on its way, of the client and of the server.
    heads: [Vec<u8>; 2],
    asked: VecDeque<Asked>,
    response: Response,
    /// Whether it is clear which response belongs to which request.
    is_clear: bool,
    /// Whether the client gets no more responses.
    has_ended: bool,
    is_broken: bool,
}

impl Application for Http {
    const ABOUT: &CStr = c"ends HTTP connections; compresses and keeps the responses of servers";
    const COUNTERS: &[&str] = &COUNTERS;
    type Shared = Shared;

    fn shared(host: &Host<'_>) -> Result<Shared, String> {
        let most =
            u64::try_from(host.config("cache").unwrap_or(0)).map_err(|_| "`cache` is too large")?;
        let share = |total| usize::try_from(host.share(total)).unwrap_or(usize::MAX);
        Ok(Shared {
            compresses: host.config("compress").unwrap_or(1) == 1,
            cache: Cache::new(share(most)),
            idle: Idle::default(),
            running: Arc::default(),
            most_running: share(MOST_AT_A_TIME),
            counts: Default::default(),
        })
    }

    fn counts(shared: &mut Shared) -> &mut [u64] {
        &mut shared.counts
    }

    fn new(_shared: &Shared) -> Self {
        let (messages, asked, response) = Default::default();
        let (is_clear, has_ended, is_broken) = (true, false, false);
        let heads = Default::default();
        Self { messages, heads, asked, response, is_clear, has_ended, is_broken }
    }

    fn is_lazy(shared: &Shared) -> bool {
        shared.cache.is_on()
    }

    fn data(
        &mut self,
        from: Side,
        bytes: &[u8],
        to: &mut Queues,
        at: At,
        shared: &mut Shared,
    ) -> usize {
        let mut rest = bytes;
        while !self.has_ended && self.part(from, &mut rest, to, at, shared) {
            if self.waits(from, to) && !rest.is_empty() {
                return bytes.len() - rest.len();
            }
        }
        self.give_up(to);
        bytes.len()
    }

    /// A few bytes of a client may ask for many that are kept. So the next request waits until the
    /// client reads.
    fn waits(&self, from: Side, to: &Queues) -> bool {
        let is_between = !self.messages.is_in_body(true) && !self.messages.is_over(true);
        let asks = from == Side::Client && is_between && to.is_full(Side::Client);
        to.is_full(from.other()) || asks
    }

    fn end(&mut self, from: Side, to: &mut Queues, shared: &mut Shared) {
        self.messages.finish(from == Side::Client);
        if from == Side::Server {
            // What ends with the connection may be cut, so it is not kept.
            let response = Response { coming: None, ..std::mem::take(&mut self.response) };
            match &response.body {
                Some(body) if body.until_end => response.end(&mut to.to_client, shared),
                body => self.is_broken |= body.is_some(),
            }
        }
        self.give_up(to);
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn memory(&self) -> usize {
        let heads: usize = self.heads.iter().map(Vec::capacity).sum();
        let compressor = self.response.body.as_ref().map_or(0, |_| COMPRESSOR);
        heads + self.messages.memory() + compressor
    }

    fn put(&mut self, to: &mut Queues, out: &mut Vec<u8>) {
        self.messages.put(out);
        self.heads.iter().for_each(|head| list(head, out));
        let asked = self.asked.iter().map(|asked| u8::from(asked.takes_gzip));
        list(&asked.collect::<Vec<_>>(), out);
        number(self.is_clear.into(), out);
        number(self.has_ended.into(), out);
        number(self.is_broken.into(), out);
        number(self.response.body.is_some().into(), out);
        if let Some(Body { gzip, length, at_once, until_end, .. }) = &mut self.response.body {
            let mut given = Vec::new();
            gzip.put(*length, &mut given, out);
            number((*at_once).into(), out);
            number((*until_end).into(), out);
            chunk(&given, &mut to.to_client);
            // What is kept of it lacks these bytes.
            self.response.coming = None;
        }
    }

    fn read(from: &mut &[u8], shared: &Shared) -> Option<Self> {
        let messages = Messages::read(from)?;
        let heads = [read_list(from, limits::MAX_HEAD)?, read_list(from, limits::MAX_HEAD)?];
        let asked = read_list(from, limits::MAX_PIPELINED)?;
        let asked = asked.iter().map(|takes| Asked { takes_gzip: *takes == 1, key: None });
        let asked = asked.collect();
        let (is_clear, has_ended) = (read_bool(from)?, read_bool(from)?);
        let is_broken = read_bool(from)?;
        let body = match read_bool(from)? {
            false => None,
            true => {
                let (gzip, length) = Gzip::read(from)?;
                let (at_once, until_end) = (read_bool(from)?, read_bool(from)?);
                let _running = shared.running.clone();
                Some(Body { gzip, length, at_once, until_end, _running })
            }
        };
        let (heads, response) = (heads.map(<[u8]>::to_vec), Response { body, coming: None });
        Some(Self { messages, heads, asked, response, is_clear, has_ended, is_broken })
    }
}

impl Http {
    /// Takes the next part of a side's messages. Returns false if none is left.
    fn part(
        &mut self,
        from: Side,
        rest: &mut &[u8],
        to: &mut Queues,
        at: At,
        shared: &mut Shared,
    ) -> bool {
        let Self { messages, heads: [of_client, of_server], asked, response, .. } = self;
        let from_client = from == Side::Client;
        let head = if from_client { of_client } else { of_server };
        let (before, is_answered) = (*rest, !messages.is_over(false));
        let is_idle = asked.is_empty() && is_answered && !messages.is_in_body(false);
        let part = messages.next(from_client, rest);
        let taken = before.get(..before.len() - rest.len()).unwrap_or_default();
        match part {
            // A part of a head, or no HTTP. Empty lines in front of a head are no part of it.
            None => {
                let is_empty = |byte: &&u8| head.is_empty() && matches!(byte, b'\r' | b'\n');
                let empty = taken.iter().take_while(is_empty).count();
                let (empty, rest) = taken.split_at_checked(empty).unwrap_or((taken, &[]));
                to.to(from.other()).extend(empty);
                head.extend(rest);
                return false;
            }
            Some(Part::Head(whole)) => {
                *head = Vec::new();
                match whole.line {
                    Line::Request { .. } => {
                        let mut one = Asked::of(&whole, at, shared);
                        self.is_clear &= !whole.is_ambiguous();
                        one.key.take_if(|_| !self.is_clear || asked.len() >= MOST_KEYS);
                        let answer = one.answer(&whole, at, shared).filter(|_| is_idle);
                        if let Some((answer, closes)) = answer {
                            shared.count(Count::Answered, 1);
                            to.to_client.extend(&answer);
                            self.has_ended = closes;
                            self.messages.answer();
                            return true;
                        }
                        asked.extend(is_answered.then_some(one));
                        to.to_server.extend(whole.bytes);
                    }
                    Line::Response { .. } => {
                        *response = begin(&whole, asked, &mut to.to_client, at, shared);
                    }
                }
            }
            Some(Part::Body(bytes, _)) if from_client => to.to_server.extend(bytes),
            Some(Part::Body(bytes, is_data)) => {
                response.data(bytes, is_data, &mut to.to_client, shared);
            }
            Some(Part::End) if from_client => {}
            Some(Part::End) => std::mem::take(response).end(&mut to.to_client, shared),
            Some(Part::Malformed) if from_client => head.extend(taken),
            Some(Part::Malformed | Part::Crowded) => {
                // What was compressed so far has no right end. No request has a known response.
                self.is_broken |= response.body.is_some();
                *response = Response::default();
                asked.clear();
                head.extend(taken);
            }
        }
        true
    }

    /// Gives what is kept of heads in directions that are not parsed any more.
    fn give_up(&mut self, to: &mut Queues) {
        let Self { messages, heads: [of_client, of_server], .. } = self;
        if messages.is_over(true) {
            to.to_server.extend(&std::mem::take(of_client));
        }
        if messages.is_over(false) {
            to.to_client.extend(&std::mem::take(of_server));
        }
    }
}

impl Asked {
    /// A request with this head.
    fn of(head: &Head<'_>, at: At, shared: &mut Shared) -> Self {
        let (line, _) = head.first_line();
        let takes = head.joined("accept-encoding").is_some_and(|codings| accepts_gzip(&codings));
        let has_body = !matches!(head.line, Line::Request { method: "HEAD", .. });
        let takes_gzip = takes && has_body && line.ends_with(b" HTTP/1.1");
        let key = Key::of(head, at.server, takes_gzip).filter(|_| shared.cache.is_on());
        if cache::is_unsafe(head) {
            key.iter().cloned().for_each(|key| shared.cache.forget(key));
        }
        Self { takes_gzip, key: key.filter(|_| cache::may_be_kept(head)) }
    }

    /// The response that is kept for it, and whether it is the last one of the connection.
    fn answer(&self, head: &Head<'_>, at: At, shared: &mut Shared) -> Option<(Vec<u8>, bool)> {
        let key = self.key.as_ref().filter(|_| cache::may_be_answered(head))?;
        let closes = cache::of_connection(head).iter().any(|token| token == b"close");
        let entry = shared.cache.get(key, at.now)?;
        Some((entry.answer(head, at.now, closes), closes))
    }
}

/// Whether a list of codings has gzip with a weight above 0 (RFC 9110 §12.5.3).
fn accepts_gzip(codings: &[u8]) -> bool {
    codings.split(|byte| *byte == b',').any(|coding| {
        let mut parts = coding.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"gzip"));
        let is_zero = |part: &[u8]| {
            let weight = part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q="));
            weight.is_some_and(|weight| weight.iter().all(|byte| b"0.".contains(byte)))
        };
        is_gzip && !parts.any(is_zero)
    })
}

/// A response begins: gives its head.
fn begin(
    head: &Head<'_>,
    asked: &mut VecDeque<Asked>,
    to: &mut Queue,
    at: At,
    shared: &mut Shared,
) -> Response {
    let is_final = !matches!(head.line, Line::Response { code: 100..=199, .. });
    let Some(one) = is_final.then(|| asked.pop_front()).flatten() else {
        to.extend(head.bytes);
        return Response::default();
    };
    let compresses = shared.compresses && one.takes_gzip && is_compressible(head);
    let is_crowded = compresses && Arc::strong_count(&shared.running) > shared.most_running;
    shared.count(Count::TooMany, is_crowded.into());
    let mut out = Vec::new();
    let body = (compresses && !is_crowded).then(|| {
        shared.count(Count::Compressed, 1);
        let at_once = head.content_length() == Ok(None);
        let until_end = at_once && !head.is_chunked();
        let gzip = Gzip::begin(&mut shared.idle, &mut out);
        Body { gzip, length: 0, at_once, until_end, _running: shared.running.clone() }
    });
    let given: Cow<'_, [u8]> = match &body {
        Some(_) => compressed_head(head).into(),
        None => head.bytes.into(),
    };
    let coming = one.key.and_then(|key| shared.cache.begin(key, head, &given, at.now));
    let mut response = Response { body, coming };
    to.extend(&given);
    chunk(&out, to);
    response.keep(&out, shared);
    response
}

impl Response {
    /// Bytes that the client gets of the body, without their framing.
    fn keep(&mut self, bytes: &[u8], shared: &Shared) {
        self.coming.take_if(|coming| !shared.cache.extend(coming, bytes));
    }

    /// The next bytes of the body. Bytes of the framing say how long the data is.
    fn data(&mut self, bytes: &[u8], is_data: bool, to: &mut Queue, shared: &mut Shared) {
        let Some(body) = &mut self.body else {
            to.extend(bytes);
            if is_data {
                self.keep(bytes, shared);
            }
            return;
        };
        if is_data {
            let mut out = Vec::new();
            body.gzip.data(bytes, body.at_once, &mut out);
            body.length += bytes.len() as u64;
            shared.count(Count::Before, bytes.len() as u64);
            shared.count(Count::After, out.len() as u64);
            chunk(&out, to);
            self.keep(&out, shared);
        }
    }

    /// The response is complete.
    fn end(mut self, to: &mut Queue, shared: &mut Shared) {
        if let Some(Body { gzip, length, .. }) = self.body.take() {
            let mut out = Vec::new();
            gzip.end(length, &mut shared.idle, &mut out);
            shared.count(Count::After, out.len() as u64);
            chunk(&out, to);
            to.extend(b"0\r\n\r\n");
            self.keep(&out, shared);
        }
        if let Some(coming) = self.coming {
            shared.count(Count::Kept, 1);
            shared.cache.end(coming);
        }
    }
}

/// Whether a response may be compressed, and is worth it.
fn is_compressible(head: &Head<'_>) -> bool {
    let (line, _) = head.first_line();
    let is_whole = matches!(head.line, Line::Response { code: 200, .. });
    let kind = head.values("content-type").next().unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    let kind = kind.trim_ascii().to_ascii_lowercase();
    let is_text = kind.starts_with(b"text/") && kind != b"text/event-stream";
    let is_long = head.content_length().is_ok_and(|length| length.is_none_or(|len| len >= LEAST));
    let codings = head.joined("transfer-encoding");
    let is_plain =
        codings.is_none_or(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"chunked"));
    let forbidden = cache::directives(head).any(|(name, _)| name == b"no-transform");
    let has = |name| head.values(name).next().is_some();
    line.starts_with(b"HTTP/1.1 ")
        && is_whole
        && (is_text || TYPES.contains(&kind.as_slice()))
        && is_long
        && is_plain
        && !forbidden
        && !has("content-encoding")
        && !has("trailer")
}

/// The head of a response whose body is compressed (RFC 9110 §8.4, RFC 9112 §6.1).
fn compressed_head(head: &Head<'_>) -> Vec<u8> {
    let (line, _) = head.first_line();
    let mut out = [line, b"\r\n"].concat();
    let dropped = ["content-length", "transfer-encoding", "accept-ranges", "content-md5", "digest"];
    let mut varies = false;
    for (name, value) in head.fields() {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if dropped.iter().any(|other| is(other)) {
            continue;
        }
        // The representation is another one, though it means the same.
        let weak: &[u8] = if is("etag") && value.starts_with(b"\"") { b"W/" } else { b"" };
        varies |= is("vary") && value.trim_ascii() == b"*";
        out.extend([name.as_bytes(), b": ", weak, value, b"\r\n"].concat());
    }
    if !varies {
        out.extend(b"Vary: Accept-Encoding\r\n");
    }
    out.extend(b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n");
    out
}

/// Gives bytes as a chunk. Without bytes, there is none: it would be the last one.
fn chunk(bytes: &[u8], to: &mut Queue) {
    if !bytes.is_empty() {
        to.extend(format!("{:x}\r\n", bytes.len()).as_bytes());
        to.extend(bytes);
        to.extend(b"\r\n");
    }
}
