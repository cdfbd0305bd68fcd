#![no_main]
//! Sends hostile packets through functions that read, assign, add and remove TCP options.
//! Each engine must do what the reference engine does.

use braid_testkit::hostile::check_tcp_options;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(report) = check_tcp_options(bytes) {
        panic!("{report}");
    }
});
