//! Each file in `tests/passes` has a program, and the same program after one pass.
//!
//! A file begins with comments: `; pass: NAME`, and `; facts: guarded` where the program has a part
//! for the main path. After `=== chain` follows a chain in the language, after `=== input` a
//! program of that chain, and after `=== expected` the program that the pass makes. `BLESS=1`
//! writes the last part. Chains may name the files in [`NAMED`]. A comment `; Fails without` quotes
//! the code that the file guards, and names the source file with this code.

use braid_compiler::passes::{Facts, PASSES};
use braid_ir::chain::Chain;
use braid_ir::residual::{Residual, What, check, parse, print};
use braid_testkit::harness::{Form, compile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The page with the table of passes.
const PAGE: &str = "../../docs/synthesis.md";
/// The head of that table.
const HEAD: &str = "| pass | reason |\n|---|---|\n";

/// The files that chains may name, with their contents.
const NAMED: [(&str, &str); 2] =
    [("rules.txt", "default pass\n"), ("routes.txt", "10.0.0.0/8 1\n")];

struct Case {
    pass: String,
    facts: Facts,
    chain: Chain,
    input: String,
    expected: String,
    /// The text before the expected program.
    before: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes")
}

fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).expect("the folder");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    found.sort();
    found
}

fn section<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let rest = text.split_once(from).unwrap_or_else(|| panic!("no {from}")).1;
    if to.is_empty() { rest } else { rest.split_once(to).unwrap_or_else(|| panic!("no {to}")).0 }
}

fn read(path: &Path) -> Case {
    let text = std::fs::read_to_string(path).expect("readable");
    let place = path.display();
    let head = text.split_once("=== chain").unwrap_or_else(|| panic!("{place}: no chain")).0;
    let pass = head.lines().find_map(|line| line.strip_prefix("; pass: "));
    let pass = pass.unwrap_or_else(|| panic!("{place}: no pass")).to_owned();
    let facts = Facts { guarded: head.lines().any(|line| line == "; facts: guarded") };
    let source = section(&text, "=== chain\n", "=== input\n");
    let named = NAMED.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let chain = compile(source, &BTreeMap::from(named), Form::AsWritten)
        .unwrap_or_else(|errors| panic!("{place}: {errors}"));
    let input = section(&text, "=== input\n", "=== expected\n").to_owned();
    let expected = section(&text, "=== expected\n", "").to_owned();
    let before = text[..text.len() - expected.len()].to_owned();
    Case { pass, facts, chain, input, expected, before }
}

#[track_caller]
fn program(text: &str, chain: &Chain, place: &Path) -> Residual {
    let program = parse(text, chain).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    check(&program, chain).unwrap_or_else(|error| panic!("{}: {error:?}", place.display()));
    program
}

fn run(pass: &str, program: &mut Residual, facts: &Facts) {
    let pass = PASSES.iter().find(|one| one.name == pass);
    (pass.unwrap_or_else(|| panic!("no such pass")).run)(program, facts);
}

