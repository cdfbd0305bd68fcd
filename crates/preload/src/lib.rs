//! A library in front of the C library (`LD_PRELOAD`), with which unchanged servers take their
//! connections from Braid (Microboxes, Liu et al., SIGCOMM 2018, §5: legacy applications).
//!
//! A program that listens at a port of Braid's gets a descriptor of Braid's Unix socket instead. It
//! polls it as it would its own, and `accept` takes a connection from a message: one end of a pair
//! of stream sockets, with the addresses of its client and of its server. All other calls reach
//! these descriptors without detour. `docs/servers.md` says how to use it, and which programs it
//! fits.
//!
//! The environment says what is Braid's: `BRAID_SOCKET`, the path of its socket, and `BRAID_PORTS`,
//! numbers with commas between them. Without the latter, all ports are.
#![deny(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)]

#[allow(unsafe_code, reason = "the functions of the C library follow pointers of their callers")]
mod calls;
mod settings;
#[allow(unsafe_code, reason = "system calls with structures in memory")]
mod sys;
mod table;
