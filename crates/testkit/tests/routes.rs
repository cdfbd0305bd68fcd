//! Tests routers in sequence. Machine code computes the consequences of an address once, and again
//! when routes or next hops change.

use braid_ir::chain::{Chain, Change, Control};
use braid_ir::model::ParamId;
use braid_ir::routes::RouteTable;
use braid_ir::value::ParamValue;
use braid_testkit::harness::{self, ENGINES, Form};
use braid_testkit::packet::udp;
use braid_testkit::record::{Detail, Stimulus, record};
use std::collections::BTreeMap;

const DESTINATIONS: [&str; 6] =
    ["192.0.2.1", "192.0.2.2", "198.51.100.7", "203.0.113.9", "2001:db8::1", "2001:db8:1::2"];

fn chain() -> Chain {
    let hops = |first: u32| {
        let one = |n: u32| {
            let left = n == 3;
            format!(
                "{{ mac: 02:00:00:00:01:{n:02x}, neighbour: 02:00:00:00:02:{n:02x}, left: {left} }}"
            )
        };
        let all: Vec<String> = (first..first + 4).map(one).collect();
        all.join(", ")
    };
    let router = |name: &str, first: u32| {
        format!(
            "{name} = router(table: routes(\"{name}\"), hops: [{}], left: 10.0.0.1, right: 198.51.100.1);\n",
            hops(first)
        )
    };
    let source = format!(
        "chain row {{ interface near; interface far;\n{}{}{}path near <-> a <-> b <-> c <-> far; }}",
        router("a", 10),
        router("b", 20),
        router("c", 0)
    );
    let files: BTreeMap<String, String> = [
        ("a", "0.0.0.0/0 0\n192.0.2.0/24 1\n::/0 2\n"),
        ("b", "192.0.2.0/24 0\n192.0.2.2/32 3\n198.51.100.0/24 1\n2001:db8::/32 1\n"),
        ("c", "192.0.2.0/31 0\n192.0.2.2/32 2\n198.51.100.0/24 3\n203.0.113.0/24 1\n2001:db8::/48 2\n"),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), text.to_owned()))
    .collect();
    let chain = harness::compile(&source, &files, Form::AsWritten);
    chain.unwrap_or_else(|errors| panic!("{errors}"))
}

/// Packets to each destination. The TTL of some is about to expire, and some enter at the other
/// interface.
fn packets(stimuli: &mut Vec<Stimulus>, now: &mut u64) {
    for round in 0..4_u64 {
        for (n, to) in (0..).zip(DESTINATIONS) {
            *now += 1000;
            let from = if to.contains(':') { "2001:db8:9::5" } else { "10.0.0.5" };
            let flow = if to.contains(':') {
                format!("[{from}]:7 > [{to}]:9")
            } else {
                format!("{from}:7 > {to}:9")
            };
            let ttl = if (round + n) % 5 == 4 { 2 } else { 64 };
            let packet = udp(&flow).ttl(ttl).at(*now);
            stimuli.push(Stimulus::Packet(u16::from(round == 3), packet));
        }
    }
}

fn set(stimuli: &mut Vec<Stimulus>, now: u64, node: u16, param: u32, value: ParamValue) {
    let change = Change::Set(value);
    stimuli.push(Stimulus::Control(Control {
        time_ns: now,
        node,
        param: ParamId(param),
        change,
        line: None,
    }));
}

#[test]
fn changed_routes_and_hops_are_those_of_the_next_packet() {
    let chain = chain();
    let ParamValue::List(hops) = &chain.nodes[1].params[1] else { panic!("no list") };
    let mut other = RouteTable::default();
    other.insert4(0xc000_0200, 24, 2);
    other.insert4(0xcb00_7100, 24, 1);
    other.insert6(0x2001_0db8 << 96, 48, 0);
    let mut beyond = other.clone();
    beyond.insert4(0xc000_0201, 32, 4);
    let (mut stimuli, mut now) = (Vec::new(), 0);
    packets(&mut stimuli, &mut now);
    // Other routes for the router in the middle; then none; then a route with a hop past the end of
    // the list.
    for table in [other, RouteTable::default(), beyond] {
        set(&mut stimuli, now, 1, 0, ParamValue::Routes(table));
        packets(&mut stimuli, &mut now);
    }
    // Other and more hops, so the hop is no longer past the end.
    let more: Vec<_> = hops.iter().rev().chain(hops).cloned().collect();
    set(&mut stimuli, now, 1, 1, ParamValue::List(more));
    packets(&mut stimuli, &mut now);
    // The first router gets the routes of the last one.
    set(&mut stimuli, now, 0, 0, chain.nodes[2].params[0].clone());
    packets(&mut stimuli, &mut now);
    let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    for engine in ENGINES {
        engine.check(&chain, &stimuli, &expected).unwrap_or_else(|report| panic!("{report}"));
    }
}
