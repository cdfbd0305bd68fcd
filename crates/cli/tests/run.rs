//! Tests the output, the files and the exit codes of `braid run`.

mod common;

use common::{Folder, S, braid, reply, request, udp};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Two requests of 10.0.0.1 (the second is too long), a reply, and a packet of neither side.
fn folder() -> Folder {
    let folder = Folder::edge();
    let stray = udp(4 * S, (0x0808_0808, 1), (0x0909_0909, 1), 0);
    folder.capture(
        "in.pcap",
        &[request(S, 1, 10), request(2 * S, 1, 200), reply(3 * S, 1, 10), stray],
    );
    folder
}

#[test]
fn json_accounts_for_every_packet() {
    let ended = folder().braid(&["run", "chain.braid", "--in", "in.pcap", "--json"]).code(0);
    let report = ended.json();
    assert_eq!(report["packets_in"], 4);
    assert_eq!(report["created"], 0);
    assert_eq!(report["copied"], 0);
    assert_eq!(report["consumed"], 0);
    assert_eq!(report["held"], 0);
    assert_eq!(report["packets_out"], json!({ "lan": 1, "wan": 1 }));
    let drop = json!({ "function": "f", "row": "3", "reason": "too long", "count": 1 });
    assert_eq!(report["drops"], json!([drop]));
    assert_eq!(report["lost"], json!({ "no_interface": 1 }));
    assert_eq!(report["functions"][0]["name"], "f");
    assert_eq!(report["functions"][0]["tables"][0]["entries"], 1);
}

#[test]
fn text_shows_functions_drops_and_the_accounting() {
    folder()
        .braid(&["run", "chain.braid", "--in", "in.pcap"])
        .code(0)
        .says("f         limit        2         1        1  seen 1")
        .says("f           3    too long        1")
        .says("out by interface: lan 1, wan 1")
        .says("lost by reason: no_interface 1")
        .says("in 4 + created 0 + copied 0 = out 2 + dropped 1 + consumed 0 + held 0 + lost 1");
}

#[test]
fn outputs_hold_all_packets_or_those_of_an_interface() {
    let folder = folder();
    let args =
        ["run", "chain.braid", "--in", "in.pcap", "--out", "all.pcap", "--out", "wan=wan.pcap"];
    folder.braid(&args).code(0);
    let times = |name: &str| folder.packets(name).iter().map(|p| p.time_ns).collect::<Vec<_>>();
    assert_eq!(times("all.pcap"), [S, 3 * S]);
    assert_eq!(times("wan.pcap"), [S]);
}

#[test]
fn inputs_at_named_interfaces_are_merged_by_time() {
    let folder = Folder::edge();
    folder.capture("lan.pcap", &[request(S, 1, 1), request(3 * S, 2, 1)]);
    folder.capture("wan.pcap", &[reply(2 * S, 1, 1)]);
    let args =
        ["run", "chain.braid", "--in", "lan=lan.pcap", "--in", "wan=wan.pcap", "--out", "o.pcap"];
    folder.braid(&args).code(0);
    let times: Vec<u64> = folder.packets("o.pcap").iter().map(|p| p.time_ns).collect();
    assert_eq!(times, [S, 2 * S, 3 * S]);
}

#[test]
fn state_and_events_are_written_as_json_lines() {
    let folder = folder();
    let args = ["run", "chain.braid", "--in", "in.pcap", "--state-out", "s", "--events-out", "e"];
    folder.braid(&args).code(0);
    let line: serde_json::Value = serde_json::from_str(folder.read("s").trim()).unwrap();
    assert_eq!(line["function"], "f");
    assert_eq!(line["key"], json!(["10.0.0.1"]));
    assert_eq!(line["value"], 1);
    assert_eq!(line["last_seen_ns"], S);
    assert_eq!(folder.read("e"), "");
}

#[test]
fn control_changes_take_effect_at_their_time() {
    let folder = folder();
    folder.write("c", "+1 set f.most 1500 B  # one second after the first packet\n");
    let args = ["run", "chain.braid", "--in", "in.pcap", "--control", "c", "--json"];
    let report = folder.braid(&args).code(0).json();
    assert_eq!(report["drops"], json!([]), "the second packet, at the time of the change, passes");
    folder.write("c", "+1.000000001 set f.most 1500 B\n");
    let report = folder.braid(&args).code(0).json();
    assert_eq!(report["drops"][0]["count"], 1);
}

