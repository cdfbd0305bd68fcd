//! Tests of the crate's public interface, in one binary so that linking happens once.

mod common;
mod flows;
mod hostile;
mod repeat;
mod template;
