//! Tests the values of parameters: results for each type, and errors.

use std::collections::BTreeMap;

use crate::ast::Expr;
use crate::diag::Diagnostics;
use crate::parse::parse_expr;
use crate::sema::Loader;
use crate::sema::env::Env;
use crate::sema::eval::param_value;
use crate::source::SourceMap;
use braid_ir::model::{Kind, ParamTy, PoolOrder, Ty};
use braid_ir::value::{IntervalSet, MAX_MEMBERS, ParamValue};

struct Files;

impl Loader for Files {
    fn read(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String> {
        assert_eq!(relative_to, "dir/values.braid");
        match path {
            "a.prefixes" => Ok(b"10.0.0.0/8\n192.168.1.1\n".to_vec()),
            "six.prefixes" => Ok(b"2001:db8::/32\n".to_vec()),
            "a.rules" => Ok(b"pass proto tcp\ndefault drop\n".to_vec()),
            "a.routes" => Ok(b"0.0.0.0/0 7\n10.0.0.0/8 3\n".to_vec()),
            "bad.bytes" => Ok(vec![0xff, 0xfe]),
            _ => Err("no such file".into()),
        }
    }
}

fn scalar(width: u16, kind: Kind) -> Ty {
    Ty { width, kind }
}

const IP4: Ty = Ty { width: 32, kind: Kind::Ip4 };
const PORT: Ty = Ty { width: 16, kind: Kind::Port };

/// The value, or the codes of its errors.
fn value(ty: &ParamTy, text: &str) -> Result<ParamValue, Vec<u16>> {
    let mut sources = SourceMap::new();
    let file = sources.add("dir/values.braid", text);
    let (expr, wrong) = parse_expr(text, file, 0);
    assert!(wrong.is_empty(), "{text}");
    let named = |name: &str, text: &str| (name.to_owned(), parse_expr(text, file, 0).0);
    let constants: BTreeMap<String, Expr> =
        [named("WEB", "{ 80, 443 }"), named("TTL", "4 * 16"), named("LOOP", "LOOP")].into();
    let env = Env { constants: &constants, loader: &Files, sources: &sources };
    let mut diags = Diagnostics::new();
    let value = param_value(ty, &expr, &env, &mut diags);
    assert_eq!(value.is_none(), diags.has_errors(), "{text}");
    value.ok_or_else(|| diags.iter().map(|d| d.code.number()).collect())
}

fn set(intervals: &[(u128, u128)]) -> IntervalSet {
    IntervalSet::new(intervals.iter().copied())
}

#[test]
fn scalars_take_their_unit_and_type() {
    let number = |ty, text| value(&ParamTy::Scalar(ty), text);
    assert_eq!(
        number(scalar(64, Kind::Duration), "2 min"),
        Ok(ParamValue::Scalar(120_000_000_000))
    );
    assert_eq!(number(scalar(64, Kind::Size), "64 KiB"), Ok(ParamValue::Scalar(65_536)));
    assert_eq!(number(scalar(64, Kind::Size), "1500"), Ok(ParamValue::Scalar(1500)));
    assert_eq!(number(scalar(64, Kind::Bitrate), "3 MB/s"), Ok(ParamValue::Scalar(24_000_000)));
    assert_eq!(number(scalar(8, Kind::Uint), "TTL"), Ok(ParamValue::Scalar(64)));
    assert_eq!(number(IP4, "10.1.2.3"), Ok(ParamValue::Scalar(0x0a01_0203)));
    assert_eq!(number(scalar(1, Kind::Bool), "true"), Ok(ParamValue::Scalar(1)));
    assert_eq!(number(scalar(64, Kind::Size), "10 Mbit/s * 8 ms"), Ok(ParamValue::Scalar(10_000)));
}

#[test]
fn wrong_scalars_are_reported() {
    let wrong = |ty, text| value(&ParamTy::Scalar(ty), text).unwrap_err();
    assert_eq!(wrong(scalar(64, Kind::Duration), "30"), [306]);
    assert_eq!(wrong(scalar(8, Kind::Uint), "256"), [303]);
    assert_eq!(wrong(scalar(8, Kind::Uint), "3 s"), [301]);
    assert_eq!(wrong(scalar(8, Kind::Uint), "3 - 4"), [304]);
    assert_eq!(wrong(scalar(8, Kind::Uint), "3 / 0"), [305]);
    assert_eq!(wrong(scalar(8, Kind::Uint), "unknown"), [307]);
    assert_eq!(wrong(scalar(8, Kind::Uint), "LOOP"), [217]);
    assert_eq!(wrong(IP4, "10.0.0.0/8"), [324]);
}

#[test]
fn sets_join_prefixes_ranges_and_names() {
    let prefixes = value(&ParamTy::Set(IP4), "{ 10.0.0.0/8, 11.0.0.0, 9.0.0.1..9.0.0.3 }");
    let expected =
        set(&[(0x0900_0001, 0x0900_0003), (0x0a00_0000, 0x0aff_ffff), (0x0b00_0000, 0x0b00_0000)]);
    assert_eq!(prefixes, Ok(ParamValue::Set(expected)));
    let ports = value(&ParamTy::Set(PORT), "{ WEB, 8000..8001 }");
    assert_eq!(ports, Ok(ParamValue::Set(set(&[(80, 80), (443, 443), (8000, 8001)]))));
    assert_eq!(value(&ParamTy::Set(IP4), "{ 9..3 }").unwrap_err(), [318]);
    assert_eq!(value(&ParamTy::Set(IP4), "2001:db8::/32").unwrap_err(), [301]);
}

#[test]
fn pools_have_members_within_bounds() {
    let pool = ParamTy::Pool(PORT, PoolOrder::Lowest);
    assert_eq!(value(&pool, "1024..65535"), Ok(ParamValue::Pool(set(&[(1024, 65_535)]))));
    assert_eq!(value(&pool, "{ }").unwrap_err(), [325]);
    let addresses = ParamTy::Pool(scalar(128, Kind::Ip6), PoolOrder::Fifo);
    assert_eq!(value(&addresses, "2001:db8::/32").unwrap_err(), [325]);
}

#[test]
fn lists_hold_numbers_ranges_and_records() {
    let addresses = ParamTy::List(vec![(String::new(), IP4)]);
    let rows = |words: &[u128]| words.iter().map(|word| vec![*word]).collect();
    let expected = ParamValue::List(rows(&[0x0a00_0001, 0x0a00_0002, 0x0a00_0005]));
    assert_eq!(value(&addresses, "[10.0.0.1..10.0.0.2, 10.0.0.5]"), Ok(expected));
    assert_eq!(value(&addresses, "[]"), Ok(ParamValue::List(Vec::new())));

    let columns = vec![("addr".to_owned(), IP4), ("port".to_owned(), PORT)];
    let servers = ParamTy::List(columns.clone());
    let text = "[{ addr: 10.0.0.1, port: 80 }, { port: 81, addr: 10.0.0.2 }, { 10.0.0.3, 82 }]";
    let expected = vec![vec![0x0a00_0001, 80], vec![0x0a00_0002, 81], vec![0x0a00_0003, 82]];
    assert_eq!(value(&servers, text), Ok(ParamValue::List(expected)));
    assert_eq!(value(&servers, "[{ addr: 10.0.0.1 }, { 1, 2, 3 }]").unwrap_err(), [313, 313]);
    let Ok(ParamValue::Backends(backends)) =
        value(&ParamTy::Backends(columns), "[{ 10.0.0.1, 8 }]")
    else {
        panic!("no backends")
    };
    assert_eq!(backends, [braid_ir::value::Backend::up(vec![0x0a00_0001, 8])]);
}

#[test]
fn list_at_its_limit_is_taken_and_one_more_is_not() {
    let numbers = ParamTy::List(vec![(String::new(), scalar(32, Kind::Uint))]);
    let Ok(ParamValue::List(rows)) = value(&numbers, &format!("[1..{MAX_MEMBERS}]")) else {
        panic!("too long")
    };
    assert_eq!(rows.len(), MAX_MEMBERS);
    assert_eq!(value(&numbers, &format!("[0..{MAX_MEMBERS}]")).unwrap_err(), [325]);
    assert_eq!(value(&numbers, "[0..0xffff_ffff]").unwrap_err(), [325]);
}

#[test]
fn files_become_values_of_their_type() {
    let prefixes = value(&ParamTy::Set(IP4), "prefixes(\"a.prefixes\")");
    let expected = set(&[(0x0a00_0000, 0x0aff_ffff), (0xc0a8_0101, 0xc0a8_0101)]);
    assert_eq!(prefixes, Ok(ParamValue::Set(expected)));
    let six = ParamTy::Set(scalar(128, Kind::Ip6));
    assert!(value(&six, "prefixes(\"six.prefixes\")").is_ok());
    let Ok(ParamValue::Rules(rules)) = value(&ParamTy::Rules, "rules(\"a.rules\")") else {
        panic!("no rules")
    };
    assert_eq!((rules.rules.len(), rules.default_pass), (1, false));
    let Ok(ParamValue::Routes(routes)) = value(&ParamTy::Routes, "routes(\"a.routes\")") else {
        panic!("no routes")
    };
    assert_eq!(routes.lookup4(0x0a00_0001), Some(3));
}

#[test]
fn wrong_files_are_reported() {
    let rules = |text| value(&ParamTy::Rules, text).unwrap_err();
    assert_eq!(rules("rules(\"none\")"), [601]);
    assert_eq!(rules("rules(\"bad.bytes\")"), [601]);
    assert_eq!(rules("rules(\"a.routes\")"), [602, 602]);
    assert_eq!(rules("routes(\"a.routes\")"), [603]);
    assert_eq!(rules("rules(\"a.rules\", \"a.rules\")"), [311]);
    assert_eq!(rules("rules(match: drop, \"a.rules\")"), [311]);
    assert_eq!(rules("classbench(\"a.rules\", match: pass, match: drop)"), [311]);
    assert_eq!(rules("{ 1, 2 }"), [325]);
    assert_eq!(value(&ParamTy::Str, "7").unwrap_err(), [325]);
    assert_eq!(value(&ParamTy::Str, "\"x\""), Ok(ParamValue::Str("x".into())));
}