#[test]
fn wrong_control_files_stop_the_run_before_it_starts() {
    let folder = folder();
    folder.write("c", "+1 set f.mots 1500\n");
    let args = ["run", "chain.braid", "--in", "in.pcap", "--control", "c", "--out", "o.pcap"];
    folder.braid(&args).code(3).warns("E0704").warns("c:1:10");
    assert!(!folder.path("o.pcap").exists());
    for (line, says) in [
        ("+1 remove-rule f.ok 7", "no rule 7 at that time"),
        ("+1 add-rule f.ok at 7 pass", "no place 7 for a rule at that time"),
        // Another line has removed it.
        ("+2 remove-rule f.ok 0\n1 remove-rule f.ok 0", "no rule 0 at that time: it has no rules"),
    ] {
        folder.write("c", line);
        folder.braid(&args).code(3).warns("E0707").warns(says);
        assert!(!folder.path("o.pcap").exists());
    }
}

#[test]
fn control_lines_that_cannot_be_applied_are_found_by_check() {
    let folder = folder();
    folder.write("c", "+1 remove-rule f.ok 0\n+2 remove-rule f.ok 0\n");
    let check = ["check", "chain.braid", "--control", "c"];
    folder.braid(&check).code(1).warns("c:2:21").warns("`f.ok` has no rule 0 at that time");
    folder.write("c", "+2 remove-rule f.ok 0\n+1 add-rule f.ok at 1 drop\n+3 remove-rule f.ok 0\n");
    folder.braid(&check).code(0);
}

#[test]
fn control_lines_that_kept_state_does_not_fit_are_left_out_and_counted() {
    let folder = folder();
    folder.write("c", "+0 remove-rule f.ok 0\n+1 set f.most 1500 B\n");
    let args = ["run", "chain.braid", "--in", "in.pcap", "--control", "c", "--state-dir", "kept"];
    folder.braid(&args).code(0);
    // The rule is gone: this run goes on from the state of the one before.
    for more in [&[][..], &["--workers", "2"]] {
        let ended = folder.braid(&[&args[..], more].concat()).code(0);
        let ended =
            ended.warns("c:1: the change of `f.ok` is left out: ok has no rule 0: it has 0");
        ended.says("control lines left out: 1");
    }
    let report = folder.braid(&[&args[..], &["--json"]].concat()).code(0).json();
    let refused = &report["refused_changes"][0];
    assert_eq!((&refused["line"], &refused["function"]), (&json!(1), &json!("f")), "{report}");
    assert_eq!((&refused["parameter"], &refused["time_ns"]), (&json!("ok"), &json!(S)));
    assert_eq!(report["packets_in"], 13, "{report}");
}

#[test]
fn unknown_engines_are_answered_with_a_list() {
    folder()
        .braid(&["run", "chain.braid", "--in", "in.pcap", "--engine", "refrence"])
        .code(2)
        .warns("there is no engine `refrence`")
        .warns("did you mean `reference`?")
        .warns("function by function");
}

#[test]
fn unknown_interfaces_and_chains_are_usage_errors() {
    let folder = folder();
    let run = |more: &[&str]| folder.braid(&[&["run", "chain.braid"], more].concat());
    run(&["--in", "lam=in.pcap"]).code(2).warns("no interface `lam`; did you mean `lan`?");
    run(&["--in", "in.pcap", "--out", "x=o.pcap"]).code(2).warns("its interfaces are lan, wan");
    run(&["--in", "in.pcap", "--chain", "egde"]).code(2).warns("did you mean `edge`?");
    run(&[]).code(2);
}

