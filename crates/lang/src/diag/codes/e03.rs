//! E03xx: types.

codes! {}
