//! Tests which headers a packet has, where its payload is, and whether it is malformed or only cut.

use crate::samples::*;
use braid_packet::field::Header::*;
use braid_packet::{Field, Header, Link, Packet};
use proptest::prelude::*;

fn ethernet(data: Vec<u8>) -> Packet {
    Packet::new(Link::Ethernet, 0, data)
}

/// The headers that are present, without the packet's own attributes.
fn headers(packet: &Packet) -> Vec<Header> {
    let layout = packet.parse();
    let all = braid_packet::HEADERS.iter().map(|(header, _)| *header);
    all.filter(|header| *header != Pkt && layout.has(*header)).collect()
}

fn malformed(packet: &Packet) -> Option<&'static str> {
    packet.parse().malformed()
}

#[test]
fn samples_have_the_headers_that_they_are_made_of() {
    let tcp = [Tcp, TcpMss, TcpWscale, TcpSackOk, TcpTs, L4].as_slice();
    let expected: Vec<(&str, Vec<Header>)> = vec![
        ("tcp", [&[Eth, Ip4, Inet], tcp].concat()),
        ("tcp6", [&[Eth, Ip6, Inet], tcp].concat()),
        ("udp", vec![Eth, Ip4, Inet, Udp, L4]),
        ("udp6", vec![Eth, Ip6, Inet, Udp, L4]),
        ("qinq", [&[Eth, Vlan, Vlan2, Ip4, Inet], tcp].concat()),
        ("arp", vec![Eth, Arp]),
        ("mpls", vec![Eth, Mpls]),
        ("echo", vec![Eth, Ip4, Inet, Icmp, IcmpEcho]),
        ("echo6", vec![Eth, Ip6, Inet, Icmp6, Icmp6Echo]),
        ("gre", vec![Eth, Ip4, Inet, Gre, GreKey]),
        ("vxlan", vec![Eth, Ip4, Inet, Udp, L4, Vxlan]),
        ("ah", vec![Eth, Ip4, Inet, Udp, L4, Ah]),
        ("esp", vec![Eth, Ip4, Inet, Esp]),
        ("unreachable", vec![Eth, Ip4, Inet, Icmp, Quoted, Quoted4, QuotedL4]),
        ("exceeded", vec![Eth, Ip4, Inet, Icmp, Quoted, Quoted4, QuotedEcho]),
        ("unreachable6", vec![Eth, Ip6, Inet, Icmp6, Quoted, Quoted6, QuotedL4]),
        ("too_big6", vec![Eth, Ip6, Inet, Icmp6, Quoted, Quoted6, QuotedEcho]),
        ("raw", vec![Ip4, Inet, Udp, L4]),
        ("cooked", [&[Ip4, Inet], tcp].concat()),
        ("cooked2", vec![Ip6, Inet, Udp, L4]),
        ("geneve", vec![Eth, Ip6, Inet, Udp, L4, Geneve]),
        ("pppoe", [&[Eth, Ip4, Inet], tcp, &[Pppoe, Ppp]].concat()),
        ("pppoe6", vec![Eth, Ip6, Inet, Udp, L4, Pppoe, Ppp]),
        ("pppoe_discovery", vec![Eth, Pppoe]),
    ];
    let samples = all();
    assert_eq!(samples.len(), expected.len());
    for ((name, packet), (expected_name, headers_expected)) in samples.iter().zip(expected) {
        assert_eq!(*name, expected_name);
        assert_eq!(headers(packet), headers_expected, "{name}");
        assert_eq!(malformed(packet), None, "{name}");
    }
}

#[test]
fn payload_leaves_out_padding_and_headers() {
    let mut data = eth(0x0800, &ip4(17, &udp(1, 2, b"abc")));
    data.extend([0; 15]);
    let packet = ethernet(data);
    let layout = packet.parse();
    assert_eq!(packet.payload(&layout), b"abc");
    assert_eq!((packet.get(&layout, Field::PktLen), layout.payload_len()), (Some(60), 3));
    let echo = named("echo");
    assert_eq!(echo.payload(&echo.parse()), b"payload of odd length");
    let arp = named("arp");
    assert_eq!(arp.payload(&arp.parse()), b"");
}

