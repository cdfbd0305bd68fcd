//! Action profiles (NFP §4.1, Table 2): the actions of a function on packets and state. Braid
//! derives them from models. Only externs and native functions declare theirs.
//!
//! A profile over-approximates: it holds every action that some packet can cause.

mod data;
mod derive;
mod faults;
mod runs;
mod table;

pub use data::{COLUMNS, Profile, StateUse, Use};
pub use derive::{derive, derive_direction, of_native};
pub use table::{details, table};
