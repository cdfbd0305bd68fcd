//! Every case of the library's functions and of whole chains (`docs/testing.md`).

use braid_testkit::case::{check, list};
use std::path::Path;

#[test]
fn cases_happen_as_expected() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/");
    let bless = std::env::var_os("BLESS").is_some_and(|value| value != "0");
    let wanted = std::env::var("CASE").unwrap_or_default();
    let cases = list(crates).expect("folders of cases");
    let mut failed = Vec::new();
    let mut count = 0;
    for case in cases.iter().filter(|case| case.name.contains(&wanted)) {
        count += 1;
        if let Err(differences) = check(case, bless) {
            failed.push(format!("{}\n", case.name));
            failed.extend(differences.iter().map(|difference| format!("  {difference}\n")));
        }
    }
    println!("{count} cases");
    assert!(count > 0, "no case has `{wanted}` in its name");
    assert!(failed.is_empty(), "{}", failed.concat());
}
