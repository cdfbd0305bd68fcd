#![no_main]
//! Reads the IR's text form. Printed text must parse to the same program, and verification must
//! end.

use braid_ir::{text, verify};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    let Ok(model) = text::parse(source) else { return };
    let printed = text::print(&model);
    let again = text::parse(&printed).expect("printed text parses");
    assert_eq!(again, model, "{printed}");
    let _ = verify::verify(&model);
});
