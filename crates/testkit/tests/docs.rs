//! Tests that the example of `docs/testing.md` is a case that runs.

use std::path::Path;

#[test]
fn example_of_the_page_is_the_case_on_disk() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/testing.md")).expect("the page");
    for file in ["case.txt", "chain.braid"] {
        let path = root.join("crates/testkit/cases/reply_is_translated_back").join(file);
        let text = std::fs::read_to_string(path).expect("the case");
        let indented: String =
            text.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n").collect();
        assert!(page.contains(&indented), "docs/testing.md does not show {file} as it is");
    }
}
