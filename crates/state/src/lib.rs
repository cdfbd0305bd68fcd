//! State tables of compiled engines: entries, pools, time-outs.
#![forbid(unsafe_code)]
