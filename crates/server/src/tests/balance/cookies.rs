//! Clients that stay at their servers by cookies.

use super::*;
use crate::tests::try_instance;

/// A request for `/` or `/b`, with these cookies.
fn with(target: &str, cookies: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: site\r\nCookie: {cookies}\r\n\r\n")
}

/// The cookie that a response sets, without its attributes.
fn cookie(head: &str) -> Option<String> {
    let value = head.lines().find_map(|line| line.strip_prefix("Set-Cookie: STAY="))?;
    assert!(head.contains("\r\nCache-Control: private"), "{head}");
    let value = value.strip_suffix("; Path=/; HttpOnly").expect("the attributes");
    Some(format!("STAY={value}"))
}

fn sticky(loss: u64) -> Site {
    let mut site = site(loss, 1);
    site.config.push(("cookie".to_owned(), Value::text("STAY")));
    site.balancer = instance("balance", &site.config);
    site
}

#[test]
fn a_client_stays_at_its_server() {
    let mut site = sticky(20);
    let one = site.client(5_000, b"");
    let (head, body) = site.ask(one, &get("/1"));
    assert_eq!(body, "a1 GET /1 0 0");
    let shown = cookie(&head).expect("a cookie");
    // In the same connection and in others, in front of other cookies, behind them, and alone.
    for (at, cookies) in
        ["{}; theme=dark", "theme=dark;{}", "{}", "a=b; {}; c=d"].iter().enumerate()
    {
        let client = if at == 0 { one } else { site.client(5_001 + at as u16, b"") };
        let (head, body) = site.ask(client, &with("/2", &cookies.replace("{}", &shown)));
        assert_eq!((cookie(&head), body.as_str()), (None, "a1 GET /2 0 0"), "{cookies}");
        assert!(!head.contains("Cache-Control"), "{head}");
    }
    // The server sees the other cookies alone.
    let seen = site.servers[0].heads.iter().map(|head| {
        head.lines().find_map(|line| line.strip_prefix("Cookie: ")).unwrap_or_default()
    });
    let seen: Vec<_> = seen.collect();
    assert_eq!(seen, ["", "theme=dark", "theme=dark", "", "a=b; c=d"]);
    // Who shows none takes the next server.
    assert_eq!(site.ask(one, &get("/3")).1, "a2 GET /3 0 0");
    site.ends();
}

#[test]
fn a_cookie_has_a_server_of_each_group() {
    let mut site = sticky(0);
    let client = site.client(5_000, b"");
    let first = cookie(&site.ask(client, &get("/1")).0).expect("a cookie");
    let (head, body) = site.ask(client, &with("/b", &first));
    assert_eq!(body, "b GET /b 0 0");
    let both = cookie(&head).expect("a cookie for the other group");
    for (target, server) in [("/1", "a1"), ("/b", "b"), ("/2", "a1")] {
        let (head, body) = site.ask(client, &with(target, &both));
        assert_eq!((cookie(&head), body), (None, format!("{server} GET {target} 0 0")));
    }
    site.ends();
}

#[test]
fn a_server_that_fails_loses_its_clients() {
    let mut site = sticky(0);
    let client = site.client(5_000, b"");
    let first = cookie(&site.ask(client, &get("/1")).0).expect("a cookie");
    site.servers[0].is_down = true;
    site.servers[0].connections.clear();
    let other = site.client(5_001, b"");
    let (head, body) = site.ask(other, &with("/2", &first));
    assert_eq!(body, "a2 GET /2 0 0");
    let second = cookie(&head).expect("a new cookie");
    assert_ne!(first, second);
    site.servers[0].is_down = false;
    site.until(3_000, |_| false);
    for _ in 0..3 {
        let (head, body) = site.ask(other, &with("/3", &second));
        assert_eq!((cookie(&head), body.as_str()), (None, "a2 GET /3 0 0"));
    }
    assert_eq!(site.ask(other, &with("/3", &first)).1, "a1 GET /3 0 0");
    site.ends();
}