#[test]
fn payload_behind_geneve_is_behind_its_options() {
    let packet = named("geneve");
    let layout = packet.parse();
    assert_eq!(layout.payload_offset(), 14 + 40 + 8 + 16);
    assert_eq!(packet.payload(&layout)[12..14], [8, 0]);
    assert_eq!(
        packet.to_string(),
        "[2001:db8::1]:50000 > [2001:db8::ff]:6081 Geneve 1193046 len 177"
    );
}

#[test]
fn packets_of_other_ppp_protocols_have_their_data_as_payload() {
    let lcp = [0xc0, 0x21, 9, 1, 0, 8, 1, 2, 3, 4];
    let packet = ethernet(eth(0x8864, &cat(&[&pppoe(0, &lcp), &[0; 30]])));
    assert_eq!(headers(&packet), [Eth, Pppoe, Ppp]);
    assert_eq!(packet.payload(&packet.parse()), &lcp[2..]);
    assert_eq!(packet.to_string(), "PPPoE code 0x00 session 5 len 60");
    let compressed = ethernet(eth(0x8864, &pppoe(0, &[0x21, 0x45])));
    assert_eq!(headers(&compressed), [Eth, Pppoe]);
}

#[test]
fn pppoe_length_beyond_the_wire_is_malformed() {
    let mut data = eth(0x8864, &pppoe(0, &[0, 0x21]));
    data.pop();
    assert_eq!(malformed(&ethernet(data.clone())), Some("header_length"));
    assert_eq!(malformed(&Packet::snapped(Link::Ethernet, 0, data, 22)), None);
}

#[test]
fn ip_in_pppoe_is_not_taken_for_a_packet_behind_tags() {
    for name in ["pppoe", "pppoe6"] {
        let layout = named(name).parse();
        assert!(layout.is_encapsulated() && !layout.is_plain());
        assert_eq!(braid_packet::rewrite::Outline::of(&layout), None, "{name}");
    }
}

#[test]
fn payload_of_an_icmp_error_is_the_quote() {
    let packet = named("exceeded");
    let layout = packet.parse();
    assert_eq!(layout.payload_offset(), 14 + 20 + 8);
    assert_eq!(packet.payload(&layout).len(), 20 + 8 + 4);
}

#[test]
fn payload_behind_mpls_is_behind_the_whole_stack() {
    let stack = [0, 1, 0x00, 9, 0, 2, 0x01, 9];
    let packet = ethernet(eth(0x8847, &cat(&[&stack, b"inner"])));
    let layout = packet.parse();
    assert_eq!(packet.payload(&layout), b"inner");
    assert_eq!(packet.get(&layout, Field::MplsBos), Some(0));
    assert_eq!(packet.get(&layout, Field::MplsLabel), Some(0x10));
}

#[test]
fn cut_capture_loses_headers_but_is_not_malformed() {
    for (name, whole) in all() {
        let wire_len = u32::try_from(whole.data().len()).unwrap();
        let headers_whole = headers(&whole);
        for len in 0..whole.data().len() {
            let cut = Packet::snapped(whole.link, 0, &whole.data()[..len], wire_len);
            assert_eq!(malformed(&cut), None, "{name} cut to {len}");
            assert!(headers(&cut).iter().all(|h| headers_whole.contains(h)), "{name} cut to {len}");
            let layout = cut.parse();
            let truncated = cut.get(&layout, Field::PktTruncated);
            assert_eq!(truncated, Some(1), "{name} cut to {len}");
        }
    }
}

#[test]
fn cut_within_tcp_options_leaves_ip_alone() {
    let whole = named("tcp");
    let cut = Packet::snapped(Link::Ethernet, 0, &whole.data()[..14 + 20 + 30], 99);
    assert_eq!(headers(&cut), [Eth, Ip4, Inet]);
    assert!(cut.parse().payload_truncated());
}

