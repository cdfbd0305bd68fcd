//! Alerts of rules on streams and HTTP messages, worked out by hand. Each stream is given whole,
//! byte by byte, and in random parts: the alerts must be the same.

mod support;

use braid_signatures::{Counts, Flow, Inspection, Signatures, load};
use support::Said;

/// A connection from 10.0.0.1:1000 to 192.0.2.1:80.
const FLOW: Flow = Flow { version: 4, src: 0x0a00_0001, dst: 0xc000_0201, sport: 1000, dport: 80 };

fn set(text: &str) -> Signatures {
    let loaded = load(text);
    assert_eq!(loaded.refused, [], "{text}");
    loaded.set
}

/// The bytes that each end sends, in turn. The client begins.
fn play(set: &Signatures, turns: &[&[u8]], step: usize, is_closed: bool) -> (Vec<u32>, Counts) {
    let (mut inspection, mut said) = (Inspection::default(), Said::default());
    let mut offsets = [0_u64; 2];
    for (at, turn) in turns.iter().enumerate() {
        let from_client = at % 2 == 0;
        let flow = if from_client { FLOW } else { FLOW.reversed() };
        for part in turn.chunks(step) {
            let offset = &mut offsets[usize::from(from_client)];
            inspection.data(&mut said.by(set), (flow, from_client), (*offset, part));
            *offset += part.len() as u64;
            // What is written reads back.
            let read = Inspection::from_bytes(&inspection.to_bytes()).expect("whole");
            assert_eq!(read.to_bytes(), inspection.to_bytes());
            if step == 3 {
                inspection = read;
            }
        }
    }
    if is_closed {
        inspection.close(&mut said.by(set), FLOW);
    }
    (said.sids(set), said.counts)
}

/// The sids that alert on a connection that ends, however it is cut.
fn sids(rules: &str, turns: &[&[u8]]) -> Vec<u32> {
    let set = set(rules);
    let (whole, counts) = play(&set, turns, usize::MAX, true);
    for step in [1, 2, 3, 7, 100] {
        assert_eq!(play(&set, turns, step, true), (whole.clone(), counts), "parts of {step}");
    }
    whole
}

/// Whether a rule with these options alerts on what the client sends.
fn holds(options: &str, bytes: &[u8]) -> bool {
    let rule = format!("alert tcp any any -> any any ({options} sid:1;)");
    sids(&rule, &[bytes]) == [1]
}

