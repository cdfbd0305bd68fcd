//! Tests that headers inside of tunnels have the fields that the parser finds in the packet inside,
//! in one tunnel and in two, on all engines.

use braid_ir::engine::EventValue;
use braid_packet::tunnel::{Inner, encapsulate};
use braid_packet::{Field, Header, Packet};
use braid_testkit::harness::{self, ENGINES, Form};
use braid_testkit::packet::parse;
use braid_testkit::record::{Detail, Output, Stimulus, record};

/// The fields that are compared: the header inside and its field, and the parser's header and
/// field.
const FIELDS: [(&str, &str, Header, Field); 36] = [
    ("ip", "src", Header::Ip4, Field::IpSrc),
    ("ip", "dst", Header::Ip4, Field::IpDst),
    ("ip", "ttl", Header::Ip4, Field::IpTtl),
    ("ip", "proto", Header::Ip4, Field::IpProto),
    ("ip", "dscp", Header::Ip4, Field::IpDscp),
    ("ip", "ecn", Header::Ip4, Field::IpEcn),
    ("ip", "len", Header::Ip4, Field::IpLen),
    ("ip", "id", Header::Ip4, Field::IpId),
    ("ip", "df", Header::Ip4, Field::IpDf),
    ("ip", "mf", Header::Ip4, Field::IpMf),
    ("ip", "frag", Header::Ip4, Field::IpFrag),
    ("ip", "checksum", Header::Ip4, Field::IpChecksum),
    ("ip6", "src", Header::Ip6, Field::Ip6Src),
    ("ip6", "dst", Header::Ip6, Field::Ip6Dst),
    ("ip6", "tc", Header::Ip6, Field::Ip6Tc),
    ("ip6", "flow", Header::Ip6, Field::Ip6Flow),
    ("ip6", "len", Header::Ip6, Field::Ip6Len),
    ("ip6", "proto", Header::Ip6, Field::Ip6Next),
    ("ip6", "ttl", Header::Ip6, Field::Ip6Ttl),
    ("tcp", "sport", Header::Tcp, Field::TcpSport),
    ("tcp", "dport", Header::Tcp, Field::TcpDport),
    ("tcp", "seq", Header::Tcp, Field::TcpSeq),
    ("tcp", "flags", Header::Tcp, Field::TcpFlags),
    ("tcp", "window", Header::Tcp, Field::TcpWindow),
    ("udp", "sport", Header::Udp, Field::UdpSport),
    ("udp", "dport", Header::Udp, Field::UdpDport),
    ("udp", "len", Header::Udp, Field::UdpLen),
    ("icmp", "type", Header::Icmp, Field::IcmpType),
    ("icmp", "rest", Header::Icmp, Field::IcmpRest),
    ("icmp6", "type", Header::Icmp6, Field::Icmp6Type),
    ("eth", "src", Header::Eth, Field::EthSrc),
    ("vlan", "id", Header::Vlan, Field::VlanId),
    ("ah", "spi", Header::Ah, Field::AhSpi),
    ("ah", "seq", Header::Ah, Field::AhSeq),
    ("esp", "spi", Header::Esp, Field::EspSpi),
    ("esp", "seq", Header::Esp, Field::EspSeq),
];

/// Packets inside.
const PACKETS: [&str; 11] = [
    "tcp 10.0.0.1:7 > 10.0.0.2:80 SA seq=77 win=900 ttl=9 tos=0xba ipid=5 df \"abc\"",
    "tcp 10.0.0.1:7 > 10.0.0.2:80 S mss=1460 ipopts=01010101",
    "udp 10.0.0.3:53 > 10.0.0.4:9 \"a\"",
    "ip 10.0.0.1 > 10.0.0.2 proto=17 frag=3 mf hex=0102030405060708",
    "icmp 10.0.0.1 > 10.0.0.2 echo-request id=3 seq=4 \"x\"",
    "tcp [2001:db8::1]:7 > [2001:db8::2]:443 PA tos=0x31 flow=0x12345 \"abc\"",
    "udp [2001:db8::1]:7 > [2001:db8::2]:9 ttl=3",
    "icmp6 2001:db8::1 > 2001:db8::2 echo-request id=9",
    "ip 10.0.0.1 > 10.0.0.2 / ah spi=5 seq=6 \"x\"",
    "ip 10.0.0.1 > 10.0.0.2 / esp spi=7 seq=8 \"x\"",
    "ip 2001:db8::1 > 2001:db8::2 / esp spi=9 seq=4 \"x\"",
];

const IP4: &str = "00000000123400004000 0000c0000201c6336402";
const IP6: &str =
    "0000000000000040 20010db8000000000000000000000011 20010db8000000000000000000000012";
