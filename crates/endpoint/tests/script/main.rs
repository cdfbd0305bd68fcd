//! Scripts of segments, for each state and rule of an endpoint.

mod acknowledging;
mod closing;
mod guarding;
mod opening;
mod play;
mod retrying;
mod sending;
