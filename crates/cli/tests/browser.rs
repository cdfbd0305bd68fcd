//! Opens the pages and pictures that Braid writes in a browser. They must have no errors and must
//! show their contents.
//!
//! The tests need Chromium or Chrome on the path. Without a browser they print a message and pass.

mod common;

use std::process::Command;

use common::Folder;

/// The document of a file as the browser has it after loading.
fn opened(folder: &Folder, name: &str) -> Option<String> {
    let mut args = vec![
        "--headless".to_owned(),
        "--disable-gpu".to_owned(),
        "--disable-background-networking".to_owned(),
        "--disable-component-update".to_owned(),
        "--disable-sync".to_owned(),
        "--no-first-run".to_owned(),
        "--enable-logging=stderr".to_owned(),
        format!("--user-data-dir={}", folder.path("profile").display()),
        "--dump-dom".to_owned(),
        format!("file://{}", folder.path(name).display()),
    ];
    if is_root() {
        args.insert(0, "--no-sandbox".to_owned());
    }
    for browser in ["chromium", "chromium-browser", "google-chrome"] {
        let Ok(ended) = Command::new(browser).args(&args).output() else { continue };
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{browser}: {said}");
        let complaints: Vec<_> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(complaints.is_empty(), "{name}: {}", complaints.join("\n"));
        let document = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(!document.contains("parsererror"), "{name}: {document}");
        return Some(document);
    }
    eprintln!("skipped: no chromium, chromium-browser or google-chrome on the path");
    None
}

/// Chromium has no sandbox for root.
fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output();
    user.is_ok_and(|user| user.stdout.trim_ascii() == b"0")
}

#[test]
fn page_of_a_bench_shows_its_plot_and_a_row_for_each_engine() {
    let folder = Folder::new();
    let args = ["bench", "routers", "--only", "functions=1", "--packets", "64", "--runs", "3"];
    folder.braid(&[&args[..], &["--time", "0.01", "--html", "page.html"]].concat()).code(0);
    let Some(page) = opened(&folder, "page.html") else { return };
    assert_eq!(page.matches("<svg").count(), 1, "{page}");
    for engine in ["floor_touch", "reference", "sequential", "synth", "fused"] {
        assert!(page.contains(&format!("<td>{engine}</td>")), "{engine}: {page}");
    }
    assert!(page.contains("ns per packet"), "the plot has an axis: {page}");
}

#[test]
fn pictures_of_a_chain_are_svg_that_a_browser_reads() {
    let folder = Folder::edge();
    let classes = folder.braid(&["classes", "chain.braid", "--svg"]).code(0).out;
    let graph = folder.braid(&["graph", "chain.braid", "--format", "svg"]).code(0).out;
    for (name, picture, shows) in
        [("classes.svg", classes, "too long"), ("graph.svg", graph, "chain edge")]
    {
        folder.write(name, &picture);
        let Some(document) = opened(&folder, name) else { return };
        assert!(document.contains("<svg") && document.contains(shows), "{name}: {document}");
    }
}
