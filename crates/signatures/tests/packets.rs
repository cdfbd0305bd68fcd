//! Alerts of rules on packets, worked out by hand.

mod support;

use braid_signatures::{Datagrams, Flow, Inspection, Kind, Number, Packet, load};
use support::Said;

/// From 10.0.0.1:1000 to 192.0.2.1:53.
const FLOW: Flow = Flow { version: 4, src: 0x0a00_0001, dst: 0xc000_0201, sport: 1000, dport: 53 };

/// The sids that alert on each packet of a kind. `<` in front of its text says that the other end
/// has sent it. `number` gives the numbers of all packets but their lengths.
fn alerts_of(
    rules: &str,
    kind: Kind,
    number: &dyn Fn(Number) -> Option<u32>,
    packets: &[&str],
) -> Vec<Vec<u32>> {
    let loaded = load(rules);
    assert_eq!(loaded.refused, [], "{rules}");
    let (set, mut said) = (loaded.set, Said::default());
    let (mut datagrams, mut connection) = (Datagrams::default(), Inspection::default());
    let mut is_established = false;
    let alerts = packets.iter().map(|text| {
        let (from_client, text) = match text.strip_prefix('<') {
            Some(text) => (false, text),
            None => (true, *text),
        };
        is_established |= !from_client;
        let flow = if from_client { FLOW } else { FLOW.reversed() };
        said.alerts.clear();
        let number = &|of| match of {
            Number::Length => u32::try_from(text.len()).ok(),
            of => number(of),
        };
        let bytes = text.as_bytes();
        let packet = Packet { kind, flow, from_client, is_established, bytes, number };
        match kind {
            Kind::Tcp => connection.packet(&mut said.by(&set), &packet),
            _ => datagrams.packet(&mut said.by(&set), &packet),
        }
        datagrams = Datagrams::from_bytes(&datagrams.to_bytes()).expect("whole");
        connection = Inspection::from_bytes(&connection.to_bytes()).expect("whole");
        said.sids(&set)
    });
    alerts.collect()
}

