//! Exceptions from rules that the repository does not keep everywhere yet: a number for each rule
//! and place.
//!
//! The numbers only shrink. It is an error if a place has more violations than its number, and also
//! if it has fewer. `cargo xtask lower` writes the smaller numbers.

use super::root;
use std::collections::BTreeMap;
use std::io;

/// The file with the exceptions: lines of rule, place and number.
pub const FILE: &str = "xtask/exceptions.txt";

/// The violations by place. Each text describes one.
pub type Found = BTreeMap<String, Vec<String>>;

/// The exceptions, by rule and place.
type Allowed = BTreeMap<(String, String), usize>;

/// Compares the violations with the exceptions of the file.
#[must_use]
pub fn check(rule: &str, found: &Found) -> Vec<String> {
    compare(rule, found, &parse(&std::fs::read_to_string(root().join(FILE)).unwrap_or_default()))
}

fn compare(rule: &str, found: &Found, allowed: &Allowed) -> Vec<String> {
    let mut wrong = Vec::new();
    for (place, all) in found {
        let most = allowed.get(&(rule.to_owned(), place.clone())).copied().unwrap_or(0);
        if all.len() > most {
            wrong.push(format!("{place}: {} times, at most {most} allowed:", all.len()));
            wrong.extend(all.iter().map(|one| format!("  {one}")));
        }
    }
    let of_rule = allowed.iter().filter(|((of, _), _)| of == rule);
    for ((_, place), most) in of_rule {
        let count = found.get(place).map_or(0, Vec::len);
        if count < *most {
            wrong.push(format!(
                "{place}: {count} times, but {FILE} allows {most}; run `cargo xtask lower`"
            ));
        }
    }
    wrong
}

fn parse(text: &str) -> Allowed {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &str| {
        let mut words = line.split_whitespace();
        let (rule, place, count) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
        Some(((rule.to_owned(), place.to_owned()), count))
    };
    lines.filter_map(entry).collect()
}

/// Lowers the numbers of the file to the present numbers of violations.
///
/// # Errors
/// The file cannot be read or written.
pub fn lower(found: &[(&str, Found)]) -> io::Result<()> {
    let path = root().join(FILE);
    std::fs::write(&path, lowered(&std::fs::read_to_string(&path)?, found))
}

fn lowered(text: &str, found: &[(&str, Found)]) -> String {
    let allowed = parse(text);
    let mut out: String =
        text.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    for (rule, places) in found {
        for (place, all) in places {
            let before = allowed.get(&((*rule).to_owned(), place.clone())).copied().unwrap_or(0);
            let count = all.len().min(before);
            if count > 0 {
                out.push_str(&format!("{rule} {place} {count}\n"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: usize) -> Found {
        [("engine".to_owned(), vec!["x".to_owned(); count])].into()
    }

    #[test]
    fn more_than_allowed_and_less_than_allowed_are_errors() {
        let allowed = parse("# why\ncircles engine 2\n");
        assert!(compare("circles", &found(2), &allowed).is_empty());
        assert_eq!(compare("circles", &found(3), &allowed).len(), 4);
        assert_eq!(compare("circles", &found(1), &allowed).len(), 1);
        assert_eq!(compare("circles", &Found::new(), &allowed).len(), 1);
        assert_eq!(compare("spread", &found(1), &allowed).len(), 2);
    }

    #[test]
    fn numbers_are_lowered_and_never_raised() {
        let text = "# why\ncircles engine 2\n";
        assert_eq!(lowered(text, &[("circles", found(1))]), "# why\ncircles engine 1\n");
        assert_eq!(lowered(text, &[("circles", found(3))]), text);
        assert_eq!(lowered(text, &[("circles", found(0))]), "# why\n");
    }
}
