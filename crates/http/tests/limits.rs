//! Bodies, ends and hostile bytes: every cut gives the same, and everything has a limit.

mod support;

use braid_http::limits::{MAX_HEAD, MAX_PIPELINED};
use braid_http::{Http, Part};
use proptest::prelude::*;
use support::{Seen, feed, moved};

fn request(method: &str, target: &str) -> Seen {
    Seen::Request(method.to_owned(), target.to_owned(), None, None)
}

/// What an end gives with these bytes, the same at each cut into two.
fn seen(requests: &str, from_client: bool, bytes: &str) -> Vec<Seen> {
    let mut http = Http::default();
    feed(&mut http, true, requests.as_bytes(), &mut Vec::new());
    let mut whole = Vec::new();
    feed(&mut http.clone(), from_client, bytes.as_bytes(), &mut whole);
    for cut in 0..=bytes.len() {
        let (first, second) = bytes.as_bytes().split_at(cut);
        let (mut http, mut parts) = (http.clone(), Vec::new());
        feed(&mut http, from_client, first, &mut parts);
        let mut http = moved(&http);
        feed(&mut http, from_client, second, &mut parts);
        assert_eq!(parts, whole, "cut at {cut}");
    }
    whole
}

#[test]
fn bodies_until_the_end_have_no_end_of_their_own() {
    let bytes = "HTTP/1.0 200 x\r\n\r\nHTTP/1.0 404 y\r\n\r\n";
    let data = b"HTTP/1.0 404 y\r\n\r\n".to_vec();
    assert_eq!(
        seen("GET / HTTP/1.0\r\n\r\n", false, bytes),
        [Seen::Response(200, None), Seen::Data(data)]
    );
}

#[test]
fn upgrades_and_connect_end_the_http_of_both_directions() {
    for (asked, answer) in [
        ("GET / HTTP/1.1\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 101 x\r\n\r\n"),
        ("CONNECT a:443 HTTP/1.1\r\n\r\n", "HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\n"),
    ] {
        let mut http = Http::default();
        feed(&mut http, true, asked.as_bytes(), &mut Vec::new());
        let mut found = Vec::new();
        feed(&mut http, false, format!("{answer}GET / HTTP").as_bytes(), &mut found);
        assert!(matches!(found.as_slice(), [Seen::Response(..), Seen::End]), "{found:?}");
        assert!(http.is_over(true) && http.is_over(false));
        feed(&mut http, true, b"GET /x HTTP/1.1\r\n\r\n", &mut found);
        assert_eq!((found.len(), http.memory()), (2, 0));
    }
    // A proxy that refuses is asked again.
    let refused = "HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\n";
    let found = seen("CONNECT a:443 HTTP/1.1\r\n\r\n", false, refused);
    assert_eq!(found, [Seen::Response(407, Some(0)), Seen::End]);
}

#[test]
fn malformed_messages_end_their_direction() {
    let get = request("GET", "/");
    for (bytes, wanted) in [
        ("GET / HTTP/1.1\r\nno field\r\n\r\nGET / HTTP/1.1\r\n\r\n", vec![Seen::Malformed]),
        ("GET / HTTP/1.1\r\n\r\nnonsense\r\n\r\n", vec![get.clone(), Seen::End, Seen::Malformed]),
        ("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", vec![get.clone(), Seen::Malformed]),
        (
            "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            vec![get.clone(), Seen::Malformed],
        ),
        (
            "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx",
            vec![get.clone(), Seen::Malformed],
        ),
        (
            "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
            vec![get, Seen::Malformed],
        ),
    ] {
        assert_eq!(seen("", true, bytes), wanted, "{bytes:?}");
    }
}

#[test]
fn what_is_no_http_from_the_first_bytes_on_is_left_alone() {
    for (from_client, bytes) in
        [(true, "\u{16}\u{3}\u{1}x"), (true, "EHLO x\r\n\r\n"), (false, "SSH-2.0-x\r\n\r\n")]
    {
        assert_eq!(seen("", from_client, bytes), []);
    }
}

#[test]
fn bytes_may_be_missing_in_bodies_only() {
    let mut http = Http::default();
    let post = b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n12";
    feed(&mut http, true, post, &mut Vec::new());
    let mut longer = http.clone();
    assert!(http.skip(true, 7), "up to its end");
    let mut found = Vec::new();
    feed(&mut http, true, b"GET /x HTTP/1.1\r\n\r\n", &mut found);
    assert_eq!(found, [Seen::End, request("GET", "/x"), Seen::End]);
    assert!(!http.skip(true, 1), "in front of a head");
    assert!(http.is_over(true));
    assert!(http.skip(true, 1), "nothing is lost any more");
    assert!(!longer.skip(true, 8), "the body has fewer");

    let chunked = b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12";
    let mut http = Http::default();
    feed(&mut http, false, chunked, &mut Vec::new());
    let mut longer = http.clone();
    assert!(http.skip(false, 3));
    let mut found = Vec::new();
    feed(&mut http, false, b"\r\n0\r\n\r\n", &mut found);
    assert_eq!(found, [Seen::End]);
    assert!(!longer.skip(false, 4), "the chunk has fewer");
}