#[test]
fn contents_hold_where_they_may_be() {
    for (options, bytes, wanted) in [
        (r#"content:"abc";"#, "xxabcx", true),
        (r#"content:"abc";"#, "xxaBcx", false),
        (r#"content:"aBc"; nocase;"#, "xxAbCx", true),
        (r#"content:"a|62 63|";"#, "abc", true),
        (r#"content:!"abc";"#, "ab", true),
        (r#"content:!"abc";"#, "xabc", false),
        (r#"content:"abc"; offset:2;"#, "xabc", false),
        (r#"content:"abc"; offset:2;"#, "xxabc", true),
        (r#"content:"abc"; depth:3;"#, "abc", true),
        (r#"content:"abc"; depth:3;"#, "xabc", false),
        (r#"content:"abc"; offset:1; depth:4;"#, "xxabc", true),
        (r#"content:"abc"; offset:1; depth:4;"#, "xxxabc", false),
        (r#"content:"abc"; startswith;"#, "abcx", true),
        (r#"content:"abc"; startswith;"#, "xabc", false),
        (r#"content:"abc"; endswith;"#, "abcabc", true),
        (r#"content:"abc"; endswith;"#, "abcx", false),
        (r#"content:"a"; content:"b"; distance:2;"#, "a__b", true),
        (r#"content:"a"; content:"b"; distance:2;"#, "a_b", false),
        (r#"content:"a"; content:"b"; distance:2; within:1;"#, "a__b", true),
        (r#"content:"a"; content:"b"; distance:2; within:1;"#, "a___b", false),
        (r#"content:"a"; content:"b"; within:2;"#, "a_b", true),
        (r#"content:"a"; content:"b"; within:2;"#, "a__b", false),
        (r#"content:"a"; content:"b"; within:2;"#, "a__ab", true),
        (r#"content:"c"; content:"b"; distance:-2; within:1;"#, "bc", true),
        (r#"content:"c"; content:"b"; distance:-2; within:1;"#, "b_c", false),
        // The first `a` leads to a `b` without a `c`, the second one to one with it.
        (r#"content:"a"; content:"b"; within:1; content:"c"; within:1;"#, "ab_abc", true),
        (r#"content:"a"; content:"b"; within:1; content:"c"; within:1;"#, "ab_ac_bc", false),
        (r#"content:"a"; content:!"b"; within:1;"#, "ab", false),
        (r#"content:"a"; content:!"b"; within:1;"#, "abac", true),
        (r#"content:"a"; isdataat:2,relative;"#, "a__", true),
        (r#"content:"a"; isdataat:2,relative;"#, "a_", false),
        (r#"content:"a"; isdataat:!1,relative;"#, "xa", true),
        (r#"content:"a"; isdataat:!1,relative;"#, "ax", false),
        (r#"isdataat:3;"#, "xxxx", true),
        (r#"isdataat:3;"#, "xxx", false),
        (r#"pcre:"/^a[0-9]+$/";"#, "a123", true),
        (r#"pcre:"/^a[0-9]+$/";"#, "a123b", false),
        (r#"pcre:!"/a/";"#, "b", true),
        (r#"pcre:!"/a/";"#, "ba", false),
        (r#"content:"b"; pcre:"/^a/R";"#, "ba", true),
        (r#"content:"b"; pcre:"/^a/R";"#, "b_a", false),
        (r#"pcre:"/a+/"; content:"b"; within:1;"#, "aaab", true),
        (r#"pcre:"/a+/"; content:"b"; within:1;"#, "aaa_b", false),
        (r#"flow:established,to_server; content:"a";"#, "a", true),
        (r#"flow:to_client; content:"a";"#, "a", false),
        ("", "a", true),
    ] {
        assert_eq!(holds(options, bytes.as_bytes()), wanted, "{options} on {bytes}");
    }
}

/// Whether a rule with these options holds for bytes, which are written as characters.
fn assert_holds(options: &str, bytes: &str, wanted: bool) {
    let bytes: Vec<u8> = bytes.chars().map(|c| u8::try_from(c).expect("a byte")).collect();
    assert_eq!(holds(options, &bytes), wanted, "{options} on {bytes:?}");
}

#[test]
fn numbers_are_compared_and_lead_elsewhere() {
    for (options, bytes, wanted) in [
        ("byte_test:2,>,0x0102,1;", "_\x01\x03", true),
        ("byte_test:2,>,0x0103,1;", "_\x01\x03", false),
        ("byte_test:2,=,0x0301,1,little;", "_\x01\x03", true),
        ("byte_test:1,!=,1,0;", "\x01", false),
        ("byte_test:1,!=,1,0;", "\x02", true),
        ("byte_test:1,>=,2,0; byte_test:1,<=,2,0;", "\x02", true),
        ("byte_test:1,&,6,0;", "\x04", true),
        ("byte_test:1,!&,6,0;", "\x04", false),
        ("byte_test:1,!&,6,0;", "\x08", true),
        ("byte_test:1,^,6,0;", "\x06", false),
        ("byte_test:1,=,5,0,bitmask 0x70;", "\x5f", true),
        // Without the bytes, a negated test does not hold either.
        ("byte_test:2,!&,6,0;", "\x08", false),
        (r#"content:"n="; byte_test:3,>,100,0,relative,string,dec;"#, "n=123", true),
        (r#"content:"n="; byte_test:3,>,100,0,relative,string,dec;"#, "n=99_", false),
        (r#"content:"n="; byte_test:3,>,100,0,relative,string,dec;"#, "n=1 n=345", true),
        (r#"content:"n="; byte_test:3,>,100,0,relative,string,dec;"#, "n=34", false),
        (r#"content:"n"; byte_test:1,=,1,-2,relative;"#, "\x01n", true),
        // A length leads to what follows.
        (r#"content:"n"; byte_jump:1,0,relative; content:"x"; within:1;"#, "n\x02abx", true),
        (r#"content:"n"; byte_jump:1,0,relative; content:"x"; within:1;"#, "n\x01abx", false),
        (r#"content:"n"; byte_jump:1,0,relative; content:"x"; within:1;"#, "n\x05n\x01_x", true),
        (
            r#"content:"n"; byte_jump:1,0,relative,align; content:"x"; within:1;"#,
            "n\x01abcdx",
            true,
        ),
        (
            r#"content:"n"; byte_jump:1,0,relative,multiplier 2; content:"x"; within:1;"#,
            "n\x01abx",
            true,
        ),
        (
            r#"content:"n"; byte_jump:1,0,relative,post_offset -1; content:"x"; within:1;"#,
            "n\x02axb",
            true,
        ),
        (r#"byte_jump:1,1,from_beginning; content:"x"; within:1;"#, "_\x03_x", true),
        (r#"byte_jump:1,0; content:"x"; within:1;"#, "\x02__x", true),
        (r#"byte_jump:1,0,string,hex; isdataat:!2,relative;"#, "a0123456789x", true),
        (r#"byte_jump:1,0,from_end,post_offset -4; content:"x"; within:1;"#, "\x01_x__", true),
        // It does not lead out of the bytes.
        ("byte_jump:1,0;", "\x02__", false),
        ("byte_jump:1,0;", "\x02___", true),
        ("byte_jump:1,0,post_offset -9;", "\x02___", false),
    ] {
        assert_holds(options, bytes, wanted);
    }
}

#[test]
fn numbers_are_found_and_used() {
    for (options, bytes, wanted) in [
        // Each place has its own number.
        ("byte_extract:1,0,n; byte_test:1,=,n,1;", "\x05\x05", true),
        ("byte_extract:1,0,n; byte_test:1,=,n,1;", "\x05\x06", false),
        ("byte_extract:1,0,n,multiplier 2; byte_test:1,=,n,1;", "\x05\x0a", true),
        ("byte_extract:1,0,n,align 2; byte_test:1,=,n,1;", "\x05\x06", true),
        ("byte_extract:1,0,n,align 4; byte_test:1,=,n,1;", "\x05\x08", true),
        ("byte_extract:1,0,n,multiplier 3,align 4; byte_test:1,=,n,1;", "\x03\x0c", true),
        ("byte_extract:1,0,n,align 2; byte_test:1,=,n,1;", "\x06\x06", true),
        ("byte_extract:1,0,n; byte_test:1,=,7,n;", "\x02_\x07", true),
        ("byte_extract:1,0,n; byte_jump:1,n; content:\"x\"; within:1;", "\x02_\x01_x", true),
        (
            r#"content:"n"; byte_extract:1,0,l,relative; byte_test:1,>,l,0,relative;"#,
            "n21n12",
            true,
        ),
        (
            r#"content:"n"; byte_extract:1,0,l,relative; byte_test:1,>,l,0,relative;"#,
            "n21n21",
            false,
        ),
    ] {
        assert_holds(options, bytes, wanted);
    }
}

#[test]
fn headers_choose_connections_and_directions() {
    let rules = r#"
var HOME_NET 192.0.2.0/24
alert tcp any any -> $HOME_NET 80 (content:"a"; sid:1;)
alert tcp $HOME_NET 80 -> any any (content:"a"; sid:2;)
alert tcp $HOME_NET 80 <> any any (content:"a"; sid:3;)
alert tcp !$HOME_NET any -> any [1:79,81:] (content:"a"; sid:4;)
alert tcp any any -> any any (flow:from_server; content:"a"; sid:5;)
alert tcp any any -> any any (content:"a"; sid:6;)
"#;
    assert_eq!(sids(rules, &[b"a", b"_"]), [1, 3, 6]);
    assert_eq!(sids(rules, &[b"_", b"a"]), [2, 3, 5, 6]);
    // Once a connection, though both directions have it twice.
    assert_eq!(sids(rules, &[b"aa", b"aa", b"a"]), [1, 2, 3, 5, 6]);
}

#[test]
fn rules_alert_as_soon_as_later_bytes_cannot_matter() {
    let rules = r#"
alert tcp any any -> any any (content:"a"; sid:1;)
alert tcp any any -> any any (content:"a"; content:!"b"; sid:2;)
"#;
    let set = set(rules);
    assert_eq!(play(&set, &[b"_a_"], 1, false).0, [1]);
    assert_eq!(play(&set, &[b"_a_"], 1, true).0, [1, 2]);
    assert_eq!(play(&set, &[b"_a_b"], 1, true).0, [1]);
}

#[test]
fn the_depth_ends_a_direction() {
    let rules = r#"
alert tcp any any -> any any (content:"needle"; sid:1;)
alert tcp any any -> any any (content:!"needle"; sid:2;)
"#;
    let at = |place: usize| [&vec![b'_'; place][..], b"needle______"].concat();
    let depth = braid_signatures::limits::STREAM_DEPTH;
    let set = set(rules);
    for (place, wanted) in [(depth - 6, 1), (depth - 5, 2), (depth, 2)] {
        for step in [1, 1000, usize::MAX] {
            let (sids, counts) = play(&set, &[&at(place)], step, false);
            assert_eq!((sids, counts.depths), (vec![wanted], 1), "{place} in parts of {step}");
        }
    }
}

const HTTP: &str = r#"
alert http any any -> any any (http.method; content:"POST"; sid:1;)
alert tcp any any -> any any (content:"/a b"; http_uri; nocase; sid:2;)
alert tcp any any -> any any (content:"a%20b"; http_raw_uri; sid:3;)
alert http any any -> any any (http.host; content:"example.org"; endswith; sid:4;)
alert tcp any any -> any any (content:"curl"; depth:4; http_user_agent; sid:5;)
alert tcp any any -> any any (content:"id=7"; http_cookie; sid:6;)
alert tcp any any -> any any (content:"id=7"; http_header; sid:7;)
alert tcp any any -> any any (content:"secret"; http_client_body; sid:8;)
alert http any any -> any any (http.stat_code; content:"404"; sid:9;)
alert http any any -> any any (file_data; content:"root:x"; startswith; sid:10;)
alert tcp any any -> any any (urilen:<8; content:"GET"; http_method; sid:11;)
alert http any any -> any any (http.uri; content:"/q"; http.header; content:!"Referer"; sid:12;)
alert http any any -> any any (http.uri; content:"/q"; http.referer; content:!"x"; sid:13;)
alert http any any -> any any (content:"POST"; content:"secret"; sid:14;)
alert http any any -> any any (pcre:"/^\/q[0-9]$/U"; sid:15;)
alert http any any -> any any (flow:to_client; content:"HTTP/1.1 404"; startswith; sid:16;)
alert http any any -> any any (file_data; content:"end"; endswith; sid:17;)
"#;

#[test]
fn buffers_of_http_messages() {
    let post = b"POST /A%20b HTTP/1.1\r\nHost: www.EXAMPLE.org:8080\r\nUser-Agent: curl/8\r\n\
        Cookie: id=7\r\nContent-Length: 10\r\n\r\n__secret__";
    let lost = b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nend";
    assert_eq!(sids(HTTP, &[post, lost]), [1, 2, 4, 5, 6, 8, 9, 14, 16, 17]);
    // The last byte of the request is missing: the end of the connection ends it.
    let short = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nroot\r\n5;a=b\r\n:xend\r\n0\r\nT: 1\r\n\r\n";
    assert_eq!(sids(HTTP, &[&post[..post.len() - 1], short]), [1, 2, 4, 5, 6, 8, 10, 14, 17]);
}

#[test]
fn every_message_of_a_connection_is_seen() {
    let get = b"GET /q1 HTTP/1.1\r\n\r\n";
    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    // Pipelined, and after empty lines.
    let two = [&get[..], b"\r\n\r\n", get].concat();
    assert_eq!(sids(HTTP, &[&two, &[&ok[..], ok].concat()]), [11, 11, 12, 12, 15, 15]);
    // The response to HEAD has no body, the interim response has no request of its own.
    let head = b"HEAD / HTTP/1.1\r\n\r\n";
    let answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\n";
    assert_eq!(sids(HTTP, &[head, &[&answer[..], ok].concat()]), [9, 16]);
    // Without a length, the body ends with the connection.
    let until_end = b"HTTP/1.0 200 OK\r\n\r\nroot:x and the end";
    assert_eq!(sids(HTTP, &[head, ok, get, until_end]), [10, 11, 12, 15, 17]);
    let (open, _) = play(&set(HTTP), &[head, ok, get, until_end], 5, false);
    assert_eq!(open, [11, 12, 15]);
}

#[test]
fn malformed_messages_end_http_and_are_counted() {
    let get = "GET /q1 HTTP/1.1\r\n\r\n";
    for (bytes, malformed) in [
        (format!("GET /q1 HTTP/1.1\r\nContent-Length: x\r\n\r\n{get}"), 1),
        (format!("GET /q1 HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{get}"), 1),
        (format!("GET /q1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{get}"), 1),
        (format!("{get}nonsense\r\n\r\n{get}"), 1),
        (format!("{get}{}", "G".repeat(20_000)), 1),
        (format!("{get}GET /q1 HTTP/1.1\r\nHost"), 1),
        (format!("EHLO me\r\n\r\n{get}"), 0),
        (format!("get\t/q1 HTTP/1.1\r\n\r\n{get}"), 0),
        (format!("SSH-2.0-x\r\n{get}"), 0),
        (format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{get}"), 0),
    ] {
        let wanted = if bytes.starts_with("GET /q1") { vec![11, 12, 15] } else { vec![] };
        for step in [1, 7, usize::MAX] {
            let (sids, counts) = play(&set(HTTP), &[bytes.as_bytes()], step, true);
            assert_eq!((sids, counts.malformed), (wanted.clone(), malformed), "{bytes}");
        }
    }
}

#[test]
fn what_http_has_found_stays_when_a_later_part_is_malformed() {
    let rules = set(concat!(
        "alert http any any -> any any (http.request_body; content:\"evil\"; sid:1;)\n",
        "alert http any any -> any any (http.method; content:\"get\"; sid:2;)\n",
    ));
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\nzz\r\n";
    let small = "get / HTTP/1.1\r\n\r\n";
    for (bytes, sid, malformed) in [(chunked, 1, 1), (small, 2, 0)] {
        for step in [1, 7, usize::MAX] {
            let (sids, counts) = play(&rules, &[bytes.as_bytes()], step, true);
            assert_eq!((sids, counts.malformed), (vec![sid], malformed), "{bytes}");
        }
    }
}

#[test]
fn buffer_of_a_content_is_that_of_the_tests_behind_it() {
    let rules = set(concat!(
        "alert tcp any any -> any any (content:\"/x\"; isdataat:!1,relative; http_uri; sid:1;)\n",
        "alert tcp any any -> any any (content:\"evil\"; isdataat:1; http_uri; sid:2;)\n",
    ));
    for (bytes, wanted) in [
        ("GET /x HTTP/1.1\r\n\r\n", vec![1]),
        ("GET /xy HTTP/1.1\r\n\r\n", vec![]),
        ("GET /evil HTTP/1.1\r\n\r\n", vec![2]),
        ("GET / HTTP/1.1\r\nA: evil\r\n\r\n", vec![]),
    ] {
        assert_eq!(play(&rules, &[bytes.as_bytes()], usize::MAX, true).0, wanted, "{bytes}");
    }
}

#[test]
fn refused_tunnel_is_http_still() {
    let connect = b"CONNECT example.org:443 HTTP/1.1\r\n\r\n";
    let no = b"HTTP/1.1 405 Not Allowed\r\nContent-Length: 0\r\n\r\n";
    let get: &[u8] = b"GET /q1 HTTP/1.1\r\n\r\n";
    let (found, counts) = play(&set(HTTP), &[connect, no, get], 7, true);
    // The target of CONNECT is a host.
    assert_eq!((found, counts.malformed), (vec![4, 11, 12, 15], 0));
}

#[test]
fn responses_to_unknown_requests_are_counted() {
    let get = b"GET / HTTP/1.1\r\n\r\n".repeat(1_100);
    let (_, counts) = play(&set(HTTP), &[&get, b"HTTP/1.1 200 OK\r\n\r\n"], usize::MAX, true);
    assert!(counts.malformed > 0);
}

#[test]
fn tunnels_are_no_http() {
    let connect = b"CONNECT example.org:443 HTTP/1.1\r\n\r\n";
    let ok = b"HTTP/1.1 200 OK\r\n\r\n";
    let later: &[u8] = b"GET /q1 HTTP/1.1\r\n\r\n";
    let (found, counts) = play(&set(HTTP), &[connect, ok, later, b"\x16\x03\x01"], 7, true);
    assert_eq!((found, counts.malformed), (vec![4], 0));
    let upgrade = b"GET /q1 HTTP/1.1\r\nUpgrade: websocket\r\n\r\n";
    let switch = b"HTTP/1.1 101 Switching\r\n\r\n";
    let (found, counts) = play(&set(HTTP), &[upgrade, switch, b"\x81\x00", b"\x81\x00"], 7, true);
    assert_eq!((found, counts.malformed), (vec![11, 12, 15], 0));
}

#[test]
fn missing_bytes_end_a_direction_and_are_counted() {
    let rules = r#"
alert tcp any any -> any any (content:"ab"; sid:1;)
alert tcp any any -> any any (content:"a"; content:!"z"; sid:2;)
alert tcp any any -> any any (content:"c"; sid:3;)
"#;
    let set = set(rules);
    let (mut inspection, mut said) = (Inspection::default(), Said::default());
    let mut sids = |offset: u64, bytes: &[u8], from_client: bool| {
        let flow = if from_client { FLOW } else { FLOW.reversed() };
        said.alerts.clear();
        inspection.data(&mut said.by(&set), (flow, from_client), (offset, bytes));
        (said.sids(&set), said.counts.gaps)
    };
    assert_eq!(sids(0, b"a", true), (vec![], 0));
    assert_eq!(sids(2, b"bc", true), (vec![2], 1));
    assert_eq!(sids(9, b"ab", true), (vec![], 1));
    assert_eq!(sids(0, b"c", false), (vec![3], 1));
}

#[test]
fn other_rules_see_the_bytes_that_are_kept() {
    let first = set(r#"alert tcp any any -> any any (content:"abc"; sid:1;)"#);
    let second = set(r#"alert tcp any any -> any any (content:"bcd"; sid:2;)"#);
    let (mut inspection, mut said) = (Inspection::default(), Said::default());
    inspection.data(&mut said.by(&first), (FLOW, true), (0, b"xabc"));
    inspection.changed();
    inspection.data(&mut said.by(&second), (FLOW, true), (4, b"d"));
    let rules: Vec<u32> = said.alerts.iter().map(|alert| alert.rule).collect();
    assert_eq!(rules, [0, 0]);
}
