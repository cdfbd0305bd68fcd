//! Records of packets that enter tunnels.

use crate::{chain, enter, left, same};
use braid_packet::Field;
use braid_testkit::record::Stimulus;
use std::collections::BTreeSet;

const FLOWS: u64 = 100;
const STATIONS: u64 = 10;
const ROUNDS: u64 = 4;

/// A frame from one of two endpoints, by which the gateway learns where a station is.
fn lesson(station: u64) -> Stimulus {
    let endpoint = 2 + station % 2;
    let frame =
        format!("eth 02:00:00:00:01:{station:02x} > 02:00:00:00:02:00 / udp 1.1.1.1:1 > 2.2.2.2:2");
    enter(0, 1, &format!("udp 192.0.2.{endpoint}:50000 > 192.0.2.1:4789 / vxlan 42 / {frame}"))
}

/// A packet of a flow to one of the stations.
fn frame(at_ms: u64, flow: u64) -> Stimulus {
    let station = flow % STATIONS;
    let (port, to) = (1000 + flow, format!("02:00:00:00:01:{station:02x}"));
    let text =
        format!("eth 02:00:00:00:02:00 > {to} / udp 10.0.0.1:{port} > 10.9.9.9:53 \"{at_ms}\"");
    enter(at_ms, 0, &text)
}

#[test]
fn flows_with_other_outer_headers_share_a_script() {
    let chain = chain(
        "chain c {
           interface segment { behind 10.0.0.0/8 }
           interface underlay;
           count = monitor();
           tunnel = vxlan_gateway(own: 192.0.2.1, vni: 42, peers: [192.0.2.2, 192.0.2.3]);
           path segment <-> count <-> tunnel <-> underlay;
         }",
        &[],
    );
    let mut stimuli: Vec<Stimulus> = (0..STATIONS).map(lesson).collect();
    for round in 0..ROUNDS {
        stimuli.extend((0..FLOWS).map(|flow| frame(1 + round * FLOWS + flow, flow)));
    }
    let (trace, flows) = same(&chain, &stimuli);
    // Nearly each flow has a source port of its own, and the stations are at two endpoints.
    let tunnelled = |field| left(&trace, field).split_off(STATIONS as usize);
    let ports: BTreeSet<_> = tunnelled(Field::L4Sport).into_iter().collect();
    let endpoints: BTreeSet<_> = tunnelled(Field::IpDst).into_iter().collect();
    assert!(ports.len() as u64 > FLOWS * 9 / 10, "{ports:?}");
    assert_eq!(endpoints, [0xc000_0202, 0xc000_0203].map(Some).into());
    // The specialiser makes one record, and its script the others.
    assert_eq!((flows.records.made, flows.scripted), (FLOWS, FLOWS - 1), "{flows:?}");
    // Each flow's second packet makes its record. Two flows get it later: the first one, because
    // narrow records cannot hold bytes of outer headers, and the one after it.
    assert!(flows.hits >= FLOWS * (ROUNDS - 2) - 2, "{flows:?}");
}
