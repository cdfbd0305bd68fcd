//! Compares the parser's trees with handmade ones: precedence, forms with a common start, and the
//! remains of broken programs.

use super::support::print;
use crate::ast::{
    ChainItem, ExprKind, File, InterfacePart, Item, KeyDef, KeyPart, NfItem, Span, StmtKind,
};
use crate::parse::{parse, parse_expr};

fn expr(text: &str) -> String {
    let (expr, diagnostics) = parse_expr(text, 0, 0);
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    print::expr(&expr)
}

fn good(text: &str) -> File {
    let (file, diagnostics) = parse(text, 0);
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    file
}

fn codes(text: &str) -> Vec<u16> {
    parse(text, 0).1.iter().map(|d| d.code.number()).collect()
}

/// The items of the only function of a file.
fn nf_items(file: File) -> Vec<NfItem> {
    match file.items.into_iter().next() {
        Some(Item::Nf(nf)) => nf.items,
        other => panic!("no function: {other:?}"),
    }
}

#[test]
fn operators_bind_from_or_to_products() {
    assert_eq!(expr("a or b and c"), "(a) or ((b) && (c))");
    assert_eq!(expr("a == b | c ^ d & e << f + g * h"), {
        "(a) == ((b) | ((c) ^ ((d) & ((e) << ((f) + ((g) * (h)))))))"
    });
    assert_eq!(expr("a - b - c"), "((a) - (b)) - (c)");
    assert_eq!(expr("a / b * c % d"), "(((a) / (b)) * (c)) % (d)");
    assert_eq!(expr("a & b == c"), "((a) & (b)) == (c)");
    assert_eq!(expr("x in 1..5 and y"), "((x) in ((1)..(5))) && (y)");
    assert_eq!(expr("a + 1..b + 2"), "((a) + (1))..((b) + (2))");
}

#[test]
fn not_binds_looser_than_comparisons_and_bang_tighter() {
    assert_eq!(expr("not a == b and c"), "(!((a) == (b))) && (c)");
    assert_eq!(expr("!a == b"), "(!(a)) == (b)");
    assert_eq!(expr("not exists s[k] or has tcp"), "(!(exists s[k])) or (has tcp)");
    assert_eq!(expr("a not in b"), "!((a) in (b))");
    assert_eq!(expr("~a & !b"), "(~(a)) & (!(b))");
}

#[test]
fn adjacent_greater_signs_join() {
    assert_eq!(expr("a >> 2 >= b"), "((a) >> (2)) >= (b)");
    assert_eq!(expr("a > b"), "(a) > (b)");
    let items = nf_items(good("nf f(a: list<set<ip4>>= [x]) { a >>= 1; }"));
    assert_eq!(items.len(), 1);
}

#[test]
fn words_of_operators_are_synonyms() {
    assert_eq!(expr("a && b || !c"), expr("a and b or (not c)"));
}

#[test]
fn braces_hold_a_record_after_a_name_and_colon_else_a_set() {
    assert_eq!(expr("{ a: 1, match: 2, }"), "{ a: 1, match: 2 }");
    assert_eq!(expr("{ ip.src, 1..5 }"), "{ip.src, (1)..(5)}");
    assert_eq!(expr("{}"), "{}");
}

#[test]
fn length_of_a_header_may_be_a_number() {
    for behind in ["checksum sum", "holds packet", "checksum sum holds frame"] {
        let file = good(&format!("header a after udp {{ sum: u16 }} length 8 {behind};"));
        let Some(Item::Header(header)) = file.items.first() else { panic!("no header: {file:?}") };
        let length = header.length.as_ref().map(print::expr);
        assert_eq!(length.as_deref(), Some("8"), "{behind}");
    }
    assert_eq!(codes("header a after udp { sum: u16 } length 8checksum sum;"), [110, 101]);
}

