//! Requests and their responses.

use super::*;
use proptest::prelude::*;

#[test]
fn each_request_goes_to_a_server_of_its_own() {
    let mut site = site(0, 1);
    let client = site.client(5_000, get("/1").as_bytes());
    site.hears(client, &ok("a1 GET /1 0 0"));
    site.say(client, &get("/2"));
    site.hears(client, &ok("a2 GET /2 0 0"));
    site.say(client, &get("/b"));
    site.hears(client, &ok("b GET /b 0 0"));
    site.say(client, "POST /x HTTP/1.1\r\nHOST: Other\r\nContent-Length: 3\r\n\r\nabc");
    site.hears(client, &ok("c POST /x 3 294"));
    site.say(client, &get("/3"));
    site.hears(client, &ok("a1 GET /3 0 0"));
    // The connections stay, and are used again.
    assert_eq!(site.servers.iter().map(|one| one.taken).collect::<Vec<_>>(), [1; 4]);
    assert_eq!(site.servers[0].asked, 2);
    site.ends();
}

#[test]
fn requests_that_come_together_are_answered_in_order() {
    let mut site = site(0, 1);
    let requests: String = ["/1", "/b", "/long/100000", "/b", "/chunked"].map(get).concat();
    let client = site.client(5_000, requests.as_bytes());
    let mut big = b"a2 GET /long/100000 0 0".to_vec();
    big.resize(100_000, b'x');
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na1 GE\r\n10\r\n\
                   T /chunked 0 0\r\n0\r\n\r\n";
    let chunked = chunked.replace("10\r\n", "e\r\n");
    let expected = [
        ok("a1 GET /1 0 0"),
        ok("b GET /b 0 0"),
        ok(&String::from_utf8(big).unwrap()),
        ok("b GET /b 0 0"),
        chunked,
    ];
    site.hears(client, &expected.concat());
    site.ends();
}

#[test]
fn responses_end_as_their_servers_say() {
    for (target, response, closes) in [
        ("/end", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\na1 GET /end 0 0".to_owned(), true),
        ("/last", ok("a1 GET /last 0 0"), false),
        (
            "/soon",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_owned() + &ok("a1 GET /soon 0 0"),
            false,
        ),
    ] {
        let mut site = site(0, 1);
        let client = site.client(5_000, get(target).as_bytes());
        site.hears(client, &response);
        if closes {
            assert!(site.until(1_000, |site| site.clients[client].status().has_peer_closed));
        } else {
            // A server that has ended gets another connection.
            for name in ["a2", "a1"] {
                site.say(client, &get("/next"));
                site.hears(client, &ok(&format!("{name} GET /next 0 0")));
            }
        }
        site.ends();
    }
    let mut site = site(0, 1);
    let client = site.client(5_000, b"HEAD /1 HTTP/1.1\r\nHost: site\r\n\r\n");
    site.hears(client, "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n");
    site.say(client, "GET /2 HTTP/1.1\r\nConnection: close\r\n\r\n");
    let text = ok("a2 GET /2 0 0").replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1);
    site.hears(client, &text);
    assert!(site.until(1_000, |site| site.clients[client].status().has_peer_closed));
    site.ends();
}

#[test]
fn a_response_that_is_cut_or_wrong_is_not_taken_for_a_whole_one() {
    let mut site = site(0, 1);
    let client = site.client(5_000, get("/cut").as_bytes());
    assert!(site.until(1_000, |site| site.clients[client].failure().is_some()));
    let client = site.client(5_001, get("/wrong").as_bytes());
    site.hears(client, BAD_GATEWAY);
    site.ends();
}

#[test]
fn who_does_nothing_is_given_up() {
    let mut site = site(0, 1);
    // A client that says nothing more, and one that stops within a request.
    let silent = site.client(5_000, get("/1").as_bytes());
    site.hears(silent, &ok("a1 GET /1 0 0"));
    let half = site.client(5_001, b"POST /b HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc");
    let asks = site.client(5_002, get("/silent").as_bytes());
    let is_closed = |site: &Site, client: usize| site.clients[client].status().has_peer_closed;
    assert!(!site.until(59_000, |site| is_closed(site, silent)));
    let text = "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    site.hears(asks, text);
    assert!(site.until(2_000, |site| is_closed(site, silent)));
    assert!(site.until(2_000, |site| site.clients[half].failure().is_some()));
    site.ends();
}

#[test]
fn a_connection_asks_more_servers_than_it_has_connections_to() {
    // A server at each of 20 ports.
    let places = (0..20).map(|at| vec![number(SERVERS[at % 4]), u128::from(PORT) + at as u128]);
    let mut site = site(0, 9);
    for (name, value) in &mut site.config {
        match name.as_str() {
            "servers" => value.rows = places.clone().collect(),
            "groups" => value.rows = vec![vec![0, 20]],
            "rules" => *value = Value { rows: Vec::new(), texts: Vec::new() },
            _ => {}
        }
    }
    site.balancer = instance("balance", &site.config);
    let client = site.client(5_000, get("/1").repeat(45).as_bytes());
    let expected: String = (0..45)
        .map(|at| ok(&format!("{} GET /1 0 0", ["a1", "a2", "b", "c"][at % 20 % 4])))
        .collect();
    site.hears(client, &expected);
    site.ends();
}

