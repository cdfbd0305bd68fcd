//! The proxy that keeps responses.

use super::http::{TAKES, plain, request, responses, text};
use super::*;

/// A world with a cache of this many bytes.
fn world(most: u128) -> World {
    let mut world = super::world("http", 0, 0);
    world.config.push(("cache".to_owned(), Value::scalar(most)));
    world.proxy = instance("http", &world.config);
    world
}

/// A request on a connection of its own, and what the client gets. With `None` for an answer, the
/// server is not asked.
fn ask(world: &mut World, port: u16, request: &[u8], answer: Option<&[u8]>) -> Vec<u8> {
    world.begin_anew(port);
    world.client.to_send.extend(request);
    world.connect();
    match answer {
        None => assert!(world.until(1_000, |world| !world.client.received.is_empty())),
        Some(answer) => {
            let came = |world: &World| world.server.received == request;
            assert!(world.until(1_000, came), "{port}: the server is not asked");
            world.server.to_send.extend(answer);
        }
    }
    // All of it arrives, and nothing else.
    world.until(500, |_| false);
    assert!(answer.is_some() || world.server.endpoint.is_none(), "{port}: the server is asked");
    world.client.closes = true;
    world.server.closes_behind = true;
    assert!(world.until(15_000, |world| world.client.is_over()), "{port}: no end");
    std::mem::take(&mut world.client.received)
}

const FRESH: &str = "Content-Type: text/html\r\nCache-Control: public, max-age=60\r\n";

#[test]
fn response_is_given_again_while_it_is_fresh() {
    let mut world = world(1 << 20);
    let (body, plain_request) = (text(20_000), request("/a", ""));
    let answer = plain(FRESH, &body);
    let begin = world.now;
    assert!(ask(&mut world, 1, &plain_request, Some(&answer)) == answer);
    let again = ask(&mut world, 2, &plain_request, None);
    let [one] = &responses(&plain_request, &again, false)[..] else { panic!("one response") };
    assert!(one.is_complete && one.body() == body);
    assert_eq!(one.value("content-type").as_deref(), Some("text/html"));
    let age = one.value("age").and_then(|age| age.parse::<u64>().ok()).expect("an age");
    assert!((5..=20).contains(&age), "{age}");
    assert_eq!((world.counter("kept"), world.counter("answered")), (1, 1));
    world.until(60_100 - (world.now - begin) / MS, |_| false);
    let later = plain(FRESH, b"another one");
    assert!(ask(&mut world, 3, &plain_request, Some(&later)) == later);
    assert_eq!((world.counter("kept"), world.counter("answered")), (2, 1));
}

#[test]
fn what_was_compressed_once_is_not_compressed_again() {
    let mut world = world(1 << 20);
    let (body, asks) = (text(50_000), request("/a", TAKES));
    let first = ask(&mut world, 1, &asks, Some(&plain(FRESH, &body)));
    let again = ask(&mut world, 2, &asks, None);
    for bytes in [first, again] {
        let one = responses(&asks, &bytes, false).remove(0);
        assert!(one.is_complete && one.body() == body);
        assert_eq!(one.value("content-encoding").as_deref(), Some("gzip"));
        assert_eq!(one.value("vary").as_deref(), Some("Accept-Encoding"));
    }
    assert_eq!(world.counter("compressed"), 1);
    // Who does not take gzip gets another one.
    let plain_request = request("/a", "");
    let answer = plain(FRESH, &body);
    assert!(ask(&mut world, 3, &plain_request, Some(&answer)) == answer);
    let again = ask(&mut world, 4, &plain_request, None);
    assert!(responses(&plain_request, &again, false).remove(0).data == body);
}