#[test]
fn short_on_the_wire_is_malformed() {
    let ip_at = |len: usize| malformed(&ethernet(eth(0x0800, &ip4(17, &udp(1, 2, b""))[..len])));
    assert_eq!(ip_at(19), Some("ip_short"));
    assert_eq!(ip_at(27), Some("ip_total_length"));
    assert_eq!(ip_at(28), None);
    let with =
        |proto: u8, len: usize| malformed(&ethernet(eth(0x0800, &ip4(proto, &vec![0; len]))));
    assert_eq!(with(6, 19), Some("tcp_short"));
    assert_eq!(with(6, 20), Some("tcp_header_length"));
    assert_eq!(with(17, 7), Some("udp_short"));
    assert_eq!(with(17, 8), Some("udp_length"));
    assert_eq!(with(1, 7), Some("icmp_short"));
    assert_eq!(with(1, 8), None);
    assert_eq!(with(47, 3), Some("gre_short"));
    assert_eq!(with(50, 7), Some("esp_short"));
    assert_eq!(with(51, 11), Some("ah_length"));
    assert_eq!(with(99, 0), None);
    assert_eq!(malformed(&ethernet(eth(0x86dd, &ip6(58, &[0; 7])))), Some("icmp6_short"));
    assert_eq!(malformed(&ethernet(vec![0; 13])), Some("eth_short"));
    assert_eq!(malformed(&ethernet(eth(0x8100, &[0, 1, 8]))), Some("vlan_short"));
    assert_eq!(malformed(&ethernet(eth(0x0806, &arp()[..27]))), Some("arp_short"));
    assert_eq!(malformed(&ethernet(eth(0x8847, &[0, 0, 1]))), Some("mpls_short"));
}

#[test]
fn malformed_header_is_absent_and_its_bytes_are_payload() {
    let mut segment = tcp(&[], b"x");
    segment[12] = 4 << 4;
    let packet = ethernet(eth(0x0800, &ip4(6, &segment)));
    assert_eq!(malformed(&packet), Some("tcp_header_length"));
    assert_eq!(headers(&packet), [Eth, Ip4, Inet]);
    assert_eq!(packet.payload(&packet.parse()), segment);
}

#[test]
fn version_that_contradicts_the_ether_type_is_malformed() {
    let six = ip6(17, &udp(1, 2, b""));
    assert_eq!(malformed(&ethernet(eth(0x0800, &six))), Some("ip_version"));
    assert_eq!(malformed(&ethernet(eth(0x86dd, &[0x45; 40]))), Some("ip_version"));
    assert_eq!(malformed(&Packet::new(Link::RawIp, 0, vec![0x50; 40])), Some("ip_version"));
    assert_eq!(malformed(&Packet::new(Link::RawIp, 0, vec![])), Some("ip_short"));
}

#[test]
fn later_fragments_have_no_transport_header() {
    let body = udp(1, 2, b"data");
    let first = ethernet(eth(0x0800, &ip4_with(17, &[], 0x2000, &body)));
    let later = ethernet(eth(0x0800, &ip4_with(17, &[], 0x0003, &body)));
    assert!(headers(&first).contains(&Udp));
    assert_eq!(headers(&later), [Eth, Ip4, Inet]);
    for (packet, expected) in [(&first, (1, 0)), (&later, (1, 1))] {
        let layout = packet.parse();
        let get = |field| packet.get(&layout, field).unwrap();
        assert_eq!((get(Field::PktFragment), get(Field::PktLaterFragment)), expected);
    }
    assert_eq!(later.payload(&later.parse()), body);
    let key = later.flow_key(&later.parse()).unwrap();
    assert_eq!((key.proto, key.sport, key.dport), (17, 0, 0));
}

#[test]
fn first_fragment_may_say_a_udp_length_beyond_its_end() {
    let mut body = udp(1, 2, b"data");
    body[4..6].copy_from_slice(&4000u16.to_be_bytes());
    assert_eq!(malformed(&ethernet(eth(0x0800, &ip4(17, &body)))), Some("udp_length"));
    let first = ethernet(eth(0x0800, &ip4_with(17, &[], 0x2000, &body)));
    assert_eq!((malformed(&first), first.payload(&first.parse())), (None, &b"data"[..]));
}

#[test]
fn ipv6_atomic_fragment_is_a_whole_packet() {
    let fragment = |word: u16| {
        let word = word.to_be_bytes();
        let header = [17, 0, word[0], word[1], 0, 0, 0, 9];
        ethernet(eth(0x86dd, &ip6(44, &cat(&[&header, &udp(1, 2, b"data")]))))
    };
    let flags = |packet: &Packet| {
        let layout = packet.parse();
        (layout.is_fragment(), layout.is_later_fragment(), layout.has(Udp))
    };
    assert_eq!(flags(&fragment(0x0000)), (false, false, true));
    assert_eq!(flags(&fragment(0x0001)), (true, false, true));
    assert_eq!(flags(&fragment(0x0009)), (true, true, false));
}

