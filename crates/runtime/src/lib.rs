//! Runs chains on engines: captures in, captures out, control scripts, accounting.
#![forbid(unsafe_code)]
