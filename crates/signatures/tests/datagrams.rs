//! Alerts of rules on datagrams, worked out by hand.

mod support;

use braid_signatures::{Datagrams, Flow, load};
use support::Said;

/// From 10.0.0.1:1000 to 192.0.2.1:53.
const FLOW: Flow = Flow { version: 4, src: 0x0a00_0001, dst: 0xc000_0201, sport: 1000, dport: 53 };

/// The sids that alert on each datagram of a flow. `<` in front of its text says that the other end
/// has sent it.
fn alerts(rules: &str, datagrams: &[&str]) -> Vec<Vec<u32>> {
    let loaded = load(rules);
    assert_eq!(loaded.refused, [], "{rules}");
    let (set, mut said) = (loaded.set, Said::default());
    let mut inspection = Datagrams::default();
    let mut is_answered = false;
    let alerts = datagrams.iter().map(|text| {
        let (from_client, text) = match text.strip_prefix('<') {
            Some(text) => (false, text),
            None => (true, *text),
        };
        is_answered |= !from_client;
        let flow = if from_client { FLOW } else { FLOW.reversed() };
        said.alerts.clear();
        let ends = (flow, from_client, is_answered);
        inspection.datagram(&mut said.by(&set), ends, text.as_bytes());
        inspection = Datagrams::from_bytes(&inspection.to_bytes()).expect("whole");
        said.sids(&set)
    });
    alerts.collect()
}

#[test]
fn each_datagram_is_seen_alone_and_whole() {
    let rules = r#"
alert udp any any -> any any (content:"ab"; sid:1;)
alert udp any any -> any any (content:"a"; offset:1; depth:1; sid:2;)
alert udp any any -> any any (content:!"a"; sid:3;)
alert udp any any -> any any (content:"b"; endswith; sid:4;)
alert udp any any -> any any (pcre:"/^b/"; sid:5;)
alert udp any any -> any any (byte_test:1,=,0x61,0; sid:6;)
alert tcp any any -> any any (content:"a"; sid:7;)
alert http any any -> any any (content:"a"; sid:8;)
"#;
    let found = alerts(rules, &["a", "b", "xab", "xab", ""]);
    let wanted = [vec![6], vec![3, 4, 5], vec![1, 2, 4], vec![1, 2, 4], vec![3]];
    assert_eq!(found, wanted);
}

#[test]
fn headers_flows_and_sizes_choose_datagrams() {
    let rules = r#"
alert udp 10.0.0.0/8 any -> any 53 (sid:1;)
alert udp any 53 -> 10.0.0.0/8 any (sid:2;)
alert udp any any -> any any (flow:to_server; sid:3;)
alert udp any any -> any any (flow:to_client; sid:4;)
alert udp any any -> any any (flow:established; sid:5;)
alert udp any any -> any any (flow:not_established; sid:6;)
alert udp any any -> any any (dsize:2; sid:7;)
alert udp any any -> any any (dsize:!2; sid:8;)
alert udp any any -> any any (dsize:>1; dsize:<4; sid:9;)
alert udp any any -> any any (dsize:1<>4; sid:10;)
"#;
    let found = alerts(rules, &["a", "<ab", "abc", "<abcd"]);
    let wanted =
        [vec![1, 3, 6, 8], vec![2, 4, 5, 7, 9, 10], vec![1, 3, 5, 8, 9, 10], vec![2, 4, 5, 8]];
    assert_eq!(found, wanted);
}

#[test]
fn flows_have_bits_and_thresholds_count_datagrams() {
    let rules = r#"
alert udp any any -> any 53 (content:"ask"; flowbits:set,asked; noalert; sid:1;)
alert udp any 53 -> any any (flowbits:isset,asked; sid:2;)
alert udp any any -> any any (threshold:type both,track by_src,count 2,seconds 9; sid:3;)
"#;
    let found = alerts(rules, &["<no", "ask", "<yes", "again", "more"]);
    assert_eq!(found, [vec![], vec![], vec![2, 3], vec![3], vec![]]);
}
