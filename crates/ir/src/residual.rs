//! Residual programs. A residual program is the work that remains for a packet of one header shape,
//! from one point of the chain on, after the functions ahead have been joined.
//!
//! Residual programs connect the compiler and the engines. The compiler makes a program for a point
//! and a shape (SNF's synthesis, "Synthesis steps"). An engine interprets the program or runs it as
//! machine code. In a program of several functions, each field is read and written at most once
//! between two [`What::Write`]s, and each path counts packets and bytes once, at its end.
//!
//! A program works on one packet. The packet's bytes change only at `Write`, `PushVlan` and
//! `PopVlan`. `Load` reads the current bytes. Values are as in the model IR.

mod check;
mod parse;
mod program;
mod text;
mod visit;

pub use check::check;
pub use parse::parse;
pub use program::{
    Block, Counter, CounterList, CounterListId, End, Exit, Extent, Fate, HeaderMask, ListedCounter,
    Point, Residual, RuleFields, Site, Step, What, shape_words,
};
pub use text::{print, print_with_sites};
