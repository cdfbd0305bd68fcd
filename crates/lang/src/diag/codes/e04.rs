//! E04xx: presence of headers, state and flow of control.

codes! {}
