//! Compiled engines: run residual programs on packets.
