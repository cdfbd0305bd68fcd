#![no_main]
//! Takes a seed. On its chain and traffic, all engines must do what the reference engine does, with
//! the options of tests and of users.

use braid_testkit::pairs::Pair;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|seed: u64| {
    let pair = Pair::draw(seed).expect("generated chains compile");
    if let Some(found) = pair.check(pair.engines(true)) {
        panic!("{found}");
    }
});
