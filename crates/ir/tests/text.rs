//! The text form: printing and parsing are inverse, and errors have their position.

mod random;

use braid_ir::text::{parse, print};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: braid_cases::cases(500), failure_persistence: None, ..Default::default() })]

    #[test]
    fn printed_models_parse_to_themselves(seed: u64) {
        let model = random::model(seed);
        let text = print(&model);
        let parsed = parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&parsed, &model, "{}", text);
    }

    #[test]
    fn damaged_text_is_an_error_or_a_model_never_a_panic(seed: u64, at: u16, with in "[ -~]{0,3}") {
        let text = print(&random::model(seed));
        let mut at = usize::from(at) % text.len();
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let end = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
        let damaged = format!("{}{with}{}", &text[..at], &text[end..]);
        if let Ok(model) = parse(&damaged) {
            let _ = braid_ir::verify::verify(&model);
            let printed = print(&model);
            prop_assert_eq!(parse(&printed).unwrap(), model);
        }
    }
}

#[test]
fn operations_print_as_the_documentation_shows() {
    let text = r#"model napt {
  param public: ip4
  param idle: duration = 120000000000
  state map: port per (ip.proto, ip.src, l4.sport) idle idle capacity 61440 full refuse tick 100000000
  row "body"
  row "1" line 4 text "exists map"
  row "fault"
  reason "no mapping"
  packet {
  b0:
    v0:bool = has l4
    branch v0, b1, b4
  b1:
    v1:bool = has ip
    branch v1, b2, b4
  b2:
    v2:port = load l4.sport
    v3:bool = exists map[entry]
    branch v3, b3(v2), b4
  b3(v4:port):
    count row1
    v5:ip4 = param public
    store ip.src, v5
    output onward at row1
  b4:
    drop "no mapping" at row0
  }
}
"#;
    let model = parse(text).unwrap();
    assert_eq!(braid_ir::verify::verify(&model), Ok(()));
    assert_eq!(print(&model), text);
}

#[test]
fn parts_can_be_named_by_number() {
    let by_name = parse("model m { param a: u8 packet { b0: v0:u8 = param a consume at row0 } }");
    let by_number =
        parse("model m { param a: u8 packet { b0: v0:u8 = param param0 consume at row0 } }");
    assert_eq!(by_name.unwrap(), by_number.unwrap());
}

#[test]
fn errors_have_their_place() {
    let cases = [
        ("modl m { }", "line 1, column 1: expected `model`"),
        ("model m {\n  state s u8\n}", "line 2, column 11: expected `:`"),
        ("model m {\n  what\n}", "line 2, column 3: `what` is not a declaration"),
        ("model m { queue q capacity x }", "line 1, column 28: no parameter `x`"),
        (
            "model m { param a: u8 = é }",
            "line 1, column 25: expected a number, an address, `true` or `false`",
        ),
        ("model m { param a: what }", "line 1, column 20: `what` is not a type"),
        ("model m { packet { b1: return } }", "line 1, column 20: expected `b0`"),
        (
            "model m { packet { b0: v0:u8 = what } }",
            "line 1, column 32: `what` is no operation with one result",
        ),
        (
            "model m { packet { b0: v0:u8 = load ip.sorc } }",
            "line 1, column 37: no field `ip.sorc`",
        ),
        ("model m { packet { b0: v0:bool = has tpc } }", "line 1, column 38: no header `tpc`"),
        (
            "model m { packet { b0: v0:u8 = const 1 v2:u8 = const 1 return } }",
            "line 1, column 64: v1 is defined nowhere",
        ),
        (
            "model m { packet { b0: v0:u8 = const 1 v0:u9 = const 1 return } }",
            "line 1, column 43: v0 has another type elsewhere",
        ),
        (
            "model m { packet { b0: v9999999:u8 = const 1 return } }",
            "line 1, column 24: too many values",
        ),
        ("model m { row \"x }", "line 1, column 19: this text has no closing quote"),
        ("model m { row \"\\q\" }", "line 1, column 17: this escape is not known"),
        ("model m { state s: u8 per flow lives with t }", "line 1, column 43: no state `t`"),
        ("model m { } x", "line 1, column 13: expected nothing behind the model"),
        ("model m {", "line 1, column 10: expected a word"),
    ];
    for (text, error) in cases {
        let found = parse(text).map_err(|error| error.to_string());
        assert_eq!(found, Err(error.to_owned()), "{text}");
    }
}

#[test]
fn scalars_print_as_their_kinds_and_parse_again() {
    use braid_ir::model::Kind;
    let cases = [
        (Kind::Uint, 17, "17"),
        (Kind::Bool, 1, "true"),
        (Kind::Ip4, 0x0a00_0001, "10.0.0.1"),
        (Kind::Ip6, 1, "::1"),
        (Kind::Ip6, 0x2001_0db8 << 96, "2001:db8::"),
        (Kind::Addr, 0x0a00_0001, "10.0.0.1"),
        (Kind::Addr, 1 << 32, "::1:0:0"),
        (Kind::Mac, 0x0200_0000_00ff, "02:00:00:00:00:ff"),
        (Kind::Port, 80, "80"),
        (Kind::Duration, 1_500, "1500"),
        // A value that its kind cannot show prints as a number.
        (Kind::Bool, 2, "2"),
        (Kind::Ip4, 1 << 32, "4294967296"),
    ];
    for (kind, value, text) in cases {
        assert_eq!(kind.show(value), text);
        assert_eq!(braid_ir::show::parse_word(text), Some(value));
    }
    assert_eq!(braid_ir::show::parse_word("0xff"), Some(255));
    assert_eq!(braid_ir::show::parse_word("ff"), None);
    assert_eq!(braid_ir::show::parse_word("1.2.3"), None);
    assert_eq!(braid_ir::show::parse_word("0:0:0:0:0:ff"), None);
}
