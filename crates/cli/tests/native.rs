//! Tests native functions from the command line: shared libraries, messages about faulty functions,
//! `inspect`.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Ended, Folder, S, braid, command, ended, request};
use serde_json::{Value, json};

/// A folder with a capture and with libraries, which are compiled from the C files of the native
/// functions' tests.
fn folder() -> Folder {
    let folder = Folder::new();
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../native");
    for name in ["good", "bad", "system", "operators", "streams"] {
        let built = Command::new("cc")
            .args(["-std=c99", "-shared", "-fPIC", "-I"])
            .arg(native.join("include"))
            .arg(native.join(format!("tests/c/{name}.c")))
            .arg("-o")
            .arg(folder.path(&format!("{name}.so")))
            .status();
        assert!(built.expect("a C compiler").success());
    }
    let packets: Vec<_> = (1..=5).map(|n| request(n * S, 1, 10)).collect();
    folder.capture("in.pcap", &packets);
    folder
}

fn chain(folder: &Folder, declared: &str, path: &str) {
    let chain = "interface lan { behind 10.0.0.0/8 } interface wan;";
    folder.write(
        "chain.braid",
        &format!("{declared}\nchain c {{ {chain} path lan <-> {path} <-> wan; }}\n"),
    );
}

fn run(folder: &Folder, options: &[&str]) -> Ended {
    folder.braid(&[&["run", "chain.braid", "--in", "in.pcap"], options].concat())
}