#[test]
fn ipv6_extension_headers_are_walked() {
    let hop = [60, 0, 1, 4, 0, 0, 0, 0];
    let destination = [43, 0, 1, 4, 0, 0, 0, 0];
    let routing = [135, 0, 3, 0, 0, 0, 0, 0];
    let mobility = [139, 0, 0, 0, 0, 0, 0, 0];
    let hip = [140, 0, 0, 0, 0, 0, 0, 0];
    let shim = [51, 0, 0, 0, 0, 0, 0, 0];
    let ah = [6, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6];
    let chain = cat(&[&hop, &destination, &routing, &mobility, &hip, &shim, &ah, &tcp(&[], b"")]);
    let packet = ethernet(eth(0x86dd, &ip6(0, &chain)));
    let layout = packet.parse();
    assert_eq!(headers(&packet), [Eth, Ip6, Inet, Tcp, L4, Ah]);
    let get = |field| packet.get(&layout, field);
    assert_eq!((get(Field::Ip6Next), get(Field::Ip6Proto)), (Some(0), Some(6)));
    assert_eq!((get(Field::InetProto), get(Field::TcpDport)), (Some(6), Some(443)));
    assert_eq!((get(Field::AhSpi), get(Field::AhSeq)), (Some(5), Some(6)));
}

#[test]
fn ipv6_extension_header_beyond_the_packet_is_malformed() {
    let packet = ethernet(eth(0x86dd, &ip6(60, &[17, 1, 0, 0, 0, 0, 0, 0])));
    assert_eq!(malformed(&packet), Some("ip6_extension_length"));
    assert_eq!(headers(&packet), [Eth]);
}

#[test]
fn seventeen_extension_headers_are_malformed() {
    let chain = |count: usize| {
        let mut body = [60, 0, 1, 4, 0, 0, 0, 0].repeat(count);
        body[(count - 1) * 8] = 59;
        malformed(&ethernet(eth(0x86dd, &ip6(60, &body))))
    };
    assert_eq!(chain(16), None);
    assert_eq!(chain(17), Some("ip6_extension_depth"));
}

#[test]
fn jumbogram_takes_its_length_from_the_option() {
    let payload = vec![7; 70_000];
    let hop = [17, 0, 0xc2, 4];
    let length = u32::try_from(8 + 8 + payload.len()).unwrap();
    let datagram = cat(&[&[0, 1, 0, 2, 0, 0, 0, 0], &payload]);
    let mut packet = ip6(0, &[]);
    packet.extend(cat(&[&hop, &length.to_be_bytes(), &datagram]));
    let packet = Packet::new(Link::RawIp, 0, packet);
    let layout = packet.parse();
    assert_eq!((layout.malformed(), layout.payload_len()), (None, 70_000));
    assert!(layout.has(Udp));
}

#[test]
fn ninth_vlan_tag_is_malformed() {
    let stack = |count: usize| {
        let inner = (1..count).fold(tag(9, 0x0800, &ip4(99, &[])), |body, _| tag(7, 0x8100, &body));
        ethernet(eth(0x8100, &inner))
    };
    let eight = stack(8);
    assert_eq!(headers(&eight), [Eth, Vlan, Vlan2, Ip4, Inet]);
    assert_eq!(eight.get(&eight.parse(), Field::EthType), Some(0x0800));
    assert_eq!(malformed(&stack(9)), Some("vlan_depth"));
}

#[test]
fn snap_frame_holds_ip_and_other_llc_is_payload() {
    let ip = ip4(17, &udp(1, 2, b"abc"));
    let snap = cat(&[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &ip]);
    let length = u16::try_from(snap.len()).unwrap();
    let packet = ethernet(eth(length, &cat(&[&snap, &[0; 9]])));
    let layout = packet.parse();
    assert!(layout.has(Udp));
    assert_eq!(packet.get(&layout, Field::EthType), Some(0x0800));
    let stp = ethernet(eth(5, &[0x42, 0x42, 3, 0, 0, 0, 0, 0]));
    let layout = stp.parse();
    assert_eq!(stp.payload(&layout), [0x42, 0x42, 3, 0, 0]);
    assert_eq!(stp.get(&layout, Field::EthType), Some(5));
}

