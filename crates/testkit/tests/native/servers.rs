//! Tests the servers in chains: all engines do the same for the conversations of clients, and so do
//! several workers.

use super::relays::{conversation, engines_agree, workers_agree};
use super::*;
use tempfile::TempDir;

/// A folder with a page, and chains that serve it at 192.0.2.1.
fn site() -> (TempDir, Vec<Chain>) {
    let folder = tempfile::tempdir().expect("a folder");
    let page = "A line of a page.\n".repeat(3_000);
    std::fs::write(folder.path().join("index.html"), page).expect("a file");
    let pages = format!(
        "pages(addresses: {{ 192.0.2.1 }}, ports: {{ 80 }}, folder: \"{}\")",
        folder.path().display()
    );
    let chain = |path: &str| {
        compile(&format!(
            "native nf pages(addresses: set<addr>, ports: set<port>, folder: string, \
             half_open: u32 = 1 k, seed: u64 = 7) from \"server\";
             native nf sockets(addresses: set<addr>, ports: set<port>, path: string, \
             seed: u64 = 9) from \"server\";
             chain c {{ {INTERFACES} path lan <-> {path} <-> wan; }}"
        ))
    };
    let chains = vec![
        chain(&format!("monitor() <-> {pages}")),
        chain(&format!("napt(public: 203.0.113.1) <-> {pages} <-> monitor()")),
        // All connections begin by cookies.
        chain(&format!("monitor() <-> {}, half_open: 0)", pages.trim_end_matches(')'))),
    ];
    (folder, chains)
}

#[test]
fn engines_serve_the_same_pages() {
    let (_folder, chains) = site();
    for (at, chain) in chains.into_iter().enumerate() {
        for losses in [false, true] {
            let (stimuli, received) = conversation(&chain, 40_000, losses);
            let text = String::from_utf8_lossy(&received);
            assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "chain {at}: {text}");
            assert_eq!(text.matches("A line of a page.\n").count(), 3_000, "chain {at}");
            engines_agree(at, &chain, &stimuli, losses);
        }
    }
}

#[test]
fn workers_serve_the_same_pages() {
    let (_folder, chains) = site();
    for at in [0, 2] {
        workers_agree(at, &chains[at]);
    }
}

/// Only a live run opens sockets for servers. In all others, clients are refused.
#[test]
fn without_a_live_run_nobody_listens() {
    let chain = compile(&format!(
        "native nf sockets(addresses: set<addr>, ports: set<port>, path: string) from \"server\";
         chain c {{ {INTERFACES} path lan <-> sockets(addresses: {{ 192.0.2.1 }}, ports: {{ 80 }}, \
         path: \"/nowhere\") <-> wan; }}"
    ));
    let (stimuli, received) = conversation(&chain, 40_000, false);
    assert_eq!(received, b"");
    engines_agree(0, &chain, &stimuli, false);
}
