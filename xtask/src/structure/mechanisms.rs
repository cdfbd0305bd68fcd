//! A rule on the page on architecture: the lines of each mechanism are those of its files.

use super::{files_below, root};

/// The page.
const PAGE: &str = "docs/architecture.md";
/// The head of the table of mechanisms and files.
const HEAD: &str = "| mechanism | lines | files |\n|---|---|---|\n";

/// The number of lines of each mechanism is right within 5 %, and its files exist.
#[must_use]
pub fn lines_are_right() -> Vec<String> {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    wrong(&page, &|path| {
        let found = files_below(&format!("crates/{path}"), &[".rs"]);
        let of_file = || std::fs::read_to_string(root().join("crates").join(path)).ok();
        match found.as_slice() {
            [] => of_file().map(|text| text.lines().count()),
            found => Some(found.iter().map(|file| file.text.lines().count()).sum()),
        }
    })
}

/// The rows of a page that are wrong. `count` gives the lines of a file or of all files in a
/// folder.
fn wrong(page: &str, count: &dyn Fn(&str) -> Option<usize>) -> Vec<String> {
    let Some((_, table)) = page.split_once(HEAD) else {
        return vec![format!("{PAGE}: has no table of the lines of mechanisms")];
    };
    table
        .lines()
        .take_while(|line| line.starts_with('|'))
        .filter_map(|row| of_row(row, count))
        .collect()
}

/// What is wrong with a row. A row without a number names files that it has only parts of.
fn of_row(row: &str, count: &dyn Fn(&str) -> Option<usize>) -> Option<String> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [name, lines, paths] = cells.as_slice() else { return Some(format!("{PAGE}: {row}")) };
    let mut sum = 0;
    for path in paths.split('`').skip(1).step_by(2) {
        match count(path) {
            Some(lines) => sum += lines,
            None => return Some(format!("{PAGE}: {name}: there is no `{path}`")),
        }
    }
    let said = match lines.replace(',', "").parse::<usize>() {
        Ok(said) => said,
        Err(_) if lines.is_empty() && sum > 0 => return None,
        Err(_) => return Some(format!("{PAGE}: {name}: `{lines}` is no number of lines")),
    };
    (20 * said.abs_diff(sum) > sum).then(|| format!("{PAGE}: {name}: {sum} lines, not {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rows: &str) -> Vec<String> {
        let count = |path: &str| match path {
            "a.rs" => Some(900),
            "b" => Some(100),
            _ => None,
        };
        wrong(&format!("text\n{HEAD}{rows}\ntext\n| x | 1 | `c.rs` |\n"), &count)
    }

    #[test]
    fn number_of_lines_may_be_off_by_a_twentieth() {
        assert!(found("| x | 1,050 | `a.rs`, `b` |\n| y | 95 | all of `b` |\n").is_empty());
        assert_eq!(found("| x | 1,051 | `a.rs`, `b` |\n").len(), 1);
        assert_eq!(found("| x | 94 | `b` |\n").len(), 1);
    }

    #[test]
    fn unknown_file_and_missing_number_are_found() {
        assert_eq!(found("| x | 900 | `a.rs`, `c.rs` |\n").len(), 1);
        assert_eq!(found("| x | many | `a.rs` |\n| y | | nothing |\n").len(), 2);
        assert!(found("| x | | parts of `a.rs` |\n").is_empty());
        assert_eq!(wrong("no table", &|_| None).len(), 1);
    }
}
