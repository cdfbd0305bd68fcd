//! Tests that the page on packets lists every reason why a packet is malformed.

use braid_packet::Malformed;

const PAGE: &str = include_str!("../../../../docs/packets.md");

#[test]
fn page_lists_every_reason_with_its_meaning() {
    let rows: Vec<_> = PAGE.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<_> =
        Malformed::ALL.iter().map(|r| format!("| `{}` | {} |", r.name(), r.doc())).collect();
    assert_eq!(rows, expected);
}
