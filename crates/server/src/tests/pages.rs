//! The server of files.

use super::*;
use proptest::prelude::*;
use std::fs;
use tempfile::TempDir;

/// A folder with some files, one of them large.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    write("index.html", b"<p>hello</p>");
    write("large.bin", &body(700_000, 1));
    write("sub/index.html", b"below");
    write("a b.txt", b"blank");
    write(".secret", b"nobody sees it");
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
    folder
}

fn parameters(folder: &TempDir) -> Config {
    let path = folder.path().to_str().unwrap();
    let minute = Value::scalar(u128::from(60_000 * MS));
    config(&[("folder", Value::text(path)), ("patience", minute), ("half_open", Value::scalar(4))])
}

fn request(line: &str, more: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: a\r\n{more}\r\n")
}

/// The responses to some bytes, on a connection that the client closes.
fn responses(to: &str) -> Vec<(String, Vec<u8>)> {
    let folder = folder();
    let mut site = site("pages", parameters(&folder), 0, 1);
    site.client(4_000, to.as_bytes());
    site.clients[0].closes = true;
    site.run_to_the_end();
    assert_eq!(site.clients[0].failure(), None);
    split(&site.clients[0].received, !to.starts_with("HEAD"))
}

/// Heads and bodies.
fn split(mut bytes: &[u8], has_bodies: bool) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head") + 4;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        bytes = &bytes[end..];
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        let (body, rest) = bytes.split_at(if has_bodies { length } else { 0 });
        all.push((head, body.to_vec()));
        bytes = rest;
    }
    all
}

fn status(to: &str) -> String {
    let all = responses(to);
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].0.lines().next().unwrap().to_owned()
}

#[test]
fn files_are_given_with_their_types() {
    let all = responses(&request("GET /", ""));
    let (head, body) = &all[0];
    assert_eq!(all.len(), 1);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n"), "{head}");
    assert!(head.contains("\r\nContent-Type: text/html; charset=utf-8\r\n"), "{head}");
    assert_eq!(body, b"<p>hello</p>");
    assert!(responses(&request("GET /large.bin?x=1", ""))[0].1 == body_of_large());
    assert_eq!(responses(&request("GET /a%20b.txt", ""))[0].1, b"blank");
    assert_eq!(responses(&request("GET /sub/", ""))[0].1, b"below");
}

fn body_of_large() -> Vec<u8> {
    body(700_000, 1)
}

#[test]
fn requests_on_one_connection_are_answered_in_order() {
    let post = "POST /index.html HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let all = [
        &*request("GET /sub/", ""),
        &request("GET /large.bin", ""),
        &request("HEAD /none", ""),
        "GET /index.html HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345",
        post,
        &request("GET /sub/", ""),
    ];
    let folder = folder();
    let mut site = site("pages", parameters(&folder), 0, 1);
    site.client(4_000, all.concat().as_bytes());
    site.run_to_the_end();
    let received = &site.clients[0].received;
    let at = received.windows(8).rposition(|eight| eight == b"HTTP/1.1").unwrap();
    let (head, _) = &split(&received[at..], true)[0];
    assert!(head.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{head}");
    assert!(
        head.contains("\r\nAllow: GET, HEAD\r\n") && head.contains("\r\nConnection: close\r\n")
    );
    let text = String::from_utf8_lossy(received);
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 3);
    assert_eq!(text.matches("HTTP/1.1 404 Not Found").count(), 1);
    assert_eq!(site.counter("requests"), 5);
}

#[test]
fn only_files_of_the_folder_are_given() {
    let paths =
        ["/link", "/.secret", "/../index.html", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd"];
    for path in paths {
        assert_eq!(
            status(&request(&format!("GET {path}"), "")),
            "HTTP/1.1 404 Not Found",
            "{path}"
        );
    }
    assert_eq!(status(&request("GET /sub", "")), "HTTP/1.1 301 Moved Permanently");
}

#[test]
fn malformed_requests_end_the_connection() {
    for wrong in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        "GET /\r\nno colon\r\n\r\n",
        "\x16\x03\x01 no HTTP",
    ] {
        assert_eq!(status(wrong), "HTTP/1.1 400 Bad Request", "{wrong:?}");
    }
}

