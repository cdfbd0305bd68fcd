//! Runs the pairs in `found`, on which engines differed in long runs, and checks that they agree
//! now. Also checks that a stored pair reads back unchanged.

use braid_testkit::harness::{ENGINES, USERS};
use braid_testkit::pairs::{Pair, folder};

#[test]
fn engines_are_equal_on_pairs_that_were_kept() {
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder()).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "txt") {
            let pair = Pair::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            let engines =
                pair.engines(true).into_iter().chain(ENGINES.iter().chain(USERS).copied());
            wrong.extend(pair.check(engines).map(|found| format!("{}: {found}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pair_that_is_kept_is_read_again() {
    let folder = std::env::temp_dir().join(format!("braid-found-{}", std::process::id()));
    for seed in [3, 4, 8] {
        let pair = Pair::draw(seed).expect("a pair");
        let path = pair.as_found("nothing").keep(&folder).expect("a file");
        let again = Pair::read(&path).expect("a pair that was kept");
        let (kept, read) = (pair.as_found("nothing").text(), again.as_found("nothing").text());
        assert!(kept == read, "seed {seed}");
        assert!(again.check(again.engines(false)).is_none());
    }
    std::fs::remove_dir_all(folder).expect("the folder goes");
}
