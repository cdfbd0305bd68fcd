//! Machine code from residual programs.