#[test]
fn known_files_are_not_given_again() {
    let (head, _) = &responses(&request("GET /", ""))[0];
    let tag = head.lines().find_map(|line| line.strip_prefix("ETag: ")).unwrap();
    for known in [tag.to_owned(), format!("\"x\", W/{tag}"), "*".to_owned()] {
        let to = request("GET /", &format!("If-None-Match: {known}\r\n"));
        assert_eq!(status(&to), "HTTP/1.1 304 Not Modified", "{known}");
    }
    assert_eq!(status(&request("GET /", "If-None-Match: \"x\"\r\n")), "HTTP/1.1 200 OK");
}

#[test]
fn old_clients_get_one_answer_unless_they_ask_for_more() {
    let old = "GET / HTTP/1.0\r\n\r\n";
    let all = responses(&old.repeat(2));
    assert_eq!(all.len(), 1);
    assert!(all[0].0.contains("\r\nConnection: close\r\n"), "{all:?}");
    let kept = "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";
    let all = responses(&kept.repeat(2));
    assert_eq!(all.len(), 2);
    assert!(all[1].0.contains("\r\nConnection: keep-alive\r\n"), "{all:?}");
}

#[test]
fn silent_clients_are_given_up() {
    let folder = folder();
    let mut site = site("pages", parameters(&folder), 0, 1);
    site.client(4_000, b"");
    site.client(4_001, b"GET / HTTP/1.1\r\nHo");
    // This one reads a part only.
    site.client(4_002, request("GET /large.bin", "").repeat(4).as_bytes());
    site.clients[2].reads = 10_000;
    assert!(
        !site.until(55_000, |site| site.clients.iter().any(|one| one.status().has_peer_closed))
    );
    assert!(site.until(15_000, |site| {
        site.clients[..2].iter().all(|one| one.status().has_peer_closed)
            && site.clients[2].failure() == Some(Failure::Reset)
    }));
    assert!(site.until(30_000, |site| site.connections() == 0));
    assert_eq!(site.counter("reset"), 1);
}

#[test]
fn what_is_for_others_passes() {
    let folder = folder();
    let mut site = site("pages", parameters(&folder), 0, 1);
    for to in [("192.0.2.1", 82), ("192.0.2.2", 80)] {
        site.clients.push(Client::new(("10.0.0.7", 4_000), to, BEGIN));
        site.clients.push(Client::new((to.0, to.1), ("10.0.0.7", 4_000), BEGIN));
    }
    // The answers of a real host at the server's address.
    site.clients.push(Client::new(SERVER, ("10.0.0.7", 4_000), BEGIN));
    site.until(100, |_| false);
    assert_eq!((site.passed, site.connections()), (5, 0));
}

#[test]
fn segments_without_a_connection_get_a_reset() {
    let folder = folder();
    let mut site = site("pages", parameters(&folder), 0, 1);
    site.client(4_000, &request("GET /", "").into_bytes());
    assert!(site.until(1_000, |site| !site.clients[0].received.is_empty()));
    site.server = instance("pages", &site.config);
    site.clients[0].to_send.extend(b"GET");
    assert!(site.until(1_000, |site| site.clients[0].failure() == Some(Failure::Reset)));
    let mut frame = site.clients[0].run(site.now).pop().unwrap_or_default();
    if frame.is_empty() {
        site.client(4_001, b"");
        frame = site.clients[1].run(site.now).remove(0);
    }
    *frame.last_mut().unwrap() ^= 1;
    site.enter(&frame);
    assert_eq!((site.passed, &site.dropped[..]), (0, &[1][..]));
}

#[test]
fn clients_of_ipv6_are_served() {
    let folder = folder();
    let mut site = site("pages", parameters(&folder), 10, 3);
    site.clients.push(Client::new(("2001:db8::7", 4_000), ("2001:db8::1", 81), BEGIN));
    site.clients[0].to_send.extend(request("GET /large.bin", "Connection: close\r\n").as_bytes());
    site.run_to_the_end();
    assert!(split(&site.clients[0].received, true)[0].1 == body_of_large());
}

/// A file that is another one after a restart must not be mixed with the old one.
#[test]
fn changed_file_is_not_continued() {
    let folder = folder();
    let mut site = site("pages", parameters(&folder), 0, 1);
    site.client(4_000, request("GET /large.bin", "").as_bytes());
    site.clients[0].reads = 1_000;
    assert!(site.until(1_000, |site| !site.clients[0].received.is_empty()));
    fs::write(folder.path().join("large.bin"), body(700_000, 2)).unwrap();
    site.restart();
    site.clients[0].reads = usize::MAX;
    assert!(site.until(1_000, |site| site.clients[0].failure() == Some(Failure::Reset)));
}