#[test]
fn a_server_that_is_down_is_replaced() {
    let mut site = site(0, 1);
    site.servers[0].is_down = true;
    let client = site.client(5_000, get("/1").as_bytes());
    site.hears(client, &ok("a2 GET /1 0 0"));
    // It gets no requests for some time, with a body or without one.
    for _ in 0..3 {
        site.say(client, "POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
        site.hears(client, &ok("a2 POST /x 3 294"));
    }
    site.servers[0].is_down = false;
    site.until(2_100, |_| false);
    site.say(client, &get("/2").repeat(2));
    site.hears(client, &[ok("a1 GET /2 0 0"), ok("a2 GET /2 0 0")].concat());
    // No server of the group is left.
    site.servers[2].is_down = true;
    site.say(client, &get("/b"));
    site.hears(client, BAD_GATEWAY);
    assert!(site.until(1_000, |site| site.clients[client].status().has_peer_closed));
    site.ends();
}

#[test]
fn a_server_that_ends_connections_between_requests_is_asked_again() {
    let mut site = site(0, 1);
    site.servers.iter_mut().for_each(|server| server.ends_early = true);
    let client = site.client(5_000, b"");
    for at in 0..6 {
        // At first at once, so that the request meets the end of the connection on its way.
        site.until(20 * (at / 2), |_| false);
        site.say(client, &get("/b"));
        site.hears(client, &ok("b GET /b 0 0"));
    }
    assert_eq!(site.servers[2].asked, 6);
    site.ends();
}

#[test]
fn requests_that_are_no_http_are_refused() {
    for (request, status) in [
        ("hello\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400 Bad Request"),
        (
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "400 Bad Request",
        ),
        ("CONNECT site:443 HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
    ] {
        let mut site = site(0, 1);
        let client = site.client(5_000, request.as_bytes());
        let text = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        site.hears(client, &text);
        site.ends();
    }
}

#[test]
fn connections_may_go_over_to_another_protocol() {
    let mut site = site(20, 3);
    let request = "GET /switch HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    let client = site.client(5_000, request.as_bytes());
    site.hears(client, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\r\n");
    site.say(client, "no HTTP");
    site.hears(client, "no HTTP");
    site.restart();
    let long = "long ".repeat(50_000);
    site.say(client, &long);
    site.hears(client, &long);
    site.ends();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(24)))]

    /// Whatever is lost on the way, and also in another instance, each client gets the response to
    /// each of its requests, in order.
    #[test]
    fn all_requests_are_answered_over_lossy_links(
        seed in any::<u64>(),
        loss in prop::sample::select(vec![0, 20, 100]),
        clients in prop::collection::vec(prop::collection::vec((0..5_u8, 0..40_000_usize), 1..6), 1..4),
        restart in prop::option::of(1..2_000_u64),
        ends_early in any::<bool>(),
    ) {
        let mut site = site(loss, seed);
        site.servers[2].ends_early = ends_early;
        let mut expected = Vec::new();
        for (port, requests) in (5_000..).zip(&clients) {
            let (mut text, mut bodies) = (String::new(), Vec::new());
            for (kind, size) in requests {
                match kind {
                    0 => {
                        text += &format!("GET /b/{size} HTTP/1.1\r\nHost: site\r\n\r\n");
                        bodies.push(format!("b GET /b/{size} 0 0"));
                    }
                    1 => {
                        text += &format!("GET /long/{size} HTTP/1.1\r\nHost: other\r\n\r\n");
                        let mut body = format!("c GET /long/{size} 0 0").into_bytes();
                        body.resize(*size, b'x');
                        bodies.push(String::from_utf8(body).unwrap());
                    }
                    _ => {
                        text += &format!(
                            "PUT /{kind} HTTP/1.1\r\nHost: other\r\nContent-Length: {size}\r\n\r\n{}",
                            "y".repeat(*size)
                        );
                        bodies.push(format!("c PUT /{kind} {size} {}", size * 121));
                    }
                }
            }
            site.client(port, text.as_bytes());
            expected.push(bodies.iter().map(|body| ok(body)).collect::<String>());
        }
        let is_heard = |site: &Site| {
            site.clients.iter().zip(&expected).all(|(one, text)| one.received.len() >= text.len())
        };
        if let Some(after) = restart {
            site.until(after, is_heard);
            site.restart();
        }
        prop_assert!(is_heard(&site) || site.until(300_000, is_heard), "not all are answered");
        for (client, text) in site.clients.iter().zip(&expected) {
            prop_assert_eq!(String::from_utf8_lossy(&client.received), text.as_str());
        }
        site.ends();
    }
}
