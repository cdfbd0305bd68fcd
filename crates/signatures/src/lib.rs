//! Signatures in Suricata's language, over the streams and HTTP messages of TCP connections.
//!
//! [`load`] reads the lines of a rule file. It refuses each line that it does not support, by the
//! name of the option. An [`Inspection`] takes the bytes of a connection as they come and says which
//! rules alert. `docs/rule-files.md` defines what bytes a rule sees. The alerts do not depend on how
//! the streams were cut into segments.
//!
//! Rule files and streams may be hostile, so everything has a limit ([`limits`]).
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod bytes;
mod eval;
mod flow;
mod http;
mod inspection;
pub mod limits;
mod outcome;
mod parse;
mod prefilter;
mod rule;
mod set;
mod stream;

pub use flow::Flow;
pub use inspection::Inspection;
pub use outcome::{Alert, Counts};
pub use parse::{Cause, Loaded, Refused, load};
pub use rule::Signature;
pub use set::Signatures;
