//! The example of docs/ir.md verifies, and prints as on the page.

use braid_ir::text::{parse, print};

fn example() -> &'static str {
    let page = include_str!("../../../docs/ir.md");
    let (_, rest) = page.split_once("```ir\n").expect("an example");
    rest.split_once("```").expect("its end").0
}

#[test]
fn example_verifies_and_prints_as_shown() {
    let model = parse(example()).unwrap();
    assert_eq!(braid_ir::verify::verify(&model), Ok(()));
    let without_comment = example().split_once('\n').unwrap().1;
    assert_eq!(print(&model), without_comment);
}
