//! Tests what surrounds the commands: completions, manual pages, captures on pipes, hints.

mod common;

use common::{EDGE, Folder, LIMIT, S, braid, command, ended, packets, request, udp};
use std::fs::File;
use std::process::Stdio;

fn folder() -> Folder {
    let folder = Folder::edge();
    folder.capture("in.pcap", &[request(S, 1, 4), request(2 * S, 2, 4)]);
    folder
}

#[test]
fn completions_have_all_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = braid(&["completions", shell]).code(0).out;
        for word in ["run", "test", "lsp", "completions", "junit"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    braid(&["completions", "tcsh"]).code(2).warns("bash");
    let value = braid(&["completions", "fish", "--json"]).code(0).json();
    assert_eq!(value["shell"], "fish");
}

#[test]
fn bash_accepts_its_completions() {
    let script = braid(&["completions", "bash"]).code(0).out;
    let check = "eval \"$0\"; COMP_WORDS=(braid tes); COMP_CWORD=1; _braid braid tes braid; \
                 echo \"${COMPREPLY[@]}\"";
    let Ok(output) = std::process::Command::new("bash").args(["-c", check, &script]).output()
    else {
        return;
    };
    let done = ended(&output).code(0);
    assert_eq!(done.out, "test\n", "{}", done.err);
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let folder = Folder::new();
    folder.braid(&["man", "pages/man1"]).code(0).says("braid.1");
    let help = braid(&["--help"]).code(0).out;
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let named = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = named.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"run") && names.contains(&"test"), "{names:?}");
    for name in names.iter().filter(|name| **name != "help") {
        let page = folder.read(&format!("pages/man1/braid-{name}.1"));
        assert!(page.contains(".TH"), "{name}");
    }
    let page = folder.read("pages/man1/braid-run.1");
    assert!(page.contains("\\-\\-state\\-dir"), "{page}");
    folder.write("file", "");
    folder.braid(&["man", "file"]).code(3).warns("file");
}

#[test]
fn captures_go_through_pipes_and_the_summary_beside_them() {
    let folder = folder();
    let input = File::open(folder.path("in.pcap")).unwrap();
    let mut run = command();
    run.args(["run", "chain.braid", "--in", "-", "--out", "-"]).current_dir(folder.path("."));
    let output = run.stdin(Stdio::from(input)).output().unwrap();
    std::fs::write(folder.path("out.pcap"), &output.stdout).unwrap();
    assert_eq!(packets(&folder.path("out.pcap")).len(), 2);
    ended(&output).code(0).warns("out by interface: lan 0, wan 2");
    folder.braid(&["diff", "in.pcap", "out.pcap"]).code(0);

    let args = ["run", "chain.braid", "--in", "in.pcap", "--out", "wan=-", "--json"];
    let done = folder.braid(&args).code(0).warns("\"packets_out\"");
    assert!(!done.out.contains("packets_out"));
    let args = ["run", "chain.braid", "--in", "in.pcap", "--out", "wan=-", "--out", "lan=-"];
    folder.braid(&args).code(2).warns("- is named for two outputs");
    let args = ["run", "chain.braid", "--in", "in.pcap", "--events-out", "-"];
    folder.braid(&args).code(2).warns("standard output is for results");
}

#[test]
fn generated_traffic_goes_through_pipes() {
    let mut generated = command();
    generated.args(["gen", "flows", "--flows", "3", "--packets", "9", "--out", "-"]);
    let output = generated.output().unwrap();
    let folder = Folder::new();
    std::fs::write(folder.path("out.pcap"), &output.stdout).unwrap();
    assert_eq!(packets(&folder.path("out.pcap")).len(), 9);
    ended(&output).code(0).warns("-: 9 packets");
}

#[test]
fn capture_without_its_option_gets_a_hint() {
    let folder = folder();
    for args in [&["run", "chain.braid", "in.pcap"][..], &["trace", "chain.braid", "in.pcap.gz"]] {
        folder.braid(args).code(2).warns("tip: name a capture with '--in': --in in.pcap");
    }
    let done = folder.braid(&["check", "chain.braid", "in.pcap"]).code(2);
    assert!(!done.err.contains("--in"), "{}", done.err);
    let done = folder.braid(&["run", "chain.braid", "--in", "in.pcap", "other"]);
    assert!(!done.err.contains("tip: name"), "{}", done.err);
}

#[test]
fn run_that_loses_everything_says_what_its_interfaces_lack() {
    let folder = Folder::new();
    folder.write("chain.braid", &format!("{LIMIT}\n{EDGE}")).write("ok.rules", "");
    folder.capture("stray.pcap", &[udp(S, (0x0808_0808, 1), (0x0909_0909, 1), 0)]);
    folder
        .braid(&["run", "chain.braid", "--in", "stray.pcap"])
        .code(0)
        .warns("the first is 8.8.8.8:1 > 9.9.9.9:1 UDP len 42")
        .warns(
            "`lan` is behind 10.0.0.0/8, `wan` has no `behind`; add the addresses to a `behind`",
        );
}
