//! TLS connections that go to a server by its name.

use super::*;
use crate::balance::{Hello, MOST_HELLO};
use crate::tests::try_instance;
use proptest::prelude::*;

/// A ClientHello of OpenSSL 3.0 for the name "A.example".
const OPENSSL: &str = "\
    16030101330100012f03034c0acc5bc0b97089f170a248f213cf10dfe865c6045d06470454d5d44c\
    0f35a42023350cfd94e11e7429909878e2c766c3d5d1bfdef84b30668f057639ca3babe9003e1302\
    13031301c02cc030009fcca9cca8ccaac02bc02f009ec024c028006bc023c0270067c00ac0140039\
    c009c0130033009d009c003d003c0035002f00ff010000a80000000e000c000009412e6578616d70\
    6c65000b000403000102000a00040002001d002300000010000b000908687474702f312e31001600\
    0000170000000d002a0028040305030603080708080809080a080b08040805080604010501060103\
    0303010302040205020602002b0009080304030303020301002d00020101003300260024001d0020\
    aef272895d9603fe24989f92ce53ca8e663156dd4ea5f4a37a4ec8bdf2d5bc2a";

/// The alerts for a malformed first message, for failed servers, and for an unknown name.
const DECODE_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 50];
const INTERNAL_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Bytes behind their length, which has two bytes.
fn list(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [kind.to_be_bytes().to_vec(), list(data)].concat()
}

fn server_name(name: &str) -> Vec<u8> {
    extension(0, &list(&[vec![0], list(name.as_bytes())].concat()))
}

/// A ClientHello with these extensions, without records.
fn message(extensions: &[u8]) -> Vec<u8> {
    let session = [vec![32], vec![5; 32]].concat();
    let fixed = [vec![3, 3], vec![7; 32], session, list(&[0x13, 1, 0x13, 2]), vec![1, 0]].concat();
    let body = [fixed, list(extensions)].concat();
    [&[1][..], &u32::try_from(body.len()).unwrap().to_be_bytes()[1..], &body].concat()
}

/// A message in records of this size.
fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(|part| [vec![22, 3, 1], list(part)].concat()).collect()
}

fn hello(name: &str) -> Vec<u8> {
    records(&message(&[extension(0xff01, &[0]), server_name(name)].concat()), 1 << 14)
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|two| digit(&two[0]) << 4 | digit(&two[1])).collect()
}

/// Names that end in `a.example` go to the second group, that of the third server; others that end
/// in `.example` to the third one.
fn tls(loss: u64, seed: u64) -> Site {
    let mut site = site(loss, seed);
    let rules = Value {
        rows: vec![vec![1, 1, 0], vec![2, 1, 0]],
        texts: vec![b"(^|[.])a[.]example$".to_vec(), b"[.]example$".to_vec()],
    };
    site.config.push(("tls_rules".to_owned(), rules));
    site.balancer = instance("balance", &site.config);
    site
}

impl Site {
    /// Goes on until the client has received these bytes, and no more.
    fn hears_bytes(&mut self, client: usize, expected: &[u8]) {
        self.until(60_000, |site| site.clients[client].received.len() >= expected.len());
        let received = std::mem::take(&mut self.clients[client].received);
        assert_eq!(received.len(), expected.len(), "{received:?}");
        assert!(received == expected);
    }
}

#[test]
fn the_name_chooses_the_group_and_bytes_pass_both_ways() {
    for (bytes, server) in [
        (hello("a.example"), "b"),
        (hello("www.A.Example"), "b"),
        (hello("b.example"), "c"),
        (unhex(OPENSSL), "b"),
        // Over several records, with bytes behind the message.
        ([records(&message(&server_name("b.example")), 11), vec![23, 3, 3, 0, 1, 9]].concat(), "c"),
    ] {
        let mut site = tls(30, 5);
        let client = site.client(5_000, &bytes);
        site.hears_bytes(client, &[server.as_bytes(), &bytes].concat());
        let more: Vec<u8> = (0..300_000_u32).map(|at| at.wrapping_mul(77) as u8).collect();
        site.clients[client].to_send.extend(&more);
        site.hears_bytes(client, &more);
        assert_eq!((site.counter("TLS connections"), site.counter("requests")), (1, 0));
        site.ends();
    }
}

