//! Tests whole programs: files that use each other, the library, and messages about all of them.

use std::collections::BTreeMap;

use braid_lang::diag::{Style, render};
use braid_lang::{Compiled, Loader, compile};

struct Files(BTreeMap<&'static str, &'static str>);

/// Every file has these bytes.
struct Bytes(&'static [u8]);

impl Loader for Bytes {
    fn read(&self, _path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.to_vec())
    }
}

impl Loader for Files {
    fn read(&self, path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).map(|text| text.as_bytes().to_vec()).ok_or_else(|| "no such file".into())
    }
}

fn with(files: &[(&'static str, &'static str)], library: &[(&str, &str)], root: &str) -> Compiled {
    compile(("main.braid", root), library, &Files(files.iter().copied().collect()))
}

fn codes(compiled: &Compiled) -> Vec<u16> {
    compiled.diagnostics.iter().map(|d| d.code.number()).collect()
}

const PASS: &str = "nf pass() { output; }";

#[test]
fn used_file_gives_its_functions_constants_and_events() {
    let used = "const LOW = 5; event E { ttl: u8 } fn low(x: u8) -> bool = x < LOW; nf other() { output; }";
    let root = "use \"a.braid\"; nf f() { if has ip { if low(ip.ttl) { emit E { ttl: ip.ttl }; } } output; }";
    let found = with(&[("a.braid", used)], &[], root);
    assert_eq!(codes(&found), [0; 0]);
    let names: Vec<String> = found.unit.unwrap().models.into_keys().collect();
    assert_eq!(names, ["f", "other"]);
}

#[test]
fn files_that_use_each_other_are_an_error() {
    let found =
        with(&[("a.braid", "use \"main.braid\";")], &[], "use \"a.braid\"; nf f() { output; }");
    assert_eq!(codes(&found), [218]);
}

#[test]
fn used_file_that_is_not_text_is_reported_once_at_its_first_wrong_byte() {
    let root = "use \"a.braid\"; use \"a.braid\"; nf f() { output; }";
    let found = compile(("main.braid", root), &[], &Bytes(b"nf g()\n{ \xff output; }"));
    assert_eq!(codes(&found), [120]);
    let text = render(&found.diagnostics, &found.sources, Style::default());
    assert!(text.contains("a.braid:2:3") && text.contains("used here"), "{text}");
}

#[test]
fn file_used_twice_is_taken_once() {
    let files =
        [("a.braid", "use \"c.braid\";"), ("b.braid", "use \"c.braid\";"), ("c.braid", PASS)];
    let found = with(&files, &[], "use \"a.braid\"; use \"b.braid\";");
    assert_eq!(codes(&found), [0; 0]);
}

#[test]
fn chains_of_a_used_file_are_its_own() {
    let files = [
        ("a.braid", "nf other() { output; } chain demo { path other(); }"),
        ("b.braid", "nf third() { output; } chain demo { path third(); }"),
    ];
    let root = "use \"a.braid\"; use \"b.braid\"; chain mine { path other() <-> third(); }";
    let found = with(&files, &[], root);
    assert_eq!(codes(&found), [0; 0]);
    let chains = found.unit.expect("no errors").chains;
    assert_eq!(chains.iter().map(|chain| &*chain.name).collect::<Vec<_>>(), ["mine"]);
}

#[test]
fn chain_takes_functions_that_are_missing_from_the_library() {
    let library = [("pass", PASS), ("other", "nf other() { drop; }")];
    let found = with(&[], &library, "chain c { p = pass(); path p; }");
    let names: Vec<String> = found.unit.expect("compiles").models.into_keys().collect();
    assert_eq!(names, ["pass"]);
}

#[test]
fn function_of_the_program_comes_before_one_of_the_library() {
    let library = [("pass", "nf pass(x: u8) { if x == 1 { drop; } output; }")];
    let root = "nf pass() { output; } chain c { path pass(); }";
    let unit = with(&[], &library, root).unit.expect("compiles");
    assert_eq!(unit.models["pass"].params.len(), 0);
    assert_eq!(unit.chains[0].nodes.len(), 1);
}