#[test]
fn cookies_outlive_reloads_and_the_seed() {
    let mut site = sticky(0);
    let client = site.client(5_000, b"");
    let shown = cookie(&site.ask(client, &get("/1")).0).expect("a cookie");
    // The server is at another place of the list, and the key comes from the state.
    let rows = [1, 0, 2, 3].map(|at| vec![number(SERVERS[at]), PORT.into()]).to_vec();
    let servers = Value { rows, texts: Vec::new() };
    site.reload(&[("servers", servers), ("seed", Value::scalar(8))]);
    let client = site.client(5_001, b"");
    for _ in 0..3 {
        let (head, body) = site.ask(client, &with("/2", &shown));
        assert_eq!((cookie(&head), body.as_str()), (None, "a1 GET /2 0 0"));
    }
    // In an instance without the state, the cookie of another key is none.
    site.balancer = instance("balance", &site.config);
    let client = site.client(5_002, b"");
    assert_ne!(cookie(&site.ask(client, &with("/2", &shown)).0), None);
}

#[test]
fn wrong_cookies_are_none() {
    let mut site = sticky(0);
    let client = site.client(5_000, b"");
    let shown = cookie(&site.ask(client, &get("/1")).0).expect("a cookie");
    let token = shown.strip_prefix("STAY=").expect("the name");
    assert_eq!(token.len(), 16);
    let many = format!("STAY={}{token}", "0123456789abcdef.".repeat(400));
    let wrong = [
        "STAY",
        "STAY=",
        "STAY=;;;=;",
        "=",
        ";",
        "STAY=\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}",
        "STAY=+123456789abcdef",
        &shown[..shown.len() - 1],
        &format!("{shown}0"),
        &format!("stay={token}"),
        &format!("STAY2={token}"),
        &many,
    ]
    .map(ToOwned::to_owned);
    for cookies in wrong {
        let client = site.client(6_000 + site.clients.len() as u16, b"");
        let (head, _) = site.ask(client, &with("/2", &cookies));
        assert!(cookie(&head).is_some(), "{cookies}: {head}");
        let heads = site.servers.iter().flat_map(|one| one.heads.last());
        assert!(heads.into_iter().all(|head| !head.contains("STAY=")), "{cookies}");
    }
    // Of two cookies, one counts.
    let (head, _) = site.ask(client, &with("/2", &format!("STAY=x; {shown}")));
    assert_eq!(cookie(&head), None);
    site.ends();
}

#[test]
fn a_server_does_not_set_the_balancers_cookie() {
    let mut site = sticky(0);
    let client = site.client(5_000, b"");
    let (head, _) = site.ask(client, &get("/sets"));
    let set: Vec<_> = head.lines().filter(|line| line.to_lowercase().contains("cookie")).collect();
    assert_eq!((set[0], set.len()), ("Set-Cookie: theme=x", 2), "{head}");
    assert!(cookie(&head).is_some());
    site.ends();
}

#[test]
fn a_connection_that_becomes_another_protocol_gets_a_cookie() {
    let mut site = sticky(0);
    let request = "GET /switch HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    let client = site.client(5_000, request.as_bytes());
    let is_there = |site: &Site| site.clients[client].received.ends_with(b"\r\n\r\n");
    assert!(site.until(1_000, is_there));
    let head = String::from_utf8(std::mem::take(&mut site.clients[client].received)).unwrap();
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("\r\nConnection: upgrade\r\n"));
    assert!(cookie(&head).is_some(), "{head}");
    site.say(client, "no HTTP");
    site.hears(client, "no HTTP");
    site.ends();
}

#[test]
fn a_wrong_name_is_refused() {
    for name in ["a b", "a;b", "a=b", "\u{fc}", &"x".repeat(65)] {
        let mut config = config();
        config.push(("cookie".to_owned(), Value::text(name)));
        let error = try_instance("balance", &config).err().expect("an error");
        assert!(error.contains("`cookie` is no name"), "{error}");
    }
}