#[test]
fn cooked_link_skips_vlan_tags_and_has_no_arp() {
    let tagged = cooked(0x8100, &tag(7, 0x0800, &ip4(17, &udp(1, 2, b"abc"))));
    let packet = Packet::new(Link::Cooked, 0, tagged);
    assert_eq!(headers(&packet), [Ip4, Inet, Udp, L4]);
    assert_eq!(headers(&Packet::new(Link::Cooked, 0, cooked(0x0806, &arp()))), []);
}

#[test]
fn quote_needs_its_ip_header_and_four_bytes_for_ports() {
    let quote = quotable(ip4(17, &udp(1000, 53, b"question")));
    let with = |len: usize| headers(&ethernet(eth(0x0800, &ip4(1, &icmp(3, 1, 0, &quote[..len])))));
    let start = [Eth, Ip4, Inet, Icmp].to_vec();
    assert_eq!(with(19), start);
    assert_eq!(with(23), [&start[..], &[Quoted, Quoted4]].concat());
    assert_eq!(with(24), [&start[..], &[Quoted, Quoted4, QuotedL4]].concat());
    let echo = quotable(ip4(1, &icmp(8, 0, 0x0102_0003, b"")));
    let with = |len: usize| headers(&ethernet(eth(0x0800, &ip4(1, &icmp(11, 0, 0, &echo[..len])))));
    assert_eq!(with(25), [&start[..], &[Quoted, Quoted4]].concat());
    assert_eq!(with(26), [&start[..], &[Quoted, Quoted4, QuotedEcho]].concat());
}

#[test]
fn quoted_later_fragment_has_no_ports() {
    let quote = ip4_with(17, &[], 0x0007, &udp(1, 2, b"abc"));
    let packet = ethernet(eth(0x0800, &ip4(1, &icmp(11, 1, 0, &quote))));
    assert_eq!(headers(&packet), [Eth, Ip4, Inet, Icmp, Quoted, Quoted4]);
}

#[test]
fn vlan_push_and_pop_restore_the_packet() {
    let packet = named("tcp");
    let mut tagged = packet.clone();
    assert!(tagged.push_vlan(0x1064));
    let layout = tagged.parse();
    let get = |field| tagged.get(&layout, field);
    assert_eq!((get(Field::VlanId), get(Field::VlanPcp)), (Some(0x064), Some(0)));
    assert_eq!((get(Field::VlanTpid), get(Field::EthType)), (Some(0x8100), Some(0x0800)));
    assert_eq!(tagged.wire_len, packet.wire_len + 4);
    assert!(tagged.pop_vlan());
    assert_eq!(tagged, packet);
    assert!(!tagged.pop_vlan());
    assert_eq!(tagged, packet);
    assert!(!named("raw").push_vlan(1));
}

#[test]
fn flow_keys_take_ports_or_echo_identifiers() {
    let key = |name: &str| {
        let packet = named(name);
        let key = packet.flow_key(&packet.parse()).unwrap();
        (key.version, key.proto, key.sport, key.dport)
    };
    assert_eq!(key("tcp"), (4, 6, 0x1234, 443));
    assert_eq!(key("udp6"), (6, 17, 4321, 53));
    assert_eq!(key("echo"), (4, 1, 0x0102, 0x0102));
    assert_eq!(key("echo6"), (6, 58, 0x0102, 0x0102));
    assert_eq!(key("unreachable"), (4, 1, 0, 0));
    assert_eq!(key("ah"), (4, 17, 500, 501));
    assert!(named("arp").flow_key(&named("arp").parse()).is_none());
}

#[test]
fn quoted_flow_key_is_the_key_of_the_quoted_packet() {
    let packet = named("unreachable");
    let key = packet.quoted_flow_key(&packet.parse()).unwrap();
    assert_eq!((key.src, key.dst), (u128::from(SRC4), u128::from(DST4)));
    assert_eq!((key.version, key.proto, key.sport, key.dport), (4, 6, 0x1234, 443));
    let packet = named("too_big6");
    let key = packet.quoted_flow_key(&packet.parse()).unwrap();
    assert_eq!((key.src, key.proto, key.sport, key.dport), (SRC6, 58, 0x0102, 0x0102));
    assert!(named("tcp").quoted_flow_key(&named("tcp").parse()).is_none());
}

