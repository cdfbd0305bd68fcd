//! Rules on the text of sources: first lines, unsafe code, placeholders.

use super::{files, folders, scan};

/// Crates with modules that may use unsafe code. Each lists these modules in its root.
const MAY_USE_UNSAFE: &[&str] = &["io", "jit", "native", "native-five", "packet"];

/// Every Rust file starts with `//!`.
#[must_use]
pub fn first_lines() -> Vec<String> {
    files(&[".rs"])
        .into_iter()
        .filter(|file| !file.text.starts_with("//! ") && !shebang_then_doc(&file.text))
        .map(|file| format!("{}: the first line is no `//! what lives here and why`", file.path))
        .collect()
}

/// Whether a fuzz target starts with `#![no_main]`, which the compiler requires first, and then
/// with `//!`.
fn shebang_then_doc(text: &str) -> bool {
    text.strip_prefix("#![no_main]\n").is_some_and(|rest| rest.starts_with("//! "))
}

/// Every crate's root forbids unsafe code.
#[must_use]
pub fn unsafe_fences() -> Vec<String> {
    let mut wrong = Vec::new();
    for name in folders("crates").iter().filter(|name| !MAY_USE_UNSAFE.contains(&name.as_str())) {
        let roots =
            files(&[&format!("crates/{name}/src/lib.rs"), &format!("crates/{name}/src/main.rs")]);
        if roots.is_empty() {
            wrong.push(format!("crates/{name}: has neither src/lib.rs nor src/main.rs"));
        }
        for root in roots {
            if !root.text.lines().any(|line| line == "#![forbid(unsafe_code)]") {
                wrong.push(format!("{}: lacks `#![forbid(unsafe_code)]`", root.path));
            }
        }
    }
    wrong
}

/// No macro stands for missing code, and no note says that something is missing.
#[must_use]
pub fn placeholders() -> Vec<String> {
    // The names are put together here, so that this file does not break its own rule.
    let macros = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!"));
    let notes =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
    let mut wrong = Vec::new();
    for file in files(&[".rs", ".braid", ".sh", ".md", "Makefile", ".toml"]) {
        let code = scan::code_only(&file.text);
        let is_rust = file.path.ends_with(".rs");
        for (number, (line, text)) in code.lines().zip(file.text.lines()).enumerate() {
            let found = macros.iter().find(|name| is_rust && has_word(line, name));
            let note = notes.iter().find(|note| has_word(text, note));
            if let Some(word) = found.map(String::as_str).or(note.copied()) {
                wrong.push(format!("{}:{}: `{word}`", file.path, number + 1));
            }
        }
    }
    wrong
}

/// Whether a line contains a word, without a letter, digit or `_` beside it.
fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// No file names folders of a developer's machine.
#[must_use]
pub fn outside() -> Vec<String> {
    let places = [concat!("/wo", "rk/"), concat!("../sha", "red"), concat!("sha", "red/data")];
    let endings = [".rs", ".braid", ".sh", ".md", "Makefile", ".toml", ".txt", ".py", ".ci/run"];
    let mut wrong = Vec::new();
    for file in files(&endings) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(place) = places.iter().find(|place| line.contains(*place)) {
                wrong.push(format!("{}:{}: names `{place}`", file.path, number + 1));
            }
        }
    }
    wrong
}
