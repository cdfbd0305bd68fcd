//! The head of a message.

use crate::limits::MAX_FIELDS;
use std::borrow::Cow;

/// The message is malformed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// The first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    /// Of a request: its method and its target.
    Request {
        /// The method.
        method: &'a str,
        /// The target, as it came.
        target: &'a str,
    },
    /// Of a response: its status.
    Response {
        /// The status.
        code: u16,
        /// The text beside it.
        reason: &'a str,
    },
}

/// A head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head<'a> {
    /// The first line.
    pub line: Line<'a>,
    fields: Vec<(&'a str, &'a [u8])>,
    /// The bytes as they came, with the empty line.
    pub bytes: &'a [u8],
}

impl<'a> Head<'a> {
    /// Parses a whole head, with the empty line at its end.
    ///
    /// # Errors
    /// It is malformed.
    pub fn parse(bytes: &'a [u8], is_request: bool) -> Result<Self, Malformed> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let (line, fields) = if is_request {
            let mut request = httparse::Request::new(&mut fields);
            complete(request.parse(bytes))?;
            let (Some(method), Some(target)) = (request.method, request.path) else {
                return Err(Malformed);
            };
            (Line::Request { method, target }, &*request.headers)
        } else {
            let mut response = httparse::Response::new(&mut fields);
            complete(response.parse(bytes))?;
            let (Some(code), Some(reason)) = (response.code, response.reason) else {
                return Err(Malformed);
            };
            (Line::Response { code, reason }, &*response.headers)
        };
        let fields = fields.iter().map(|field| (field.name, field.value)).collect();
        Ok(Self { line, fields, bytes })
    }

    /// The values of a field, whose name is in lower case.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let of_it = self.fields.iter().filter(move |(of, _)| of.eq_ignore_ascii_case(name));
        of_it.map(|(_, value)| *value)
    }

    /// All values of a field, whose name is in lower case, in one. `None` without any.
    #[must_use]
    pub fn joined(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        let values: Vec<&[u8]> = self.values(name).collect();
        match values.as_slice() {
            [] => None,
            [one] => Some((*one).into()),
            all => Some(all.join(&b", "[..]).into()),
        }
    }

    /// The fields, each with its name as it came.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.fields.iter().copied()
    }

    /// The fields but those with this name, one a line.
    #[must_use]
    pub fn fields_without(&self, name: &str) -> Vec<u8> {
        let fields = self.fields.iter().filter(|(of, _)| !of.eq_ignore_ascii_case(name));
        let lines = fields.flat_map(|(name, value)| [name.as_bytes(), b": ", *value, b"\r\n"]);
        lines.collect::<Vec<_>>().concat()
    }

    /// The first line without its end, and what follows.
    #[must_use]
    pub fn first_line(&self) -> (&'a [u8], &'a [u8]) {
        let end = memchr::memchr(b'\n', self.bytes).unwrap_or(self.bytes.len());
        let line = self.bytes.get(..end).unwrap_or_default();
        let rest = self.bytes.get(end + 1..).unwrap_or_default();
        (line.strip_suffix(b"\r").unwrap_or(line), rest)
    }

    /// The host's name in lower case, without a port: that of the target, or else of the first
    /// field Host. The whole target of CONNECT is a host. `None` for responses.
    #[must_use]
    pub fn host(&self) -> Option<Vec<u8>> {
        let Line::Request { method, target } = self.line else { return None };
        let authority = match method {
            "CONNECT" => Some(target.as_bytes()),
            _ => authority(target).map(|(authority, _)| authority.as_bytes()),
        };
        let host = authority.or_else(|| self.values("host").next())?;
        let host = host.rsplit(|byte| *byte == b'@').next().unwrap_or_default().trim_ascii();
        let port = host.iter().rposition(|byte| *byte == b':');
        let name = port
            .filter(|at| host.iter().skip(at + 1).all(u8::is_ascii_digit) && !host.ends_with(b"]"));
        let name = name.and_then(|at| host.get(..at)).unwrap_or(host);
        Some(name.to_ascii_lowercase())
    }

    /// The path and query of the target, with `%HH` replaced by its byte. `None` for responses.
    #[must_use]
    pub fn path(&self) -> Option<Vec<u8>> {
        let Line::Request { target, .. } = self.line else { return None };
        Some(decoded(authority(target).map_or(target, |(_, path)| path)))
    }

    /// The number in the field Content-Length, if there is one.
    ///
    /// # Errors
    /// There is no number, or there are several.
    pub fn content_length(&self) -> Result<Option<u64>, Malformed> {
        let mut length = None;
        for value in self.values("content-length") {
            let value = std::str::from_utf8(value).map_err(|_| Malformed)?.trim();
            if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(Malformed);
            }
            let value: u64 = value.parse().map_err(|_| Malformed)?;
            if length.is_some_and(|length| length != value) {
                return Err(Malformed);
            }
            length = Some(value);
        }
        Ok(length)
    }

    /// Whether a field Connection has this word, in lower case (RFC 9110 §7.6.1).
    #[must_use]
    pub fn connection_has(&self, word: &[u8]) -> bool {
        let has = |value: &[u8]| {
            value.split(|byte| *byte == b',').any(|one| one.trim_ascii().eq_ignore_ascii_case(word))
        };
        self.values("connection").any(has)
    }

    /// Whether others may read the message in another way: it has two lengths, a coding that hides
    /// its length, or several hosts (RFC 9112 §3.2, §6.1).
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        let has = |name: &str| self.values(name).next().is_some();
        let codings = self.joined("transfer-encoding");
        let is_chunked = |coding: &[u8]| coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
        codings.is_some_and(|coding| has("content-length") || !is_chunked(&coding))
            || self.values("host").count() > 1
    }

    /// Whether the body comes in chunks.
    #[must_use]
    pub fn is_chunked(&self) -> bool {
        self.values("transfer-encoding").last().is_some_and(|coding| {
            let last = coding.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            last.trim_ascii().eq_ignore_ascii_case(b"chunked")
        })
    }
}

fn complete(parsed: httparse::Result<usize>) -> Result<(), Malformed> {
    match parsed {
        Ok(httparse::Status::Complete(_)) => Ok(()),
        _ => Err(Malformed),
    }
}

/// The host of a target in absolute form, and what follows it.
fn authority(target: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = target.split_once("://")?;
    if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    rest.split_at_checked(end)
}

/// Replaces `%HH` by its byte.
fn decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0).zip(digit(1))) {
            (b'%', Some((high, low))) => {
                out.extend(u8::try_from(high << 4 | low));
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}
