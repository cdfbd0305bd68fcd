//! The drawing of crates and modules in `docs/architecture.md`, made from manifests and sources.

use super::modules::Modules;
use super::{arrows, folders, root};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

/// The page with the drawing.
const PAGE: &str = "docs/architecture.md";
const START: &str = "<!-- drawing: `cargo xtask drawing` writes it -->\n```text\n";
const END: &str = "```\n<!-- end of the drawing -->";
/// The number of columns of the drawing, and the column where the modules begin.
const COLUMNS: usize = 96;
const INDENT: usize = 13;

/// The page shows the present crates and modules. With `BLESS` set, the page is written first.
#[must_use]
pub fn is_true() -> Vec<String> {
    if std::env::var_os("BLESS").is_some()
        && let Err(why) = write()
    {
        return vec![format!("{PAGE}: {why}")];
    }
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    match replaced(&page, &drawing()) {
        Some(new) if new == page => Vec::new(),
        Some(_) => vec![format!("{PAGE}: the drawing is out of date; run `cargo xtask drawing`")],
        None => vec![format!("{PAGE}: lacks the two comments around the drawing")],
    }
}

/// Writes the drawing into the page.
///
/// # Errors
/// The page cannot be read or written, or lacks the comments around the drawing.
pub fn write() -> io::Result<()> {
    let page = std::fs::read_to_string(root().join(PAGE))?;
    let new = replaced(&page, &drawing())
        .ok_or_else(|| io::Error::other("lacks the two comments around the drawing"))?;
    std::fs::write(root().join(PAGE), new)
}

fn replaced(page: &str, drawing: &str) -> Option<String> {
    let (before, rest) = page.split_once(START)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{START}{drawing}{END}{after}"))
}

/// The crates in layers: each uses only crates of lower layers.
fn drawing() -> String {
    let names = folders("crates");
    let uses: BTreeMap<String, Vec<String>> =
        names.iter().map(|name| (name.clone(), arrows::uses(name))).collect();
    let mut layers: BTreeMap<usize, Vec<&String>> = BTreeMap::new();
    for name in &names {
        layers.entry(layer(name, &uses)).or_default().push(name);
    }
    let mut text = String::new();
    for (number, crates) in layers.iter().rev() {
        let _ = writeln!(text, "── layer {number} {}", "─".repeat(COLUMNS - 11));
        for name in crates {
            let modules = Modules::of_crate(name).top();
            let modules = if modules.is_empty() { vec!["(one file)".to_owned()] } else { modules };
            text.push_str(&wrapped(name, &modules));
            if !uses[*name].is_empty() {
                let used = std::iter::once("→".to_owned()).chain(uses[*name].clone());
                text.push_str(&wrapped("", &used.collect::<Vec<_>>()));
            }
        }
    }
    text
}

/// The layer of a crate: one above the highest layer of the crates that it uses.
fn layer(name: &str, uses: &BTreeMap<String, Vec<String>>) -> usize {
    let used = uses.get(name).map_or(&[][..], Vec::as_slice);
    used.iter().map(|used| layer(used, uses) + 1).max().unwrap_or(0)
}

/// A name, and beside it words that wrap.
fn wrapped(name: &str, words: &[String]) -> String {
    let mut text = String::new();
    let mut line = format!("{name:INDENT$}");
    for word in words {
        if line.chars().count() + word.len() + 1 > COLUMNS {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(INDENT);
        }
        let _ = write!(line, "{word} ");
    }
    text + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crate_stands_above_all_that_it_uses() {
        let uses = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let all = [
            ("a".to_owned(), uses(&["b", "c"])),
            ("b".to_owned(), uses(&["c"])),
            ("c".to_owned(), Vec::new()),
        ];
        let all = all.into();
        assert_eq!(["a", "b", "c"].map(|name| layer(name, &all)), [2, 1, 0]);
    }

    #[test]
    fn drawing_goes_between_the_comments_only() {
        let page = format!("a\n{START}old\n{END}\nb\n");
        assert_eq!(replaced(&page, "new\n"), Some(format!("a\n{START}new\n{END}\nb\n")));
        assert_eq!(replaced("a", "new"), None);
    }
}
