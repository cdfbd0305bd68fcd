//! Bits of connections: which rules alert, by hand, over packets of both ends.

mod support;

use braid_signatures::{Flow, Inspection, Signatures, limits, load};
use support::Said;

const FLOW: Flow = Flow { version: 4, src: 1, dst: 2, sport: 3, dport: 80 };

fn set(rules: &[&str]) -> Signatures {
    let lines = rules.iter().zip(1..).map(|(options, sid)| {
        let (protocol, options) = match options.strip_prefix("http ") {
            Some(options) => ("http", options),
            None => ("tcp", *options),
        };
        format!("alert {protocol} any any -> any any ({options} sid:{sid};)\n")
    });
    let loaded = load(&lines.collect::<String>());
    assert_eq!(loaded.refused, []);
    loaded.set
}

/// The sids of the alerts of each packet, in their order. `<` in front of a packet's text says that
/// the server has sent it.
fn alerts(set: &Signatures, packets: &[&str]) -> Vec<Vec<u32>> {
    let play = |is_saved: bool| {
        let (mut inspection, mut said) = (Inspection::default(), Said::default());
        let mut offsets = [0_u64; 2];
        let packets = packets.iter().map(|text| {
            let (from_client, text) = match text.strip_prefix('<') {
                Some(text) => (false, text),
                None => (true, *text),
            };
            let flow = if from_client { FLOW } else { FLOW.reversed() };
            let offset = &mut offsets[usize::from(from_client)];
            said.alerts.clear();
            inspection.data(&mut said.by(set), (flow, from_client), (*offset, text.as_bytes()));
            *offset += text.len() as u64;
            if is_saved {
                inspection = Inspection::from_bytes(&inspection.to_bytes()).expect("whole");
            }
            let sids = said.alerts.iter().filter_map(|alert| set.get(alert.rule));
            sids.map(|of| of.sid).collect::<Vec<_>>()
        });
        packets.collect::<Vec<_>>()
    };
    let found = play(false);
    assert_eq!(play(true), found, "saved after each packet");
    found
}

#[test]
fn later_packets_see_bits_in_both_directions() {
    let set = set(&[
        r#"content:"login"; flow:to_server; flowbits:set,asked; flowbits:noalert;"#,
        r#"content:"denied"; flow:to_client; flowbits:isset,asked;"#,
        r#"content:"denied"; flow:to_client; flowbits:isnotset,asked;"#,
    ]);
    assert_eq!(alerts(&set, &["login", "<denied"]), [vec![], vec![2]]);
    assert_eq!(alerts(&set, &["hello", "<denied"]), [vec![], vec![3]]);
    // The denial came before the question, so only a later one counts.
    let found = alerts(&set, &["<denied", "login", "<so", "<denied"]);
    assert_eq!(found, [vec![3], vec![], vec![], vec![2]]);
}

#[test]
fn rules_that_set_bits_come_first_for_the_same_bytes() {
    let set = set(&[
        r#"content:"c"; flowbits:isset,two;"#,
        r#"content:"b"; flowbits:isset,one; flowbits:set,two;"#,
        r#"content:"a"; flowbits:set,one;"#,
        r#"content:"d";"#,
    ]);
    assert_eq!(alerts(&set, &["dcba"]), [vec![3, 2, 1, 4]]);
    assert_eq!(
        alerts(&set, &["c", "b", "a", "b", "c"]),
        [vec![], vec![], vec![3], vec![2], vec![1]]
    );
}

