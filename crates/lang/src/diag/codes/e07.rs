//! E07xx: control files.

codes! {}
