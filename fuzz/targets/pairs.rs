#![no_main]
//! A seed: all engines, as tests and as users run them, do on its chain and traffic what the reference does.

use braid_testkit::pairs::Pair;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|seed: u64| {
    let pair = Pair::draw(seed).expect("generated chains compile");
    if let Some(found) = pair.check(pair.engines(true)) {
        panic!("{found}");
    }
});
