#![no_main]
//! Runs chains of the library's functions. With any packets in any order at any times, each engine
//! with the options of users must account for all of them and do what the reference engine does.

use braid_testkit::hostile::check_users;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(report) = check_users(bytes) {
        panic!("{report}");
    }
});
