//! The proxy that compresses HTTP responses.

use super::*;
use braid_http::{Head, Http, Line, Part};
use flate2::read::GzDecoder;
use std::io::Read as _;

/// A response as a client sees it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Response {
    head: Vec<u8>,
    /// The data of the body.
    pub data: Vec<u8>,
    pub is_complete: bool,
}

impl Response {
    fn head(&self) -> Head<'_> {
        Head::parse(&self.head, false).expect("a head")
    }

    pub fn value(&self, name: &str) -> Option<String> {
        self.head().joined(name).map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    /// The body, unzipped if it is zipped.
    pub fn body(&self) -> Vec<u8> {
        match self.value("content-encoding").as_deref() {
            Some("gzip") => {
                let mut out = Vec::new();
                GzDecoder::new(&self.data[..]).read_to_end(&mut out).expect("gzip");
                out
            }
            _ => self.data.clone(),
        }
    }
}

/// The responses in a client's bytes, to these requests.
pub fn responses(requests: &[u8], bytes: &[u8], has_ended: bool) -> Vec<Response> {
    let (mut http, mut all) = (Http::default(), Vec::<Response>::new());
    let mut rest = requests;
    while http.next(true, &mut rest).is_some() {}
    let mut rest = bytes;
    while let Some(part) = http.next(false, &mut rest) {
        match part {
            Part::Head(head) => {
                all.push(Response { head: head.bytes.to_vec(), ..Response::default() });
            }
            Part::Body(bytes, true) => all.last_mut().unwrap().data.extend(bytes),
            Part::Body(..) => {}
            Part::End => all.last_mut().unwrap().is_complete = true,
            Part::Malformed | Part::Crowded => panic!("{part:?}"),
        }
    }
    if has_ended && let Some(last) = all.last_mut() {
        last.is_complete = true;
    }
    all
}

/// A text that compresses well.
pub fn text(len: usize) -> Vec<u8> {
    (0u32..)
        .flat_map(|line| format!("Line {} of a long text.\n", line * line).into_bytes())
        .take(len)
        .collect()
}

pub fn request(path: &str, fields: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: example.org\r\n{fields}\r\n").into_bytes()
}

