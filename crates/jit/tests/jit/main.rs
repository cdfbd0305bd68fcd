//! Machine code against a small interpreter of residual programs.

mod announce;
mod calls;
mod chains;
mod host;
mod inputs;
mod interp;
mod memory;
mod packets;
mod prefetch;
mod pure;
mod random;
mod regions;
mod speed;
mod writes;
mod wrong;
