//! Conversations that a model writes, with bodies of all kinds, pipelined or not, cut anywhere: the
//! parser gives what the model has written.

mod support;

use braid_http::Http;
use proptest::prelude::*;
use proptest::sample::select;
use support::{Seen, feed, moved};

/// A body as it is written.
#[derive(Clone, Debug)]
enum Body {
    /// There is none, and no field about it.
    None,
    /// The field Content-Length says its length.
    Length(Vec<u8>),
    /// It comes in chunks, which are not empty.
    Chunked(Vec<Vec<u8>>),
}

#[derive(Clone, Debug)]
struct Exchange {
    method: &'static str,
    path: String,
    host: String,
    body: Body,
    /// The codes of responses that come before the last one.
    interim: Vec<u16>,
    code: u16,
    answer: Body,
    /// Lines end without CR.
    is_bare: bool,
    /// An empty line comes before the request.
    is_late: bool,
}

/// What is written in a direction, and what it says.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    seen: Vec<Seen>,
}

impl Written {
    fn body(&mut self, body: &Body, has_body: bool, end: &str) -> Option<u64> {
        let length = match body {
            Body::Length(bytes) => Some(bytes.len() as u64),
            Body::None | Body::Chunked(_) => None,
        };
        if let Some(length) = length {
            self.bytes.extend(format!("Content-Length: {length}{end}").bytes());
        }
        if let Body::Chunked(_) = body {
            self.bytes.extend(format!("Transfer-Encoding: gzip, Chunked{end}").bytes());
        }
        self.bytes.extend(end.bytes());
        match body {
            Body::Length(bytes) if has_body => self.bytes.extend(bytes),
            Body::Chunked(chunks) if has_body => {
                for chunk in chunks {
                    self.bytes.extend(format!("{:X};a=\"b\"\r\n", chunk.len()).bytes());
                    self.bytes.extend(chunk);
                    self.bytes.extend(b"\r\n");
                }
                self.bytes.extend(b"0\r\nTrailer: x\r\n\r\n");
            }
            _ => {}
        }
        length
    }

    /// What a message says behind its head.
    fn rest(&mut self, body: &Body, has_body: bool) {
        let data = match body {
            Body::Length(bytes) if has_body => bytes.clone(),
            Body::Chunked(chunks) if has_body => chunks.concat(),
            _ => Vec::new(),
        };
        if !data.is_empty() {
            self.seen.push(Seen::Data(data));
        }
        self.seen.push(Seen::End);
    }

    fn request(&mut self, of: &Exchange) {
        let end = if of.is_bare { "\n" } else { "\r\n" };
        let Exchange { method, path, host, body, .. } = of;
        if of.is_late {
            self.bytes.extend(end.bytes());
        }
        let head = format!("{method} /{path} HTTP/1.1{end}X: y{end}hOSt: {host}:80{end}");
        self.bytes.extend(head.bytes());
        let length = self.body(body, true, end);
        let target = format!("/{path}");
        let host = Some(host.to_ascii_lowercase());
        self.seen.push(Seen::Request((*method).to_owned(), target, host, length));
        self.rest(body, true);
    }

    fn response(&mut self, of: &Exchange) {
        let end = if of.is_bare { "\n" } else { "\r\n" };
        for code in &of.interim {
            self.bytes.extend(format!("HTTP/1.1 {code} wait{end}{end}").bytes());
            self.seen.extend([Seen::Response(*code, None), Seen::End]);
        }
        let has_body = of.method != "HEAD" && ![204, 304].contains(&of.code);
        // Without a length, a body would have all bytes up to the end.
        let none = Body::Length(Vec::new());
        let body = if has_body && matches!(of.answer, Body::None) { &none } else { &of.answer };
        self.bytes.extend(format!("HTTP/1.1 {} x{end}Server: y{end}", of.code).bytes());
        let length = self.body(body, has_body, end);
        self.seen.push(Seen::Response(of.code, length));
        self.rest(body, has_body);
    }
}

fn body() -> impl Strategy<Value = Body> {
    // Much of a body looks like a head.
    let bytes = "[ -~]{0,9}|HTTP/1\\.1 200 x\r\n\r\n|GET / HTTP/1\\.1\r\n\r\n";
    let bytes = bytes.prop_map(String::into_bytes);
    let chunks = prop::collection::vec("[ -~\r\n]{1,40}".prop_map(String::into_bytes), 0..4);
    prop_oneof![Just(Body::None), bytes.prop_map(Body::Length), chunks.prop_map(Body::Chunked)]
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let request =
        (select(vec!["GET", "POST", "HEAD", "OPTIONS"]), "[a-z%?/]{0,5}", "[a-zA-Z]{1,5}");
    let interim = prop::collection::vec(select(vec![100, 103]), 0..3);
    let response = (interim, select(vec![200, 204, 304, 404, 500]));
    (request, body(), response, body(), any::<[bool; 2]>()).prop_map(
        |((method, path, host), body, (interim, code), answer, [is_bare, is_late])| Exchange {
            method,
            path,
            host,
            body,
            interim,
            code,
            answer,
            is_bare,
            is_late,
        },
    )
}

/// Gives bytes in parts, and moves the HTTP between two of them.
fn feed_cut(
    http: &mut Http,
    from_client: bool,
    bytes: &[u8],
    cuts: &mut impl Iterator<Item = usize>,
    seen: &mut Vec<Seen>,
) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (part, behind) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
        feed(http, from_client, part, seen);
        *http = moved(http);
        rest = behind;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(2_000)))]

    #[test]
    fn messages_are_found_however_they_are_cut(
        exchanges in prop::collection::vec(exchange(), 1..5),
        is_pipelined: bool,
        cuts in prop::collection::vec(prop_oneof![1..9_usize, 1..400_usize], 1..30),
    ) {
        let (mut http, mut cuts) = (Http::default(), cuts.into_iter().cycle());
        let (mut wanted, mut found) = <([Vec<Seen>; 2], [Vec<Seen>; 2])>::default();
        let together = if is_pipelined { exchanges.len() } else { 1 };
        for some in exchanges.chunks(together) {
            let mut written = [Written::default(), Written::default()];
            for one in some {
                written[0].request(one);
                written[1].response(one);
            }
            for (at, Written { bytes, seen }) in written.into_iter().enumerate() {
                feed_cut(&mut http, at == 0, &bytes, &mut cuts, &mut found[at]);
                wanted[at].extend(seen);
            }
        }
        prop_assert_eq!(&found, &wanted);
        prop_assert_eq!(http.waiting(), 0);
    }
}
