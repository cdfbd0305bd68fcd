//! How parts of a packet overlap.

use braid_ir::service_graph::{Overlap, Part};
use braid_packet::{Field, Header};

fn field(name: &str) -> Part {
    Part::Field(Field::by_name(name).unwrap_or_else(|| panic!("{name}")))
}

#[track_caller]
fn changes(written: &str, read: &str) -> bool {
    field(written).changes(&field(read))
}

#[test]
fn fields_of_either_version_or_protocol_are_both() {
    for (a, b) in [
        ("ip.src", "inet.src"),
        ("ip6.dst", "inet.dst"),
        ("inet.ttl", "ip6.ttl"),
        ("l4.sport", "udp.sport"),
        ("tcp.dport", "inet.dport"),
        ("icmp.id", "inet.sport"),
        ("ip.tos", "ip.ecn"),
        ("icmp.rest", "icmp.seq"),
        ("quoted.l4.sport", "quoted.inet.sport"),
    ] {
        assert!(changes(a, b), "{a} -> {b}");
    }
    for (a, b) in [
        ("ip.src", "ip6.src"),
        ("ip.src", "inet.dst"),
        ("tcp.sport", "udp.sport"),
        ("ip.dscp", "ip.ecn"),
        ("ip.src", "quoted.inet.src"),
        ("l4.sport", "pkt.len"),
    ] {
        assert!(!changes(a, b), "{a} -> {b}");
    }
}

#[test]
fn writes_change_the_checksums_that_cover_them() {
    assert!(changes("ip.ttl", "ip.checksum") && changes("inet.ttl", "ip.checksum"));
    assert!(!changes("ip.ttl", "l4.checksum"), "no pseudo header has it");
    assert!(changes("ip.src", "l4.checksum") && changes("ip6.src", "l4.checksum"));
    assert!(changes("tcp.seq", "l4.checksum") && !changes("tcp.seq", "ip.checksum"));
    assert!(Part::Payload.changes(&field("l4.checksum")));
}

#[test]
fn types_and_ports_decide_which_headers_there_are() {
    let presence = |header| Part::Presence(header);
    assert!(field("icmp.type").changes(&presence(Header::Quoted)));
    assert!(field("icmp.type").changes(&field("icmp.id")));
    assert!(field("icmp.type").changes(&Part::Payload));
    assert!(field("l4.dport").changes(&field("vxlan.vni")));
    assert!(!field("l4.sport").changes(&presence(Header::Vxlan)));
    assert!(!field("ip.src").changes(&presence(Header::Tcp)));
}

#[test]
fn writers_of_different_fields_may_meet_in_a_checksum_or_a_byte() {
    let overlap = |a: &str, b: &str| field(a).overlap(&field(b));
    assert_eq!(overlap("ip.src", "ip.ttl"), Overlap::Beside("ip.checksum".into()));
    assert_eq!(overlap("ip.src", "tcp.sport"), Overlap::Beside("l4.checksum".into()));
    assert_eq!(overlap("vlan.id", "vlan.pcp"), Overlap::Beside("a byte of vlan".into()));
    assert_eq!(overlap("ip.ttl", "tcp.sport"), Overlap::None);
    assert_eq!(overlap("ip6.src", "icmp6.code"), Overlap::Beside("the checksum of icmp6".into()));
    assert_eq!(overlap("ip.src", "icmp6.code"), Overlap::None, "ICMPv6 is behind IPv6");
    assert_eq!(overlap("ip.src", "icmp.code"), Overlap::None, "it covers no address");
    assert_eq!(overlap("eth.src", "eth.dst"), Overlap::None);
    assert_eq!(overlap("ip.tos", "ip.dscp"), Overlap::Same);
}

#[test]
fn tags_are_apart_from_bytes_and_the_whole_packet_has_both() {
    let tag = |name: &str| Part::Tag(name.into());
    assert!(tag("x").changes(&tag("x")) && !tag("x").changes(&tag("y")));
    assert!(!tag("x").changes(&field("ip.src")) && !field("ip.src").changes(&tag("x")));
    assert!(tag("x").changes(&Part::Whole) && field("eth.src").changes(&Part::Whole));
}

#[test]
fn copy_of_the_headers_lacks_payload_and_the_mark_of_a_cut() {
    assert!(field("pkt.len").is_in_headers());
    assert!(!field("pkt.truncated").is_in_headers());
    assert!(!Part::Payload.is_in_headers() && !Part::Whole.is_in_headers());
}

#[test]
fn parts_of_a_quoted_packet_are_in_the_payload() {
    for part in [
        Part::Field(Field::QuotedIpSrc),
        Part::Field(Field::QuotedInetDst),
        Part::Presence(Header::Quoted),
        Part::Presence(Header::QuotedL4),
        Part::Payload,
    ] {
        assert!(!part.is_in_headers(), "{part}");
    }
    for part in [Part::Field(Field::IcmpType), Part::Presence(Header::Icmp), Part::Tag("a".into())]
    {
        assert!(part.is_in_headers(), "{part}");
    }
}
