#![no_main]
//! Sends bytes to the control socket of a live run, which must go on answering, or end.

use braid_testkit::requests::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(report) = check(bytes) {
        panic!("{report}");
    }
});