#[test]
fn matches_lie_behind_the_bytes_for_which_the_bits_were_otherwise() {
    let set = set(&[
        r#"content:"set"; flow:to_client; flowbits:set,bit; noalert;"#,
        r#"content:"ab"; flow:to_server; flowbits:isset,bit;"#,
        r#"pcre:"/xy/"; flow:to_server; flowbits:isset,bit;"#,
        r#"content:"a"; content:"z"; distance:0; flow:to_server; flowbits:isset,bit;"#,
        r#"pcre:"/^x/"; flow:to_server; flowbits:isset,bit;"#,
    ]);
    // The `a` and the `x` came before.
    let found = alerts(&set, &["xa", "<set", "b", "y", "z", "ab", "xy", "z"]);
    let wanted = [vec![], vec![], vec![], vec![], vec![], vec![2], vec![3], vec![4]];
    assert_eq!(found, wanted);
}

#[test]
fn bits_are_set_again_after_each_match_and_rules_alert_once() {
    let set = set(&[
        r#"content:"on"; flowbits:set,bit;"#,
        r#"content:"off"; flowbits:unset,bit;"#,
        r#"content:"flip"; flowbits:toggle,bit; noalert;"#,
        r#"http http.uri; content:"/"; flowbits:isset,bit;"#,
    ]);
    let request = "GET / HTTP/1.1\r\n\r\n";
    let found = alerts(&set, &[request, "", "<on", request, "<off", request, "<on", request]);
    let wanted = [vec![], vec![], vec![1], vec![4], vec![2], vec![], vec![], vec![4]];
    assert_eq!(found, wanted);
    let found = alerts(&set, &["<flip", request, "<flip", request, "<flip", request]);
    assert_eq!(found, [vec![], vec![4], vec![], vec![], vec![], vec![4]]);
}