#[test]
fn files_that_cannot_be_used_end_with_3() {
    let folder = folder();
    let run = |file: &str, more: &[&str]| folder.braid(&[&["run", file], more].concat());
    run("none.braid", &["--in", "in.pcap"]).code(3).warns("none.braid");
    run("chain.braid", &["--in", "none.pcap"]).code(3).warns("none.pcap");
    folder.write("text.pcap", "not a capture at all");
    run("chain.braid", &["--in", "text.pcap"]).code(3).warns("text.pcap: not a capture");
    run("chain.braid", &["--in", "in.pcap", "--out", "no/o.pcap"]).code(3).warns("no/o.pcap");
    folder.write("bad.braid", "chain c { }");
    let bad = run("bad.braid", &["--in", "in.pcap", "--json"]).code(3).warns("E0517");
    assert_eq!(bad.json()["diagnostics"][0]["code"], "E0517");
    folder.write("lib.braid", "nf f() { output; }");
    run("lib.braid", &["--in", "in.pcap"]).code(3).warns("no chain");
}

#[test]
fn input_is_never_overwritten() {
    let folder = folder();
    let before = std::fs::read(folder.path("in.pcap")).unwrap();
    let args = ["run", "chain.braid", "--in", "in.pcap", "--out", "./in.pcap"];
    folder.braid(&args).code(2).warns("is an input");
    std::fs::hard_link(folder.path("in.pcap"), folder.path("link.pcap")).unwrap();
    let args = ["run", "chain.braid", "--in", "in.pcap", "--out", "link.pcap"];
    folder.braid(&args).code(2).warns("is an input");
    for device in ["lan=replay:in.pcap", "lan=memory:in.pcap"] {
        let args = ["run", "chain.braid", "--if", device, "--for", "1s", "--out", "in.pcap"];
        folder.braid(&args).code(2).warns("in.pcap is read");
    }
    assert_eq!(std::fs::read(folder.path("in.pcap")).unwrap(), before);
}

#[test]
fn files_that_the_program_or_the_control_file_names_are_never_overwritten() {
    let folder = folder();
    let chain = "chain c { path stateless_firewall(allow: rules(\"a.rules\")); }";
    folder.write("rules.braid", chain).write("a.rules", "pass\n").write("b.rules", "drop\n");
    folder.write("changes", "+1 set stateless_firewall.allow rules(\"b.rules\")\n");
    let run = ["run", "rules.braid", "--in", "in.pcap", "--control", "changes"];
    let ended = |more: [&str; 2]| folder.braid(&[&run[..], &more].concat());
    ended(["--events-out", "a.rules"]).code(2).warns("a.rules is read");
    ended(["--state-out", "b.rules"]).code(2).warns("b.rules is read");
    assert_eq!(
        (folder.read("a.rules"), folder.read("b.rules")),
        ("pass\n".into(), "drop\n".into())
    );
    ended(["--events-out", "events"]).code(0);
}

#[test]
fn run_that_cannot_begin_keeps_earlier_results() {
    let folder = folder();
    folder.write("state", "earlier").write("events", "earlier");
    let outputs = ["--state-out", "state", "--events-out", "events"];
    let run =
        |more: [&str; 4]| folder.braid(&[&["run", "chain.braid"], &more[..], &outputs].concat());
    run(["--if", "nowhere=memory", "--for", "1s"]).code(2);
    run(["--if", "lan=replay:none.pcap", "--for", "1s"]).code(3);
    run(["--in", "in.pcap", "--control", "none"]).code(3);
    assert_eq!((folder.read("state"), folder.read("events")), ("earlier".into(), "earlier".into()));
}

#[test]
fn outputs_never_overwrite_each_other_or_the_chain() {
    let folder = folder();
    let run = |more: &[&str]| {
        folder.braid(&[&["run", "chain.braid", "--in", "in.pcap"], more].concat()).code(2)
    };
    run(&["--out", "o.pcap", "--out", "wan=./o.pcap"]).warns("is named for two outputs");
    run(&["--state-out", "s", "--events-out", "s"]).warns("is named for two outputs");
    run(&["--out", "chain.braid"]).warns("chain.braid is read");
    run(&["--state-out", "in.pcap"]).warns("is an input");
    run(&["--state-out", "-"]).warns("name a file");
    assert!(!folder.path("o.pcap").exists());
}

