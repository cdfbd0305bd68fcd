//! Floods of SYNs, and SYN cookies.

use super::*;
use braid_endpoint::{Incoming, Outgoing};
use braid_tcp::{Flags, Seq};
use std::fs;
use tempfile::TempDir;

/// A server of one file, at most four of whose connections may be half open.
fn place() -> (TempDir, Site) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a"), body(200_000, 1)).unwrap();
    let path = folder.path().to_str().unwrap();
    let more = [("folder", Value::text(path)), ("half_open", Value::scalar(4))];
    let site = site("pages", config(&more), 0, 1);
    (folder, site)
}

const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";

/// SYNs of clients that never answer.
fn flood(site: &mut Site, count: u16) {
    for port in 0..count {
        let mut client = Client::new(("10.9.9.9", 10_000 + port), SERVER, site.now);
        let frame = client.run(site.now).remove(0);
        site.enter(&frame);
    }
}

/// A frame of a client, with these numbers.
fn frame(client: &Client, flags: Flags, [seq, ack]: [u32; 2], payload: &[u8]) -> Vec<u8> {
    let options = Default::default();
    let (seq, ack, payload) = (Seq(seq), Seq(ack), (payload, &[][..]));
    let segment = Outgoing { seq, ack, flags, window: 8_000, options, payload };
    let mut frame = Vec::new();
    wire::write(&client.link, client.ends, 0, &segment, &mut frame);
    frame
}

#[test]
fn clients_are_served_during_a_flood() {
    let (_folder, mut site) = place();
    let early = site.client(4_000, REQUEST);
    site.clients[early].reads = 50_000;
    assert!(site.until(1_000, |site| site.clients[0].received.len() == 50_000));
    flood(&mut site, 1_000);
    // The client that has a connection goes on, and others begin by cookies.
    site.clients[early].reads = usize::MAX;
    let late = site.client(4_001, REQUEST);
    let done = |site: &Site, at: usize| site.clients[at].received.len() > 200_000;
    assert!(site.until(5_000, |site| done(site, early) && done(site, late)));
    for client in &site.clients {
        assert!(client.received.ends_with(&body(200_000, 1)));
    }
    assert_eq!(site.counter("begun by cookies"), 1);
    assert_eq!(site.counter("cookies"), 997);
    // A cookie leaves no state.
    assert_eq!(site.connections(), 4 + 2);
    // Half open connections end after a minute or so, and then no cookies are needed.
    assert!(site.until(180_000, |site| site.connections() == 2));
    let last = site.client(4_002, REQUEST);
    assert!(site.until(5_000, |site| done(site, last)));
    assert_eq!(site.counter("begun by cookies"), 1);
    assert!(site.clients[last].endpoint.agreed().sack);
    assert!(!site.clients[late].endpoint.agreed().sack);
}

#[test]
fn cookies_survive_another_instance() {
    let (_folder, mut site) = place();
    flood(&mut site, 10);
    let at = site.client(4_000, REQUEST);
    site.until(8, |_| false);
    site.restart();
    assert!(site.until(5_000, |site| site.clients[at].received.len() > 200_000));
    assert_eq!(site.counter("begun by cookies"), 1);
}

/// The answer of the server to a client's SYN, if it is a cookie's.
fn cookie(site: &mut Site, client: &Client) -> u32 {
    site.enter(&frame(client, Flags::SYN, [99, 0], b""));
    site.until(10, |_| false);
    let answer = site.strays.pop().expect("an answer");
    let Incoming { seq, ack, flags, .. } = Frame::of(&answer).unwrap().segment;
    assert_eq!((ack.0, flags), (100, Flags::SYN.with(Flags::ACK)));
    seq.0
}

#[test]
fn wrong_and_old_cookies_get_a_reset() {
    let (_folder, mut site) = place();
    let client = Client::new(("10.0.0.8", 5_000), SERVER, site.now);
    let other = Client::new(("10.0.0.8", 5_001), SERVER, site.now);
    let is_reset = |site: &mut Site, of: &Client, numbers: [u32; 2]| {
        site.strays.clear();
        site.enter(&frame(of, Flags::ACK, numbers, b""));
        site.until(10, |_| false);
        site.strays.iter().any(|bytes| Frame::of(bytes).unwrap().segment.flags.has(Flags::RST))
    };
    // Without a flood, there are no cookies.
    assert!(is_reset(&mut site, &client, [100, 12_345]));
    flood(&mut site, 10);
    site.until(10, |_| false);
    site.strays.clear();
    let right = cookie(&mut site, &client);
    assert!(is_reset(&mut site, &client, [100, right]));
    assert!(is_reset(&mut site, &client, [101, right + 1]));
    assert!(is_reset(&mut site, &other, [100, right + 1]));
    assert!(!is_reset(&mut site, &client, [100, right + 1]));
    assert_eq!(site.counter("begun by cookies"), 1);
    let old = cookie(&mut site, &other);
    site.now += 200_000 * MS;
    assert!(is_reset(&mut site, &other, [100, old + 1]));
}

/// Bytes may come with the acknowledgement, or instead of it if that is lost.
#[test]
fn first_bytes_may_come_with_the_cookie() {
    let (_folder, mut site) = place();
    flood(&mut site, 10);
    site.until(10, |_| false);
    site.strays.clear();
    let client = Client::new(("10.0.0.8", 5_000), SERVER, site.now);
    let right = cookie(&mut site, &client);
    site.enter(&frame(&client, Flags::ACK.with(Flags::PSH), [100, right + 1], REQUEST));
    site.until(10, |_| false);
    let first = Frame::of(&site.strays[0]).unwrap().segment.payload.to_vec();
    assert!(first.starts_with(b"HTTP/1.1 200 OK\r\n"), "{first:?}");
}

#[test]
fn connections_have_a_limit() {
    let (folder, _) = place();
    let path = folder.path().to_str().unwrap();
    let more = [("folder", Value::text(path)), ("flows", Value::scalar(3))];
    let mut site = site("pages", config(&more), 0, 1);
    for port in 4_000..4_005 {
        site.client(port, b"");
    }
    site.until(100, |_| false);
    let count = site.clients.iter().filter(|client| client.status().is_established).count();
    assert_eq!((count, &site.dropped[..]), (3, &[0, 0][..]));
}