#[test]
fn heads_have_a_longest_length() {
    let head = |len: usize| {
        let start = "GET / HTTP/1.1\r\nX: ";
        format!("{start}{}\r\n\r\n", "x".repeat(len - start.len() - 4)).into_bytes()
    };
    for (len, wanted) in
        [(MAX_HEAD, vec![request("GET", "/"), Seen::End]), (MAX_HEAD + 1, vec![Seen::Malformed])]
    {
        let (mut http, mut found, mut most) = (Http::default(), Vec::new(), 0);
        for part in head(len).chunks(1_000) {
            feed(&mut http, true, part, &mut found);
            most = most.max(http.memory());
        }
        assert_eq!(found, wanted, "{len} bytes");
        assert!(most <= 2 * MAX_HEAD, "{most}");
    }
}

#[test]
fn requests_that_wait_have_a_largest_number() {
    let (mut http, mut found) = (Http::default(), Vec::new());
    let one = "GET / HTTP/1.1\r\n\r\n";
    feed(&mut http, true, one.repeat(MAX_PIPELINED).as_bytes(), &mut found);
    assert_eq!((found.len(), http.waiting()), (2 * MAX_PIPELINED, MAX_PIPELINED));
    found.clear();
    feed(&mut http, true, one.repeat(2).as_bytes(), &mut found);
    let get = request("GET", "/");
    assert_eq!(found, [get.clone(), Seen::Crowded, Seen::End, get, Seen::End]);
    assert!(http.is_over(false) && !http.is_over(true) && http.waiting() == 0);
}

/// Pieces of messages, which meet in random orders.
const PIECES: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "CONNECT a:1 HTTP/1.1\r\n",
    "HTTP/1.1 200 x\r\n",
    "HTTP/1.1 101 x\r\n",
    "Content-Length: 3\r\n",
    "Content-Length: 18446744073709551615\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Host: [::\r\n",
    "\r\n",
    "\n",
    "abc",
    "3\r\n",
    "0\r\n",
    ": ",
    "\0",
    "\u{ff}",
];

/// What is saved while a head has been given, and nothing behind it has been asked for.
#[test]
fn head_that_was_given_is_not_given_again() {
    let mut http = Http::default();
    let bytes = b"GET /one HTTP/1.1\r\n\r\nGET /two HTTP/1.1\r\n\r\n";
    let mut rest = &bytes[..];
    assert!(matches!(http.next(true, &mut rest), Some(Part::Head(_))));
    let mut saved = Vec::new();
    http.put(&mut saved);
    let mut http = Http::read(&mut saved.as_slice()).expect("what was saved");
    let second = std::iter::from_fn(|| match http.next(true, &mut rest)? {
        Part::Head(head) => Some(head.path()),
        _ => Some(None),
    });
    assert_eq!(second.flatten().collect::<Vec<_>>(), [b"/two"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(1_000)))]

    #[test]
    fn nonsense_is_bounded_and_does_not_depend_on_cuts(
        pieces in prop::collection::vec((any::<bool>(), prop::sample::select(PIECES)), 1..30),
    ) {
        let (mut whole, mut cut) = (Http::default(), Http::default());
        let (mut wanted, mut found) = (Vec::new(), Vec::new());
        for (from_client, piece) in pieces {
            feed(&mut whole, from_client, piece.as_bytes(), &mut wanted);
            for byte in piece.as_bytes() {
                feed(&mut cut, from_client, std::slice::from_ref(byte), &mut found);
                cut = moved(&cut);
            }
            prop_assert_eq!(&found, &wanted);
            prop_assert!(whole.memory() <= 4 * MAX_HEAD + 64);
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_can_be_used(
        at in 0..200_usize,
        byte: u8,
        len in 0..200_usize,
    ) {
        let mut http = Http::default();
        feed(&mut http, true, b"HEAD / HTTP/1.1\r\n\r\nPOST /", &mut Vec::new());
        feed(&mut http, false, b"HTTP/1.1 200 x\r\nContent-Length: 9", &mut Vec::new());
        let mut bytes = Vec::new();
        http.put(&mut bytes);
        let cut = len % bytes.len();
        prop_assert!(Http::read(&mut &bytes[..cut]).is_none(), "{} bytes", cut);
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Some(mut read) = Http::read(&mut bytes.as_slice()) {
            feed(&mut read, true, b" HTTP/1.1\r\n\r\nx", &mut Vec::new());
            feed(&mut read, false, b"\r\n\r\nHTTP/1.1 200 x\r\n\r\nx", &mut Vec::new());
        }
    }
}