#[test]
fn numbers_take_units_on_their_line() {
    let unit = |text: &str| match parse_expr(text, 0, 0).0.kind {
        ExprKind::Quantity(number, unit) => (number, unit),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(unit("100 Mbit/s"), (100, "Mbit/s".into()));
    assert_eq!(unit("64KiB"), (64, "KiB".into()));
    assert_eq!(unit("1_000 B/s"), (1000, "B/s".into()));
    assert_eq!(expr("8 B / s"), "(0x8 B) / (s)");
    assert_eq!(codes("const A = 5\ns = 3;"), [102, 121]);
}

#[test]
fn special_keys_and_keyword_values_are_read() {
    assert_eq!(expr("s[quoted reverse]"), "s[quoted reverse]");
    assert_eq!(expr("s[quoted]"), "s[quoted]");
    assert_eq!(
        expr("f(\"x\", match: pass, default: drop)"),
        "f(\"x\", match: pass, default: drop)"
    );
    assert_eq!(expr("back[k].addr.x"), "back[k].addr.x");
}

#[test]
fn spans_cover_the_source_and_are_shifted_by_the_base() {
    let (sum, _) = parse_expr("(a + b) * c", 3, 100);
    assert_eq!(sum.span, Span { file: 3, start: 100, end: 111 });
    let ExprKind::Binary(_, left, right) = sum.kind else { panic!("a product") };
    assert_eq!(left.span, Span { file: 3, start: 100, end: 107 });
    assert_eq!(right.span, Span { file: 3, start: 110, end: 111 });
}

#[test]
fn keys_of_states_are_fields_or_types() {
    let items =
        nf_items(good("nf f() { state a: bool per (ip.src, u8, port); state b: u8 per ip.dst; }"));
    let key = |item: &NfItem| match item {
        NfItem::State(state) => match &state.key {
            KeyDef::List(parts, _) => {
                parts.iter().map(|part| matches!(part, KeyPart::Field(_))).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(key(&items[0]), [true, false, false]);
    assert_eq!(key(&items[1]), [true]);
}

#[test]
fn words_of_declarations_may_be_names() {
    let text =
        "nf f(state: u8, port: port) { state = 1; port.x = 2; tag[3] = 4; queue(5); on += 6; }";
    let items = nf_items(good(text));
    assert!(items.iter().all(|item| matches!(item, NfItem::Stmt(_))), "{items:?}");
    assert_eq!(items.len(), 5);
}

#[test]
fn row_else_behind_a_row_with_if_is_not_the_else_of_the_if() {
    let items = nf_items(good("nf f() { match { a => if b { drop; } else => output; } }"));
    let NfItem::Stmt(first) = &items[0] else { panic!("a statement") };
    let StmtKind::Match(rows) = &first.kind else { panic!("a match") };
    assert_eq!(rows.len(), 2);
}

#[test]
fn else_of_an_assignment_has_its_own_semicolon() {
    let items = nf_items(good("nf f() { a = 1 else { drop; } b = 2 else drop \"x\"; output; }"));
    assert_eq!(items.len(), 3);
    let NfItem::Stmt(first) = &items[0] else { panic!("a statement") };
    let StmtKind::Assign { otherwise: Some(otherwise), .. } = &first.kind else {
        panic!("an else")
    };
    assert!(matches!(otherwise.kind, StmtKind::Block(_)));
}

#[test]
fn interfaces_take_prefixes_with_or_without_a_semicolon() {
    let text = "chain c { interface a { behind 10.0.0.0/8, ::/0; } interface b { behind ::/0 } interface in; }";
    let Some(Item::Chain(chain)) = good(text).items.into_iter().next() else { panic!("a chain") };
    let behind = |item: &ChainItem| match item {
        ChainItem::Interface { parts, .. } => match parts.as_slice() {
            [InterfacePart::Values { values, .. }] => values.len(),
            _ => parts.len(),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(chain.items.iter().map(behind).collect::<Vec<_>>(), [2, 1, 0]);
}

#[test]
fn addresses_of_interfaces_may_have_bits_behind_their_length_and_start_no_expression() {
    let chain = |address: &str| format!("chain c {{ interface a {{ address {address} }} }}");
    good(&chain("10.0.0.1/24, fd00::1/64,"));
    for behind in ["[0]", "[quoted reverse]", ".x", "+ 1", ".. 10.0.0.9", "in {}", "== 1"] {
        assert_eq!(codes(&chain(&format!("10.0.0.1/24 {behind}"))), [101], "{behind}");
    }
}

#[test]
fn trouble_in_one_statement_leaves_the_others() {
    let (file, diagnostics) =
        parse("nf f() { a b; output; if x { c d; drop; } e = { f g }; drop; }", 0);
    assert_eq!(diagnostics.len(), 3, "{diagnostics:?}");
    let kinds: Vec<bool> = nf_items(file)
        .iter()
        .map(|item| matches!(item, NfItem::Stmt(stmt) if matches!(stmt.kind, StmtKind::Error)))
        .collect();
    assert_eq!(kinds, [true, false, false, true, false]);
}

#[test]
fn trouble_in_one_row_leaves_the_others() {
    let (file, diagnostics) =
        parse("nf f() { match { a b => { drop; } c => output; d e => drop; else => drop; } }", 0);
    assert_eq!(diagnostics.len(), 2, "{diagnostics:?}");
    let items = nf_items(file);
    let Some(NfItem::Stmt(stmt)) = items.first() else { panic!("a statement") };
    let StmtKind::Match(rows) = &stmt.kind else { panic!("a match") };
    assert_eq!(rows.len(), 2);
}

#[test]
fn missing_brace_is_noticed_at_the_next_function() {
    let (file, diagnostics) =
        parse("nf f() {\n  if a { output;\n\nnf g() { output; }\nchain c { }", 0);
    assert_eq!(diagnostics.iter().map(|d| d.code.number()).collect::<Vec<_>>(), [103]);
    assert_eq!(file.items.len(), 3);
}

#[test]
fn missing_semicolons_are_each_reported_and_lose_nothing() {
    let (file, diagnostics) = parse("nf f() {\n  a = 1\n  b = 2\n  output\n}", 0);
    assert_eq!(diagnostics.iter().map(|d| d.code.number()).collect::<Vec<_>>(), [102, 102, 102]);
    assert_eq!(nf_items(file).len(), 3);
}

#[test]
fn value_ends_with_its_text() {
    let (_, diagnostics) = parse_expr("1 2", 0, 0);
    assert_eq!(diagnostics.len(), 1);
    assert!(parse_expr("", 0, 0).1.has_errors());
}

#[test]
fn type_with_arguments_is_a_key_whatever_its_name() {
    let keys = "per flow<u8>; state t: u8 per biflow(a); state u: u8 per flow";
    let items = nf_items(good(&format!("nf f() {{ state s: u8 {keys}; }}")));
    let keys: Vec<&KeyDef> = items
        .iter()
        .filter_map(|item| match item {
            NfItem::State(def) => Some(&def.key),
            _ => None,
        })
        .collect();
    assert!(matches!(keys[..], [KeyDef::List(..), KeyDef::List(..), KeyDef::Flow(_)]), "{keys:?}");
}
