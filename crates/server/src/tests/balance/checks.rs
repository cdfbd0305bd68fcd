//! Checks of servers.

use super::*;
use crate::tests::try_instance;
use braid_native::Kind;

const SECOND: u64 = 1_000;

/// A site whose servers are checked every 2 s. A client has asked once.
fn checked(loss: u64, more: &[(&str, u128)]) -> (Site, usize) {
    let mut site = site(loss, 5);
    site.config.push(("check".to_owned(), Value::text("/health")));
    for (name, value) in more {
        site.config.push(((*name).to_owned(), Value::scalar(*value)));
    }
    site.balancer = instance("balance", &site.config);
    let client = site.client(5_000, b"");
    let (_, body) = site.ask(client, &get("/1"));
    assert_eq!(body, "a1 GET /1 0 0");
    (site, client)
}

/// Whether servers are up, how many checks they had, and how many have failed.
fn servers(site: &Site) -> Vec<(bool, u128, u128)> {
    let all = site.balancer.report().into_iter().filter(|entry| entry.table == "servers");
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|entry| entry.key[0].1);
    for (entry, server) in all.iter().zip(SERVERS) {
        assert_eq!(entry.key, [(Kind::Ip4, number(server)), (Kind::Port, u128::from(PORT))]);
    }
    all.iter().map(|one| (one.values[0].2 == 1, one.values[1].2, one.values[2].2)).collect()
}

fn are_up(site: &Site) -> Vec<bool> {
    servers(site).iter().map(|(is_up, ..)| *is_up).collect()
}

/// Asks with new connections. Returns who has answered.
fn answers(site: &mut Site, count: usize) -> Vec<String> {
    let ask = |_| {
        let client = site.client(7_000 + site.clients.len() as u16, b"");
        let (_, body) = site.ask(client, &get("/x"));
        site.clients[client].closes = true;
        body.split(' ').next().expect("a name").to_owned()
    };
    (0..count).map(ask).collect()
}

#[test]
fn a_server_that_fails_its_checks_gets_no_requests_until_it_succeeds() {
    let (mut site, _) = checked(0, &[]);
    site.until(3 * SECOND, |_| false);
    assert_eq!(are_up(&site), [true; 4]);
    site.servers[0].health = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let before = site.servers[0].checks;
    assert!(site.until(20 * SECOND, |site| are_up(site) == [false, true, true, true]));
    assert_eq!(site.servers[0].checks - before, 3);
    assert_eq!(answers(&mut site, 4), ["a2"; 4]);
    site.servers[0].health = b"HTTP/1.1 301 Moved Permanently\r\nLocation: /\r\n\r\n";
    let before = site.servers[0].checks;
    assert!(site.until(20 * SECOND, |site| are_up(site) == [true; 4]));
    assert_eq!(site.servers[0].checks - before, 2);
    let mut both = answers(&mut site, 4);
    both.sort();
    assert_eq!(both, ["a1", "a1", "a2", "a2"]);
    let all = servers(&site);
    assert_eq!(all[0].2, 3);
    assert_eq!((site.counter("servers down"), site.counter("servers up")), (1, 1));
    assert_eq!(site.counter("failed checks"), 3);
    assert_eq!(site.counter("checks"), all.iter().map(|one| one.1).sum());
    // The client's requests did not suffer.
    assert_eq!((site.counter("asked again"), site.counter("not answered")), (0, 0));
    site.ends();
}

#[test]
fn the_first_check_decides_at_once() {
    let (mut site, _) = checked(0, &[("rise", 1), ("fall", 5)]);
    site.servers[1].health = b"";
    assert!(site.until(3 * SECOND, |site| !are_up(site)[1]));
    assert_eq!(site.servers[1].checks, 1);
    site.servers[1].health = GOOD;
    assert!(site.until(3 * SECOND, |site| are_up(site)[1]));
    site.servers[1].health = b"";
    assert!(!site.until(8 * SECOND, |site| !are_up(site)[1]));
    assert!(site.until(3 * SECOND, |site| !are_up(site)[1]));
}

#[test]
fn only_good_responses_in_time_are_successes() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(100_000)).leak().as_bytes();
    let responses: [(&[u8], bool); 14] = [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true),
        (b"HTTP/1.0 399 Odd\r\n\r\n", true),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", true),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 500 No\r\n\r\n", false),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n", false),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", false),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", false),
        (b"HTTP/1.1 199 Odd\r\n\r\n", false),
        (b"HTTP/1.1 999 Odd\r\n\r\n", false),
        (b"HTTP/1.1 200 OK\r\n", false),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", false),
        (b"hello", false),
        (b"\r\n\r\n\r\n", false),
        (long, false),
    ];
    for (response, is_good) in responses {
        let (mut site, _) = checked(0, &[("fall", 1), ("rise", 1)]);
        assert!(site.until(3 * SECOND, |site| site.servers[3].checks > 0));
        site.servers[3].health = response;
        site.until(5 * SECOND, |_| false);
        assert_eq!(are_up(&site)[3], is_good, "{}", String::from_utf8_lossy(response));
        // Checks go on, and none of them stays.
        site.servers[3].health = GOOD;
        assert!(site.until(5 * SECOND, |site| are_up(site)[3]));
        site.ends();
    }
}

