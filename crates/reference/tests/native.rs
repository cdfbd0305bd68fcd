//! Native functions in the reference engine.

use braid_ir::chain::{Chain, Malformed, Node};
use braid_ir::steering::Steering;
use braid_ir::text::parse;
use braid_reference::Reference;
use std::sync::Arc;

const MODEL: &str =
    "model it { native \"./no_such.so\" \"f\" row \"body\" row \"fault\" reason \"no\"
    packet { b0: v0:u32 = native count row0 output onward at row0 } }";

#[test]
fn engine_for_a_function_that_cannot_be_had_says_why() {
    let model = Arc::new(parse(MODEL).unwrap());
    let chain = Chain {
        name: "c".to_owned(),
        interfaces: Vec::new(),
        nodes: vec![Node { name: "it".to_owned(), model, params: Vec::new() }],
        links: Vec::new(),
        priorities: Vec::new(),
        policy: Vec::new(),
        malformed: Malformed::Drop,
        seed: 0,
        workers: 1,
        steering: Steering::by_connection(),
        only: None,
        by_rules: false,
    };
    let why = Reference::new(chain).err().unwrap_or_default();
    assert!(why.starts_with("it: the library ./no_such.so cannot be loaded"), "{why}");
}
