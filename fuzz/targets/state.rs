#![no_main]
//! Reads saved states, and goes on from them on two engines.

use braid_testkit::saved::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(report) = check(bytes) {
        panic!("{report}");
    }
});
