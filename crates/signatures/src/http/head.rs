//! The head of a message, and the buffers that rules see of it.

use crate::limits::MAX_FIELDS;
use crate::rule::Buffer;
use std::borrow::Cow;

/// The message is malformed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// The first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    Request { method: &'a str, target: &'a str },
    Response { code: u16, reason: &'a str },
}

/// A head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head<'a> {
    pub line: Line<'a>,
    fields: Vec<(&'a str, &'a [u8])>,
    bytes: &'a [u8],
}

impl<'a> Head<'a> {
    /// Parses a whole head, with the empty line at its end.
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

    /// What rules see in a buffer. `None` if the message does not have it.
    pub fn buffer(&self, buffer: Buffer) -> Option<Cow<'a, [u8]>> {
        let is_request = matches!(self.line, Line::Request { .. });
        if buffer.is_of_requests().is_some_and(|of| of != is_request) {
            return None;
        }
        let cookies = if is_request { "cookie" } else { "set-cookie" };
        match (buffer, self.line) {
            (Buffer::Method, Line::Request { method, .. }) => Some(method.as_bytes().into()),
            (Buffer::RawUri, Line::Request { target, .. }) => Some(target.as_bytes().into()),
            (Buffer::Uri, Line::Request { target, .. }) => Some(decoded(path(target)).into()),
            (Buffer::StatusCode, Line::Response { code, .. }) => {
                Some(format!("{code:03}").into_bytes().into())
            }
            (Buffer::StatusMessage, Line::Response { reason, .. }) => {
                Some(reason.as_bytes().into())
            }
            (Buffer::RequestLine | Buffer::ResponseLine, _) => Some(self.first_line().0.into()),
            (Buffer::RawHeader, _) => Some(self.first_line().1.into()),
            (Buffer::Header, _) => Some(self.header(cookies).into()),
            (Buffer::Host, _) => self.host().map(Cow::from),
            (Buffer::Cookie, _) => self.joined(cookies),
            (Buffer::Field(name), _) => self.joined(name),
            _ => None,
        }
    }

    /// The first line without its end, and what follows.
    fn first_line(&self) -> (&'a [u8], &'a [u8]) {
        let end = memchr::memchr(b'\n', self.bytes).unwrap_or(self.bytes.len());
        let line = self.bytes.get(..end).unwrap_or_default();
        let rest = self.bytes.get(end + 1..).unwrap_or_default();
        (line.strip_suffix(b"\r").unwrap_or(line), rest)
    }

    /// The fields but cookies, one a line.
    fn header(&self, cookies: &str) -> Vec<u8> {
        let fields = self.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(cookies));
        let lines = fields.flat_map(|(name, value)| [name.as_bytes(), b": ", *value, b"\r\n"]);
        lines.collect::<Vec<_>>().concat()
    }

    /// All values of a field.
    fn joined(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        let values: Vec<&[u8]> = self.values(name).collect();
        match values.as_slice() {
            [] => None,
            [one] => Some((*one).into()),
            all => Some(all.join(&b", "[..]).into()),
        }
    }

    /// The host's name in lower case, without a port.
    fn host(&self) -> Option<Vec<u8>> {
        let Line::Request { target, .. } = self.line else { return None };
        let authority = authority(target).map(|(authority, _)| authority.as_bytes());
        let host = authority.or_else(|| self.values("host").next())?;
        let host = host.rsplit(|byte| *byte == b'@').next().unwrap_or_default().trim_ascii();
        let port = host.iter().rposition(|byte| *byte == b':');
        let name = port
            .filter(|at| host.iter().skip(at + 1).all(u8::is_ascii_digit) && !host.ends_with(b"]"));
        let name = name.and_then(|at| host.get(..at)).unwrap_or(host);
        Some(name.to_ascii_lowercase())
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

/// The path and query of a target.
fn path(target: &str) -> &str {
    authority(target).map_or(target, |(_, path)| path)
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

#[cfg(test)]
mod tests {
    use super::{Buffer, Head};

    fn request(head: &[u8]) -> Head<'_> {
        Head::parse(head, true).expect("a good head")
    }

    fn shown(head: &Head<'_>, buffer: Buffer) -> Option<String> {
        head.buffer(buffer).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn buffers_of_a_request() {
        let head = request(
            b"GET /a%20b%2?q=%41 HTTP/1.1\r\nHost: WWW.Example.org:80\r\nCookie: a=1\r\nX:  y \r\n\
              cookie: b=2\r\nuser-agent: curl\r\n\r\n",
        );
        assert_eq!(shown(&head, Buffer::Method).as_deref(), Some("GET"));
        assert_eq!(shown(&head, Buffer::Uri).as_deref(), Some("/a b%2?q=A"));
        assert_eq!(shown(&head, Buffer::RawUri).as_deref(), Some("/a%20b%2?q=%41"));
        assert_eq!(shown(&head, Buffer::Host).as_deref(), Some("www.example.org"));
        assert_eq!(shown(&head, Buffer::Cookie).as_deref(), Some("a=1, b=2"));
        assert_eq!(shown(&head, Buffer::Field("user-agent")).as_deref(), Some("curl"));
        assert_eq!(shown(&head, Buffer::Field("referer")), None);
        assert_eq!(shown(&head, Buffer::StatusCode), None);
        let header = "Host: WWW.Example.org:80\r\nX: y\r\nuser-agent: curl\r\n";
        assert_eq!(shown(&head, Buffer::Header).as_deref(), Some(header));
        let line = "GET /a%20b%2?q=%41 HTTP/1.1";
        assert_eq!(shown(&head, Buffer::RequestLine).as_deref(), Some(line));
    }

    #[test]
    fn targets_in_absolute_form_have_a_host_of_their_own() {
        let head = request(b"GET http://u@[2001:db8::1]:8080/x?y HTTP/1.0\nHost: other\n\n");
        assert_eq!(shown(&head, Buffer::Host).as_deref(), Some("[2001:db8::1]"));
        assert_eq!(shown(&head, Buffer::Uri).as_deref(), Some("/x?y"));
        let head = request(b"GET /?to=http://x/ HTTP/1.0\r\nHost: [::1]\r\n\r\n");
        assert_eq!(shown(&head, Buffer::Host).as_deref(), Some("[::1]"));
        assert_eq!(shown(&head, Buffer::Uri).as_deref(), Some("/?to=http://x/"));
    }

    #[test]
    fn buffers_of_a_response() {
        let head = b"HTTP/1.1 404 Not Found\r\nServer: x\r\nSet-Cookie: a=1\r\n\r\n";
        let head = Head::parse(head, false).expect("a good head");
        assert_eq!(shown(&head, Buffer::StatusCode).as_deref(), Some("404"));
        assert_eq!(shown(&head, Buffer::StatusMessage).as_deref(), Some("Not Found"));
        assert_eq!(shown(&head, Buffer::Cookie).as_deref(), Some("a=1"));
        assert_eq!(shown(&head, Buffer::Header).as_deref(), Some("Server: x\r\n"));
        assert_eq!(shown(&head, Buffer::Uri), None);
    }
}
