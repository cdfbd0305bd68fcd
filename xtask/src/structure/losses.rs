//! The page for operators explains each reason for which packets are lost.

use super::{File, files_below, root};

/// The page.
const PAGE: &str = "docs/operations.md";

/// The crates whose code loses packets.
const CRATES: [&str; 6] = ["engine", "io", "ir", "packet", "reference", "runtime"];

/// Every reason for which packets are lost, or dropped by a fault, is in the page.
#[must_use]
pub fn losses_are_explained() -> Vec<String> {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    let sources =
        CRATES.iter().flat_map(|name| files_below(&format!("crates/{name}/src"), &[".rs"]));
    sources.flat_map(|file| missing(&page, &file)).collect()
}

fn missing(page: &str, file: &File) -> Vec<String> {
    let unknown = reasons(&file.text).into_iter();
    let unknown = unknown.filter(|reason| !page.contains(&format!("| `{reason}` |")));
    unknown.map(|reason| format!("{}: {PAGE} does not explain `{reason}`", file.path)).collect()
}

/// The reasons that a file declares: constants whose comment says that packets are lost, the values
/// of functions called `reason`, and the list of reasons why a packet is malformed.
fn reasons(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut comment, mut in_reason, mut in_list) = (String::new(), false, false);
    for line in text.lines() {
        let trimmed = line.trim();
        match trimmed.strip_prefix("///") {
            Some(said) => comment.push_str(said),
            None if trimmed.contains("const ") && trimmed.contains(": &str = ") => {
                if ["lost", "loss", "became of packets"].iter().any(|word| comment.contains(word)) {
                    found.extend(literal(trimmed));
                }
                comment.clear();
            }
            None => comment.clear(),
        }
        in_reason = (in_reason || trimmed.contains("fn reason(self)")) && line != "    }";
        in_list = (in_list || trimmed == "reasons! {") && line != "}";
        if in_list || in_reason && trimmed.contains("=>") {
            found.extend(literal(trimmed));
        }
    }
    found
}

/// The first text in quotes of a line.
fn literal(line: &str) -> Option<&str> {
    line.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
/// The reason for which packets are lost
/// that go nowhere.
const A: &str = \"nowhere\";
/// The first bytes of a file.
const B: &str = \"BRAID\";
impl X {
    pub fn reason(self) -> &'static str {
        match self {
            X::A => \"too_long\",
        }
    }
    fn name(self) -> &'static str {
        match self { X::A => \"a\" }
    }
}
reasons! {
    Short \"short\" \"Fewer bytes.\";
}
";

    #[test]
    fn declared_reasons_are_found() {
        assert_eq!(reasons(SOURCE), ["nowhere", "too_long", "short"]);
    }

    #[test]
    fn reason_without_a_line_in_the_page_is_named() {
        let file = File { path: "x.rs".to_owned(), text: SOURCE.to_owned() };
        let page = "| `nowhere` | … |\n| `short` | … |\n";
        assert_eq!(missing(page, &file), [format!("x.rs: {PAGE} does not explain `too_long`")]);
    }

    #[test]
    fn every_kind_of_loss_is_looked_for() {
        let sources =
            CRATES.iter().flat_map(|name| files_below(&format!("crates/{name}/src"), &[".rs"]));
        let text: Vec<String> = sources.map(|file| file.text).collect();
        let all: Vec<&str> = text.iter().flat_map(|text| reasons(text)).collect();
        for known in [
            "received_offload",
            "send_refused",
            "no_device",
            "drained",
            "hop_limit",
            "index",
            "ip_short",
            "no_neighbour",
            "before_reload",
            "no_interface",
        ] {
            assert!(all.contains(&known), "{known} is not in {all:?}");
        }
    }
}
