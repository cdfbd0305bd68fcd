#![no_main]
//! Compiles and formats any text. Compiling must end with a program or with diagnostics that can be
//! printed. Formatting must be idempotent and keep the meaning of the syntax tree. The names that
//! editors are told of must be in the text.

use braid_lang::diag::{Style, render, to_json};
use braid_lang::index::index;
use braid_lang::{Loader, compile, fmt};
use libfuzzer_sys::fuzz_target;

/// Every file has the same few lines.
struct Files;

impl Loader for Files {
    fn read(&self, path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        match path {
            "rules" => Ok(b"pass proto tcp to 10.0.0.0/8 port 80\ndefault drop\n".to_vec()),
            "routes" => Ok(b"10.0.0.0/8 1\n".to_vec()),
            "patterns" => Ok(b"\"evil\"\n".to_vec()),
            _ => Err("there is no such file".to_owned()),
        }
    }
}

fuzz_target!(|source: &str| {
    let compiled = compile(("fuzz.braid", source), &[], &Files);
    let _ = render(
        &compiled.diagnostics,
        &compiled.sources,
        Style { color: false, ascii: true, most: None },
    );
    let _ = to_json(&compiled.diagnostics, &compiled.sources);
    let (names, sources) = index(("fuzz.braid", source), &[], &Files);
    for (at, definition) in names.definitions.iter().enumerate() {
        for place in names.places(at) {
            assert_eq!(sources.slice(place), definition.name, "a name is somewhere else");
        }
    }
    let Ok(formatted) = fmt::format(source) else { return };
    assert_eq!(
        fmt::format(&formatted).as_ref(),
        Ok(&formatted),
        "formatting is not done after once"
    );
    let again = compile(("fuzz.braid", &formatted), &[], &Files);
    assert_eq!(compiled.unit.is_some(), again.unit.is_some(), "{formatted}");
    let (Some(before), Some(after)) = (compiled.unit, again.unit) else { return };
    for ((name, before), (_, after)) in before.models.iter().zip(&after.models) {
        assert_eq!(before.packet, after.packet, "{name}: formatting changed the meaning");
        assert_eq!(before.state, after.state, "{name}");
    }
});
