//! Tests the names of devices in `braid run --if`. `scripts/live.sh` tests packets on real devices.

mod common;

use std::path::Path;

use common::{Folder, S, request};
use serde_json::{Value, json};

#[test]
fn devices_are_checked_before_anything_runs() {
    let folder = Folder::edge();
    let run = |more: &[&str]| folder.braid(&[&["run", "chain.braid"], more].concat());
    run(&["--if", "lan"]).code(2).warns("expected IF=KIND:DEVICE, such as lan=af_packet:eth0");
    run(&["--if", "lam=tap:t"]).code(2).warns("no interface `lam`; did you mean `lan`?");
    run(&["--if", "lan=dpd:0"]).code(2).warns("expected af_packet:DEVICE, xdp:DEVICE, tap:DEVICE");
    if cfg!(not(feature = "dpdk")) {
        run(&["--if", "lan=dpdk:net_null0"]).code(2).warns("built without DPDK; install DPDK");
    }
    run(&["--if", "lan=tap:a", "lan=tap:b"]).code(2).warns("`lan` is given two devices");
    run(&["--if", "lan=tap:a", "wan=tap:a"]).code(2).warns("tap:a is given to two interfaces");
    // Without privileges, the message is about them.
    let ended = run(&["--if", "lan=af_packet:no-such-dev"]).code(3);
    let said = ended.err.contains("there is no such device") || ended.err.contains("CAP_NET_RAW");
    assert!(said && ended.err.contains("af_packet:no-such-dev: "), "{}", ended.err);
}

#[test]
fn captures_and_devices_do_not_mix() {
    let folder = Folder::edge();
    let run = |more: &[&str]| folder.braid(&[&["run", "chain.braid"], more].concat());
    run(&[]).code(2);
    run(&["--in", "a.pcap", "--if", "lan=tap:a"]).code(2);
    run(&["--follow", "--if", "lan=tap:a"]).code(2);
    run(&["--in", "a.pcap", "--for", "1s"]).code(2);
    run(&["--if", "lan=tap:a", "--for", "soon"]).code(2).warns("no duration such as 90s");
    run(&["--if", "lan=tap:a", "--faults", "los=1%"]).code(2).warns("loss, duplicate, reorder");
    run(&["--in", "a.pcap", "--faults", "loss=1%"]).code(2);
}

#[test]
fn captures_are_devices_at_their_own_speed_or_at_the_chains() {
    let folder = Folder::new();
    let [chain, capture] = ["demo.braid", "captures/domain-client.pcap.gz"].map(|name| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).canonicalize()
    });
    let (chain, capture) = (chain.unwrap(), capture.unwrap());
    let chain = chain.to_str().unwrap();
    for workers in ["1", "2"] {
        let lan = format!("lan=memory:{}", capture.display());
        let run = ["run", chain, "--if", &lan, "wan=memory", "--packets", "5000", "--json"];
        let ended = folder.braid(&[&run[..], &["--workers", workers]].concat());
        let report: Value = serde_json::from_str(&ended.code(0).out).unwrap();
        assert!(report["packets_in"].as_u64().unwrap() >= 5000, "{report}");
        assert_eq!(report["lost"], json!({}), "{report}");
    }
    let lan = format!("lan=replay:{},speed=1000", capture.display());
    let run = ["run", chain, "--if", &lan, "wan=memory", "--for", "1s", "--json"];
    let report: Value = serde_json::from_str(&folder.braid(&run).code(0).out).unwrap();
    assert!((1..5000).contains(&report["packets_in"].as_u64().unwrap()), "{report}");
    let missing = folder.braid(&["run", chain, "--if", "lan=replay:no.pcap", "wan=memory"]);
    missing.code(3).warns("replay:no.pcap: cannot be read");
}

#[test]
fn replayed_packets_keep_their_distances_in_a_confined_run() {
    let folder = Folder::edge();
    let times_ms = [0, 300, 400];
    let packets = times_ms.map(|ms| request(S + ms * 1_000_000, 1, 10));
    folder.capture("in.pcap", &packets);
    let devices = ["--if", "lan=replay:in.pcap", "wan=memory", "--out", "wan=out.pcap"];
    let limits = ["--packets", "3", "--for", "10s"];
    folder.braid(&[&["run", "chain.braid"], &devices[..], &limits].concat()).code(0);
    let left: Vec<u64> = folder.packets("out.pcap").iter().map(|packet| packet.time_ns).collect();
    let after_ms: Vec<_> = left.iter().map(|time| (time - left[0]) / 1_000_000).collect();
    assert_eq!(after_ms.len(), 3);
    // The first packet may be late. Later ones are late if the machine is busy.
    let distances = [(after_ms[1], 300), (after_ms[2], 400)];
    assert!(distances.iter().all(|(is, least)| (least - 50..least + 500).contains(is)), "{left:?}");
}