#[test]
fn function_of_a_library_beside_the_file_runs_in_every_engine() {
    let folder = folder();
    chain(&folder, "native nf limiter(limit: u32) from \"good.so\";", "limiter(limit: 3)");
    for engine in ["reference", "sequential", "synth", "fused"] {
        let options = ["--engine", engine, "--check-native", "--state-out", "state.json"];
        run(&folder, &options).code(0).says("over limit").says("out 3 + dropped 2");
        let state = folder.read("state.json");
        assert!(state.contains(r#""table":"counters","value":{"passed":3}"#), "{state}");
        assert!(state.contains(r#""table":"limiter","value":{"limit":3}"#), "{state}");
    }
}

#[test]
fn native_functions_are_not_called_to_choose_an_engine() {
    let folder = folder();
    let declared = "native nf limiter(limit: u32) from \"good.so\";
        nf plain() { match { else => output; } }";
    chain(&folder, declared, "plain() <-> limiter(limit: 3)");
    let ended = run(&folder, &["--engine", "auto", "--json"]).code(0);
    let choice = &ended.json()["choice"];
    assert_eq!(choice["engine"], "fused");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let why = choice["why"].as_str().expect("a reason");
    assert!(cores < 2 || why.contains("it has native functions, which are not called"), "{why}");
    let args = ["graph", "chain.braid", "--plan", "--measure"];
    folder.braid(&args).code(0).says("not measured, so auto takes fused: it has native functions");
}

const OPERATORS: &str = r#"
fn bits(a: ip4, b: u128) -> u8 from "operators.so";
fn heavy(most: u16) -> u16 from "operators.so" function weight;
fn all(x: bool) -> u13 from "./operators.so" function ones;

nf count(seed: u128) {
  state _seen: { bits: u8, weight: u16, all: u13 } per biflow = { bits: 0, weight: 0, all: 0 };
  match {
    has ip => {
      let found = bits(ip.src, seed);
      _seen = { bits: found, weight: heavy(most: 90) + heavy(4), all: all(true) };
      if bits(ip.src, 0) == found { drop "no bits"; }
      output;
    }
    else => output;
  }
}
"#;

#[test]
fn operators_of_a_library_are_called_like_functions_in_every_engine() {
    let folder = folder();
    // 10.0.0.1 has 3 bits, the seed 128. The payload consists of 10 bytes, which are 0.
    let seed = u128::MAX;
    chain(&folder, OPERATORS, &format!("count(seed: {seed})"));
    for engine in ["reference", "sequential", "synth", "fused", "parallel"] {
        run(&folder, &["--engine", engine, "--state-out", "state.json"]).code(0).says("out 5");
        let state = folder.read("state.json");
        let value: Value = serde_json::from_str(state.lines().next().expect("an entry")).unwrap();
        // A result that does not fit becomes the largest value of the type.
        let expected = json!({ "bits": 131, "weight": 14, "all": 8191 });
        assert_eq!(value["value"], expected, "{engine}");
    }
    chain(&folder, OPERATORS, "count(seed: 0)");
    run(&folder, &[]).code(0).says("no bits").says("dropped 5");
    folder.braid(&["verify", "chain.braid"]).code(0);
}

#[test]
fn operators_that_cannot_be_used_are_refused_with_the_reason() {
    let folder = folder();
    let program = |declared: &str, call: &str| {
        let text = format!("{declared}\nnf f() {{ if {call} == 7 {{ drop; }} output; }}");
        chain(&folder, &text, "f()");
        folder.braid(&["check", "chain.braid"])
    };
    for (declared, call, message) in [
        ("fn gone(a: u8) -> u8 from \"operators.so\";", "gone(1)", "braid_operator_gone"),
        ("fn a(a: u8) -> u8 from \"none.so\";", "a(1)", "cannot be loaded"),
        ("fn old(a: u8) -> u8 from \"operators.so\";", "old(1)", "version 0 of braid_nf.h"),
        ("fn short(a: u8) -> u8 from \"operators.so\";", "short(1)", "has 8 bytes"),
        ("fn idle(a: u8) -> u8 from \"operators.so\";", "idle(1)", "has no `run`"),
        ("fn ones() -> u8 from \"operators.so\";", "ones()", "1 to 16 arguments"),
        ("fn ones(a: u8) -> u8 from \"operators.so\";", "ones(1, 2)", "takes 1 argument"),
        ("fn ones(a: u8) -> u8 from \"operators.so\" isolated;", "ones(1)", "expected `;`"),
    ] {
        program(declared, call).code(1).warns(message);
    }
    // One that nothing calls is checked, too.
    program("fn gone(a: u8) -> u8 from \"operators.so\";", "u8(7)")
        .code(1)
        .warns("braid_operator_gone");
}

/// A live run over the capture, for as many packets. A file outside of the chain's folder exists.
fn live(folder: &Folder, options: &[&str]) -> Ended {
    let far = Folder::new();
    far.write("far.txt", "");
    let devices = ["--if", "lan=memory:in.pcap", "wan=memory", "--packets", "5"];
    let args = [&["run", "chain.braid"], &devices[..], options].concat();
    let mut run = command();
    run.current_dir(folder.path("")).env("FAR", far.path("far.txt")).args(args);
    ended(&run.output().expect("the command starts"))
}

/// The counters of the native function after a live run.
fn counted(folder: &Folder, options: &[&str]) -> Vec<String> {
    live(folder, &[&["--state-out", "state.json"], options].concat()).code(0);
    let state = folder.read("state.json");
    let counters = state.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let counters = counters.filter(|entry| entry["table"] == "counters");
    counters
        .flat_map(|entry| entry["value"].as_object().unwrap().keys().cloned().collect::<Vec<_>>())
        .collect()
}

#[test]
fn function_in_a_live_run_may_do_what_the_sandbox_leaves() {
    let folder = folder();
    folder.write("near.txt", "");
    chain(&folder, "native nf asker(needs_far: u32 = 0) from \"system.so\";", "asker()");
    let confined = [
        "time",
        "memory",
        "thread",
        "near file",
        "library",
        "no far file",
        "no new file",
        "no process",
        "no program",
        "no TCP",
    ];
    assert_eq!(counted(&folder, &[]), confined);
    let free = confined.map(|what| what.strip_prefix("no ").unwrap_or(what));
    assert_eq!(counted(&folder, &["--no-sandbox"]), free);
}

#[test]
fn function_that_needs_more_than_the_sandbox_leaves_is_refused_with_a_remedy() {
    let folder = folder();
    let remedy = "--no-sandbox";
    chain(&folder, "native nf asker(needs_far: u32) from \"system.so\";", "asker(needs_far: 1)");
    live(&folder, &[]).code(3).warns("its file cannot be read").warns(remedy);
    live(&folder, &["--no-sandbox"]).code(0);
    chain(&folder, "native nf lasting() from \"system.so\";", "lasting()");
    live(&folder, &[]).code(3).warns("a native function has started a thread").warns(remedy);
    live(&folder, &["--no-sandbox"]).code(0);
}

#[test]
fn crash_in_the_sandbox_names_the_function() {
    let folder = folder();
    chain(&folder, "native nf it() from \"bad.so\" function crash;", "it()");
    let ended = live(&folder, &[]);
    ended.warns("braid: SIGSEGV in native function `it` (crash of ./bad.so), on its packet");
}

#[test]
fn trace_shows_what_a_native_function_wrote() {
    let folder = folder();
    let declared = "native nf mazunat(public: ip4, ports: pool<port>) from \"five\";";
    chain(&folder, declared, "mazunat(public: 203.0.113.9, ports: 2000..2009)");
    let args = ["trace", "chain.braid", "--in", "in.pcap", "--packet", "1"];
    folder
        .braid(&args)
        .code(0)
        .says("ip.src = 203.0.113.9")
        .says("sport = 2000")
        .says("output onward");
}

#[test]
fn events_are_what_functions_log() {
    let folder = folder();
    chain(&folder, "native nf clock() from \"good.so\";", "clock()");
    run(&folder, &["--events-out", "events.json"]).code(0);
    let events = folder.read("events.json");
    assert!(events.contains(r#""event":"LOG""#) && events.contains("\"tick\""), "{events}");
}

#[test]
fn five_run_from_their_shared_library() {
    let folder = folder();
    let mut library = PathBuf::from(env!("CARGO_BIN_EXE_braid"));
    library.set_file_name("deps/libbraid_native_five.so");
    if !library.exists() {
        library.set_file_name("../libbraid_native_five.so");
    }
    let declared = format!("native nf monitor() from \"{}\";", library.display());
    chain(&folder, &declared, "monitor()");
    run(&folder, &["--state-out", "state.json"]).code(0).says("out 5");
    let from_library = folder.read("state.json");
    assert!(from_library.contains(r#""packets":5"#), "{from_library}");
    chain(&folder, "native nf monitor() from \"five\";", "monitor()");
    run(&folder, &["--state-out", "state.json"]).code(0);
    assert_eq!(folder.read("state.json"), from_library);
}

#[test]
fn example_of_the_five_does_what_it_records() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let file = examples.join("native/five.braid").display().to_string();
    let capture = examples.join("captures/domain-client.pcap.gz").display().to_string();
    braid(&["fmt", "--check", &file]).code(0);
    let mut outputs = Vec::new();
    for engine in ["reference", "synth", "fused"] {
        let args = ["run", &file, "--in", &capture, "--follow", "--check-native", "--json"];
        let report = braid(&[&args[..], &["--engine", engine]].concat()).code(0).json();
        assert_eq!(report["warnings"], json!([]));
        outputs.push(report);
    }
    assert!(outputs.iter().all(|report| *report == outputs[0]));
    assert!(outputs[0]["packets_out"]["wan"].as_u64().is_some_and(|out| out > 100));
}

#[test]
fn example_of_the_proxy_is_right() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let file = examples.join("native/proxy.braid").display().to_string();
    braid(&["fmt", "--check", &file]).code(0);
    braid(&["check", &file]).code(0).says("0 errors, 0 warnings");
}

#[test]
fn wrong_use_is_in_the_report_and_in_the_exit_code() {
    let folder = folder();
    chain(&folder, "native nf odd() from \"bad.so\" function misuse;", "odd()");
    run(&folder, &[])
        .code(1)
        .says("native")
        .warns("native function `odd` (misuse of ./bad.so) wrong use: assigns ip.len, which is read-only (its packet 1), 5 times");
    let report = run(&folder, &["--json"]).code(1).json();
    assert_eq!(report["drops"][0]["reason"], "native");
    assert_eq!(report["drops"][0]["row"], "fault");
    assert!(report["warnings"].as_array().is_some_and(|all| all.len() > 5));
}

#[test]
fn function_that_does_other_than_it_recorded_is_named() {
    let folder = folder();
    chain(&folder, "native nf liar() from \"bad.so\";", "liar()");
    run(&folder, &[]).code(0);
    run(&folder, &["--check-native"])
        .code(1)
        .warns("native function `liar` (liar of ./bad.so) does other than it recorded: l4.dport is 80 by the record and 81 in fact");
}

#[test]
fn crash_names_function_library_and_packet() {
    let folder = folder();
    chain(&folder, "native nf doomed() from \"bad.so\" function crash;", "doomed()");
    let args = ["run", "chain.braid", "--in", "in.pcap"];
    let crashed = command().args(args).current_dir(folder.path("")).output().expect("it starts");
    assert_eq!(crashed.status.signal(), Some(11));
    let told = String::from_utf8_lossy(&crashed.stderr);
    let message =
        "braid: SIGSEGV in native function `doomed` (crash of ./bad.so), on its packet 3\n";
    assert!(told.contains(message), "{told}");
}

#[test]
fn inspect_shows_what_was_observed_and_what_is_declared() {
    let folder = folder();
    chain(&folder, "native nf monitor() from \"five\";", "monitor()");
    folder
        .braid(&["inspect", "chain.braid"])
        .code(0)
        .says("monitor (observed)  R    R    R      R\n")
        .says("monitor (declared)  R    R    R      R\n");
    let args = ["inspect", "chain.braid", "--packets", "500", "--json"];
    let found = folder.braid(&args).code(0).json();
    let monitor = &found["functions"][0];
    assert_eq!(monitor["packets"], 500);
    assert_eq!(monitor["problems"], json!([]));
    assert!(
        monitor["observed"]["reads"].as_array().is_some_and(|all| all.contains(&json!("inet.src")))
    );
}

#[test]
fn inspect_tells_of_a_run_that_exceeds_the_declared_profile() {
    let folder = folder();
    chain(&folder, "native nf secret() from \"bad.so\";", "secret()");
    folder
        .braid(&["inspect", "chain.braid"])
        .code(1)
        .says("secret (declared)")
        .warns("native function `secret` (secret of ./bad.so) exceeds its declared profile: reads ip.dst")
        .warns("writes ip.ttl")
        .warns("drops a packet");
}

#[test]
fn inspect_wants_a_native_function() {
    let folder = Folder::edge();
    folder.braid(&["inspect", "chain.braid"]).code(3).warns("no native function to inspect");
}

#[test]
fn stream_function_has_nothing_for_packets_and_is_not_inspected() {
    let folder = folder();
    chain(&folder, "native nf ported() from \"streams.so\";", "ported()");
    folder
        .braid(&["check", "chain.braid"])
        .code(1)
        .warns("it takes connections (open, data, close) and no packets, so it has no ports");
    chain(&folder, "native nf told() from \"streams.so\";", "told()");
    folder.braid(&["check", "chain.braid"]).code(0);
    folder.braid(&["inspect", "chain.braid"]).code(3).warns("no native function to inspect");
}

#[test]
fn parameter_that_a_function_refuses_is_a_refused_change() {
    let folder = folder();
    chain(&folder, "native nf limiter(limit: u32) from \"good.so\";", "limiter(limit: 2)");
    folder.write("up.control", "+2.5 set limiter.limit 4\n");
    run(&folder, &["--control", "up.control"]).code(0).says("out 4 + dropped 1");
    folder.write("down.control", "+2.5 set limiter.limit 0\n");
    run(&folder, &["--control", "down.control"])
        .code(0)
        .warns("down.control:1: the change of `limiter.limit` is left out")
        .warns("a limit of 0 lets nothing pass")
        .says("control lines left out: 1");
}

#[test]
fn classes_of_a_chain_stop_in_front_of_a_native_function() {
    let folder = Folder::new();
    folder.write("filter.rules", "pass proto udp\n");
    let declared = "native nf filter(filter: rules) from \"five\" function ipfilter;";
    let chain = "f = filter(filter: rules(\"filter.rules\"));";
    folder.write("c.braid", &format!("{declared}\nchain c {{ {chain} path f <-> monitor(); }}\n"));
    folder.braid(&["classes", "c.braid"]).code(0).says("goes on backward through f");
    let value = folder.braid(&["classes", "c.braid", "--json"]).code(0).json();
    assert_eq!(value["entries"][0]["native"], "f");
    assert_eq!(value["entries"][0]["programs"], json!([]));
    assert!(!value["entries"][1]["programs"].as_array().unwrap().is_empty());
}

#[test]
fn live_run_has_the_sockets_of_its_servers_until_its_end() {
    let folder = folder();
    let declared = "native nf sockets(addresses: set<addr>, ports: set<port>, path: string)";
    let call = "sockets(addresses: { 10.0.0.1 }, ports: { 80 }, path: \"the.sock\")";
    chain(&folder, &format!("{declared} from \"server\";"), call);
    live(&folder, &[]).code(0);
    assert!(!folder.path("the.sock").exists(), "the run removes it");
    folder.write("the.sock", "a file");
    live(&folder, &[]).code(3).warns("the.sock: something else than a socket is there");
    chain(&folder, &format!("{declared} from \"server\" isolated;"), call);
    folder.braid(&["check", "chain.braid"]).code(1).warns("which an isolated function cannot do");
}
