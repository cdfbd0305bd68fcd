//! Signatures in Suricata's language, over the streams and HTTP messages of TCP connections, and
//! over packets.
//!
//! [`load`] reads the lines of a rule file. It refuses each line that it does not support, by the
//! name of the option. An [`Inspection`] takes the bytes and the packets of a connection as they
//! come and says which rules alert, and [`Datagrams`] does so for packets without a connection.
//! `docs/rule-files.md` defines what a rule sees. The alerts of rules without flowbits, if they are
//! not about packets, do not depend on how the streams were cut into segments.
//!
//! Rule files and streams may be hostile, so everything has a limit ([`limits`]).
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod buffers;
mod bytes;
mod counts;
mod datagram;
mod eval;
mod expression;
mod flow;
mod flowbits;
mod groups;
mod headers;
mod inspection;
pub mod limits;
mod messages;
mod number;
mod outcome;
mod packet;
mod parse;
mod prefilter;
mod rule;
mod set;
mod stream;
mod threshold;
mod whole;
mod work;

pub use counts::Counts;
pub use datagram::Datagrams;
pub use flow::Flow;
pub use headers::{Kind, Number};
pub use inspection::Inspection;
pub use outcome::{Alert, Rules};
pub use packet::Packet;
pub use parse::{Cause, Loaded, Refused, load};
pub use rule::Signature;
pub use set::Signatures;
pub use threshold::Thresholds;