#[test]
fn a_server_that_refuses_or_does_not_answer_is_down() {
    for (is_down, loss) in [(true, 0), (false, 0), (true, 50)] {
        let (mut site, _) = checked(loss, &[]);
        assert!(site.until(9 * SECOND, |site| site.servers.iter().all(|one| one.checks > 1)));
        site.servers[0].is_down = is_down;
        site.servers[0].is_silent = !is_down;
        assert!(site.until(20 * SECOND, |site| !are_up(site)[0]));
        (site.servers[0].is_down, site.servers[0].is_silent) = (false, false);
        assert!(site.until(60 * SECOND, |site| are_up(site) == [true; 4]));
    }
}

#[test]
fn if_all_servers_of_a_group_are_down_they_take_turns() {
    let (mut site, client) = checked(0, &[]);
    let no = b"HTTP/1.1 500 No\r\n\r\n";
    site.servers[..2].iter_mut().for_each(|one| one.health = no);
    assert!(site.until(20 * SECOND, |site| are_up(site) == [false, false, true, true]));
    let mut both = answers(&mut site, 2);
    both.sort();
    assert_eq!(both, ["a1", "a2"]);
    // The rules choose the group: a server of another one is no replacement.
    site.servers[2].health = no;
    assert!(site.until(20 * SECOND, |site| !are_up(site)[2]));
    assert_eq!(site.ask(client, &get("/b")).1, "b GET /b 0 0");
}

#[test]
fn a_request_that_has_failed_goes_to_a_server_that_is_down_rather_than_back() {
    let (mut site, _) = checked(0, &[]);
    site.servers[1].health = b"";
    assert!(site.until(20 * SECOND, |site| !are_up(site)[1]));
    site.servers[0].is_down = true;
    assert_eq!(answers(&mut site, 1), ["a2"]);
    assert_eq!(site.counter("asked again"), 1);
    // The server that is up by its checks comes first again.
    site.servers[0].is_down = false;
    assert_eq!(answers(&mut site, 2), ["a1"; 2]);
}

#[test]
fn a_server_of_tls_alone_only_has_to_take_connections() {
    let (mut site, _) = checked(0, &[]);
    let rule =
        |group, text: &[u8]| Value { rows: vec![vec![group, 1, 0]], texts: vec![text.to_vec()] };
    let tls_rules = rule(2, b"[.]example$");
    site.reload(&[("rules", rule(1, b"^[A-Z]+ /b")), ("tls_rules", tls_rules.clone())]);
    // It would be down if it were asked.
    site.servers[3].health = b"";
    let (before, taken) = (site.servers[3].checks, site.servers[3].taken);
    site.until(9 * SECOND, |_| false);
    assert_eq!(are_up(&site), [true; 4]);
    assert!(site.servers[3].taken > taken + 2);
    assert_eq!(site.servers[3].checks, before);
    site.servers[3].is_down = true;
    assert!(site.until(20 * SECOND, |site| are_up(site) == [true, true, true, false]));
    site.servers[3].is_down = false;
    assert!(site.until(20 * SECOND, |site| are_up(site) == [true; 4]));
    // It is asked where requests may go to it, too.
    site.servers[3].health = b"";
    site.reload(&[("rules", rule(2, b"^[A-Z]+ /c")), ("tls_rules", tls_rules)]);
    assert!(site.until(20 * SECOND, |site| are_up(site) == [true, true, true, false]));
    site.servers[3].health = GOOD;
    assert!(site.until(20 * SECOND, |site| are_up(site) == [true; 4]));
    // The others are asked as before.
    site.servers[2].health = b"";
    assert!(site.until(20 * SECOND, |site| are_up(site) == [true, true, false, true]));
}

#[test]
fn a_cookie_of_a_server_that_is_down_counts_for_nothing() {
    let (mut site, _) = checked(0, &[]);
    site.reload(&[("cookie", Value::text("STAY"))]);
    let client = site.client(5_001, b"");
    let (head, body) = site.ask(client, &get("/1"));
    let name = body.split(' ').next().expect("a name");
    let at = usize::from(name == "a2");
    let cookie = head.lines().find_map(|line| line.strip_prefix("Set-Cookie: "));
    let cookie = cookie.and_then(|line| line.split(';').next()).expect("a cookie").to_owned();
    site.servers[at].health = b"";
    assert!(site.until(20 * SECOND, |site| !are_up(site)[at]));
    let request = format!("GET /2 HTTP/1.1\r\nHost: site\r\nCookie: {cookie}\r\n\r\n");
    let (head, body) = site.ask(client, &request);
    assert!(head.contains("Set-Cookie: STAY=") && !body.starts_with(name), "{head} {body}");
}

