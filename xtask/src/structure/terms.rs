//! Rules on words: `docs/glossary.md` has every term once, and nobody uses a retired term.

use super::allowed::{self, Found};
use super::{File, files, root};

/// The page that explains terms and lists retired ones.
const GLOSSARY: &str = "docs/glossary.md";

/// The endings of the files that are read.
const READ: &[&str] =
    &[".rs", ".md", ".toml", ".sh", ".braid", "Makefile", ".txt", ".py", ".c", ".h", ".signatures"];

/// Files that may use a retired term, and why.
const EXCEPT: &[(&str, &str, &str)] = &[
    (
        "crates/nfs/dhcp_guard/cases/arp_is_inspected/case.txt",
        "probe",
        "RFC 5227 calls an ARP request for an own address so",
    ),
    ("crates/io/src/sys/dpdk/shim.c", "probe", "a function of DPDK has it in its name"),
    ("crates/endpoint/src/endpoint.rs", "probe", "RFC 9293 calls a question for the window so"),
    ("crates/endpoint/src/outgoing.rs", "probe", "RFC 9293 calls a question for the window so"),
    ("crates/endpoint/src/saved.rs", "probe", "RFC 9293 calls a question for the window so"),
];

/// A term that the project has replaced.
#[derive(Debug, PartialEq, Eq)]
enum Retired {
    /// An identifier, exactly as written.
    Name(String),
    /// Consecutive words, in prose or as parts of an identifier, in lower case.
    Words(Vec<String>),
}

/// Every term of the glossary occurs there once, in alphabetical order.
#[must_use]
pub fn glossary_is_sorted() -> Vec<String> {
    let text = std::fs::read_to_string(root().join(GLOSSARY)).unwrap_or_default();
    unsorted(&text)
}

fn unsorted(text: &str) -> Vec<String> {
    let term = |line: &str| Some(line.strip_prefix("**")?.split_once("**")?.0.to_lowercase());
    let terms: Vec<String> = text.lines().filter_map(term).collect();
    if terms.is_empty() {
        return vec![format!("{GLOSSARY}: has no terms (`**term**` at the start of a line)")];
    }
    let pairs = terms.iter().zip(terms.iter().skip(1)).filter(|(a, b)| a >= b);
    pairs.map(|(a, b)| format!("{GLOSSARY}: `{b}` stands behind `{a}`")).collect()
}

/// Nobody uses a retired term, except in the files of `EXCEPT`. An exception counts the lines of
/// a crate or folder with retired terms.
#[must_use]
pub fn none_retired() -> Vec<String> {
    let retired = glossary();
    let has_it = |path: &str, term: &str| {
        let lines = files(&[path]).iter().flat_map(|file| used(file, &retired)).collect::<Vec<_>>();
        lines.iter().any(|line| line.ends_with(&format!("`{term}`")))
    };
    let unused = EXCEPT.iter().filter(|(path, term, _)| !has_it(path, term));
    let mut wrong: Vec<String> = unused
        .map(|(path, term, _)| format!("{path}: no `{term}`, so it needs no exception"))
        .collect();
    wrong.extend(allowed::check("terms", &retired_found()));
    wrong
}

fn glossary() -> Vec<Retired> {
    retired(&std::fs::read_to_string(root().join(GLOSSARY)).unwrap_or_default())
}

/// The lines with retired terms, by crate or folder.
#[must_use]
pub fn retired_found() -> Found {
    let retired = glossary();
    let mut found = Found::new();
    for file in files(READ) {
        let own = file.path == GLOSSARY || file.path.ends_with("structure/terms.rs");
        let mut lines = if own { Vec::new() } else { used(&file, &retired) };
        lines.retain(|line| {
            let is_it = |term: &str| line.ends_with(&format!("`{term}`"));
            !EXCEPT.iter().any(|(path, term, _)| *path == file.path && is_it(term))
        });
        if !lines.is_empty() {
            found.entry(place(&file.path)).or_default().extend(lines);
        }
    }
    found
}

/// The crate or folder of a file.
fn place(path: &str) -> String {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    path.split_once('/').map_or(path, |(place, _)| place).to_owned()
}

/// The retired terms: the first column of the table at the end of the glossary.
fn retired(glossary: &str) -> Vec<Retired> {
    let table = glossary.split_once("## Retired terms").map_or("", |(_, table)| table);
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let terms = rows.skip(1).flat_map(|row| row.split(", "));
    let term = |term: &str| {
        let name = term.trim_matches('`');
        if name.contains(char::is_uppercase) {
            Retired::Name(name.to_owned())
        } else {
            Retired::Words(words(name))
        }
    };
    terms.map(term).collect()
}

/// The lines of a file with retired terms.
fn used(file: &File, retired: &[Retired]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        // Most lines have none of the words and are not split.
        let lower = line.to_lowercase();
        let may_be = |term: &Retired| match term {
            Retired::Name(name) => line.contains(name),
            Retired::Words(term) => term.iter().all(|word| lower.contains(word)),
        };
        if !retired.iter().any(may_be) {
            continue;
        }
        let words = words(line);
        for term in retired {
            let name = match term {
                Retired::Name(name) if has_name(line, name) => name.clone(),
                Retired::Words(term) if words.windows(term.len()).any(|part| part == term) => {
                    term.join(" ")
                }
                _ => continue,
            };
            found.push(format!("{}:{number}: `{name}`", file.path));
            break;
        }
    }
    found
}

fn has_name(line: &str, name: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// The words of a line in lower case. Identifiers are split into their parts. Punctuation between
/// words counts as a part, so that words of two sentences do not join.
fn words(line: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in line.chars() {
        let starts = !before.is_alphanumeric() || before.is_lowercase() && c.is_uppercase();
        if c.is_alphanumeric() {
            if starts {
                found.push(String::new());
            }
            found.last_mut().into_iter().for_each(|word| word.extend(c.to_lowercase()));
        } else if !matches!(c, ' ' | '_' | '-') {
            found.push(c.to_string());
        }
        before = c;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "## Retired terms\n\n| retired | today |\n|---|---|\n\
        | fly, `go_slowly` | fast path |\n| `Act` | execution context |\n";

    fn lines(text: &str) -> usize {
        used(&File { path: "f".to_owned(), text: text.to_owned() }, &retired(PAGE)).len()
    }

    #[test]
    fn retired_term_is_found_as_a_word_and_within_identifiers() {
        for text in
            ["records fly", "fn try_to_fly()", "struct FlyPath", "to go slowly", "impl Act {"]
        {
            assert_eq!(lines(text), 1, "{text}");
        }
        for text in ["flying, butterfly", "they go. slowly", "to act", "Action", "fn act()"] {
            assert_eq!(lines(text), 0, "{text}");
        }
    }

    #[test]
    fn term_that_stands_twice_or_out_of_order_is_found() {
        assert!(unsorted("**a**: x\n\n**b**: y\n").is_empty());
        assert_eq!(unsorted("**b**: x\n**a**: y\n").len(), 1);
        assert_eq!(unsorted("**a**: x\n**A**: y\n").len(), 1);
        assert_eq!(unsorted("a").len(), 1);
    }
}