/// The sids that alert on each datagram of a flow.
fn alerts(rules: &str, datagrams: &[&str]) -> Vec<Vec<u32>> {
    alerts_of(rules, Kind::Udp, &|_| None, datagrams)
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

#[test]
fn rules_about_segments_see_each_alone() {
    let rules = r#"
alert tcp any any -> any any (flags:S,12; sid:1;)
alert tcp any any -> any any (dsize:<3; content:"a"; sid:2;)
alert tcp-pkt any any -> any any (content:"b"; sid:3;)
alert tcp any any -> any any (flow:no_stream; content:"b"; sid:4;)
alert tcp any any -> any any (flow:not_established; dsize:0; sid:5;)
alert tcp any any -> any any (flow:established,to_client; window:!4000; sid:6;)
alert tcp any any -> any any (seq:7; ack:9; sid:7;)
alert tcp any any -> any any (seq:7; ack:8; sid:8;)
alert tcp any any -> any any (ttl:>64; sid:9;)
alert tcp any any -> any any (content:"b"; sid:10;)
alert udp any any -> any any (content:"b"; sid:11;)
alert tcp any any -> any any (dsize:2; content:"ba"; flowbits:set,x; noalert; sid:12;)
alert tcp any any -> any any (dsize:1; flowbits:isset,x; sid:13;)
"#;
    // CWR and ECE are set beside SYN.
    let number = |of| match of {
        Number::Flags => Some(0xc2),
        Number::Seq => Some(7),
        Number::Ack => Some(9),
        Number::Window => Some(5000),
        _ => None,
    };
    let found = alerts_of(rules, Kind::Tcp, &number, &["", "a", "ba", "<b", "aab"]);
    let wanted = [
        vec![1, 5, 7],
        vec![1, 2, 7],
        vec![1, 2, 3, 4, 7],
        vec![1, 3, 4, 6, 7, 13],
        vec![1, 3, 4, 7],
    ];
    assert_eq!(found, wanted);
}

#[test]
fn packets_without_ports_belong_to_no_flow() {
    let rules = r#"
alert icmp any any -> any any (itype:8; icode:0; sid:1;)
alert icmp any any -> any any (itype:>8; sid:2;)
alert icmpv6 any any -> any any (sid:3;)
alert icmpv4 any any -> any any (icmp_id:5; icmp_seq:<7; sid:4;)
alert ip any any -> any any (content:"ping"; sid:5;)
alert ip any 53 -> any any (content:"ping"; sid:6;)
alert ip any any -> any any (flow:to_server; content:"ping"; sid:7;)
alert ip any any -> any any (content:"ping"; flowbits:isnotset,x; sid:8;)
alert ip any any -> any any (ip_proto:icmp; sid:9;)
alert ip any any -> any any (ip_proto:!icmp; sid:10;)
alert ip any any -> any any (sameip; sid:11;)
alert ip [10.0.0.0/8,::/0] any -> any any (tos:4; id:9; sid:12;)
alert ipv6 any any -> any any (sid:13;)
"#;
    let number = |of| match of {
        Number::IcmpType => Some(8),
        Number::IcmpCode | Number::HasSameEnds => Some(0),
        Number::IcmpId => Some(5),
        Number::IcmpSeq => Some(6),
        Number::Protocol => Some(1),
        Number::Tos => Some(4),
        Number::Id => Some(9),
        _ => None,
    };
    let found = alerts_of(rules, Kind::Icmp, &number, &["a ping", ""]);
    assert_eq!(found, [vec![1, 4, 5, 9, 12], vec![1, 4, 9, 12]]);
    // GRE, and a datagram from the server's port.
    let gre = |of| (of == Number::Protocol).then_some(47);
    assert_eq!(alerts_of(rules, Kind::Other, &gre, &["ping"]), [vec![5, 10]]);
    let found = alerts_of(rules, Kind::Udp, &gre, &["<ping", "ping"]);
    assert_eq!(found, [vec![5, 6, 8, 10], vec![5, 7, 8, 10]]);
}

#[test]
fn fragments_are_seen_by_rules_about_headers() {
    let rules = r#"
alert ip any any -> any any (fragbits:M; fragoffset:0; sid:1;)
alert udp any any -> any any (fragoffset:<9; sid:2;)
alert tcp any any -> any any (fragoffset:<9; sid:3;)
alert udp any any -> any 53 (fragoffset:<9; sid:4;)
alert udp any any -> any any (content:"a"; fragoffset:<9; sid:5;)
alert udp any any -> any any (dsize:>0; fragoffset:<9; sid:6;)
alert udp any any -> any any (flow:to_server; fragoffset:<9; sid:7;)
alert ip any any -> any any (fragoffset:<9; flowbits:isnotset,x; sid:8;)
alert icmp any any -> any any (itype:8; fragoffset:<9; sid:9;)
alert ip any any -> any any (ipopts:rr; sid:10;)
alert ip any any -> any any (ipopts:any; sid:11;)
alert udp any any -> any any (sid:12;)
"#;
    let number = |of| match of {
        Number::FragmentBits => Some(1),
        Number::FragmentOffset => Some(0),
        Number::Protocol => Some(17),
        Number::HasOption(Some(7)) => Some(0),
        Number::HasOption(None) => Some(1),
        _ => None,
    };
    let found = alerts_of(rules, Kind::Fragment, &number, &[""]);
    assert_eq!(found, [[1, 2, 11, 12]]);
    let found = alerts_of(rules, Kind::Udp, &number, &["a"]);
    assert_eq!(found, [[1, 2, 4, 5, 6, 7, 8, 11, 12]]);
}

#[test]
fn rules_about_ip_see_the_streams_of_tcp() {
    let rules = "alert ip any any -> any any (content:\"ab\"; sid:1;)\n\
        alert ip any any -> any any (content:\"ab\"; ttl:1; sid:2;)";
    let (set, mut said) = (load(rules).set, Said::default());
    let mut inspection = Inspection::default();
    for (offset, bytes) in [(0, b"xa"), (2, b"bx")] {
        inspection.data(&mut said.by(&set), (FLOW, true), (offset, bytes));
    }
    assert_eq!(said.sids(&set), [1]);
    // Not a second time by its packets, in which it does not see the content twice.
    let found = alerts_of(rules, Kind::Tcp, &|of| (of == Number::Ttl).then_some(1), &["ab"]);
    assert_eq!(found, [[2]]);
}
