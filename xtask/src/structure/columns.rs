//! Rules on documents and comments: lines wrap at 100 columns, and rows of tables are lines.

use super::allowed::{self, Found};
use super::{File, files};

/// The most characters of a line.
const COLUMNS: usize = 100;

/// Lines of documents and of comments wrap, except in tables and code blocks. An exception counts
/// the long lines of a file.
#[must_use]
pub fn documents_wrap() -> Vec<String> {
    allowed::check("columns", &long_lines())
}

/// The long lines of each document, and the long comments of each source.
#[must_use]
pub fn long_lines() -> Found {
    let documents = documents().into_iter().map(|file| (file.path.clone(), long(&file)));
    let sources = files(&[".rs"]).into_iter().map(|file| (file.path.clone(), long_comments(&file)));
    documents.chain(sources).filter(|(_, lines)| !lines.is_empty()).collect()
}

/// Every row of a table has a line of its own, also after paragraphs were wrapped again.
#[must_use]
pub fn tables_have_lines() -> Vec<String> {
    documents().iter().flat_map(wrapped_tables).collect()
}

fn documents() -> Vec<File> {
    let is_one = |file: &File| {
        matches!(file.path.as_str(), "README.md" | "CHANGELOG.md") || file.path.starts_with("docs/")
    };
    files(&[".md"]).into_iter().filter(is_one).collect()
}

/// The lines where the row below the head of a table stands within a line.
fn wrapped_tables(file: &File) -> Vec<String> {
    let mut code = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        code ^= line.trim_start().starts_with("```");
        if !code && line.trim_start().find("|---").is_some_and(|at| at > 0) {
            found.push(format!("{}:{number}: a table without lines", file.path));
        }
    }
    found
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

/// The long comments of a source that have lines of their own. Code in comments may be long.
fn long_comments(file: &File) -> Vec<String> {
    let (mut code, mut found) = (false, Vec::new());
    for (number, line) in (1..).zip(file.text.lines()) {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            code = false;
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        code ^= comment.starts_with("```");
        let exempt = code || !comment.contains(' ') || comment.starts_with('|');
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

    #[test]
    fn long_comment_is_found_outside_of_code() {
        let words = "word ".repeat(20);
        let text = format!(
            "    //! {words}\nlet a = b; // {words}\n/// ```\n/// {words}\n/// ```\n/// | {words}\n"
        );
        let found =
            long_comments(&File { path: "p".to_owned(), text: format!("{text}// {words}\n") });
        assert_eq!(found, ["p:1: 108 columns", "p:7: 103 columns"]);
    }

    #[test]
    fn table_in_a_paragraph_is_found() {
        let text = "| a |\n|---|\n| 1 |\n```\na |---|\n```\n  | a | |---| | 1 |\n".to_owned();
        let found = wrapped_tables(&File { path: "p".to_owned(), text });
        assert_eq!(found, ["p:7: a table without lines"]);
    }
}
