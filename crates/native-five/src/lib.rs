//! SpeedyBox's five functions (§VI-C) as native code, each in a file: what it does for a packet, and, between
//! two marks, what it records of a flow. `docs/native.md` counts the lines as the paper's Table II does.
//!
//! The crate is a shared library (`libbraid_native_five.so`) and, linked, the set "five" ([`register`]).
#![deny(unsafe_code)]

mod expiring;
mod ids;
mod ipfilter;
mod maglev;
mod mazunat;
mod monitor;
mod rules;
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

/// What a shared library has by the names of the header.
#[allow(unsafe_code, reason = "names that C knows are an unsafe attribute")]
mod exports {
    use super::{Ids, IpFilter, Maglev, MazuNat, Monitor};

    braid_native::export!(braid_nf_ids, Ids);
    braid_native::export!(braid_nf_ipfilter, IpFilter);
    braid_native::export!(braid_nf_maglev, Maglev);
    braid_native::export!(braid_nf_mazunat, MazuNat);
    braid_native::export!(braid_nf_monitor, Monitor);
}

/// Makes the set known to this program: `native nf monitor() from "five";`
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
