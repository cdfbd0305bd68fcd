#![no_main]
//! Sends hostile packets through functions that read, assign, add and remove headers of a program.
//! Each engine must do what the reference engine does.

use braid_testkit::hostile::check_headers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(report) = check_headers(bytes) {
        panic!("{report}");
    }
});
