//! Tests the parser and the formatter on handwritten programs: the catalogue's examples of the
//! parser's own codes, the library, the examples, the programs in the documents.

use std::path::{Path, PathBuf};

use crate::diag::codes::entries;
use crate::diag::{Entry, Style, render};
use crate::fmt::format;
use crate::parse::parse;
use crate::source::SourceMap;
use crate::{Loader, compile};

/// Examples that cannot be printed: a file beyond the limit, a file that is not UTF-8.
const NOT_SHOWN: [u16; 2] = [119, 120];

struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, _path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        Err("there are no files here".into())
    }
}

fn own() -> impl Iterator<Item = &'static Entry> {
    entries().filter(|entry| entry.code.number() < 200)
}

fn messages(text: &str) -> String {
    let mut sources = SourceMap::new();
    let file = sources.add("text", text);
    render(&parse(text, file).1, &sources, Style::default())
}

#[test]
fn wrong_examples_of_the_syntax_get_their_code_alone() {
    for entry in own().filter(|entry| !NOT_SHOWN.contains(&entry.code.number())) {
        let codes: Vec<u16> = parse(entry.wrong, 0).1.iter().map(|d| d.code.number()).collect();
        assert_eq!(codes, [entry.code.number()], "{}", messages(entry.wrong));
    }
}

#[test]
fn right_examples_of_the_syntax_compile() {
    for entry in own() {
        let found = compile(("example.braid", entry.right), &[], &NoFiles);
        let said = render(&found.diagnostics, &found.sources, Style::default());
        assert!(found.unit.is_some() && said.is_empty(), "{}:\n{said}", entry.code);
    }
}

/// All files with an extension below a folder.
fn below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    let nested = |path: PathBuf| if path.is_dir() { below(&path, ending) } else { vec![path] };
    let all = paths.into_iter().flat_map(nested);
    all.filter(|path| path.extension().is_some_and(|end| end == ending)).collect()
}

/// The programs of the repository by name: files, and code in documents.
fn programs() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut programs = Vec::new();
    for folder in ["examples", "crates/nfs", "crates/lang/tests/programs"] {
        for path in below(&root.join(folder), "braid") {
            let text = std::fs::read_to_string(&path).expect("text");
            programs.push((path.display().to_string(), text));
        }
    }
    for folder in ["docs", "crates/nfs"] {
        for path in below(&root.join(folder), "md") {
            let text = std::fs::read_to_string(&path).expect("text");
            let blocks = text.split("```braid\n").skip(1);
            let codes = blocks.filter_map(|block| block.split_once("\n```")).map(|(code, _)| code);
            let name = path.display().to_string();
            programs.extend(codes.map(|code| (name.clone(), code.to_owned())));
        }
    }
    programs
}

#[test]
fn programs_of_the_repository_parse() {
    let all = programs();
    assert!(all.len() > 20, "only {} programs found", all.len());
    for (name, text) in all {
        assert_eq!(messages(&text), "", "{name}");
    }
}

#[test]
fn programs_of_the_repository_format_to_themselves_the_second_time() {
    for (name, text) in programs() {
        let once = format(&text).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        let twice = format(&once).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}\n{once}"));
        assert_eq!(twice, once, "{name}");
        assert!(once.lines().all(|line| line.chars().count() <= 110), "{name}\n{once}");
    }
}
