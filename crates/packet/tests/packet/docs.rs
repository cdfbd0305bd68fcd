//! Tests that pages agree with the code: the page on packets lists every reason why a packet is
//! malformed, and the page on new headers shows the declaration of Geneve.

use braid_packet::Malformed;

const PACKETS: &str = include_str!("../../../../docs/packets.md");
const ADD_A_HEADER: &str = include_str!("../../../../docs/add-a-header.md");
const GENEVE: &str = include_str!("../../src/wire/geneve.rs");
const LIST: &str = include_str!("../../src/list.rs");

#[test]
fn page_lists_every_reason_with_its_meaning() {
    let rows: Vec<_> = PACKETS.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<_> =
        Malformed::ALL.iter().map(|r| format!("| `{}` | {} |", r.name(), r.doc())).collect();
    assert_eq!(rows, expected);
}

/// The lines from the first one that starts with `start` up to the first one that is `end`, without
/// blanks around them.
fn lines<'a>(text: &'a str, start: &str, end: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with(start));
    let mut found = Vec::new();
    for line in lines.by_ref() {
        found.push(line);
        if end(line) {
            break;
        }
    }
    found
}

#[test]
fn page_on_new_headers_shows_the_declaration_and_its_line_in_the_list() {
    let declaration = |text| lines(text, "pub(crate) const GENEVE", |line| line == "};");
    let shown = declaration(ADD_A_HEADER);
    assert!(shown.len() > 10, "{shown:?}");
    assert_eq!(shown, declaration(GENEVE));
    let listed = |text| lines(text, "Geneve geneve::GENEVE", |line| line.ends_with("];"));
    assert_eq!(listed(ADD_A_HEADER), listed(LIST));
}
