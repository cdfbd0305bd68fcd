#![no_main]
//! Hostile packets for machine code and flow records, also with the options that users get: each engine does what the
//! reference does.

use braid_testkit::hostile::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(report) = check(bytes) {
        panic!("{report}");
    }
});
