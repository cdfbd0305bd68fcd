//! Responses.

use super::folder::{File, Files, Found};
use braid_http::{Head, Line};
use std::sync::Arc;

/// A response on its way.
#[derive(Debug)]
pub struct Reply {
    /// Its head, and the body if that is no file.
    pub head: Vec<u8>,
    /// The file that is its body, and how many of its bytes are written.
    pub file: Option<(Arc<File>, usize)>,
    /// Whether the connection ends behind it.
    pub closes: bool,
}

/// The status and the text of a response without a file.
type Status = (u16, &'static str);

impl Reply {
    /// The response to what is no request.
    pub fn to_malformed(now: u64) -> Self {
        let mut reply = Self { head: Vec::new(), file: None, closes: true };
        reply.say((400, "Bad Request"), "", true, now);
        reply
    }

    /// The response to a request.
    pub fn to(head: &Head<'_>, files: &Files, now: u64) -> Self {
        let (line, _) = head.first_line();
        let is_new = line.ends_with(b" HTTP/1.1");
        let Line::Request { method, target } = head.line else { return Self::to_malformed(now) };
        let (closes, stays) = (head.connection_has(b"close"), head.connection_has(b"keep-alive"));
        let mut reply = Self { head: Vec::new(), file: None, closes: closes || !is_new && !stays };
        let has_body = method != "HEAD";
        let hosts = head.values("host").count();
        let is_ambiguous = head.is_chunked() && !matches!(head.content_length(), Ok(None));
        if hosts > 1 || is_new && hosts == 0 || is_ambiguous || head.content_length().is_err() {
            reply.closes = true;
            reply.say((400, "Bad Request"), "", has_body, now);
            return reply;
        }
        if !matches!(method, "GET" | "HEAD") {
            // A body may follow, which nobody needs.
            reply.closes = true;
            reply.say((405, "Method Not Allowed"), "Allow: GET, HEAD\r\n", true, now);
            return reply;
        }
        let path = head.path().and_then(|path| String::from_utf8(path).ok()).unwrap_or_default();
        let path = path.split(['?', '#']).next().unwrap_or_default();
        match files.find(if path.is_empty() { "/" } else { path }) {
            Found::File(file) => reply.give(file, head, has_body, now),
            Found::Folder => {
                let path = target.split(['?', '#']).next().unwrap_or_default();
                let location = format!("Location: {path}/\r\n");
                reply.say((301, "Moved Permanently"), &location, has_body, now);
            }
            Found::Nothing => reply.say((404, "Not Found"), "", has_body, now),
        }
        reply
    }

    /// A file, or the word that the client has it.
    fn give(&mut self, file: Arc<File>, head: &Head<'_>, has_body: bool, now: u64) {
        let tag = format!("\"{:016x}\"", file.tag);
        let known = head.joined("if-none-match");
        let is_known = known.is_some_and(|known| {
            known
                .split(|byte| *byte == b',')
                .map(<[u8]>::trim_ascii)
                .any(|one| one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == tag.as_bytes())
        });
        if is_known {
            self.begin((304, "Not Modified"), now);
            self.line(&format!("ETag: {tag}\r\n\r\n"));
            return;
        }
        self.begin((200, "OK"), now);
        self.line(&format!(
            "Content-Type: {}\r\nContent-Length: {}\r\nETag: {tag}\r\n\r\n",
            file.kind,
            file.bytes.len()
        ));
        self.file = has_body.then_some((file, 0));
    }

    /// A response whose body is its status.
    fn say(&mut self, (code, text): Status, fields: &str, has_body: bool, now: u64) {
        let body = format!("{code} {text}\n");
        self.begin((code, text), now);
        self.line(&format!(
            "{fields}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ));
        if has_body {
            self.line(&body);
        }
    }

    fn begin(&mut self, (code, text): Status, now: u64) {
        let way = if self.closes { "close" } else { "keep-alive" };
        self.line(&format!(
            "HTTP/1.1 {code} {text}\r\nServer: braid\r\nDate: {}\r\nConnection: {way}\r\n",
            date(now)
        ));
    }

    fn line(&mut self, text: &str) {
        self.head.extend(text.as_bytes());
    }
}

/// A time (ns since the epoch) as HTTP writes it (RFC 9110 §5.6.7).
pub fn date(now: u64) -> String {
    let days_of_week = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = now / 1_000_000_000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let name = days_of_week.iter().cycle().nth(usize::try_from(days % 7).unwrap_or(0));
    let (mut year, mut left) = (1970, days);
    let length = |year: u64| {
        let is_leap =
            year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        if is_leap { 366 } else { 365 }
    };
    while left >= length(year) {
        left -= length(year);
        year += 1;
    }
    let february = length(year) - 337;
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = "Jan";
    for (one, length) in months.into_iter().zip(lengths) {
        month = one;
        if left < length {
            break;
        }
        left -= length;
    }
    format!(
        "{}, {:02} {month} {year} {:02}:{:02}:{:02} GMT",
        name.copied().unwrap_or_default(),
        left + 1,
        of_day / 3_600,
        of_day / 60 % 60,
        of_day % 60
    )
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (4_102_444_799, "Thu, 31 Dec 2099 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(date(seconds * 1_000_000_000), text);
        }
    }
}
