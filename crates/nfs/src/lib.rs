//! The library of network functions: one folder per function with its model, page and cases.
#![forbid(unsafe_code)]
