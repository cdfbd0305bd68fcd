//! E08xx: policy.

codes! {}
