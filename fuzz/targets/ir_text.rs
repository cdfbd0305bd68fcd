#![no_main]
//! The IR's text form: what parses prints to text that parses to the same; verifying it ends.

use braid_ir::{text, verify};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    let Ok(model) = text::parse(source) else { return };
    let printed = text::print(&model);
    let again = text::parse(&printed).expect("printed text parses");
    assert_eq!(again, model, "{printed}");
    let _ = verify::verify(&model);
});