#[test]
fn http_stays_http_beside_tls() {
    let mut site = tls(0, 5);
    let client = site.client(5_000, get("/b").as_bytes());
    site.hears(client, &ok("b GET /b 0 0"));
    // A later request is none of TLS.
    site.clients[client].to_send.extend([hello("a.example"), b"\r\n\r\n".to_vec()].concat());
    site.hears(
        client,
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    site.ends();
    // Without rules for it, there is no TLS.
    let mut site = super::site(0, 5);
    let client = site.client(5_000, &hello("a.example"));
    site.hears(
        client,
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(site.counter("TLS connections"), 0);
    site.ends();
}

#[test]
fn names_without_a_rule_are_refused() {
    for bytes in [hello("a.other"), records(&message(&[]), 100), hello("example")] {
        let mut site = tls(0, 5);
        let client = site.client(5_000, &bytes);
        site.hears_bytes(client, &UNRECOGNIZED_NAME);
        assert_eq!(site.counter("refused requests"), 1);
        site.ends();
        assert_eq!(site.servers.iter().map(|one| one.taken).sum::<usize>(), 0);
    }
}

#[test]
fn a_malformed_first_message_is_refused() {
    let right = message(&server_name("a.example"));
    let cut = |at: usize| {
        // The length of the message is as right as it can be.
        let body = &right[4..right.len() - at];
        [&[1, 0, 0][..], &[u8::try_from(body.len()).unwrap()], body].concat()
    };
    let twice = message(&[server_name("a.example"), server_name("a.example")].concat());
    let mut wrong = vec![
        vec![22, 2],
        vec![22, 3, 1, 0, 0],
        vec![22, 3, 1, 0x40, 1, 1],
        vec![22, 3, 1, 0, 5, 2],
        vec![22, 3, 1, 0, 4, 1, 0, 0x40, 1],
        [records(&right[..9], 9), vec![23, 3, 3, 0, 1, 0]].concat(),
        // Seventeen records.
        records(&right, right.len().div_ceil(17)),
        records(&twice, 1_000),
        records(&message(&server_name("")), 1_000),
        records(&message(&server_name("a b")), 1_000),
        records(&message(&extension(0, &[])), 1_000),
        records(&message(&extension(0, &[0, 0])), 1_000),
        records(&message(&[extension(5, b"x"), vec![0]].concat()), 1_000),
    ];
    // Extensions may be missing, but not a part of them.
    let ends = (1..right.len() - 4).filter(|at| right.len() - 4 - at != 75);
    wrong.extend(ends.map(|at| records(&cut(at), 1_000)));
    for bytes in wrong {
        let mut site = tls(0, 5);
        let client = site.client(5_000, &bytes);
        site.hears_bytes(client, &DECODE_ERROR);
        assert_eq!(site.counter("refused requests"), 1, "{bytes:?}");
        site.ends();
    }
}

#[test]
fn a_client_that_does_not_end_its_first_message_is_given_up() {
    let mut site = tls(0, 5);
    let bytes = hello("a.example");
    let client = site.client(5_000, &bytes[..bytes.len() - 1]);
    assert!(!site.until(59_000, |site| site.clients[client].status().has_peer_closed));
    assert!(site.until(3_000, |site| site.clients[client].status().has_peer_closed));
    // One that closes in the middle is left at once.
    let client = site.client(5_001, &bytes[..bytes.len() - 1]);
    site.clients[client].closes = true;
    assert!(site.until(1_000, |site| site.clients[client].status().has_peer_closed));
    site.ends();
}

#[test]
fn before_its_first_byte_a_server_may_be_replaced() {
    // The first two servers are those of a group with two.
    let groups = Value { rows: vec![vec![2, 1], vec![0, 2], vec![3, 1]], texts: Vec::new() };
    for way in ["refuses", "ends", "is silent"] {
        let mut site = tls(20, 5);
        site.reload(&[("groups", groups.clone())]);
        let server = &mut site.servers[0];
        match way {
            "refuses" => server.is_down = true,
            "ends" => (server.is_mute, server.ends_early) = (true, true),
            _ => server.is_mute = true,
        }
        let bytes = hello("a.example");
        let client = site.client(5_000, &bytes);
        if way == "is silent" {
            // Nobody knows what it has done with what it has got.
            site.until(10_000, |_| false);
            site.hears_bytes(client, &INTERNAL_ERROR);
            assert_eq!(site.counter("not answered"), 1);
        } else {
            site.hears_bytes(client, &[b"a2", &bytes[..]].concat());
            assert_eq!(site.counter("asked again"), 1, "{way}");
        }
        site.ends();
    }
    let mut site = tls(0, 5);
    site.servers[2].is_down = true;
    let client = site.client(5_000, &hello("a.example"));
    site.hears_bytes(client, &INTERNAL_ERROR);
    assert_eq!((site.counter("asked again"), site.counter("not answered")), (2, 1));
    site.ends();
}

#[test]
fn either_direction_may_end_first() {
    let bytes = hello("a.example");
    let more: Vec<u8> = (0..400_000_u32).map(|at| at.wrapping_mul(91) as u8).collect();
    // The client ends at once, in front of the server's first byte.
    let mut site = tls(20, 5);
    let client = site.client(5_000, &[&bytes[..], &more].concat());
    site.clients[client].closes = true;
    site.hears_bytes(client, &[b"b", &bytes[..], &more].concat());
    site.ends();
    // The server ends behind its first bytes, and takes what the client goes on to send.
    let mut site = tls(20, 5);
    site.servers[2].ends_early = true;
    let client = site.client(5_000, &bytes);
    site.clients[client].closes_behind = false;
    assert!(site.until(5_000, |site| site.clients[client].status().has_peer_closed));
    site.clients[client].to_send.extend(&more);
    let all = bytes.len() + more.len();
    assert!(site.until(60_000, |site| site.servers[2].carried.len() == all));
    assert!(site.servers[2].carried == [&bytes[..], &more].concat());
    assert_eq!(site.clients[client].failure(), None);
    site.ends();
}

#[test]
fn a_reset_of_either_end_reaches_the_other_one() {
    let mut site = tls(0, 5);
    let client = site.client(5_000, &hello("a.example"));
    assert!(site.until(1_000, |site| !site.clients[client].received.is_empty()));
    site.servers[2].connections[0].endpoint.abort();
    assert!(site.until(1_000, |site| site.clients[client].failure().is_some()));
    let client = site.client(5_001, &hello("a.example"));
    assert!(site.until(1_000, |site| !site.clients[client].received.is_empty()));
    site.clients[client].endpoint.abort();
    assert!(site.until(1_000, |site| site.servers[2].open() == 0));
    site.ends();
}

#[test]
fn connections_go_on_in_another_instance() {
    let bytes = hello("a.example");
    for after in 0..40 {
        let mut site = tls(0, 5);
        let client = site.client(5_000, &bytes[..bytes.len() / 2]);
        site.until(12, |_| false);
        site.clients[client].to_send.extend(&bytes[bytes.len() / 2..]);
        site.until(after, |_| false);
        site.restart();
        site.hears_bytes(client, &[b"b", &bytes[..]].concat());
        site.ends();
    }
}

#[test]
fn wrong_rules_are_refused() {
    for (row, text, expected) in [
        (vec![3, 0, 0], "x", "row 0 of `tls_rules` is for group 3, which does not exist"),
        (vec![1, 1, 0], "(", "`tls_rules`: "),
    ] {
        let mut config = config();
        let rules = Value { rows: vec![row], texts: vec![text.as_bytes().to_vec()] };
        config.push(("tls_rules".to_owned(), rules));
        let error = try_instance("balance", &config).err().expect("an error");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_is_kept_of_a_first_message_is_bounded() {
    let whole = records(&message(&extension(21, &vec![0; 16_000])), 1 << 14);
    assert!(whole.len() < MOST_HELLO);
    assert_eq!(Hello::read(&whole), Hello::Whole(Vec::new()));
    let long = records(&message(&extension(21, &vec![0; 16_500])), 1 << 14);
    assert_eq!(Hello::read(&long), Hello::Wrong);
    assert_eq!(Hello::read(&long[..4]), Hello::Part);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

    /// However a message is cut, it is whole at its last byte and not before; and no bytes make the
    /// parser fail.
    #[test]
    fn a_first_message_is_whole_at_its_end(
        name in "[a-z]{1,20}([.][a-z]{1,9}){0,3}",
        size in 10..400_usize,
        behind in prop::collection::vec(any::<u8>(), 0..9),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let extensions = [extension(0xff01, &[0]), server_name(&name), extension(7, b"x")].concat();
        let mut bytes = records(&message(&extensions), size);
        for end in 0..bytes.len() {
            prop_assert_eq!(Hello::read(&bytes[..end]), Hello::Part);
        }
        bytes.extend(&behind);
        prop_assert_eq!(Hello::read(&bytes), Hello::Whole(name.into_bytes()));
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        for end in 0..bytes.len() {
            let _ = Hello::read(&bytes[..end]);
        }
    }
}
