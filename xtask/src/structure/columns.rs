//! A rule on documents: lines wrap at 100 columns.

use super::allowed::{self, Found};
use super::{File, files};

/// The most characters of a line.
const COLUMNS: usize = 100;

/// Lines of documents wrap, except in tables and code blocks. An exception counts the long lines of
/// a document.
#[must_use]
pub fn documents_wrap() -> Vec<String> {
    allowed::check("columns", &long_lines())
}

/// The long lines of each document.
#[must_use]
pub fn long_lines() -> Found {
    let of_docs = |file: &File| file.path == "README.md" || file.path.starts_with("docs/");
    let all =
        files(&[".md"]).into_iter().filter(of_docs).map(|file| (file.path.clone(), long(&file)));
    all.filter(|(_, lines)| !lines.is_empty()).collect()
}

fn long(file: &File) -> Vec<String> {
    let (mut code, mut found) = (false, Vec::new());
    for (number, line) in (1..).zip(file.text.lines()) {
        let start = line.trim_start();
        if start.starts_with("```") {
            code = !code;
        }
        // A link without blanks cannot be wrapped.
        let whole = !start.trim_start_matches("- ").contains(' ');
        let exempt = code || whole || start.starts_with('|');
        if !exempt && line.chars().count() > COLUMNS {
            found.push(format!("{}:{number}: {} columns", file.path, line.chars().count()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_line_is_found_outside_of_tables_and_code() {
        let line = "word ".repeat(21);
        let text = format!("{line}\n| {line} |\n```\n{line}\n```\nshort\n{line}\n");
        let found = long(&File { path: "p".to_owned(), text });
        assert_eq!(found, ["p:1: 105 columns", "p:7: 105 columns"]);
    }
}
