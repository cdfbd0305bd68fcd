//! Event types of programs and of the library: they are the same if name, fields and parent agree.

use braid_lang::diag::codes::EVENT_TYPES_DIFFER;
use braid_lang::{Loader, compile};

struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, _path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        Err("no such file".into())
    }
}

/// A function of the library that publishes events.
const DETECTOR: &str = "event SCAN extends EVENT { src: u128 }
event PORT_SCAN extends SCAN { ports: u32 }
nf detector() { emit PORT_SCAN { src: 1, ports: 2 }; output; }";

/// The codes of a program with these types, whose function takes events of the type SCAN.
fn found(types: &str) -> Vec<u16> {
    let program = format!(
        "{types}
nf wall() {{ state n: u32 global = 0; on SCAN {{ n += 1; }} if n > 9 {{ drop; }} output; }}
chain c {{ path detector() <-> wall(); }}"
    );
    let compiled = compile(("wall.braid", &program), &[("detector", DETECTOR)], &NoFiles);
    compiled.diagnostics.iter().map(|found| found.code.number()).collect()
}

#[test]
fn types_with_the_same_name_fields_and_parent_are_the_same() {
    assert!(found("event SCAN extends EVENT { src: u128 }").is_empty());
}

#[test]
fn types_with_the_same_name_but_other_fields_or_parents_are_an_error() {
    let differ = EVENT_TYPES_DIFFER.number();
    for types in [
        "event SCAN extends EVENT { src: ip6 }",
        "event SCAN extends EVENT { source: u128 }",
        "event SCAN extends EVENT { src: u128, ports: u32 }",
        "event SCAN extends EVENT { }",
        "event ALERT extends EVENT { } event SCAN extends ALERT { src: u128 }",
    ] {
        assert_eq!(found(types), [differ], "{types}");
    }
}
