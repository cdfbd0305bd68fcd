//! Models of native functions: text form, what the verifier asks, what becomes of what a function says.

use braid_ir::chain::{Chain, Malformed, Node};
use braid_ir::interp::Reference;
use braid_ir::model::Model;
use braid_ir::text::{parse, print};
use braid_ir::verify::verify;
use std::sync::Arc;

/// A model of a native function with these declarations and this program.
fn model(declared: &str, program: &str) -> Model {
    let text = format!(
        "model it {{ {declared} row \"body\" row \"fault\" reason \"no\" packet {{ {program} }} }}"
    );
    parse(&text).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

const PROGRAM: &str = "b0: v0:u32 = native count row0 v1:u32 = const 0 v2:bool = eq v0, v1 \
    branch v2, b1, b2 b1: output onward at row0 b2: drop \"no\" at row0";

#[test]
fn text_form_holds_all_that_is_known_of_the_function() {
    for declared in [
        "native \"./lib.so\" \"f\"",
        "native \"five\" \"monitor\" checks (records, observe)",
        "native \"five\" \"monitor\" profile (read ip.src, write fields, read payload, write bytes, drop)",
        "native \"five\" \"monitor\" checks (records) profile (add, remove, redirect)",
        "native \"five\" \"monitor\" profile ()",
    ] {
        let model = model(declared, PROGRAM);
        let text = print(&model);
        assert!(text.contains(declared), "{text}");
        assert_eq!(parse(&text), Ok(model), "{text}");
    }
}

#[test]
fn words_that_are_no_part_of_a_profile_are_errors() {
    for part in ["checks (all)", "profile (read ip.source)", "profile (steal)"] {
        let text = format!("model it {{ native \"a\" \"b\" {part} }}");
        assert!(parse(&text).is_err(), "{text}");
    }
}

/// What the verifier says.
fn problems(model: &Model) -> Vec<String> {
    let errors = verify(model).err().unwrap_or_default();
    errors.iter().map(|error| error.problem.to_string()).collect()
}

#[test]
fn verifier_lets_a_native_function_do_nothing_but_decide() {
    let declared = "native \"five\" \"monitor\"";
    assert_eq!(problems(&model(declared, PROGRAM)), [""; 0]);
    let load = "b0: v0:u32 = native v1:u32 = load pkt.len output onward at row0";
    assert!(problems(&model(declared, load))[0].contains("native function"));
    assert!(problems(&model("", PROGRAM))[0].contains("native function"));
    let narrow = "b0: v0:u8 = native output onward at row0";
    assert_eq!(problems(&model(declared, narrow)).len(), 1);
}

#[test]
fn engine_for_a_function_that_cannot_be_had_says_why() {
    let model = Arc::new(model("native \"./no_such.so\" \"f\"", PROGRAM));
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
    };
    let why = Reference::new(chain).err().unwrap_or_default();
    assert!(why.starts_with("it: the library ./no_such.so cannot be loaded"), "{why}");
}
