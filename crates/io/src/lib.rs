//! Packet input and output: capture files and in-memory interfaces.
#![forbid(unsafe_code)]
