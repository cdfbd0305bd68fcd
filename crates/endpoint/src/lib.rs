//! One end of a TCP connection (RFC 9293), without input and output.
//!
//! It is the *endpoint level* of Microboxes (Liu et al., SIGCOMM 2018, §5). The caller hands in the
//! segments that come, with the time, and takes the segments to send. An [`Endpoint`] reads no
//! clock and draws no random number, so the same calls give the same segments.
//!
//! Segments that are still to be sent are not collected (no Nagle algorithm): a proxy relays what
//! it gets. Urgent data is data like any other (RFC 6093 §5).
//!
//! Segments are hostile. Every buffer and list has a limit, and nothing that comes makes an
//! endpoint panic or loop.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod congestion;
mod endpoint;
mod incoming;
mod options;
mod outgoing;
mod ranges;
mod receiver;
mod ring;
mod rtt;
mod saved;
mod segment;
mod sender;
mod settings;
mod status;

pub use endpoint::Endpoint;
pub use segment::{Incoming, OptionBytes, Outgoing, refusal};
pub use settings::{Settings, TIME_WAIT_NS};
pub use status::{Agreed, Failure, Status};