/// Each case: the fields of the first request, the fields of its response, and the second request.
#[test]
fn what_may_not_be_kept_is_not() {
    let body = text(2_000);
    let asks = request("/a", "");
    let fields = |control: &str| format!("Content-Type: text/html\r\n{control}");
    let post = b"POST /a HTTP/1.1\r\nHost: example.org\r\nContent-Length: 0\r\n\r\n".to_vec();
    let cases = [
        (asks.clone(), fields(""), asks.clone()),
        (asks.clone(), fields("Cache-Control: max-age=0\r\n"), asks.clone()),
        (asks.clone(), fields("Cache-Control: max-age=60, no-store\r\n"), asks.clone()),
        (asks.clone(), fields("Cache-Control: Private, max-age=60\r\n"), asks.clone()),
        (asks.clone(), fields("Cache-Control: s-maxage=0, max-age=60\r\n"), asks.clone()),
        (asks.clone(), fields("Cache-Control: max-age=60\r\nAge: 60\r\n"), asks.clone()),
        (asks.clone(), fields("Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n"), asks.clone()),
        (asks.clone(), fields("Cache-Control: max-age=60\r\nVary: Cookie\r\n"), asks.clone()),
        (
            asks.clone(),
            fields("Cache-Control: max-age=60\r\nContent-Encoding: br\r\n"),
            asks.clone(),
        ),
        (request("/a", "Authorization: Basic eA==\r\n"), FRESH.to_owned(), asks.clone()),
        (request("/a", "Range: bytes=0-1\r\n"), FRESH.to_owned(), asks.clone()),
        (request("/a", "Cache-Control: no-store\r\n"), FRESH.to_owned(), asks.clone()),
        (post, FRESH.to_owned(), asks.clone()),
        (request("/a", "Host: other\r\n"), FRESH.to_owned(), asks.clone()),
        // It is kept, and the second request is another one.
        (asks.clone(), FRESH.to_owned(), request("/b", "")),
        (asks.clone(), FRESH.to_owned(), b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n".to_vec()),
        (asks.clone(), FRESH.to_owned(), request("/a", "Cache-Control: no-cache\r\n")),
        (asks.clone(), FRESH.to_owned(), request("/a", "Pragma: no-cache\r\n")),
        (asks.clone(), FRESH.to_owned(), request("/a", "Authorization: Basic eA==\r\n")),
        (asks.clone(), FRESH.to_owned(), request("/a", "Range: bytes=0-1\r\n")),
        (
            asks.clone(),
            FRESH.to_owned(),
            request("/a", "If-Modified-Since: Sat, 28 Nov 2026 08:00:00 GMT\r\n"),
        ),
    ];
    for (at, (first, fields, second)) in cases.into_iter().enumerate() {
        let mut world = world(1 << 20);
        let answer = plain(&fields, &body);
        assert!(ask(&mut world, 1, &first, Some(&answer)) == answer, "case {at}");
        assert!(ask(&mut world, 2, &second, Some(&answer)) == answer, "case {at}");
        assert_eq!(world.counter("answered"), 0, "case {at}");
    }
}

#[test]
fn unsafe_request_makes_the_response_go() {
    let mut world = world(1 << 20);
    let answer = plain(FRESH, &text(2_000));
    let asks = request("/a", "");
    ask(&mut world, 1, &asks, Some(&answer));
    ask(&mut world, 2, &asks, None);
    let delete = b"DELETE /a HTTP/1.1\r\nHost: example.org\r\n\r\n";
    ask(&mut world, 3, delete, Some(b"HTTP/1.1 204 No Content\r\n\r\n"));
    assert!(ask(&mut world, 4, &asks, Some(&answer)) == answer);
}

#[test]
fn known_tag_saves_the_body() {
    let mut world = world(1 << 20);
    let answer = plain(&format!("{FRESH}ETag: W/\"x1\"\r\n"), &text(2_000));
    ask(&mut world, 1, &request("/a", ""), Some(&answer));
    let asks = request("/a", "If-None-Match: \"y\", \"x1\"\r\n");
    let found = ask(&mut world, 2, &asks, None);
    assert!(found.starts_with(b"HTTP/1.1 304 Not Modified\r\n"));
    let one = responses(&asks, &found, false).remove(0);
    assert_eq!((one.value("etag").as_deref(), one.data.len()), (Some("W/\"x1\""), 0));
    let other = request("/a", "If-None-Match: \"y\"\r\n");
    assert_eq!(responses(&other, &ask(&mut world, 3, &other, None), false)[0].data.len(), 2_000);
}

/// A client that wants the connection to end sees it end.
#[test]
fn connection_ends_where_the_client_asks_for_it() {
    let mut world = world(1 << 20);
    let answer = plain(FRESH, &text(2_000));
    ask(&mut world, 1, &request("/a", ""), Some(&answer));
    world.begin_anew(2);
    world.client.to_send.extend(request("/a", "Connection: Keep-Alive, close\r\n"));
    world.client.closes_behind = true;
    world.connect();
    assert!(world.until(1_000, |world| world.client.is_over()));
    let found = &world.client.received;
    assert!(found.windows(19).any(|part| part == b"Connection: close\r\n"));
    assert!(world.server.endpoint.is_none());
    assert!(world.until(15_000, |world| world.connections() == 0));
}

/// Requests at once: the answer that is kept waits for its turn, which is the server's.
#[test]
fn answers_keep_the_order_of_requests() {
    let mut world = world(1 << 20);
    let kept = plain(FRESH, b"kept");
    ask(&mut world, 1, &request("/kept", ""), Some(&kept));
    let asks = [request("/kept", ""), request("/new", ""), request("/kept", "")].concat();
    world.begin_anew(2);
    world.client.to_send.extend(&asks);
    world.connect();
    let rest = [request("/new", ""), request("/kept", "")].concat();
    assert!(world.until(1_000, |world| world.server.received == rest));
    let later = [plain("", b"new"), plain(FRESH, b"kept anew")].concat();
    world.server.to_send.extend(&later);
    let bodies = |world: &World| {
        let all = responses(&asks, &world.client.received, false);
        all.into_iter().map(|one| one.data).collect::<Vec<_>>()
    };
    let expected = [&b"kept"[..], b"new", b"kept anew"];
    assert!(world.until(1_000, |world| bodies(world) == expected), "{:?}", bodies(&world));
}

#[test]
fn full_cache_loses_what_was_not_used() {
    let mut world = world(40_000);
    let answer = |len| plain(&FRESH.replace("60", "3600"), &text(len));
    for number in 0..8 {
        let asks = request(&format!("/{number}"), "");
        ask(&mut world, 100 + number, &asks, Some(&answer(5_000)));
        // The first one is used again and again.
        ask(&mut world, 200 + number, &request("/0", ""), None);
    }
    ask(&mut world, 300, &request("/1", ""), Some(&answer(5_000)));
    ask(&mut world, 301, &request("/7", ""), None);
    // A response that takes more than an eighth is not kept.
    for port in [400, 401] {
        ask(&mut world, port, &request("/large", ""), Some(&answer(5_001)));
    }
}

/// A server that says in two ways where a request ends might take its body for another request.
#[test]
fn nothing_is_kept_behind_an_ambiguous_request() {
    let mut world = world(1 << 20);
    let double = b"POST /p HTTP/1.1\r\nHost: example.org\r\nContent-Length: 5\r\n\
        Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let asks = [&double[..], &request("/a", "")].concat();
    let answers = [plain("", b"posted"), plain(FRESH, b"wrong")].concat();
    ask(&mut world, 1, &asks, Some(&answers));
    let right = plain(FRESH, b"right");
    assert!(ask(&mut world, 2, &request("/a", ""), Some(&right)) == right);
}

/// A client that asks for much at once and reads nothing costs no more than one that asks for
/// little.
#[test]
fn answers_wait_until_the_client_reads() {
    let mut world = world(8 << 20);
    let body = text(500_000);
    let asks = request("/a", "");
    ask(&mut world, 1, &asks, Some(&plain(FRESH, &body)));
    world.begin_anew(2);
    world.client.to_send.extend(asks.repeat(1_000));
    world.client.reads = 0;
    world.connect();
    world.until(2_000, |_| false);
    let kept = world.proxy.save().expect("its memory").len();
    assert!((500_000..1_500_000).contains(&kept), "{kept}");
    world.client.reads = usize::MAX;
    let wanted = 20 * body.len();
    assert!(world.until(60_000, |world| world.client.received.len() > wanted));
    let all = responses(&asks.repeat(20), &world.client.received[..wanted], false);
    let whole: Vec<_> = all.iter().filter(|one| one.is_complete).collect();
    assert!(whole.len() >= 19 && whole.iter().all(|one| one.data == body));
}
