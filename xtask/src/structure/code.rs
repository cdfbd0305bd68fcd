//! Rules on the text of sources: first lines, unsafe code, placeholders.

use super::{File, files, files_below, folders, scan};

/// Crates with modules that may use unsafe code. Each lists these modules in its root.
const MAY_USE_UNSAFE: &[&str] = &["io", "jit", "native", "native-five", "packet", "preload"];

/// Crates whose code handles packets. Their roots turn [`LINTS`] on. Exceptions say why they are
/// right.
const DATA_PATH: &[&str] = &[
    "classify",
    "crypto",
    "endpoint",
    "engine",
    "externs",
    "flowcache",
    "http",
    "intervals",
    "io",
    "ir",
    "jit",
    "native",
    "native-five",
    "packet",
    "runtime",
    "signatures",
    "state",
    "streams",
    "tcp",
];

/// Lints against lost bits, panics and large frames on the stack.
const LINTS: [&str; 3] = ["cast_possible_truncation", "indexing_slicing", "large_stack_arrays"];

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

/// Crates of the data path warn of lost bits, panics and large frames, and each exception has a
/// reason.
#[must_use]
pub fn data_path_lints() -> Vec<String> {
    let of_crate = |name: &&str| {
        let folder = format!("crates/{name}/src/");
        let all = files_below(&folder, &[".rs"]);
        let root = all.iter().find(|file| file.path == format!("{folder}lib.rs"));
        let root = root.map_or("", |file| file.text.as_str());
        let warned = root.find("warn(").and_then(|at| root[at..].split(')').next());
        let is_off = |lint: &&&str| !warned.is_some_and(|warned| warned.contains(**lint));
        let mut wrong: Vec<String> = LINTS
            .iter()
            .filter(is_off)
            .map(|lint| format!("{folder}lib.rs: lacks {lint}"))
            .collect();
        wrong.extend(all.iter().flat_map(without_reason));
        wrong
    };
    DATA_PATH.iter().flat_map(of_crate).collect()
}

/// The exceptions from lints in a file that give no reason.
fn without_reason(file: &File) -> Vec<String> {
    let starts = file.text.match_indices("[expect(").chain(file.text.match_indices("[allow("));
    let of = |(at, _): (usize, &str)| {
        let exception = file.text[at..].split(")]").next().unwrap_or_default();
        let line = file.text[..at].lines().count();
        (!exception.contains("reason = "))
            .then(|| format!("{}:{line}: an exception without a reason", file.path))
    };
    starts.filter_map(of).collect()
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