#[test]
fn passes_do_what_their_files_say() {
    let bless = std::env::var_os("BLESS").is_some_and(|value| value != "0");
    let mut wrong = Vec::new();
    for path in files() {
        let case = read(&path);
        let mut made = program(&case.input, &case.chain, &path);
        run(&case.pass, &mut made, &case.facts);
        check(&made, &case.chain).unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        let text = print(&made, &case.chain);
        if text == case.expected {
            continue;
        }
        if bless {
            std::fs::write(&path, case.before + &text).expect("writable");
        } else {
            wrong.push(format!("{}:\n{text}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "BLESS=1 rewrites these files:\n{}", wrong.join("\n"));
}

#[test]
fn each_pass_has_at_least_three_files_and_one_that_names_the_line_it_guards() {
    let mut cases: BTreeMap<String, usize> = BTreeMap::new();
    let mut guards = BTreeSet::new();
    for path in files() {
        let text = std::fs::read_to_string(&path).expect("readable");
        let pass = read(&path).pass;
        if text.contains("; Fails without ") {
            guards.insert(pass.clone());
        }
        *cases.entry(pass).or_default() += 1;
    }
    for pass in &PASSES {
        assert!(cases.get(pass.name).is_some_and(|count| *count >= 3), "{}", pass.name);
        assert!(guards.contains(pass.name), "{}", pass.name);
        assert!(!pass.reason.is_empty());
    }
}

/// A text without blanks and line breaks, which the formatter may move.
fn packed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The code that a file guards, with the source files that have it: each quote belongs to the next
/// source file that is named behind it.
fn guarded(text: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = text.split_once("; Fails without ") else { return Vec::new() };
    let comment: Vec<&str> = rest
        .split("\n===")
        .next()
        .unwrap_or_default()
        .lines()
        .map(|line| line.trim_start_matches("; "))
        .collect();
    let comment = comment.join(" ");
    let (mut found, mut waiting) = (Vec::new(), Vec::new());
    for (at, part) in comment.split('`').enumerate() {
        if at % 2 == 1 {
            waiting.push(packed(part));
            continue;
        }
        let words = part.split(|c: char| !c.is_alphanumeric() && c != '.' && c != '_');
        let names = words.map(|word| word.trim_end_matches('.'));
        if let Some(file) = names.into_iter().find(|word| word.ends_with(".rs")) {
            found.extend(waiting.drain(..).map(|code| (code, file.to_owned())));
        }
    }
    // No source file follows these.
    found.extend(waiting.into_iter().map(|code| (code, String::new())));
    found
}

#[test]
fn guarded_code_exists() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/passes");
    let mut wrong = Vec::new();
    for path in files() {
        let text = std::fs::read_to_string(&path).expect("readable");
        let all = guarded(&text);
        if all.is_empty() && text.contains("; Fails without ") {
            wrong.push(format!("{}: quotes no code", path.display()));
        }
        for (code, file) in all {
            let source = std::fs::read_to_string(sources.join(&file)).unwrap_or_default();
            if !packed(&source).contains(&code) {
                wrong.push(format!("{}: `{code}` is not in `{file}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn quotes_belong_to_the_source_file_behind_them() {
    let text = "; Fails without `a  b` or `c` of x.rs, or `d` of `e` in y.rs.\n=== chain\n`z`";
    let quotes = [("ab", "x.rs"), ("c", "x.rs"), ("d", "y.rs"), ("e", "y.rs")];
    assert_eq!(guarded(text), quotes.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!(guarded("; Fails without `a`.\n"), [("a".to_owned(), String::new())]);
}

#[test]
fn page_lists_the_passes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let text = std::fs::read_to_string(&path).expect("readable");
    let (before, rest) = text.split_once(HEAD).expect("the table of passes");
    let (table, after) = rest.split_once("\n\n").expect("text behind the table");
    let rows = PASSES.iter().map(|pass| format!("| `{}` | {} |", pass.name, pass.reason));
    let rows = rows.collect::<Vec<_>>().join("\n");
    if std::env::var_os("BLESS").is_some_and(|value| value != "0") {
        let page = format!("{before}{HEAD}{rows}\n\n{after}");
        std::fs::write(&path, page).expect("writable");
    } else {
        assert_eq!(table, rows, "BLESS=1 rewrites the table in docs/synthesis.md");
    }
}

#[test]
fn remove_dead_drops_counter_lists_that_nothing_counts() {
    let path = folder().join("counters-of-steps-faults-and-ends-stay.txt");
    let Case { chain, input, facts, .. } = read(&path);
    let mut made = program(&input, &chain, &path);
    let removed = made.blocks[0].steps.remove(0);
    assert!(matches!(removed.what, What::Count(_)));
    run("remove-dead", &mut made, &facts);
    // The program whose text never had the step, with the same numbers of values.
    let without: Vec<&str> =
        input.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, line)| line).collect();
    assert_eq!(made, program(&without.join("\n"), &chain, &path));
}

#[test]
fn place_repeats_a_value_at_most_at_64_ends() {
    let path = folder().join("cheap-values-are-repeated-at-ends.txt");
    let Case { chain, facts, .. } = read(&path);
    let loads = |ends: usize| {
        let mut made = program(&with_ends(ends), &chain, &path);
        run("place", &mut made, &facts);
        check(&made, &chain).expect("well formed");
        print(&made, &chain).matches("load ip.id").count()
    };
    // The last two of 66 ends share a value.
    assert_eq!([64, 65, 66].map(loads), [64, 65, 65]);
}

/// A program with this number of ends. Each end needs the identification: first for a key, then
/// itself.
fn with_ends(count: usize) -> String {
    let mut text = "at f forward for ip, 1 functions
        b0:
          f: v0:u16 = load ip.id
          f: v1:ip4 = resize v0
          f: v2:bool = has tcp"
        .to_owned();
    for end in 1..=count {
        let (block, value) = (2 * end - 1, 2 * end + 1);
        if end < count {
            text += &format!(" branch v2, b{block}, b{next}", next = block + 1);
        } else {
            text += &format!(" jump b{block}");
        }
        text += &format!(
            " b{block}:
                f: v{value}:bool, v{entry}:u64 = find seen[v1]
                f: write ip.id = v0
                leave wan [f:forward]",
            entry = value + 1
        );
        if end < count {
            text += &format!(" b{}:", block + 1);
        }
    }
    text
}