#[test]
fn wrong_arguments_are_an_error_in_json_too() {
    let ended = folder().braid(&["run", "chain.braid", "--json"]).code(2);
    assert!(ended.json()["error"].as_str().unwrap().contains("--in"));
}

#[test]
fn cut_off_captures_give_a_warning_and_their_whole_packets() {
    let folder = folder();
    let mut bytes = std::fs::read(folder.path("in.pcap")).unwrap();
    bytes.truncate(bytes.len() - 3);
    std::fs::write(folder.path("cut.pcap"), bytes).unwrap();
    let ended = folder.braid(&["run", "chain.braid", "--in", "cut.pcap", "--json"]).code(0);
    assert_eq!(ended.json()["packets_in"], 3);
    ended.warns("warning: cut.pcap: the file is cut off");
}

#[test]
fn several_chains_want_a_name() {
    let folder = folder();
    folder.write("two.braid", "chain a { path in <-> out; } chain b { path in -> out; }");
    let args = ["run", "two.braid", "--in", "in.pcap", "--json"];
    folder.braid(&args).code(2).warns("--chain").warns("a, b");
    let report = folder.braid(&[&args[..], &["--chain", "b"]].concat()).code(0).json();
    assert_eq!(report["packets_out"], json!({ "in": 0, "out": 4 }));
}

#[test]
fn library_functions_come_by_name() {
    let folder = folder();
    folder.write("lib.braid", "chain c { path monitor(); }");
    let report = folder.braid(&["run", "lib.braid", "--in", "in.pcap", "--json"]).code(0).json();
    assert_eq!(report["packets_out"]["out"], 4);
}

/// A NAPT, a one-to-one NAT and a load balancer, each with addresses of its own on the outside.
const OWNERS: &str = "\
chain napt {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  path lan <-> napt(public: 203.0.113.7) <-> wan;
}
chain static {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  path lan <-> static_nat(inside: 10.0.0.0, outside: 198.51.100.0, mask: 255.255.255.0) <-> wan;
}
chain balancer {
  interface clients;
  interface servers { behind 10.0.0.0/8 }
  path clients <-> l3_load_balancer(vip: 203.0.113.7, servers: [10.0.0.1]) <-> servers;
}
";

#[test]
fn packets_to_an_address_that_a_function_owns_enter_from_the_rest_of_the_world() {
    let folder = Folder::new();
    folder.write("owners.braid", OWNERS);
    let to = |dst: u128| udp(S, (0xc000_0201, 53), (dst, 4000), 4);
    folder.capture("public.pcap", &[to(0xcb00_7107)]).capture("prefix.pcap", &[to(0xc633_6401)]);
    let cases = [("napt", "public.pcap"), ("static", "prefix.pcap"), ("balancer", "public.pcap")];
    for (chain, capture) in cases {
        let args = ["run", "owners.braid", "--chain", chain, "--in", capture, "--json"];
        let report = folder.braid(&args).code(0).json();
        assert_eq!(report["lost"], json!({}), "{chain}");
        assert_eq!(report["packets_in"], 1, "{chain}");
        let entered = &report["functions"][0];
        let direction = if chain == "balancer" { "forward" } else { "backward" };
        assert_eq!(entered[direction]["packets"], 1, "{chain}");
    }
}

#[test]
fn run_that_loses_everything_warns() {
    let folder = Folder::edge();
    folder.capture("stray.pcap", &[udp(S, (0x0808_0808, 1), (0x0909_0909, 1), 0)]);
    folder
        .braid(&["run", "chain.braid", "--in", "stray.pcap"])
        .code(0)
        .says("lost by reason: no_interface 1")
        .warns("warning: no packet entered: all 1 were lost as no_interface");
}

#[test]
fn outputs_on_a_full_disk_are_named_and_the_summary_is_printed() {
    let folder = folder();
    folder.write(
        "e.braid",
        "event SEEN { size: u32 }\nnf e() { emit SEEN { size: 1 }; output; }\n\
                             chain c { path in <-> e() <-> out; }\n",
    );
    for option in ["--state-out", "--events-out", "--out"] {
        let chain = if option == "--events-out" { "e.braid" } else { "chain.braid" };
        let args = ["run", chain, "--in", "in.pcap", option, "/dev/full"];
        let text = folder.braid(&args).code(3).says("out by interface").says("in 4 + created 0");
        text.warns("braid: /dev/full: cannot be written: No space left on device");
        let ended = folder.braid(&[&args[..], &["--json"]].concat()).code(3);
        let value = ended.json();
        assert_eq!(value["packets_in"], 4, "{option}");
        assert!(value["error"].as_str().unwrap().starts_with("/dev/full: "), "{value}");
    }
}

