//! Network devices through system calls: the part of this crate that needs unsafe code.

mod batch;
pub(crate) mod device;
mod fanout;
mod map;
mod ring;
mod socket;
mod tap;
mod whole;

pub(crate) use batch::Batch;
pub use fanout::{Fanout, Instruction, Steering, by_word};
pub(crate) use ring::{Arrived, Ring, sender};
pub(crate) use tap::{is_attached, open as open_tap};
