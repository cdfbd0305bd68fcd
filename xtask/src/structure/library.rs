//! Rules on the library: every network function's folder is complete.

use super::{File, files, folders, root};

/// The headings of every function's page.
const HEADINGS: &[&str] = &["Parameters", "State", "Limits", "Example"];
/// Traffic that every function's page describes.
const TRAFFIC: &[&str] = &["ARP", "IPv6", "ragment", "ICMP"];

/// Every function has its model, its page with all headings, and at least one case.
#[must_use]
pub fn folders_are_whole() -> Vec<String> {
    let mut wrong = Vec::new();
    for name in folders("crates/nfs") {
        if matches!(name.as_str(), "src" | "tests" | "target") {
            continue;
        }
        let folder = format!("crates/nfs/{name}");
        if !root().join(&folder).join("model.braid").is_file() {
            wrong.push(format!("{folder}: has no model.braid"));
        }
        match files(&[&format!("{folder}/README.md")]).pop() {
            Some(page) => wrong.extend(missing_in(&page)),
            None => wrong.push(format!("{folder}: has no README.md")),
        }
        let cases = folders(&format!("{folder}/cases"));
        if cases.is_empty() {
            wrong.push(format!("{folder}/cases: has no case"));
        }
        for case in cases {
            if !root().join(&folder).join("cases").join(&case).join("case.txt").is_file() {
                wrong.push(format!("{folder}/cases/{case}: has no case.txt"));
            }
        }
    }
    wrong
}

/// The parts that a page lacks.
fn missing_in(page: &File) -> Vec<String> {
    let has_heading = |word: &str| {
        page.text.lines().any(|line| line.starts_with('#') && line.trim_end().ends_with(word))
    };
    let headings = HEADINGS
        .iter()
        .filter(|word| !has_heading(word))
        .map(|word| format!("{}: has no heading `## {word}`", page.path));
    let traffic = TRAFFIC
        .iter()
        .filter(|word| !page.text.contains(*word))
        .map(|word| format!("{}: does not say what `{word}` gets", page.path));
    headings.chain(traffic).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_without_a_heading_or_a_kind_of_traffic_is_found() {
        let text = "# x\n## Parameters\n## State\n## Limits\nARP, IPv6, fragments.\n";
        let page = File { path: "p".to_owned(), text: text.to_owned() };
        assert_eq!(
            missing_in(&page),
            ["p: has no heading `## Example`", "p: does not say what `ICMP` gets"]
        );
    }
}