#[test]
fn outputs_that_cannot_be_created_stop_the_run_before_it_starts() {
    let folder = folder();
    for option in ["--state-out", "--events-out"] {
        let args = ["run", "chain.braid", "--in", "in.pcap", option, "no/file"];
        let ended = folder.braid(&args).code(3).warns("no/file: cannot be written");
        assert_eq!(ended.out, "", "{option}");
    }
}

#[test]
fn run_without_input_names_both_ways_to_give_one() {
    folder().braid(&["run", "chain.braid"]).code(2).warns("--in").warns("--if");
}

#[test]
fn help_lists_every_exit_code() {
    let help = braid(&["--help"]).code(0).out;
    let page = include_str!("../../../docs/cli.md");
    // The constants of the code, and the answers yes and no.
    let code = include_str!("../src/answer.rs").lines();
    let named = code.filter_map(|line| line.strip_prefix("pub const ")?.split_once(": u8 = "));
    let named: Vec<&str> = named.filter_map(|(_, code)| code.strip_suffix(';')).collect();
    assert!(named.len() >= 6, "{named:?}");
    for code in ["0", "1"].into_iter().chain(named) {
        let start = format!("  {code:<4}");
        assert!(help.lines().any(|line| line.starts_with(&start)), "no {code} in\n{help}");
        assert!(page.contains(&format!("\n| {code} | ")), "no {code} in the page");
    }
}

/// A chain with a NAPT, and captures of a request and of its answer.
fn napt() -> Folder {
    let folder = Folder::edge();
    folder.write(
        "nat.braid",
        "chain home {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           nat = napt(public: 198.51.100.1);
           path lan <-> nat <-> wan;
         }",
    );
    folder.capture("out.pcap", &[udp(S, (0x0a00_0001, 5000), (0x0909_0909, 53), 0)]);
    folder.capture("back.pcap", &[udp(2 * S, (0x0909_0909, 53), (0xc633_6401, 1024), 0)]);
    folder
}

#[test]
fn run_goes_on_from_the_state_of_the_run_before() {
    let folder = napt();
    let run = |capture: &str| {
        folder.braid(&["run", "nat.braid", "--in", capture, "--state-dir", "kept", "--json"])
    };
    run("lan=out.pcap").code(0);
    for _ in 0..2 {
        let ended = run("wan=back.pcap").code(0).warns("goes on from kept/home.state (2 entries)");
        assert_eq!(ended.json()["drops"], json!([]));
    }
    assert_eq!(run("wan=back.pcap").json()["packets_out"], json!({ "lan": 3, "wan": 1 }));
}

#[test]
fn torn_state_is_refused_by_name_and_the_state_before_is_used() {
    let folder = napt();
    let run = |capture: &str| {
        folder.braid(&["run", "nat.braid", "--in", capture, "--state-dir", "kept", "--json"])
    };
    run("lan=out.pcap").code(0);
    run("wan=back.pcap").code(0);
    let path = folder.path("kept/home.state");
    let file = std::fs::read(&path).unwrap();
    std::fs::write(&path, &file[..file.len() / 2]).unwrap();
    run("wan=back.pcap")
        .code(0)
        .warns("kept/home.state: it has")
        .warns("it is not used")
        .warns("goes on from kept/home.state.before");
    std::fs::write(folder.path("kept/home.state"), "x").unwrap();
    std::fs::write(folder.path("kept/home.state.before"), "y").unwrap();
    let ended =
        run("wan=back.pcap").code(0).warns("home.state.before: it is not a state file of Braid");
    assert_eq!(ended.json()["packets_in"], 1, "the run begins anew");
}

