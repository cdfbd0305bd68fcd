//! Tests that the tutorial's chains produce the output that the tutorial shows.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The code blocks of a page in this language, in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = page;
    let fence = format!("```{language}\n");
    while let Some(at) = rest.find(&fence) {
        let body = &rest[at + fence.len()..];
        let end = body.find("```").expect("the block's end");
        found.push(body[..end].to_owned());
        rest = &body[end + 3..];
    }
    found
}

/// The output of `braid ARGS` on both streams.
fn braid(folder: &Path, args: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_braid"))
        .args(args)
        .current_dir(folder)
        .output()
        .expect("run braid");
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

#[test]
fn tutorial_shows_what_happens() {
    let page = std::fs::read_to_string(root().join("docs/tutorial.md")).expect("the tutorial");
    let capture = root().join("examples/captures/domain-client.pcap.gz");
    let capture = capture.to_str().expect("a path in UTF-8");
    let chains = blocks(&page, "braid");
    let shown = blocks(&page, "text");
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();

    let run = |chain: &str, more: &[&str]| {
        std::fs::write(folder.join("chain.braid"), chain).expect("write the chain");
        let mut args = vec!["run", "chain.braid", "--in", capture, "--out", "out.pcap"];
        args.extend(more);
        braid(folder, &args)
    };
    let first = run(&chains[0], &[]);
    assert!(first.contains(&shown[0]), "the first run prints:\n{first}");

    let mistaken = chains[0].replace("ip.dst", "ip.dest");
    std::fs::write(folder.join("chain.braid"), mistaken).expect("write the chain");
    let message = braid(folder, &["check", "chain.braid"]);
    assert!(
        message.contains(shown[1].trim()) && message.contains("did you mean `ip.dst`"),
        "{message}"
    );

    std::fs::write(folder.join("chain.braid"), &chains[0]).expect("write the chain");
    let walk = braid(folder, &["trace", "chain.braid", "--in", capture, "--packet", "49"]);
    assert!(walk.contains("drop: other resolver"), "{walk}");

    let second = run(&chains[1], &["--events-out", "events.json"]);
    assert!(second.contains(&shown[2]), "the second run prints:\n{second}");
    let events = std::fs::read_to_string(folder.join("events.json")).expect("the events");
    assert!(events.starts_with(&shown[3]), "the events are:\n{events}");

    let longer = chains[0]
        .replace("  path lan <-> dns_guard(resolver: 192.168.122.2) <-> wan;\n", &shown[4]);
    assert!(run(&longer, &["--follow"]).contains("napt"), "the longer chain does not run");

    let third = run(&chains[2], &["--events-out", "events.json"]);
    assert!(third.contains(&shown[5]), "the third run prints:\n{third}");
    let events = std::fs::read_to_string(folder.join("events.json")).expect("the events");
    assert!(events.starts_with(&shown[6]), "the events are:\n{events}");
}