#[test]
fn names_of_the_library_stay_in_their_files() {
    let library = [("pass", "const X = 3; nf pass() { if has ip { ip.ttl = X; } output; }")];
    let root = "const X = 4; nf f() { if has ip { ip.ttl = X; } output; } chain c { path pass() <-> f(); }";
    assert_eq!(codes(&with(&[], &library, root)), [0; 0]);
}

#[test]
fn errors_of_all_functions_and_chains_are_reported_together() {
    let root = "nf f() { output sideways; } nf g() { ip.ttl = 1; output; } chain c { path h(); }";
    assert_eq!(codes(&with(&[], &[], root)), [206, 401, 501]);
}

#[test]
fn stream_function_has_a_program_for_each_event() {
    let found = with(&[], &[], "stream nf s() { on close { } on data { forward; } }");
    let unit = found.unit.expect("compiles");
    let events: Vec<_> = unit.models["s"].streams.iter().map(|(event, _)| event.word()).collect();
    assert_eq!(events, ["client", "server", "close"]);
}

/// Only a machine would write these programs. The compiler must answer quickly, with any result.
#[test]
fn huge_and_hostile_programs_are_answered() {
    let rows = |count: usize| -> String {
        let row =
            |n: usize| format!("l4.dport == {} and ip.src in 10.0.0.0/8 => drop; ", n % 70_000);
        (0..count).map(row).collect()
    };
    let lets: String = (0..60_000).map(|n| format!("let a{n} = {n}; ")).collect();
    let unknown: String = (0..20_000).map(|n| format!("x{n} = y{n}; ")).collect();
    let fns: String = (1..60)
        .map(|n| format!("fn f{n}(x: u32) -> u32 = f{}(x) ^ f{}(x); ", n - 1, n - 1))
        .collect();
    let consts: String = (1..60).map(|n| format!("const C{n} = C{0} ^ C{0}; ", n - 1)).collect();
    let sets: String = (1..60).map(|n| format!("const S{n} = {{ S{0}, S{0} }}; ", n - 1)).collect();
    let states: String = (0..5_000).map(|n| format!("state s{n}: u8 per flow; ")).collect();
    let nested = "if has ip { ".repeat(60) + &"}".repeat(60);
    let programs = [
        format!("nf f() {{ match {{ {} else => output; }} }}", rows(1_000)),
        format!("nf f() {{ {lets} output; }}"),
        format!("nf f() {{ {unknown} output; }}"),
        format!("nf f() {{ fn f0(x: u32) -> u32 = x; {fns} if f59(7) == 1 {{ drop; }} output; }}"),
        format!("fn f0(x: u32) -> u32 = x; {fns} nf f() {{ output; }}"),
        format!("const C0 = u8(1); {consts} nf f() {{ if ip.ttl == C59 {{ drop; }} output; }}"),
        format!("const S0 = {{ 1 }}; {sets} nf f() {{ if ip.ttl in S59 {{ drop; }} output; }}"),
        format!("nf f() {{ {states} output; }}"),
        format!("nf f() {{ {nested} output; }}"),
        format!(
            "nf f() {{ if {} ip.ttl == 1 {} {{ drop; }} output; }}",
            "(".repeat(100),
            ")".repeat(100)
        ),
        "nf f() { for i in 0..1000 { for j in 0..1000 { let k = 1; } } output; }".to_owned(),
    ];
    for program in programs {
        let found = with(&[], &[], &program);
        assert_eq!(found.unit.is_none(), found.diagnostics.has_errors());
    }
}

#[test]
fn match_beyond_the_limit_is_told_of_rule_files() {
    let row = |n: usize| format!("ip.src == 10.{}.{}.0 => drop; ", n / 256, n % 256);
    let rows: String = (0..14_000).map(row).collect();
    let found = with(&[], &[], &format!("nf f() {{ match {{ {rows} else => output; }} }}"));
    let all: Vec<String> = found.diagnostics.iter().map(|one| format!("{one:?}")).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].contains("65,536 operations") && all[0].contains("rule-files.md"), "{all:?}");
}
