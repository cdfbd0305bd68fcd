//! Tests the formatter on single constructs.

use braid_lang::fmt::format;

fn check(text: &str, expected: &str) {
    assert_eq!(format(text).expect("it parses"), expected);
    assert_eq!(format(expected).expect("it parses"), expected, "a second time");
}

#[test]
fn spaces_are_canonical() {
    check(
        "nf   f( a:u8,b :list< ip4 >=[ 10.0.0.1 ] ){x=a+ 1 ;y>>=2;z=m[ 1,2 ].q;w=!a&&~ b>=c;}",
        "nf f(a: u8, b: list<ip4> = [10.0.0.1]) { x = a + 1; y >>= 2; z = m[1, 2].q; w = !a && ~b >= c; }\n",
    );
    check(
        "const A=100Mbit/s;const B={1 .. 5 , 9,};",
        "const A = 100 Mbit/s;\nconst B = { 1..5, 9 };\n",
    );
}

#[test]
fn empty_file_stays_empty() {
    check("", "");
    check("\n\n", "");
    check("// only this\n", "// only this\n");
}

#[test]
fn blank_lines_are_kept_one_at_a_time() {
    check(
        "\n\nconst A = 1;\n\n\n\nconst B = 2;\nconst C = 3;\n\n\n// end\n",
        "const A = 1;\n\nconst B = 2;\nconst C = 3;\n\n// end\n",
    );
    check("nf f() {\n\n  output;\n\n}\n", "nf f() {\n  output;\n}\n");
}

#[test]
fn short_blocks_and_statements_on_one_line_stay() {
    check(
        "nf f() {\nif a {x=1;drop;} else {output;}\na=1;b=2;\nc=3;\n}",
        "nf f() {\n  if a { x = 1; drop; } else { output; }\n  a = 1; b = 2;\n  c = 3;\n}\n",
    );
}

#[test]
fn rows_and_declarations_get_lines_of_their_own() {
    check(
        "nf f() { state a: u8 global = 1; match { a == 1 => drop; else => { output; } } }",
        "nf f() {\n  state a: u8 global = 1;\n  match {\n    a == 1 => drop;\n    else => { output; }\n  }\n}\n",
    );
    check(
        "chain c { interface a { behind ::/0 } interface b; path a<->f()->b; policy{Priority(x>y);} }",
        "chain c {\n  interface a { behind ::/0 }\n  interface b;\n  path a <-> f() -> b;\n  \
         policy { Priority(x > y); }\n}\n",
    );
}

#[test]
fn long_parameters_get_a_line_each_and_a_last_comma() {
    check(
        "nf f(first_parameter: list<ip4>, second_parameter: duration = 300 s, the_third_of_the_parameters: u64) { x = 1; }",
        "nf f(\n  first_parameter: list<ip4>,\n  second_parameter: duration = 300 s,\n  \
         the_third_of_the_parameters: u64,\n) {\n  x = 1;\n}\n",
    );
    check("nf f(\n  a: u8,\n  b: u8,\n) { output; }", "nf f(a: u8, b: u8) { output; }\n");
}

#[test]
fn long_lists_of_short_items_are_filled() {
    let items = ["10.0.0.1"; 12].join(", ");
    check(
        &format!("const A = [{items}];"),
        &format!(
            "const A = [\n  {},\n  {},\n];\n",
            ["10.0.0.1"; 9].join(", "),
            ["10.0.0.1"; 3].join(", ")
        ),
    );
}

#[test]
fn long_predicates_break_before_their_loosest_operators() {
    check(
        "nf f() { match { forward and ip.dst == some_quite_long_name and l4.dport == another_name and exists mapping_of_it => output; else => drop; } }",
        "nf f() {\n  match {\n    forward and ip.dst == some_quite_long_name and l4.dport == another_name\n        \
         and exists mapping_of_it => output;\n    else => drop;\n  }\n}\n",
    );
}

#[test]
fn options_of_a_state_continue_on_the_next_line() {
    check(
        "nf f() { state sessions: { bytes: size, first: time } per biflow, idle 300 s, capacity 64 Ki, full evict_oldest; }",
        "nf f() {\n  state sessions: { bytes: size, first: time } per biflow, idle 300 s, capacity 64 Ki,\n      \
         full evict_oldest;\n}\n",
    );
}

#[test]
fn comments_stay_at_their_line_or_item() {
    check(
        "nf f( // head\n  a: u8, // first\n  // before b\n  b: u8\n) {   // body\n  // lead\n  x = 1;// trail\n  // last\n}\n",
        "nf f( // head\n  a: u8, // first\n  // before b\n  b: u8,\n) { // body\n  // lead\n  x = 1; // trail\n  // last\n}\n",
    );
}

#[test]
fn comment_in_the_middle_of_a_line_moves_in_front_of_it() {
    check(
        "nf f() {\n  x = // why\n    1;\n  y /* what */ = 2;\n}\n",
        "nf f() {\n  // why\n  x = 1;\n  y /* what */ = 2;\n}\n",
    );
    check(
        "nf f() {\n  if a {\n    drop;\n  }\n  // or\n  else {\n    output;\n  }\n}\n",
        "nf f() {\n  if a {\n    drop;\n  } else {\n    // or\n    output;\n  }\n}\n",
    );
}

#[test]
fn text_with_errors_is_not_formatted() {
    let wrong = format("nf f( {").expect_err("it does not parse");
    assert!(wrong.has_errors());
}
