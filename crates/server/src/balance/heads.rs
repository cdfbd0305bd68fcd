//! What becomes of the heads of messages on their way.

use super::cookie::Cookies;
use braid_http::Head;

/// How a head goes on.
pub struct Onward<'a> {
    pub cookies: &'a Cookies,
    /// Whether the fields for this connection alone go on, too: it is to go over to another
    /// protocol.
    pub keeps_all: bool,
    /// Whether the connection ends behind the message.
    pub closes: bool,
    /// The cookie that a response sets.
    pub cookie: Option<String>,
}

impl Onward<'_> {
    /// The head without the fields that are for one connection alone (RFC 9110 §7.6.1), without a
    /// length beside chunks (RFC 9112 §6.3), and without the balancer's own cookie; with the word
    /// that the connection ends, and with the cookie.
    pub fn write(&self, head: &Head<'_>) -> Vec<u8> {
        let (line, _) = head.first_line();
        let mut bytes = [line, b"\r\n"].concat();
        for (name, value) in head.fields() {
            if let Some(value) = self.value(head, name, value) {
                bytes.extend([name.as_bytes(), b": ", &value, b"\r\n"].concat());
            }
        }
        if self.closes {
            bytes.extend(b"Connection: close\r\n");
        }
        if let Some(cookie) = &self.cookie {
            // No cache may give a client's cookie to others.
            let lines = format!("Set-Cookie: {cookie}\r\nCache-Control: private\r\n");
            bytes.extend(lines.as_bytes());
        }
        bytes.extend(b"\r\n");
        bytes
    }

    /// What becomes of a field: its value, if it goes on.
    fn value(&self, head: &Head<'_>, name: &str, value: &[u8]) -> Option<Vec<u8>> {
        let is = |other: &&str| name.eq_ignore_ascii_case(other);
        let is_for_one = ["connection", "keep-alive", "proxy-connection"].iter().any(is);
        let is_left_out = is_for_one && !self.keeps_all
            || head.is_chunked() && is(&"content-length")
            || is(&"set-cookie") && self.cookies.is_own(value);
        match is(&"cookie") {
            _ if is_left_out => None,
            true => self.cookies.without_own(value),
            false => Some(value.to_vec()),
        }
    }
}

/// Whether the connection ends behind this message (RFC 9112 §9.3).
pub fn is_last(head: &Head<'_>) -> bool {
    let (line, _) = head.first_line();
    let is_old = line.starts_with(b"HTTP/1.0") || line.ends_with(b"HTTP/1.0");
    head.connection_has(b"close") || is_old && !head.connection_has(b"keep-alive")
}
