#![no_main]
//! Sends hostile packets to machine code and flow records, also with the options of users. Each
//! engine must do what the reference engine does.

use braid_testkit::hostile::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(report) = check(bytes) {
        panic!("{report}");
    }
});
