//! Traffic as a user of the crate gets it, in one binary so that linking happens once.

mod common;
mod flows;
mod hostile;
mod repeat;
mod template;
