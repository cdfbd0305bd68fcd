//! Keys that encrypt and authenticate bytes of packets, and the files that hold them.
//!
//! The ciphers themselves come from the RustCrypto project. This crate gives them one interface: an
//! initialisation vector in front of the encrypted bytes, and a check value behind them, as ESP has
//! them (RFC 4303).
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod cipher;
mod keys;

pub use cipher::{Clear, Key, MAX_BLOCK, MAX_IV, TAG};
pub use keys::{KeyError, Keys};
