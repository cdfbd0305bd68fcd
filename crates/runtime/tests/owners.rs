//! Tests where packets to addresses enter that functions of the chain own. No host behind an
//! interface has these addresses.

mod support;

use braid_ir::chain::{Chain, Interface, Node};
use braid_ir::value::{IntervalSet, ParamValue};
use braid_packet::{Field, Link, Packet, Shape, build_fresh};
use braid_runtime::Run;
use braid_runtime::split::Splitter;
use std::net::Ipv6Addr;
use std::sync::Arc;
use support::*;

const LAN: Option<u16> = Some(0);
const WAN: Option<u16> = Some(1);

/// A function with these parameters and these operations on packets.
fn node(declared: &str, operations: &str, params: Vec<ParamValue>) -> Node {
    let model = format!(
        "model owner {{ {declared} row \"body\" row \"fault\" \
         packet {{ b0: {operations} consume at row0 }} }}"
    );
    let model = Arc::new(braid_ir::text::parse(&model).unwrap());
    Node { name: "owner".into(), model, params }
}

/// A NAT with an outside address.
fn nat(public: &str) -> Node {
    node("param public: ip4", "", vec![ParamValue::Scalar(addr(public))])
}

/// `lan` with 10.0.0.0/8 and 2001:db8:a::/48 behind it, and `wan`, with a function between them.
fn around(node: Node) -> Chain {
    let low = addr6("2001:db8:a::");
    let behind6 = IntervalSet::new([(low, low | ((1 << 80) - 1))]);
    let mut chain = lan_wan();
    chain.interfaces[0] = Interface { behind6, ..chain.interfaces[0].clone() };
    chain.nodes.push(node);
    chain
}

fn addr6(text: &str) -> u128 {
    text.parse::<Ipv6Addr>().unwrap().to_bits()
}

fn ingress(chain: &Chain, packet: &Packet) -> Option<u16> {
    Splitter::new(chain).ingress(packet, &packet.parse())
}

/// The interface by which a packet from one IPv4 address to another one enters.
fn between(chain: &Chain, from: &str, to: &str) -> Option<u16> {
    ingress(chain, &udp(0, (from, 1), (to, 2)))
}

#[test]
fn packets_to_the_address_of_a_nat_come_from_the_rest_of_the_world() {
    let chain = around(nat("203.0.113.7"));
    assert_eq!(between(&chain, "8.8.8.8", "203.0.113.7"), WAN);
    assert_eq!(between(&chain, "8.8.8.8", "203.0.113.8"), None);
    // The source decides first: this host reaches the address from its own side.
    assert_eq!(between(&chain, "10.0.0.1", "203.0.113.7"), LAN);
    // The unspecified address means that the function has no address.
    assert_eq!(between(&around(nat("0.0.0.0")), "8.8.8.8", "0.0.0.0"), None);
}

#[test]
fn packets_to_any_address_of_a_pool_come_from_the_rest_of_the_world() {
    let pool = IntervalSet::new([(addr("203.0.113.8"), addr("203.0.113.15"))]);
    let chain = around(node("param outside: pool<ip4>", "", vec![ParamValue::Pool(pool)]));
    let to = |to| between(&chain, "8.8.8.8", to);
    let ends = ["203.0.113.7", "203.0.113.8", "203.0.113.15", "203.0.113.16"];
    assert_eq!(ends.map(to), [None, WAN, WAN, None]);
}

#[test]
fn packets_to_any_address_that_a_mask_selects_come_from_the_rest_of_the_world() {
    let values = ["198.51.100.0", "255.255.255.0"].map(|text| ParamValue::Scalar(addr(text)));
    let operations = "v0:ip4 = load ip.dst v1:ip4 = param mask v2:ip4 = and v0, v1 \
                      v3:ip4 = param outside v4:bool = eq v2, v3";
    let declared = "param outside: ip4 param mask: ip4";
    let chain = around(node(declared, operations, values.to_vec()));
    let to = |to| between(&chain, "8.8.8.8", to);
    let ends = ["198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"];
    assert_eq!(ends.map(to), [None, WAN, WAN, None]);
}

#[test]
fn packets_to_the_ipv6_address_of_a_load_balancer_come_from_the_rest_of_the_world() {
    let service = ParamValue::Scalar(addr6("2001:db8::80"));
    let chain = around(node("param service: ip6", "", vec![service]));
    let between = |from, to| {
        let fields = [(Field::Ip6Src, addr6(from)), (Field::Ip6Dst, addr6(to))];
        let packet = build_fresh(Link::Ethernet, 0, Shape::Udp6, &fields, b"").unwrap();
        ingress(&chain, &packet)
    };
    assert_eq!(between("2001:db8:b::1", "2001:db8::80"), WAN);
    assert_eq!(between("2001:db8:b::1", "2001:db8::81"), None);
    assert_eq!(between("2001:db8:a::1", "2001:db8::80"), LAN);
    assert_eq!(between("2001:db8:b::1", "2001:db8:a::1"), WAN);
}

#[test]
fn arp_for_the_address_of_a_nat_comes_from_the_rest_of_the_world() {
    let chain = around(nat("203.0.113.7"));
    let asks_for = |wanted| {
        let fields = [(Field::ArpSpa, addr("203.0.113.254")), (Field::ArpTpa, addr(wanted))];
        let packet = build_fresh(Link::Ethernet, 0, Shape::Arp, &fields, b"").unwrap();
        ingress(&chain, &packet)
    };
    assert_eq!(["203.0.113.7", "203.0.113.8"].map(asks_for), [WAN, None]);
}

#[test]
fn packets_to_an_owned_address_enter_nowhere_if_several_interfaces_have_no_prefixes() {
    let mut chain = chain(&[("lan", &[10]), ("a", &[]), ("b", &[])]);
    chain.nodes.push(nat("203.0.113.7"));
    assert_eq!(between(&chain, "8.8.8.8", "203.0.113.7"), None);
}

#[test]
fn run_counts_only_packets_as_lost_whose_destination_nobody_owns() {
    let chain = around(nat("203.0.113.7"));
    let mut engine = Fake::new(through);
    let arriving = |time, to| udp(time, ("8.8.8.8", 53), (to, 4000));
    let packets = vec![
        udp(0, ("10.0.0.1", 4000), ("8.8.8.8", 53)),
        arriving(1, "203.0.113.7"),
        arriving(2, "203.0.113.8"),
        arriving(3, "203.0.113.7"),
    ];
    let summary = Run::new(&chain, &mut engine).input(sources(packets)).run().unwrap();
    assert_eq!(summary.counters.lost, [("no_interface".into(), 1)].into());
    assert_eq!(summary.counters.out, [(0, 2), (1, 1)].into());
    assert!(summary.counters.balanced());
    assert_eq!(
        entered(&engine),
        [
            "0 10.0.0.1:4000 > 8.8.8.8:53",
            "1 8.8.8.8:53 > 203.0.113.7:4000",
            "1 8.8.8.8:53 > 203.0.113.7:4000"
        ]
    );
}