#[test]
fn plan_of_a_changed_chain_is_printed() {
    let folder = napt();
    let args = ["run", "nat.braid", "--in", "lan=out.pcap", "--state-dir", "kept"];
    folder.braid(&args).code(0);
    let text = folder.read("nat.braid").replace("nat = napt", "nat2 = napt");
    folder.write("nat.braid", &text.replace("<-> nat <->", "<-> nat2 <->"));
    folder
        .braid(&args)
        .code(0)
        .warns("`nat2` is new")
        .warns("`nat` is lost: the chain has no function of this name");
}

#[test]
fn signal_ends_a_run_over_a_capture_with_its_summary_and_whole_outputs() {
    let folder = folder();
    let mut run = common::command()
        .args(["run", "chain.braid", "--in", "-", "--out", "out.pcap"])
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The input stays open: more packets could come.
    let mut input = run.stdin.take().unwrap();
    input.write_all(&fs::read(folder.path("in.pcap")).unwrap()).unwrap();
    let pid = run.id().to_string();
    // The signal means nothing to a process that does not catch it yet, and ends that process.
    for _ in 0..200 {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(caught.trim(), 16).unwrap() >> 1 & 1 == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // The first signal shows the counters so far, the second one ends the run.
    for signal in ["-USR1", "-INT"] {
        std::thread::sleep(Duration::from_millis(200));
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
    let ended = common::ended(&run.wait_with_output().unwrap()).code(0);
    let ended = ended.warns("ended by a signal after 4 packets").says("in 4 + created 0");
    ended.warns("in 4 + created 0");
    assert_eq!(folder.packets("out.pcap").len(), 2);
    drop(input);
}

/// Counts by receiver, which no steering by sender divides.
const COUNTED: &str = "\
nf count() {
  state sent: { packets: u64, bytes: size, first: time, last: time } per inet.dst,
    idle 60 s, capacity 100;
  match {
    exists sent => {
      sent.packets += 1;
      sent.bytes += size(pkt.len);
      sent.last = pkt.time;
      output;
    }
    has inet => {
      sent = { packets: 1, bytes: size(pkt.len), first: pkt.time, last: pkt.time } else output;
      output;
    }
    else => output;
  }
}
chain c {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  each = source_rate_limiter(rate: 1 Gbit/s, burst: 1 MB);
  all = count();
  path lan <-> each <-> all <-> wan;
}
";

#[test]
fn counts_of_all_workers_are_listed_as_their_sum() {
    let folder = Folder::new();
    folder.write("chain.braid", COUNTED);
    let packets: Vec<_> = (1..=20).map(|n| request(u64::from(n) * S, n, n.into())).collect();
    folder.capture("in.pcap", &packets);
    let counted = |workers: &str| -> Vec<Value> {
        let args = ["run", "chain.braid", "--in", "in.pcap", "--state-out", "state.json"];
        folder.braid(&[&args[..], &["--workers", workers]].concat()).code(0);
        let state = folder.read("state.json");
        let entries = state.lines().map(|line| serde_json::from_str(line).unwrap());
        entries.filter(|entry: &Value| entry["table"] == "sent").collect()
    };
    let mut expected = counted("1");
    assert_eq!(expected[0]["value"]["packets"], 20);
    expected[0]["shard"] = Value::Null;
    assert_eq!(counted("3"), expected);
}

#[test]
fn chain_in_stages_does_what_the_reference_engine_does() {
    let folder = folder();
    let run = |engine: &str| {
        let args =
            ["run", "chain.braid", "--in", "in.pcap", "--out", "out.pcap", "--engine", engine];
        let report = folder.braid(&[&args[..], &["--json"]].concat()).code(0).json();
        (report["functions"].clone(), fs::read(folder.path("out.pcap")).unwrap())
    };
    let expected = run("reference");
    for engine in ["parallel", "parallel:1", "parallel:5"] {
        assert_eq!(run(engine), expected, "{engine}");
    }
    for engine in ["parallel:0", "parallel:x", "parallels"] {
        let failed = folder.braid(&["run", "chain.braid", "--in", "in.pcap", "--engine", engine]);
        assert!(failed.code(2).err.contains("there is no engine"));
    }
}
