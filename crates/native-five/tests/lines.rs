//! Checks that the table of lines in `docs/native.md` (SpeedyBox, Table II) agrees with the
//! sources. `BLESS=1` writes it.

use std::path::Path;

/// Each function with its files.
const FUNCTIONS: [(&str, &[&str]); 5] = [
    ("IDS", &["ids.rs", "search.rs", "search/signature.rs"]),
    ("Maglev", &["maglev.rs"]),
    ("IPFilter", &["ipfilter.rs", "rules.rs"]),
    ("Monitor", &["monitor.rs"]),
    ("MazuNAT", &["mazunat.rs", "expiring.rs"]),
];

/// The lines of code, without tests, comments and blank lines: for the function itself, and for its
/// records.
fn lines(file: &str) -> (usize, usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    let text = std::fs::read_to_string(path).expect("a source");
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(&text).to_owned();
    let (mut core, mut recording, mut inside) = (0, 0, false);
    for line in text.lines().map(str::trim) {
        match line {
            "// Recording." => inside = true,
            "// End of recording." => inside = false,
            "" => {}
            line if line.starts_with("//") => {}
            _ if inside => recording += 1,
            _ => core += 1,
        }
    }
    assert!(!inside, "{file}: a mark without an end");
    (core, recording)
}

fn table() -> String {
    let mut table = String::from(
        "| function | lines for what it does | lines added to record it |\n|---|---:|---:|\n",
    );
    for (name, files) in FUNCTIONS {
        let all = files.iter().map(|file| lines(file));
        let (core, added) = all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let tenths = (added * 1000 + core / 2) / core;
        let row = format!("| {name} | {core} | {added} (+{}.{} %) |\n", tenths / 10, tenths % 10);
        table.push_str(&row);
    }
    table
}

#[test]
fn table_of_lines_is_that_of_the_sources() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/native.md");
    let page = std::fs::read_to_string(&path).expect("docs/native.md");
    let start = page.find("| function | lines").expect("the table");
    let end = start + page[start..].find("\n\n").expect("its end") + 1;
    if page[start..end] == table() {
        return;
    }
    assert!(std::env::var_os("BLESS").is_some(), "BLESS=1 writes\n{}", table());
    let new = format!("{}{}{}", &page[..start], table(), &page[end..]);
    std::fs::write(path, new).expect("the page is written");
}
