//! Residual programs: the work that is left for a packet of one header shape, from one point of the
//! chain on, after the functions ahead have been put together.
//!
//! The compiler and the engines meet here. The compiler makes a program for a point and a shape
//! (SNF's synthesis, "Synthesis steps"). An engine runs the program, interpreted or as machine code.
//! In a program of several functions, each field is read and written at most once between two
//! [`What::Write`]s, and each path counts packets and bytes once, at its end.
//!
//! A program works on one packet. The packet's bytes change only at `Write`, `PushVlan` and
//! `PopVlan`. `Load` reads the bytes as they are at that moment. Values are as in the model IR.

mod check;
mod parse;
mod program;
mod text;
mod visit;

pub use check::check;
pub use parse::parse;
pub use program::{
    Block, Counter, End, Exit, Extent, Fate, HeaderMask, Point, Residual, RuleFields, Site, Step,
    Tallied, Tally, TallyId, What, shape_words,
};
pub use text::{print, print_with_sites};