const MAC: &str = "020000000001 020000000002 0000";

type Tunnel = (Inner, &'static [Header], String);

fn tunnels() -> Vec<Tunnel> {
    use Header::{Eth, Geneve, Gre, GreKey, Ip4, Ip6, Mpls, Udp, Vxlan};
    let (vxlan, geneve) =
        ("c00112b500000000 0800000000002a00", "c00117c100000000 0000000000002a00");
    let tunnel = |inner, parts: &'static [Header], bytes: &[&str]| (inner, parts, bytes.concat());
    vec![
        tunnel(Inner::Packet, &[Ip4], &[IP4]),
        tunnel(Inner::Packet, &[Ip6], &[IP6]),
        tunnel(Inner::Packet, &[Ip4, Gre], &[IP4, "00000000"]),
        tunnel(Inner::Packet, &[Ip6, Gre, GreKey], &[IP6, "2000000000000007"]),
        tunnel(Inner::Packet, &[Ip4, Udp, Geneve], &[IP4, geneve]),
        tunnel(Inner::Packet, &[Mpls], &["0002a040"]),
        tunnel(Inner::Frame, &[Eth, Ip4, Udp, Vxlan], &[MAC, IP4, vxlan]),
        tunnel(Inner::Frame, &[Eth, Ip6, Gre], &[MAC, IP6, "00000000"]),
        tunnel(Inner::Frame, &[Eth, Ip6, Udp, Geneve], &[MAC, IP6, geneve]),
    ]
}

/// The packet in a tunnel.
fn wrapped(packet: &Packet, (inner, parts, bytes): &Tunnel) -> Packet {
    let digits: Vec<u8> = bytes.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let mut bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
    let len = bytes.len();
    bytes.resize(len.next_multiple_of(16), 0);
    let words: Vec<u128> =
        bytes.as_chunks().0.iter().map(|word| u128::from_be_bytes(*word)).collect();
    let mut packet = packet.clone();
    let layout = packet.parse();
    let done = encapsulate(&mut packet, &layout, (*inner, parts), (len, &words), None);
    assert_eq!(done, Ok(true), "{parts:?}");
    packet
}

/// Checks that a field of each packet is what the parser finds in the packet inside of it.
fn compare(level: &str, at: usize, packets: &[(Packet, Packet, bool)]) {
    let (header, field, parsed, value) = FIELDS[at];
    let source = format!(
        "event found {{ value: u128 }}
         nf look() {{ match {{
           has {level}.{header} => {{ emit found {{ value: u128({level}.{header}.{field}) }}; output; }}
           else => output;
         }} }}
         chain c {{ path in <-> look() <-> out; }}"
    );
    let chain = harness::compile(&source, &Default::default(), Form::AsWritten);
    let chain = chain.unwrap_or_else(|errors| panic!("{source}\n{errors}"));
    let stimuli: Vec<_> =
        packets.iter().map(|(outer, ..)| Stimulus::Packet(0, outer.clone())).collect();
    let trace = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    let mut there = 0;
    for ((outer, inner, is_frame), outputs) in packets.iter().zip(&trace.outputs) {
        let found = outputs.iter().find_map(|output| match output {
            Output::Event(event) => Some(&event.fields[0].1),
            Output::Packet(..) | Output::Refused(_) => None,
        });
        let layout = inner.parse();
        let is_link = matches!(parsed, Header::Eth | Header::Vlan);
        let has = layout.has(parsed) && (*is_frame || !is_link);
        let expected = has.then(|| inner.get(&layout, value).unwrap());
        let found = found.map(|value| match value {
            EventValue::Scalar(_, word) => *word,
            EventValue::Str(text) => panic!("{text}"),
        });
        assert_eq!(found, expected, "{level}.{header}.{field} of {outer:?}");
        there += usize::from(has);
    }
    assert!(there > 0, "no packet has {header} inside");
    for engine in ENGINES {
        engine
            .check(&chain, &stimuli, &trace)
            .unwrap_or_else(|report| panic!("{source}\n{report}"));
    }
}

/// Whether a tunnel in another one makes two of them. Two labels are one stack.
fn nests(outer: &Tunnel, inner: &Tunnel) -> bool {
    outer.1 != [Header::Mpls] || inner.1 != [Header::Mpls]
}

#[test]
fn headers_in_a_tunnel_are_those_of_the_packet_inside() {
    let mut packets = Vec::new();
    for text in PACKETS {
        for tag in ["", "vlan 7 / "] {
            let inner = parse(&format!("{tag}{text}")).unwrap_or_else(|_| panic!("{text}")).at(0);
            for tunnel in tunnels() {
                let outer = wrapped(&inner, &tunnel);
                packets.push((outer, inner.clone(), tunnel.0 == Inner::Frame));
            }
        }
        for ip in ["ip 192.0.2.1 > 192.0.2.2", "ip 2001:db8::7 > 2001:db8::8"] {
            let packet = |text: &str| parse(text).unwrap_or_else(|_| panic!("{text}")).at(0);
            let outer = packet(&format!("{ip} / ah spi=1 seq=2 / {text}"));
            packets.push((outer, packet(text), false));
        }
    }
    for at in 0..FIELDS.len() {
        compare("inner", at, &packets);
    }
}

#[test]
fn headers_in_a_tunnel_in_a_tunnel_are_those_of_the_innermost_packet() {
    let mut packets = Vec::new();
    for text in PACKETS.iter().step_by(2).chain(&PACKETS[5..6]) {
        let inner = parse(text).unwrap_or_else(|_| panic!("{text}")).at(0);
        for first in tunnels() {
            let once = wrapped(&inner, &first);
            for second in tunnels().iter().filter(|second| nests(second, &first)) {
                packets.push((wrapped(&once, second), inner.clone(), first.0 == Inner::Frame));
            }
        }
    }
    for at in [0, 12, 20] {
        compare("inner2", at, &packets);
    }
}

/// Fields that functions assign: the header inside and its field, the value as the language writes
/// it, the parser's field and the same value.
const ASSIGNED: [(&str, &str, &str, Field, u128); 14] = [
    ("ip", "ttl", "3", Field::IpTtl, 3),
    ("ip", "dscp", "46", Field::IpDscp, 46),
    ("ip", "ecn", "2", Field::IpEcn, 2),
    ("ip", "id", "0xfedc", Field::IpId, 0xfedc),
    ("ip", "src", "192.0.2.77", Field::IpSrc, 0xc000_024d),
    ("ip", "dst", "255.255.255.255", Field::IpDst, 0xffff_ffff),
    ("ip6", "src", "2001:db8::ff01", Field::Ip6Src, 0x2001_0db8_0000_0000_0000_0000_0000_ff01),
    ("ip6", "ttl", "1", Field::Ip6Ttl, 1),
    ("tcp", "seq", "0x89abcdef", Field::TcpSeq, 0x89ab_cdef),
    ("tcp", "flags", "0x11", Field::TcpFlags, 0x11),
    ("tcp", "dport", "65535", Field::TcpDport, 65_535),
    ("udp", "sport", "0", Field::UdpSport, 0),
    ("udp", "dport", "5000", Field::UdpDport, 5000),
    ("icmp", "rest", "0x01020304", Field::IcmpRest, 0x0102_0304),
];

#[test]
fn checksums_in_a_tunnel_follow_as_those_of_the_packet_inside() {
    for (header, field, text, parsed, value) in ASSIGNED {
        let source = format!(
            "nf change() {{ match {{
               has inner.{header} => {{ inner.{header}.{field} = {text}; output; }}
               else => output;
             }} }}
             chain c {{ path in <-> change() <-> out; }}"
        );
        let chain = harness::compile(&source, &Default::default(), Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("{source}\n{errors}"));
        let (mut stimuli, mut expected, mut changes) = (Vec::new(), Vec::new(), 0);
        for text in PACKETS.into_iter().chain(["udp 10.0.0.3:53 > 10.0.0.4:9 nosum \"a\""]) {
            let inner = parse(text).unwrap_or_else(|_| panic!("{text}")).at(0);
            let mut changed = inner.clone();
            let layout = changed.parse();
            // A packet with AH inside has a check value that nothing updates.
            let has = layout.has(parsed.info().header) && !layout.has(Header::Ah);
            if has {
                changed.set(&layout, parsed, value);
                changes += 1;
            }
            for tunnel in tunnels().iter().filter(|_| has) {
                stimuli.push(Stimulus::Packet(0, wrapped(&inner, tunnel)));
                expected.push(wrapped(&changed, tunnel));
            }
        }
        assert!(changes > 0, "no packet has {header} inside");
        let trace = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
        for (outputs, expected) in trace.outputs.iter().zip(&expected) {
            let [Output::Packet(_, packet)] = outputs.as_slice() else { panic!("{outputs:?}") };
            assert_eq!(packet.data(), expected.data(), "{header}.{field}");
        }
        for engine in ENGINES {
            let report = engine.check(&chain, &stimuli, &trace);
            report.unwrap_or_else(|report| panic!("{source}\n{report}"));
        }
    }
}
