//! Checks the repository's structure: one test for each rule, and tests that the rules find
//! violations.

use xtask::structure::{File, RULES, files, length, scan};

/// Panics with all violations of the rule with this name.
fn holds(name: &str) {
    let (_, rule) = RULES.iter().find(|(rule, _)| *rule == name).expect("a rule of this name");
    let wrong = rule();
    assert!(wrong.is_empty(), "{name}, but:\n{}", wrong.join("\n"));
}

#[test]
fn every_file_starts_with_a_line_on_what_lives_there() {
    holds("every file starts with a line on what lives there");
}

#[test]
fn crates_use_only_crates_that_they_may() {
    holds("crates use only crates that they may");
}

#[test]
fn unsafe_code_is_forbidden() {
    holds("unsafe code is forbidden");
}

#[test]
fn data_path_warns_of_lost_bits_and_panics() {
    holds("the data path warns of lost bits and panics");
}

#[test]
fn files_are_short() {
    holds("files are short");
}

#[test]
fn functions_are_short() {
    holds("functions are short");
}

#[test]
fn no_placeholder_is_left() {
    holds("no placeholder is left");
}

#[test]
fn nothing_names_a_place_outside_of_the_repository() {
    holds("nothing names a place outside of the repository");
}

#[test]
fn every_network_function_has_its_model_page_and_cases() {
    holds("every network function has its model, page and cases");
}

#[test]
fn modules_do_not_import_each_other_in_circles() {
    holds("modules do not import each other in circles");
}

#[test]
fn folders_do_not_import_each_other_in_circles() {
    holds("folders do not import each other in circles");
}

#[test]
fn types_are_implemented_in_few_files() {
    holds("a type is implemented in few files");
}

#[test]
fn each_loss_of_packets_is_explained() {
    holds("each loss of packets is explained");
}

#[test]
fn no_retired_term_is_used() {
    holds("no retired term is used");
}

#[test]
fn glossary_has_every_term_once() {
    holds("the glossary has every term once");
}

#[test]
fn property_tests_scale() {
    holds("property tests scale");
}

#[test]
fn documents_wrap() {
    holds("documents wrap");
}

#[test]
fn rows_of_tables_are_lines() {
    holds("rows of tables are lines");
}

#[test]
fn drawing_of_crates_and_modules_is_true() {
    holds("the drawing of crates and modules is true");
}

#[test]
fn lines_of_mechanisms_are_right() {
    holds("the lines of mechanisms are right");
}

#[test]
fn generator_of_random_numbers_stands_in_one_file() {
    // A factor of SplitMix64, in parts, so that this file does not have it.
    let factor = ["0xbf58", "476d", "1ce4", "e5b9"].join("_");
    let has_it = |file: &File| file.text.contains(&factor);
    let found: Vec<_> = files(&[".rs"]).into_iter().filter(has_it).map(|file| file.path).collect();
    assert_eq!(found, ["crates/externs/src/rng.rs"]);
}

#[test]
fn each_rule_has_a_test() {
    let tests = include_str!("structure.rs");
    for (rule, _) in RULES {
        assert!(tests.contains(&format!("    holds(\"{rule}\");")), "{rule}");
    }
}

#[test]
fn scanner_sees_braces_of_code_only() {
    let text = "fn a() { '{'; \"}\\\"}\"; r#\"}\"#; b'}'; /* } /* } */ */ // }\n}\nfn b<'x>(c: &'x str) {}\n";
    let functions: Vec<_> =
        scan::functions(text).into_iter().map(|f| (f.name, f.line, f.lines)).collect();
    assert_eq!(functions, [("a".to_owned(), 1, 2), ("b".to_owned(), 3, 1)]);
}

#[test]
fn declarations_without_a_body_are_no_functions() {
    let text = "trait T { fn a(&self) -> [u8; 4]; fn b(&self) {} }\n";
    let names: Vec<_> = scan::functions(text).into_iter().map(|f| f.name).collect();
    assert_eq!(names, ["b"]);
}

#[test]
fn long_function_is_found_unless_excepted() {
    let body = "    x();\n".repeat(69);
    let file = File { path: "f.rs".to_owned(), text: format!("fn long() {{\n{body}}}\n") };
    let all = [file];
    assert_eq!(length::functions_over(&all, &[]), ["f.rs:1: long has 71 lines (at most 70)"]);
    assert!(length::functions_over(&all, &[("f.rs", "long", "a table")]).is_empty());
    assert_eq!(length::functions_over(&[], &[("f.rs", "long", "a table")]).len(), 1);
}

#[test]
fn long_file_is_found_unless_excepted() {
    let all = [File { path: "f.rs".to_owned(), text: "x\n".repeat(601) }];
    assert_eq!(length::files_over(&all, &[]), ["f.rs: 601 lines (at most 600)"]);
    assert!(length::files_over(&all, &[("f.rs", "a table")]).is_empty());
    let short = [File { path: "f.rs".to_owned(), text: "x\n".repeat(600) }];
    assert_eq!(length::files_over(&short, &[("f.rs", "a table")]).len(), 1);
}