#[test]
fn clients_that_read_nothing_do_not_harm_others() {
    let folder = folder();
    let mut config = parameters(&folder);
    config.push(("memory".to_owned(), Value::scalar(2 << 20)));
    let mut site = site("pages", config, 0, 1);
    for port in 4_000..4_020 {
        let at = site.client(port, request("GET /large.bin", "").as_bytes());
        site.clients[at].reads = 0;
    }
    site.until(500, |_| false);
    assert!(site.counter("ended for memory") > 5, "{}", site.counter("ended for memory"));
    let at = site.client(5_000, request("GET /", "Connection: close\r\n").as_bytes());
    assert!(site.until(1_000, |site| site.clients[at].status().is_over));
    assert_eq!(split(&site.clients[at].received, true)[0].1, b"<p>hello</p>");
}

/// A run ends its time at once.
#[test]
fn end_of_time_is_no_end_of_the_server() {
    let folder = folder();
    let mut site = site("pages", parameters(&folder), 0, 1);
    site.client(4_000, b"GET");
    site.until(100, |_| false);
    site.server.advance(u64::MAX);
    assert_eq!(site.server.problems(), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(12)))]

    /// Clients get their files, whatever the link does, and from other instances in between.
    #[test]
    fn files_arrive_over_bad_links(seed: u64, loss in 0_u64..60, restarts: bool, half in 0_u64..3) {
        let folder = folder();
        let mut site = site("pages", parameters(&folder), loss, seed);
        for port in 4_000..4_003 {
            let to = [
                request("GET /large.bin", ""),
                request("HEAD /sub/", ""),
                request("GET /sub/", "Connection: close\r\n"),
            ];
            let at = site.client(port, to.concat().as_bytes());
            // Some clients close before they have read.
            site.clients[at].closes = u64::from(port) % 3 == half;
        }
        for _ in 0..1_000 {
            if site.until(331, |site| site.clients.iter().all(|one| one.status().is_over)) {
                break;
            }
            if restarts {
                site.restart();
            }
        }
        for client in &site.clients {
            prop_assert!(client.status().is_over, "{:?} {}", client.status(), client.received.len());
            prop_assert_eq!(client.failure(), None);
            let text = &client.received;
            let at = text.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
            prop_assert!(text[at..at + 700_000] == body_of_large()[..]);
            prop_assert!(text.ends_with(b"\r\n\r\nbelow"));
        }
        prop_assert!(site.until(60_000, |site| site.connections() == 0));
        prop_assert_eq!(site.server.problems(), []);
        prop_assert_eq!(site.passed, 0);
    }

    /// Segments of any kind, with numbers that mostly fit, break nothing.
    #[test]
    fn hostile_segments_break_nothing(
        segments in prop::collection::vec((any::<u8>(), -3_i32..3, -3_i32..3, 0_usize..40), 0..60),
    ) {
        let folder = folder();
        let mut site = site("pages", parameters(&folder), 0, 1);
        site.client(4_000, request("GET /large.bin", "").as_bytes());
        site.until(30, |_| false);
        let (mut own, mut theirs) = (8_u32, 0_u32);
        for (flags, seq, ack, len) in segments {
            let segment = braid_endpoint::Outgoing {
                seq: braid_tcp::Seq(own.wrapping_add_signed(seq)),
                ack: braid_tcp::Seq(theirs.wrapping_add_signed(ack)),
                flags: braid_tcp::Flags(flags),
                window: u16::from(flags) * 9,
                options: Default::default(),
                payload: (&b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /..........."[..len], &[]),
            };
            let mut frame = Vec::new();
            let (link, ends) = (site.clients[0].link.clone(), site.clients[0].ends);
            wire::write(&link, ends, 0, &segment, &mut frame);
            site.enter(&frame);
            site.server.advance(site.now + 1);
            for output in site.server.take_outputs() {
                let Output::Packet(sent) = output else { continue };
                let answer = Frame::of(&sent.bytes).expect("a whole segment");
                prop_assert!(answer.is_right);
                theirs = answer.segment.seq.0.wrapping_add(answer.segment.payload.len() as u32);
                own = answer.segment.ack.0;
            }
            site.now += MS;
        }
        site.restart();
        prop_assert_eq!(site.server.problems(), []);
    }
}