#[test]
fn checks_go_on_in_another_instance() {
    // At all times within a check and between checks.
    for after in (0..60).step_by(3) {
        let (mut site, _) = checked(0, &[]);
        site.servers[3].health = b"";
        assert!(site.until(20 * SECOND, |site| are_up(site) == [true, true, true, false]));
        let before = servers(&site);
        site.until(after, |_| false);
        site.restart();
        assert_eq!(are_up(&site), [true, true, true, false]);
        site.until(4 * SECOND, |_| false);
        let all = servers(&site);
        assert_eq!(are_up(&site), [true, true, true, false]);
        for ((_, checks, failed), (_, earlier, had_failed)) in all.iter().zip(&before).take(3) {
            assert!((earlier + 2..=earlier + 3).contains(checks), "{all:?} {before:?}");
            assert_eq!(failed, had_failed);
        }
        assert_eq!(all[3].1, all[3].2);
        site.servers[3].health = GOOD;
        assert!(site.until(20 * SECOND, |site| are_up(site) == [true; 4]));
        site.ends();
    }
}

#[test]
fn without_checks_after_a_reload_their_connections_end() {
    let (mut site, _) = checked(0, &[]);
    site.servers.iter_mut().for_each(|one| one.health = b"HTTP/1.1 ");
    let are_asked = |site: &Site| site.servers.iter().all(|one| one.checks > 0);
    assert!(site.until(5 * SECOND, are_asked));
    site.reload(&[("check", Value::text(""))]);
    assert_eq!(servers(&site), []);
    site.ends();
    let before: usize = site.servers.iter().map(|one| one.checks).sum();
    site.until(10 * SECOND, |_| false);
    assert_eq!(site.servers.iter().map(|one| one.checks).sum::<usize>(), before);
}

#[test]
fn segments_of_checks_that_are_over_are_refused() {
    let (mut site, _) = checked(0, &[]);
    assert!(site.until(5 * SECOND, |site| site.servers[2].checks > 0));
    site.until(100, |_| false);
    let last = site.servers[2].connections.last().expect("that of a check");
    let ends = last.ends;
    assert!(ends.to.0 == address(AT.0) && ends.to.1 >= 49_152, "{ends:?}");
    // The server has not heard of the end, and repeats itself.
    let mut endpoint = Endpoint::connect(&Settings::default(), 5, site.now);
    let mut frames = Vec::new();
    endpoint.send(site.now, 1, &mut |mut segment| {
        segment.flags.0 = 0x10;
        let mut frame = Vec::new();
        write(&last.link, ends, 0, &segment, &mut frame);
        frames.push(frame);
    });
    let mut packet = Packet::new(Link::Ethernet, site.now, &frames[0]);
    packet.backward = true;
    assert_eq!(site.balancer.packet(&mut packet, site.now), Ok(Verdict::Consume));
    site.balancer.advance(site.now + 2);
    let outputs = site.balancer.take_outputs();
    let sent = outputs.iter().filter_map(|output| match output {
        Output::Packet(sent) => Frame::of(&sent.bytes).map(|frame| (frame.ends, frame.segment)),
        _ => None,
    });
    let sent: Vec<_> = sent.into_iter().filter(|(to, _)| *to == ends.reversed()).collect();
    assert_eq!(sent.len(), 1, "{outputs:?}");
    assert_eq!(sent[0].1.flags.0 & 4, 4, "{:?}", sent[0].1);
}

#[test]
fn wrong_parameters_are_refused() {
    let ip6 = Value { rows: vec![vec![1 << 100, 80]], texts: Vec::new() };
    let six = vec![("servers", ip6), ("groups", Value { rows: vec![], texts: vec![] })];
    let of = |name, value| vec![(name, Value::scalar(value))];
    for (more, text) in [
        (vec![("check", Value::text("health"))], "`check` is no path"),
        (vec![("check", Value::text("/a b"))], "`check` is no path"),
        (vec![("check", Value::text("/\r\nx: y"))], "`check` is no path"),
        (of("fall", 0), "at least 1"),
        (of("rise", 0), "at least 1"),
        (of("check_every", 9_999_999), "`check_every` 10 ms"),
        (of("check_every", 1 << 64), "`check_every` is too large"),
        (six, "IP version"),
    ] {
        let mut config = config();
        config.push(("check".to_owned(), Value::text("/")));
        for (name, value) in more {
            config.retain(|(known, _)| *known != name && *known != "rules");
            config.push((name.to_owned(), value));
        }
        let error = try_instance("balance", &config).err().expect("an error");
        assert!(error.contains(text), "{error}");
    }
}
