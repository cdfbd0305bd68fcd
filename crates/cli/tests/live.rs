//! Tests the names of devices in `braid run --if`. `scripts/live.sh` tests packets on real devices.

mod common;

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::{Ended, Folder, S, command, ended, request};
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
    run(&["--if", "lan=tap:a", "--for", "soon"]).code(2).warns("is not a duration such as 90s");
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

/// A run of `chain.braid` whose devices are memory. It runs in another folder.
struct InMemory<'f>(&'f Folder, Child);

impl<'f> InMemory<'f> {
    fn new(folder: &'f Folder, options: &[&str]) -> Self {
        let path = |name: &str| folder.path(name).display().to_string();
        let (chain, socket) = (path("chain.braid"), path("ctl"));
        let devices = ["lan=memory", "wan=memory", "--ctl", &socket, "--for", "60s"];
        let run = [&["run", &chain, "--if"], &devices[..]].concat();
        let mut start = command();
        start.args([&run, options].concat()).current_dir("/");
        start.stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut run, end) = (start.spawn().unwrap(), Instant::now() + Duration::from_secs(20));
        while folder.braid(&["ctl", "ctl", "status"]).code != 0 {
            assert!(run.try_wait().unwrap().is_none() && Instant::now() < end);
            std::thread::sleep(Duration::from_millis(20));
        }
        Self(folder, run)
    }

    fn ctl(&self, words: &[&str]) -> Ended {
        self.0.braid(&[&["ctl", "ctl"], words].concat())
    }

    fn stop(self) -> Ended {
        self.ctl(&["stop"]).code(0);
        ended(&self.1.wait_with_output().unwrap())
    }
}

#[test]
fn global_table_on_each_worker_has_room_for_its_entry() {
    let folder = Folder::new();
    let chain = "chain c { interface lan; interface wan; lim = rate_limiter(rate: 1 Mbit/s); \
                 path lan <-> lim <-> wan; }";
    folder.write("chain.braid", chain);
    let run = InMemory::new(&folder, &["--workers", "2"]);
    let plan = run.ctl(&["reload", "--plan"]).code(0).says("table `spent` (2 entries) moves\n");
    assert!(!plan.out.contains("room"), "{}", plan.out);
    run.stop().code(0);
}

#[test]
fn change_by_ctl_is_one_line_and_names_files_beside_the_chain() {
    let folder = Folder::edge();
    folder.write("more.rules", "pass proto tcp\n");
    let run = InMemory::new(&folder, &[]);
    run.ctl(&["set", "f.ok", "rules(\"more.rules\")"]).code(0);
    let wrong = run.ctl(&["set", "f.most", "9\n+3600 set f.most 10"]);
    wrong.code(3).warns("a change is one line");
    let wrong = run.ctl(&["set", "f.mots", "9"]).code(3);
    assert!(wrong.err.contains("set f.mots 9") && !wrong.err.contains("+0"), "{}", wrong.err);
    run.stop().code(0);
}

#[test]
fn listing_of_a_table_that_no_function_has_is_refused() {
    let folder = Folder::edge();
    let run = InMemory::new(&folder, &[]);
    for words in [&["state"][..], &["state", "f"], &["state", "--limit", "0"]] {
        run.ctl(&[words, &["--table", "seen"]].concat()).code(0);
        run.ctl(&[words, &["--table", "sen"]].concat()).code(3).warns("no table `sen`");
    }
    run.stop().code(0);
}

#[test]
fn more_workers_than_cores_are_warned_of() {
    let folder = Folder::edge();
    let cores = std::thread::available_parallelism().unwrap().get();
    for (workers, is_warned) in [(cores, false), (cores + 1, true)] {
        let run = InMemory::new(&folder, &["--workers", &workers.to_string()]);
        let said = run.stop().code(0).err;
        assert_eq!(said.contains(&format!("share {cores} core")), is_warned, "{said}");
    }
}

#[test]
fn more_workers_than_the_machine_can_run_are_refused() {
    let folder = Folder::edge();
    let cores = std::thread::available_parallelism().unwrap().get();
    if cores >= 64 {
        // No run has more than 1,024 workers.
        return;
    }
    let workers = (16 * cores + 1).to_string();
    let live = ["run", "chain.braid", "--if", "lan=memory", "--workers", &workers];
    let offline = ["run", "chain.braid", "--in", "lan=in.pcap", "--workers", &workers];
    folder.capture("in.pcap", &[request(0, 1, 10)]);
    for run in [live, offline] {
        let said = format!("{workers} workers are too many for {cores} core");
        folder.braid(&run).code(2).warns(&said).warns("`--workers auto`");
    }
}

#[test]
fn state_that_cannot_be_written_is_said_to_be_so() {
    let folder = Folder::edge();
    std::fs::create_dir_all(folder.path("kept/edge.state")).unwrap();
    let run = ["run", "chain.braid", "--if", "lan=memory", "--for", "10ms", "--state-dir", "kept"];
    folder.braid(&run).code(3).warns("edge.state.new: it cannot be written");
}