/// Packets with these texts, and others between them after the first `head`.
fn spread<'a>(head: &[&'a str], between: usize, tail: &[&'a str]) -> Vec<&'a str> {
    let between = std::iter::repeat_n("list files\n", between);
    head.iter().copied().chain(between).chain(tail.iter().copied()).collect()
}

#[test]
fn rules_with_bits_hold_at_once_behind_many_segments() {
    let login = set(&[
        r#"content:"LOGIN"; flowbits:set,in; noalert;"#,
        r#"content:"LOGOUT"; flowbits:unset,in; noalert;"#,
        r#"content:"secret"; flowbits:isset,in;"#,
    ]);
    let both = set(&[
        r#"content:"USER root"; content:"230 ok"; flowbits:set,in; noalert;"#,
        r#"content:"secret"; flowbits:isset,in;"#,
    ]);
    for between in [10, 33, 60, 200] {
        let of = |set: &Signatures, packets: &[&str]| alerts(set, packets).concat();
        let packets = spread(&["LOGIN", "LOGOUT"], between, &["LOGIN", "secret", "LOGOUT"]);
        assert_eq!(of(&login, &packets), [3], "{between}");
        let packets = spread(&["LOGIN", "LOGOUT", "LOGIN"], between, &["LOGOUT", "secret", "x"]);
        assert_eq!(of(&login, &packets), [0; 0], "{between}");
        // It asks long before it holds.
        let packets = spread(&["secret", "LOGIN"], between, &["secret", "LOGOUT"]);
        assert_eq!(of(&login, &packets), [3], "{between}");
        let packets = spread(&["USER root"], between, &["230 ok", "secret"]);
        assert_eq!(of(&both, &packets), [2], "{between}");
    }
}

#[test]
fn work_of_rules_that_write_bits_is_that_of_new_bytes() {
    let rules = [r#"pcre:"/a/"; flowbits:set,x; noalert;"#, r#"content:"evil";"#];
    let (set, mut said) = (set(&rules), Said::default());
    let mut inspection = Inspection::default();
    for offset in 0..20_000 {
        inspection.data(&mut said.by(&set), (FLOW, true), (offset, b"a"));
    }
    inspection.data(&mut said.by(&set), (FLOW, true), (20_000, b"evil"));
    assert_eq!((said.sids(&set), said.counts.exhausted), (vec![2], 0));
}

#[test]
fn rules_with_bits_leave_work_to_others() {
    let rules: Vec<String> = (0..50)
        .map(|bit| format!("content:\"a\"; content:\"b{bit}\"; flowbits:set,x{bit};"))
        .collect();
    let mut rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    rules.push(r#"content:"evil";"#);
    let (set, mut said) = (set(&rules), Said::default());
    let names: String = (0..50).map(|bit| format!("b{bit}")).collect();
    let mut inspection = Inspection::default();
    inspection.data(&mut said.by(&set), (FLOW, true), (0, names.as_bytes()));
    let (start, end) = (names.len() as u64, 20_000);
    for offset in start..end {
        inspection.data(&mut said.by(&set), (FLOW, true), (offset, b"b"));
    }
    inspection.data(&mut said.by(&set), (FLOW, true), (end, b"evil"));
    assert_eq!((said.sids(&set), said.counts.exhausted), (vec![51], 0));
}

#[test]
fn rules_without_a_match_write_once_a_direction() {
    let rules = [
        r#"byte_test:1,=,71,0; flowbits:toggle,one; noalert;"#,
        r#"flow:to_server; flowbits:toggle,two; noalert;"#,
        r#"byte_jump:1,1; content:"c"; within:1; flowbits:toggle,three; noalert;"#,
        r#"content:"z"; flowbits:isset,one;"#,
        r#"content:"z"; flowbits:isset,two;"#,
        r#"content:"z"; flowbits:isset,three;"#,
    ];
    let set = set(&rules);
    for packets in [&["G\x01_cdez"][..], &["G\x01_cde", "z"], &["G\x01_c", "d", "e", "z", "z"]] {
        assert_eq!(alerts(&set, packets).concat(), [4, 5, 6], "{packets:?}");
    }
}

#[test]
fn one_of_several_bits_suffices() {
    let set = set(&[
        r#"content:"one"; flowbits:set,one; noalert;"#,
        r#"content:"two"; flowbits:set,two; noalert;"#,
        r#"content:"x"; flowbits:isset,one|two;"#,
        r#"content:"x"; flowbits:isnotset, one | two;"#,
        r#"content:"x"; flowbits:isset,one; flowbits:isset,two;"#,
    ]);
    assert_eq!(alerts(&set, &["x"]), [vec![4]]);
    assert_eq!(alerts(&set, &["one", "x"]), [vec![], vec![3, 4]]);
    assert_eq!(alerts(&set, &["one", "two", "x"]), [vec![], vec![], vec![3, 5]]);
}

#[test]
fn bits_of_messages_are_asked_for_when_the_message_has_come() {
    let set = set(&[
        r#"http http.method; content:"POST"; flowbits:set,post; noalert;"#,
        r#"http http.stat_code; content:"500"; flowbits:isset,post;"#,
    ]);
    let (get, post) = ("GET / HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\n\r\n");
    let error = "<HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n";
    let found = alerts(&set, &[get, error, post, error, error]);
    assert_eq!(found, [vec![], vec![], vec![], vec![2], vec![2]]);
}

#[test]
fn bits_of_a_connection_are_bounded_and_counted() {
    let rules: Vec<String> = (0..limits::MAX_BITS / 50 + 1)
        .map(|rule| {
            let bits = (0..50).map(|bit| format!("flowbits:set,bit{rule}_{bit};"));
            format!("content:\"a\"; noalert; {}", bits.collect::<String>())
        })
        .collect();
    let set = set(&rules.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut inspection, mut said) = (Inspection::default(), Said::default());
    inspection.data(&mut said.by(&set), (FLOW, true), (0, b"a"));
    let beyond = rules.len() * 50 - limits::MAX_BITS;
    assert_eq!(said.counts.bits, beyond as u64);
    assert!(Inspection::from_bytes(&inspection.to_bytes()).is_some());
    inspection.data(&mut said.by(&set), (FLOW, true), (1, b"a"));
    assert_eq!(said.counts.bits, 2 * beyond as u64);
}
