//! E05xx: chains.

codes! {}
