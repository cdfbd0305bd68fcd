//! Tests the catalogue of messages: each wrong example gets its code, and each right one compiles.

#[path = "support/native.rs"]
mod native;

use std::collections::BTreeMap;
use std::sync::Arc;

use braid_lang::diag::codes::{entries, example_files};
use braid_lang::diag::{Entry, Severity, Style, render};
use braid_lang::{Compiled, Loader, compile};
use braid_native::{Description, LoadError};

/// The further files of an example.
struct Beside(BTreeMap<String, String>);

impl Loader for Beside {
    fn read(&self, path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).map(|text| text.clone().into_bytes()).ok_or_else(|| "no such file".into())
    }

    fn native(
        &self,
        library: &str,
        function: &str,
        _is_isolated: bool,
    ) -> Result<Arc<Description>, LoadError> {
        native::native(library, function)
    }
}

fn compiled(example: &str) -> Compiled {
    let mut files = example_files(example).into_iter();
    let (_, root) = files.next().unwrap();
    let beside = files.map(|(name, text)| (name.to_owned(), text)).collect();
    compile(("example.braid", &root), &[], &Beside(beside))
}

/// The codes that `compile` itself reports. Codes of control files and other codes have tests of
/// their own.
fn checked() -> impl Iterator<Item = &'static Entry> {
    entries().filter(|entry| matches!(entry.code.number(), 200..=499 | 600..=699))
}

#[test]
fn wrong_examples_get_their_code() {
    for entry in checked() {
        let found = compiled(entry.wrong);
        let codes: Vec<u16> = found.diagnostics.iter().map(|d| d.code.number()).collect();
        assert!(
            codes.contains(&entry.code.number()),
            "{} gets {codes:?}:\n{}",
            entry.code,
            render(&found.diagnostics, &found.sources, Style::default())
        );
        let is_error = entry.severity == Severity::Error;
        assert_eq!(found.unit.is_none(), is_error, "{}", entry.code);
    }
}

#[test]
fn wrong_examples_get_no_other_code() {
    let several: Vec<String> = checked()
        .filter(|entry| {
            let found = compiled(entry.wrong);
            found.diagnostics.iter().any(|d| d.code != entry.code)
        })
        .map(|entry| entry.code.to_string())
        .collect();
    assert!(several.is_empty(), "{several:?}");
}

#[test]
fn right_examples_compile() {
    for entry in checked() {
        let found = compiled(entry.right);
        let messages = render(&found.diagnostics, &found.sources, Style::default());
        assert!(found.unit.is_some(), "{}:\n{messages}", entry.code);
    }
}
