//! SpeedyBox's five functions (§VI-C) as native code, each in its own file. Two comments enclose
//! the code that records a flow; the other code processes packets. `docs/native.md` counts the
//! lines in the same way as the paper's Table II.
//!
//! The crate is a shared library (`libbraid_native_five.so`). A program that links the crate has
//! the functions as the set "five" ([`register`]).
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod expiring;
mod ids;
mod ipfilter;
mod maglev;
mod mazunat;
mod monitor;
mod rules;
mod saved;
mod search;

pub use ids::Ids;
pub use ipfilter::IpFilter;
pub use maglev::Maglev;
pub use mazunat::MazuNat;
pub use monitor::Monitor;
pub use search::{ENGINE, Search, Signature};

use exports::{
    braid_nf_ids, braid_nf_ipfilter, braid_nf_maglev, braid_nf_mazunat, braid_nf_monitor,
};

/// The name of the set.
pub const SET: &str = "five";

/// The symbols of the shared library, with the names that the header prescribes.
#[allow(unsafe_code, reason = "names that C knows are an unsafe attribute")]
mod exports {
    use super::{Ids, IpFilter, Maglev, MazuNat, Monitor};

    braid_native::export!(braid_nf_ids, Ids);
    braid_native::export!(braid_nf_ipfilter, IpFilter);
    braid_native::export!(braid_nf_maglev, Maglev);
    braid_native::export!(braid_nf_mazunat, MazuNat);
    braid_native::export!(braid_nf_monitor, Monitor);
}

/// Registers the set in this program: `native nf monitor() from "five";`
pub fn register() {
    let all = [
        ("ids", &braid_nf_ids),
        ("ipfilter", &braid_nf_ipfilter),
        ("maglev", &braid_nf_maglev),
        ("mazunat", &braid_nf_mazunat),
        ("monitor", &braid_nf_monitor),
    ];
    for (name, definition) in all {
        braid_native::register(SET, name, definition);
    }
}
