//! Tests `braid run --if IF=dpdk:DEVICE`. DPDK's devices for captures and for nothing need no
//! privileges, no network cards and no huge pages.

mod common;

use common::{Folder, S, braid, reply, request};

#[test]
fn live_run_on_captures_by_dpdk_equals_a_run_on_the_captures() {
    let folder = Folder::edge();
    let requests: Vec<_> = (1..200).map(|host| request(S, host, usize::from(host))).collect();
    folder.capture("lan.pcap", &requests);
    folder.capture("wan.pcap", &(1..100).map(|host| reply(S, host, 30)).collect::<Vec<_>>());
    let inputs = ["--in", "lan=lan.pcap", "wan=wan.pcap"];
    let outputs = ["--out", "lan=lan.out.pcap", "wan=wan.out.pcap"];
    let captures = ["run", "chain.braid", "--json"];
    let expected = folder.braid(&[&captures[..], &inputs, &outputs].concat()).code(0).json();
    for workers in ["1", "2"] {
        let live = [
            "run",
            "chain.braid",
            "--json",
            "--workers",
            workers,
            "--if",
            "lan=dpdk:net_pcap0,rx_pcap=lan.pcap,tx_pcap=lan.live.pcap",
            "wan=dpdk:net_pcap1,rx_pcap=wan.pcap,tx_pcap=wan.live.pcap",
            "--packets",
            "298",
            "--for",
            "20s",
        ];
        let ended = folder.braid(&live).code(0);
        assert!(!ended.err.contains("EAL"), "{}", ended.err);
        let found = ended.warns("net_pcap, DPDK ").json();
        for key in ["packets_in", "packets_out", "drops", "lost"] {
            assert_eq!(found[key], expected[key], "{key}");
        }
        let bytes = |name: String| {
            let packets = folder.packets(&name);
            let mut bytes: Vec<_> = packets.iter().map(|packet| packet.data().to_vec()).collect();
            // Workers do not wait for each other.
            if workers == "2" {
                bytes.sort();
            }
            bytes
        };
        for side in ["lan", "wan"] {
            let found = bytes(format!("{side}.live.pcap"));
            assert!(!found.is_empty() && found == bytes(format!("{side}.out.pcap")), "{side}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_device_is_one_line() {
    let folder = Folder::edge();
    let run = |device: &str| folder.braid(&["run", "chain.braid", "--if", device]);
    for (device, expected) in [
        ("lan=dpdk:net_foo0", "dpdk:net_foo0: DPDK cannot attach it"),
        ("lan=dpdk:net_pcap0,rx_pcap=none.pcap", "none.pcap: No such file or directory"),
    ] {
        let ended = run(device).code(3).warns(expected);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    }
    run("lan=dpdk:").code(2).warns("expected dpdk:DEVICE");
}

#[test]
fn doctor_names_the_release_of_dpdk() {
    braid(&["doctor"]).says("built in: DPDK ");
}
