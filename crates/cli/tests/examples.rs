//! Tests the examples of the repository and of the command's page.

mod common;

use common::{Folder, braid};
use std::path::{Path, PathBuf};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).expect("the examples");
    let paths = files.map(|file| file.expect("readable").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "braid")).collect()
}

#[test]
fn examples_check_and_run_over_the_demo_capture() {
    let examples = examples();
    assert!(examples.len() >= 6, "{examples:?}");
    for path in examples {
        let file = path.to_str().expect("a name in UTF-8");
        let capture = path.with_file_name("captures/domain-client.pcap.gz");
        let capture = capture.to_str().expect("a name in UTF-8");
        braid(&["check", file]).code(0);
        let report = braid(&["run", file, "--in", capture, "--follow", "--json"]).code(0).json();
        assert_eq!(report["packets_in"], 1745, "{file}");
        for command in ["actions", "ir"] {
            braid(&[command, file]).code(0);
        }
        braid(&["trace", file, "--in", capture, "--packet", "40", "--follow"]).code(0);
    }
}

#[test]
fn control_lines_of_the_page_are_good() {
    let page = include_str!("../../../docs/cli.md");
    let block = page.split("### Control files").nth(1).expect("a section on control files");
    let lines: Vec<&str> = block
        .lines()
        .skip_while(|line| !line.starts_with("    "))
        .take_while(|line| line.starts_with("    "))
        .map(str::trim_start)
        .collect();
    assert!(lines.len() >= 6, "{lines:?}");
    let folder = Folder::new();
    let chain = "chain c {
        interface a; interface b;
        lim = rate_limiter(rate: 1 Mbit/s);
        fw = stateless_firewall(allow: rules(\"ok.rules\"));
        lb = maglev(vip: 192.0.2.1, backends: [10.0.0.7]);
        path a <-> lim <-> fw <-> lb <-> b;
    }";
    folder
        .write("c.braid", chain)
        .write("ok.rules", "pass\n")
        .write("c.control", &lines.join("\n"));
    folder.braid(&["check", "c.braid", "--control", "c.control"]).code(0);
}