#[test]
fn summaries_say_who_talks_to_whom() {
    let summary = |name: &str| named(name).to_string();
    assert_eq!(summary("tcp"), "10.1.2.3:4660 > 198.51.100.7:443 TCP SYN,ACK len 99");
    assert_eq!(summary("udp6"), "[2001:db8::1]:4321 > [2001:db8::ff]:53 UDP len 91");
    assert_eq!(summary("arp"), "10.1.2.3 > 10.1.2.9 ARP op 1 len 60");
    assert_eq!(summary("echo"), "10.1.2.3 > 198.51.100.7 ICMP type 8 code 0 len 63");
    let cut = Packet::snapped(Link::Ethernet, 0, &named("esp").data()[..34], 46);
    assert_eq!(cut.to_string(), "10.1.2.3 > 198.51.100.7 proto 50 len 46 captured 34");
    let bad = ethernet(eth(0x0800, &[0x44; 20]));
    assert_eq!(
        bad.to_string(),
        "02:00:00:00:00:01 > 02:00:00:00:00:02 type 0x0800 len 34 malformed ip_header_length"
    );
}

fn link() -> impl Strategy<Value = Link> {
    prop_oneof![Just(Link::Ethernet), Just(Link::RawIp), Just(Link::Cooked), Just(Link::Cooked2)]
}

/// Calls every query of a packet and checks the answers.
fn exercise(packet: &Packet) {
    let layout = packet.parse();
    for info in braid_packet::FIELDS {
        let value = packet.get(&layout, info.field);
        assert_eq!(value.is_some(), layout.has(info.header), "{}", info.name);
        assert!(value.is_none_or(|v| info.width == 128 || v >> info.width == 0), "{}", info.name);
    }
    for (header, name) in braid_packet::HEADERS {
        let implied = layout.has(*header);
        assert!(!implied || header.implies().iter().all(|h| layout.has(*h)), "{name}");
    }
    assert!(packet.payload(&layout).len() <= layout.payload_len());
    assert!(!packet.to_string().is_empty());
    let mut packet = packet.clone();
    for info in braid_packet::FIELDS {
        let present = layout.has(info.header) && info.access == braid_packet::Access::Rw;
        assert_eq!(packet.set(&layout, info.field, u128::MAX), present, "{}", info.name);
    }
    packet.push_vlan(5);
    packet.pop_vlan();
    checksum_calls(&mut packet);
}

fn checksum_calls(packet: &mut Packet) {
    let _ = braid_packet::checksum::verify(packet, &packet.parse());
    braid_packet::checksum::fill(packet);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(2000)))]

    #[test]
    fn any_bytes_parse_and_give_what_they_promise(
        link in link(),
        data in prop::collection::vec(any::<u8>(), 0..200),
        wire_len in 0u32..400,
    ) {
        exercise(&Packet::snapped(link, 0, data, wire_len));
    }

    #[test]
    fn damaged_packets_parse_and_give_what_they_promise(
        index in 0usize..24,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
        extra in 0u32..3,
    ) {
        let sample = all().swap_remove(index).1;
        let mut data = sample.data().to_vec();
        for (at, byte) in damage {
            let at = at.index(data.len());
            data[at] = byte;
        }
        if !whole {
            data.truncate(cut.index(data.len()));
        }
        let wire_len = u32::try_from(data.len()).unwrap() + extra * 40;
        exercise(&Packet::snapped(sample.link, 0, data, wire_len));
    }

    #[test]
    fn foreign_layout_never_panics(a in 0usize..24, b in 0usize..24, cut in 0usize..100) {
        let samples = all();
        let layout = samples[a].1.parse();
        let data = samples[b].1.data();
        let mut packet = Packet::new(samples[b].1.link, 0, &data[..cut.min(data.len())]);
        for info in braid_packet::FIELDS {
            let _ = packet.get(&layout, info.field);
            let _ = packet.set(&layout, info.field, 1);
        }
        let _ = packet.payload(&layout);
    }
}
