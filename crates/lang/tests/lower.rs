//! Tests lowering: each `lower/*.braid` gives the models of the `.ir` beside it. `BLESS=1` rewrites
//! the `.ir` files.

use std::fs;
use std::path::{Path, PathBuf};

use braid_lang::diag::{Style, render};
use braid_lang::{Loader, compile};

/// Reads the files beside a case.
struct Beside;

impl Loader for Beside {
    fn read(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String> {
        let folder = Path::new(relative_to).parent().unwrap_or(Path::new(""));
        fs::read(folder.join(path)).map_err(|error| error.to_string())
    }
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lower");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "braid"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

/// The models of a case in text form, or its errors.
fn lowered(case: &Path) -> Result<String, String> {
    let text = fs::read_to_string(case).unwrap();
    let name = case.to_str().unwrap();
    let compiled = compile((name, &text), &[], &Beside);
    let Some(unit) = compiled.unit else {
        return Err(render(&compiled.diagnostics, &compiled.sources, Style::default()));
    };
    let mut printed = Vec::new();
    for model in unit.models.values() {
        let text = braid_ir::text::print(model);
        if let Err(errors) = braid_ir::verify::verify(model) {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return Err(format!("{text}\n{}", errors.join("\n")));
        }
        match braid_ir::text::parse(&text) {
            Ok(again) if again == **model => {}
            Ok(_) => return Err(format!("{text}\nreads back as another model")),
            Err(error) => return Err(format!("{text}\ndoes not read back: {error}")),
        }
        printed.push(text);
    }
    Ok(printed.join("\n"))
}

#[test]
fn each_case_lowers_to_the_ir_beside_it() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut failed = Vec::new();
    for case in cases() {
        let expected = case.with_extension("ir");
        match lowered(&case) {
            Err(problem) => failed.push(format!("{}:\n{problem}", case.display())),
            Ok(printed) if bless => fs::write(&expected, printed).unwrap(),
            Ok(printed) => {
                if fs::read_to_string(&expected).unwrap_or_default() != printed {
                    failed.push(format!("{}:\n{printed}", expected.display()));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