/// A response with a length.
pub fn plain(fields: &str, body: &[u8]) -> Vec<u8> {
    let len = body.len();
    let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {len}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A response in chunks.
fn chunked(fields: &str, body: &[u8], piece: usize) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n");
    let chunks = body.chunks(piece).flat_map(|chunk| {
        [format!("{:X};x=1\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat()
    });
    head.into_bytes().into_iter().chain(chunks).chain(*b"0\r\n\r\n").collect()
}

/// What the client gets for these requests, if the server gives these responses.
fn conversation(
    mut world: World,
    (requests, answers): (&[u8], &[u8]),
    restarts: bool,
) -> (World, Vec<Response>) {
    world.client.to_send.extend(requests);
    world.client.closes_behind = true;
    world.connect();
    let came = |world: &World| world.server.received.len() >= requests.len();
    assert!(world.until(60_000, came), "the requests do not arrive");
    assert!(world.server.received == requests, "requests stay as they are");
    world.server.to_send.extend(answers);
    world.server.closes = true;
    for round in 0..300 {
        if world.until(199, |world| world.client.is_over()) {
            break;
        }
        assert!(round < 299, "the connection does not end");
        if restarts {
            world.restart();
        }
    }
    let all = responses(requests, &world.client.received, true);
    (world, all)
}

pub const TAKES: &str = "Accept-Encoding: br, gzip\r\n";
const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";

#[test]
fn responses_are_compressed_for_clients_that_take_it() {
    let body = text(200_000);
    for answer in [plain(HTML, &body), chunked(HTML, &body, 7_000)] {
        let (world, all) =
            conversation(world("http", 0, 0), (&request("/", TAKES), &answer), false);
        let [one] = &all[..] else { panic!("{} responses", all.len()) };
        assert!(one.body() == body);
        assert!(one.data.len() < body.len() / 3, "{} bytes", one.data.len());
        assert_eq!(one.value("content-encoding").as_deref(), Some("gzip"));
        assert_eq!(one.value("transfer-encoding").as_deref(), Some("chunked"));
        assert_eq!(one.value("content-length"), None);
        assert_eq!(one.value("vary").as_deref(), Some("Accept-Encoding"));
        assert_eq!(one.value("content-type").as_deref(), Some("text/html; charset=utf-8"));
        assert_eq!(world.counter("compressed"), 1);
        assert_eq!(world.counter("bytes before"), body.len() as u128);
        let after = world.counter("bytes after");
        // All but the first ten bytes, which are always the same.
        assert_eq!(after, one.data.len() as u128 - 10);
    }
}

/// Each case: fields of the request, the response.
fn left_alone() -> Vec<(&'static str, Vec<u8>)> {
    let body = text(5_000);
    let status = |status: &str| {
        let head = format!("HTTP/1.1 {status}\r\n{HTML}Content-Length: 5000\r\n\r\n");
        [head.as_bytes(), &body].concat()
    };
    let old = plain(HTML, &body);
    let old = [b"HTTP/1.0", &old[8..]].concat();
    vec![
        ("", plain(HTML, &body)),
        ("Accept-Encoding: gzip;q=0\r\n", plain(HTML, &body)),
        ("Accept-Encoding: gzip; q=0.000, br\r\n", plain(HTML, &body)),
        ("Accept-Encoding: br\r\n", plain(HTML, &body)),
        (TAKES, plain("Content-Type: image/png\r\n", &body)),
        (TAKES, plain("", &body)),
        (TAKES, plain("Content-Type: text/event-stream\r\n", &body)),
        (TAKES, plain(&format!("{HTML}Content-Encoding: br\r\n"), &body)),
        (TAKES, plain(&format!("{HTML}Cache-Control: max-age=5, no-transform\r\n"), &body)),
        (TAKES, plain(HTML, &body[..255])),
        (TAKES, chunked(&format!("{HTML}Trailer: X\r\n"), &body, 999)),
        (TAKES, status("206 Partial Content")),
        (TAKES, status("404 Not Found")),
        (TAKES, old),
    ]
}

#[test]
fn other_responses_stay_as_they_are() {
    for (at, (fields, answer)) in left_alone().into_iter().enumerate() {
        let (world, _) = conversation(world("http", 0, 1), (&request("/", fields), &answer), false);
        assert!(world.client.received == answer, "case {at}");
        assert_eq!(world.counter("compressed"), 0, "case {at}");
    }
    // One that differs from them in nothing but the reason.
    let answer = plain(HTML, &text(256));
    let (world, _) = conversation(world("http", 0, 1), (&request("/", TAKES), &answer), false);
    assert_eq!(world.counter("compressed"), 1);
}

#[test]
fn heads_of_compressed_responses_say_what_has_changed() {
    let fields = format!(
        "{HTML}ETag: \"abc\"\r\nAccept-Ranges: bytes\r\nVary: Cookie\r\nDigest: x\r\nX-Other: 1\r\n"
    );
    let (_, all) = conversation(
        world("http", 0, 0),
        (&request("/", TAKES), &plain(&fields, &text(9_000))),
        false,
    );
    let one = &all[0];
    assert_eq!(one.value("etag").as_deref(), Some("W/\"abc\""));
    assert_eq!(one.value("vary").as_deref(), Some("Cookie, Accept-Encoding"));
    assert_eq!(one.value("x-other").as_deref(), Some("1"));
    assert_eq!((one.value("accept-ranges"), one.value("digest")), (None, None));
    assert!(matches!(one.head().line, Line::Response { code: 200, reason: "OK" }));
}

/// Many requests at once, with lost frames and other instances in between.
#[test]
fn pipelined_requests_get_their_own_answers() {
    for seed in 0..braid_cases::at_least(4).into() {
        let (mut requests, mut answers, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..40usize {
            let body = text(300 + number * 997);
            let fields = if number % 3 == 0 { "" } else { TAKES };
            let is_head = number % 7 == 5;
            let one = request(&format!("/{number}"), fields);
            let one = if is_head { [b"HEAD", &one[3..]].concat() } else { one };
            requests.extend(one);
            let whole = match number % 4 {
                0 => plain(HTML, &body),
                1 => chunked(HTML, &body, 1 + number * 31),
                2 => [&b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"[..], &plain(HTML, &body)]
                    .concat(),
                _ => plain("Content-Type: image/gif\r\n", &body),
            };
            let has_hints = number % 4 == 2;
            let end = memchr_end(&whole, usize::from(has_hints) + 1);
            answers.extend(if is_head { &whole[..end] } else { &whole });
            expected.extend(has_hints.then_some((Vec::new(), false)));
            let is_zipped = fields == TAKES && !is_head && number % 4 != 3;
            expected.push((if is_head { Vec::new() } else { body }, is_zipped));
        }
        let world = world("http", if seed % 2 == 0 { 0 } else { 10 }, seed);
        let (world, all) = conversation(world, (&requests, &answers), seed > 1);
        let found: Vec<_> =
            all.iter().map(|one| (one.body(), one.value("content-encoding").is_some())).collect();
        assert_eq!(found.len(), expected.len());
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!(found == expected, "seed {seed}, response {at}");
        }
        let zipped = expected.iter().filter(|(_, is_zipped)| *is_zipped).count();
        assert_eq!(world.counter("compressed"), zipped as u128);
    }
}

/// The place behind the `count`th empty line.
fn memchr_end(bytes: &[u8], count: usize) -> usize {
    let ends = bytes.windows(4).enumerate().filter(|(_, four)| four == b"\r\n\r\n");
    ends.map(|(at, _)| at + 4).nth(count - 1).expect("an empty line")
}

/// A response without a length ends with the server's connection.
#[test]
fn response_up_to_the_end_is_compressed() {
    let body = text(30_000);
    let answer = [format!("HTTP/1.1 200 OK\r\n{HTML}\r\n").as_bytes(), &body].concat();
    let (world, all) = conversation(world("http", 0, 0), (&request("/", TAKES), &answer), false);
    assert!(all[0].body() == body);
    assert_eq!(world.counter("compressed"), 1);
}

/// A client must not take a part of a body for the whole.
#[test]
pub fn body_that_is_cut_ends_with_a_reset() {
    let body = text(30_000);
    for answer in [plain(HTML, &body), chunked(HTML, &body, 2_000)] {
        let answer = &answer[..20_000];
        let mut world = world("http", 0, 0);
        world.client.to_send.extend(request("/", TAKES));
        world.connect();
        assert!(world.until(1_000, |world| !world.server.received.is_empty()));
        world.server.to_send.extend(answer);
        world.server.closes = true;
        assert!(world.until(5_000, |world| world.client.is_over()));
        let failure = world.client.status().unwrap().failure;
        assert_eq!(failure, Some(braid_endpoint::Failure::Reset));
        assert!(!world.client.received.ends_with(b"0\r\n\r\n"));
    }
}

/// The bytes of a page that is made slowly arrive as they come.
#[test]
fn chunks_do_not_wait_for_each_other() {
    let mut world = world("http", 0, 0);
    world.client.to_send.extend(request("/", TAKES));
    world.connect();
    assert!(world.until(1_000, |world| !world.server.received.is_empty()));
    let head = format!("HTTP/1.1 200 OK\r\n{HTML}Transfer-Encoding: chunked\r\n\r\n");
    world.server.to_send.extend(head.as_bytes());
    for number in 0..5 {
        world.server.to_send.extend(b"6\r\nlines\n\r\n");
        let requests = request("/", TAKES);
        let came = |world: &World| {
            let all = responses(&requests, &world.client.received, false);
            let Some(one) = all.first() else { return false };
            let mut read = vec![0; 6 * (number + 1)];
            GzDecoder::new(&one.data[..]).read_exact(&mut read).is_ok()
        };
        assert!(world.until(1_000, came), "line {number}");
    }
}

#[test]
fn what_is_no_http_stays_as_it_is() {
    let cases: [(&[u8], &[u8]); 5] = [
        (b"\x16\x03\x01\x02\x00 hello", b"\x16\x03\x03 server hello"),
        (b"SSH-2.0-x\r\n", b"SSH-2.0-y\r\n"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nbroken line\r\n\r\nmore", b"HTTP/1.1 400 Bad\r\n\r\n"),
        (
            b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x81\x05GET /",
            b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x81\x05hello",
        ),
        (b"CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n\x16\x03", b"HTTP/1.1 200 OK\r\n\r\n\x16\x03\x03"),
    ];
    for (at, (question, answer)) in cases.into_iter().enumerate() {
        let mut world = world("http", 0, 0);
        world.client.to_send.extend(question);
        world.client.closes_behind = true;
        world.connect();
        world.until(300, |_| false);
        world.server.to_send.extend(answer);
        world.server.closes = true;
        assert!(world.until(30_000, |world| world.client.is_over()), "case {at}");
        assert_eq!(world.server.received, question, "case {at}");
        assert_eq!(world.client.received, answer, "case {at}");
    }
}

/// What a client sends behind its request does not concern the response that is on its way.
#[test]
fn malformed_request_leaves_the_response_before_it_whole() {
    let mut world = world("http", 0, 0);
    let (asks, body) = (request("/", TAKES), text(60_000));
    let (first, second) = (plain(HTML, &body), "GET / HTTP/1.1\r\nbroken line\r\n\r\nmore");
    world.client.to_send.extend(&asks);
    world.connect();
    assert!(world.until(1_000, |world| world.server.received == asks));
    world.server.to_send.extend(&first[..30_000]);
    assert!(world.until(1_000, |world| world.client.received.len() > 100));
    world.client.to_send.extend(second.as_bytes());
    world.until(200, |_| false);
    world.server.to_send.extend(&first[30_000..]);
    world.until(1_000, |_| false);
    assert!(world.server.received.ends_with(second.as_bytes()));
    let [one] = &responses(&asks, &world.client.received, false)[..] else { panic!("one") };
    assert!(one.is_complete && one.body() == body);
}

/// Too many requests wait, so nobody knows which response belongs to which.
#[test]
fn too_many_requests_end_the_parsing_of_responses() {
    for compresses in [false, true] {
        let mut world = world("http", 0, 0);
        let asks = request("/", if compresses { TAKES } else { "" });
        let answer = plain(HTML, &text(60_000));
        world.client.to_send.extend(&asks);
        world.connect();
        assert!(world.until(1_000, |world| world.server.received == asks));
        world.server.to_send.extend(&answer[..30_000]);
        assert!(world.until(1_000, |world| world.client.received.len() > 100));
        world.client.to_send.extend(asks.repeat(1_100));
        world.until(1_000, |_| false);
        // Another instance can go on from whatever there is.
        world.restart();
        world.server.to_send.extend(&answer[30_000..]);
        world.until(1_000, |_| false);
        match compresses {
            // What was compressed cannot end rightly.
            true => assert!(world.client.is_over()),
            false => assert!(world.client.received == answer),
        }
    }
}

#[test]
fn empty_lines_in_front_of_a_request_do_not_wait() {
    let mut world = world("http", 0, 0);
    let (empty, asks) = (b"\r\n".repeat(150_000), request("/", TAKES));
    world.client.to_send.extend(&empty);
    world.client.to_send.extend(&asks[..9]);
    world.connect();
    assert!(world.until(5_000, |world| world.server.received == empty));
    world.restart();
    world.client.to_send.extend(&asks[9..]);
    assert!(world.until(1_000, |world| world.server.received == [&empty[..], &asks].concat()));
    world.server.to_send.extend(plain(HTML, &text(9_000)));
    world.until(500, |_| false);
    assert!(responses(&asks, &world.client.received, false)[0].body() == text(9_000));
}
