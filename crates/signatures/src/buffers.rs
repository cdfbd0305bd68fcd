//! The buffers that rules see of the head of an HTTP message.

use crate::rule::Buffer;
use braid_http::{Head, Line};
use std::borrow::Cow;

/// What rules see in a buffer. `None` if the message does not have it.
pub fn of_head<'a>(head: &Head<'a>, buffer: Buffer) -> Option<Cow<'a, [u8]>> {
    let is_request = matches!(head.line, Line::Request { .. });
    if buffer.is_of_requests().is_some_and(|of| of != is_request) {
        return None;
    }
    let cookies = if is_request { "cookie" } else { "set-cookie" };
    match (buffer, head.line) {
        (Buffer::Method, Line::Request { method, .. }) => Some(method.as_bytes().into()),
        (Buffer::RawUri, Line::Request { target, .. }) => Some(target.as_bytes().into()),
        (Buffer::Uri, _) => head.path().map(Cow::from),
        (Buffer::StatusCode, Line::Response { code, .. }) => {
            Some(format!("{code:03}").into_bytes().into())
        }
        (Buffer::StatusMessage, Line::Response { reason, .. }) => Some(reason.as_bytes().into()),
        (Buffer::RequestLine | Buffer::ResponseLine, _) => Some(head.first_line().0.into()),
        (Buffer::RawHeader, _) => Some(head.first_line().1.into()),
        (Buffer::Header, _) => Some(head.fields_without(cookies).into()),
        (Buffer::Host, _) => head.host().map(Cow::from),
        (Buffer::Cookie, _) => head.joined(cookies),
        (Buffer::Field(name), _) => head.joined(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffer, Head, of_head};

    fn request(head: &[u8]) -> Head<'_> {
        Head::parse(head, true).expect("a good head")
    }

    fn shown(head: &Head<'_>, buffer: Buffer) -> Option<String> {
        of_head(head, buffer).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
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
