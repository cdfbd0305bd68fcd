//! Models of native functions: their text form, and the verifier's rules for them.

use braid_ir::model::Model;
use braid_ir::text::{parse, print};
use braid_ir::verify::verify;

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
        "native \"five\" \"monitor\" profile (drop) sends 3",
        "native \"five\" \"monitor\" sends 3 keeps connections",
        "native \"five\" \"monitor\" keeps nothing",
    ] {
        let model = model(declared, PROGRAM);
        let text = print(&model);
        assert!(text.contains(declared), "{text}");
        assert_eq!(parse(&text), Ok(model), "{text}");
    }
}

#[test]
fn words_that_are_no_part_of_a_profile_are_errors() {
    for part in ["checks (all)", "profile (read ip.source)", "profile (steal)", "keeps all"] {
        let text = format!("model it {{ native \"a\" \"b\" {part} }}");
        assert!(parse(&text).is_err(), "{text}");
    }
}

/// The verifier's errors.
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
fn native_stream_function_calls_its_code_for_events_alone() {
    let stream = |packet: &str, event: &str| {
        let text = format!(
            "model it {{ native \"a\" \"b\" row \"body\" row \"fault\" reason \"no\" \
             packet {{ {packet} }} stream {event} {{ b0: v0:u32 = native count row0 v1:u32 = const 0 \
             v2:bool = eq v0, v1 branch v2, b1, b2 b1: return b2: reset \"no\" at row0 }} }}"
        );
        parse(&text).unwrap_or_else(|why| panic!("{why}\n{text}"))
    };
    let pass = "b0: v0:u32, v1:bool, v2:u32, v3:u32 = stream output onward at row0";
    let model = stream(pass, "client");
    assert_eq!(problems(&model), [""; 0]);
    assert_eq!(parse(&print(&model)), Ok(model.clone()));
    assert!(model.is_stream() && !model.is_native_on_packets());
    let by_packet = stream("b0: v0:u32 = native output onward at row0", "client");
    let wrong = "this cannot stand in the packet program of a stream function";
    assert_eq!(problems(&by_packet), [wrong]);
    assert_eq!(problems(&stream(pass, "close")), ["this cannot stand in a stream's program"]);
}
