//! Tests every message word for word. The cases are the wrong example of each code in the
//! catalogue, and the files in `messages/`, which the test lists. `NAME.txt` holds the messages of
//! `NAME.braid` (with files after lines `=== NAME ===`, as in the catalogue). `E0101.txt` belongs
//! to the catalogue's example. `BLESS=1` rewrites files that differ.

#[path = "support/native.rs"]
mod native;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_lang::control::{control, follow};
use braid_lang::diag::codes::{entries, example_files};
use braid_lang::diag::{Diagnostics, Style, render};
use braid_lang::source::SourceMap;
use braid_lang::{Compiled, Loader, compile};
use braid_native::{Description, LoadError};

/// Codes whose wrong examples are too large or not text, so the catalogue does not show them: a
/// file beyond the limit, a file that is not UTF-8, a chain beyond the limits. The compiler finds
/// chains that workers cannot share (`crates/cli/tests/sharding.rs`), and policies that leave an
/// order open (`crates/cli/tests/graph.rs`). A program has no two types of the same name, but the
/// library has types of its own (`events.rs`).
const NOT_SHOWN: [u16; 6] = [119, 120, 520, 521, 524, 815];

struct Beside(BTreeMap<String, String>);

impl Loader for Beside {
    fn read(&self, path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).map(|text| text.clone().into_bytes()).ok_or_else(|| "no such file".into())
    }

    fn native(
        &self,
        library: &str,
        function: &str,
        _is_isolated: bool,
    ) -> Result<Arc<Description>, LoadError> {
        native::native(library, function)
    }
}

/// The diagnostics of an example, including its control file.
fn found(example: &str) -> (Diagnostics, SourceMap) {
    let mut files = example_files(example).into_iter();
    let (_, root) = files.next().expect("an example has a first file");
    let beside = Beside(files.map(|(name, text)| (name.to_owned(), text)).collect());
    let Compiled { unit, mut diagnostics, mut sources, .. } =
        compile(("example.braid", root.trim_end()), &[], &beside);
    let changes = beside.0.iter().filter(|(name, _)| name.ends_with(".control"));
    for (name, text) in changes {
        let chains = unit.iter().flat_map(|unit| &unit.chains);
        let chain = chains.last().unwrap_or_else(|| panic!("no chain for {name}"));
        let file = sources.add(name.clone(), text.clone());
        let lines = control(file, chain, &beside, &sources, &mut diagnostics);
        if !diagnostics.has_errors() {
            follow(&lines, chain, None, &mut diagnostics);
        }
    }
    (diagnostics, sources)
}

fn rendered(example: &str) -> String {
    let (diagnostics, sources) = found(example);
    render(&diagnostics, &sources, Style::default())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages")
}

/// Adds the case to `wrong` if its message differs from its file. With `BLESS`, the file is
/// rewritten.
fn compare(name: &str, message: &str, wrong: &mut Vec<String>) {
    let path = folder().join(format!("{name}.txt"));
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if expected == message {
        return;
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, message).expect("the file is written");
    } else {
        wrong.push(format!("--- {name}: expected\n{expected}\n+++ found\n{message}"));
    }
}

#[test]
fn messages_of_the_catalogue_are_as_written_down() {
    let mut wrong = Vec::new();
    for entry in entries().filter(|entry| !NOT_SHOWN.contains(&entry.code.number())) {
        compare(&entry.code.to_string(), &rendered(entry.wrong), &mut wrong);
    }
    assert!(wrong.is_empty(), "BLESS=1 rewrites these\n{}", wrong.join("\n"));
}

/// The cases besides the catalogue.
fn cases() -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder()).expect("the folder of messages");
    let paths = files.map(|file| file.expect("readable").path());
    let case = |path: PathBuf| {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        let is_case = path.extension().is_some_and(|end| end == "braid");
        is_case.then(|| (name, std::fs::read_to_string(&path).expect("text")))
    };
    paths.filter_map(case).collect()
}

#[test]
fn messages_of_cases_are_as_written_down() {
    let mut wrong = Vec::new();
    for (name, example) in cases() {
        let message = rendered(&example);
        assert!(!message.is_empty(), "{name} has nothing wrong");
        compare(&name, &message, &mut wrong);
    }
    assert!(wrong.is_empty(), "BLESS=1 rewrites these\n{}", wrong.join("\n"));
}

#[test]
fn each_message_file_belongs_to_a_code_or_case() {
    let codes = entries().filter(|entry| !NOT_SHOWN.contains(&entry.code.number()));
    let mut known: BTreeSet<String> = codes.map(|entry| entry.code.to_string()).collect();
    known.extend(cases().into_keys());
    for file in std::fs::read_dir(folder()).expect("the folder of messages") {
        let path = file.expect("readable").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        assert!(known.contains(&name), "{} belongs to nothing", path.display());
    }
}

/// Covers chains, control files and policy. Other tests cover the other hundreds.
#[test]
fn examples_of_chains_get_their_code_alone_and_right_ones_none() {
    let mine =
        |number: u16| matches!(number, 500..=599 | 700..=899) && !NOT_SHOWN.contains(&number);
    for entry in entries().filter(|entry| mine(entry.code.number())) {
        let codes: BTreeSet<String> =
            found(entry.wrong).0.iter().map(|found| found.code.to_string()).collect();
        assert_eq!(codes, [entry.code.to_string()].into(), "{}", rendered(entry.wrong));
        assert_eq!(rendered(entry.right), "", "{}", entry.code);
    }
}
