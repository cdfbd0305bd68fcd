//! TCP without input and output: which connections there are, how their two ends stand, and the
//! bytes of their streams in order.
//!
//! A [`Monitor`] takes packets and tells a [`Sink`] what it finds. It has the two lower levels of
//! Microboxes (Liu et al., SIGCOMM 2018, §5): the *network level* counts the packets of each flow
//! ([`Traffic`]), and the *monitor level* follows both ends of a connection ([`State`], RFC 9293)
//! and reassembles both streams ([`Stream`]).
//!
//! Urgent bytes stay in the stream, as RFC 6093 §5 advises applications to read them. A stream
//! whose start was not seen begins with the first byte that the monitor knows of.
//!
//! All memory has a limit ([`Options`]), and each loss is counted ([`Counts`], [`SideReport`]).
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod connection;
mod direction;
mod finding;
mod lists;
mod monitor;
mod options;
mod place;
mod policies;
mod policy;
mod report;
mod saved;
mod segment;
mod seq;
mod side;
mod sink;
mod stream;

pub use direction::{Direction, Pair};
pub use finding::{Gap, Overlap, Why};
pub use monitor::{Counts, Monitor};
pub use options::{Checksums, Options};
pub use place::{ConnectionId, Place, Progress, Restored, Status};
pub use policies::{Policies, PolicyOf};
pub use policy::{Kept, Policy};
pub use report::{Began, Ended, Opening, Report, SideReport, State, Traffic};
pub use saved::{Reader, Stored, put_bytes};
pub use segment::{Flags, Segment, Syn};
pub use seq::Seq;
pub use sink::Sink;
pub use stream::{Found, Output, Stream, StreamCounts};
