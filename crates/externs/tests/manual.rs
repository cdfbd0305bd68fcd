//! Checks that the manual's page of operators is the page generated from their signatures.

use std::path::Path;

#[test]
fn page_of_operators_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/externs.md");
    let page = braid_externs::manual::page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).expect("docs can be written");
    }
    let written = std::fs::read_to_string(&path).expect("docs/externs.md");
    assert_eq!(written, page, "run it again with BLESS=1 and review the difference");
}
