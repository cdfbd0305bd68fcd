//! Runs every case of the library's functions and of whole chains (`docs/testing.md`).

use braid_testkit::case::{check, list, rows};
use std::collections::BTreeMap;
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

/// A row that no case takes is untested.
#[test]
fn cases_of_a_function_take_all_of_its_rows() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/");
    let mut taken: BTreeMap<(String, String), u64> = BTreeMap::new();
    for case in list(crates).expect("folders of cases") {
        let Some(home) = case.name.strip_prefix("nfs/").and_then(|rest| rest.split('/').next())
        else {
            continue;
        };
        for (function, row, packets) in rows(&case).unwrap_or_else(|wrong| panic!("{wrong}")) {
            if function == home {
                *taken.entry((function, row)).or_default() += packets;
            }
        }
    }
    // Not every function can fault, or has statements outside of a match.
    let never: Vec<_> = taken
        .iter()
        .filter(|((_, row), packets)| **packets == 0 && row != "fault" && row != "body")
        .map(|((function, row), _)| format!("{function} row {row}"))
        .collect();
    assert!(never.is_empty(), "no case takes {}", never.join(", "));
}
