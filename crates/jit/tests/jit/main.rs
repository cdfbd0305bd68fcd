//! Machine code against a small interpreter of residual programs.

mod ahead;
mod chains;
mod host;
mod interp;
mod memory;
mod packets;
mod pure;
mod random;
mod regions;
mod speed;
mod ways;
mod writes;
mod wrong;
