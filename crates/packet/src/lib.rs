//! Packets: buffers, header parsing, the field table, checksums, building new packets.
//!
//! [`Packet`] owns the captured bytes, [`Layout`] locates its headers, and [`Field`] names the
//! fields that can be read and written. Parsing is a total function: it never fails, panics or
//! allocates. A header that is malformed or not wholly captured is absent. So every field of a
//! present header can be read.
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

#[macro_use]
mod list;

mod access;
mod amounts;
mod bits;
pub mod build;
pub mod burst;
pub mod bytes;
pub mod checksum;
pub mod crypt;
mod declare;
pub mod diff;
pub mod edits;
pub mod field;
pub mod flow;
#[allow(unsafe_code, reason = "frames own parts of memory that their pool allocates")]
pub mod frame;
pub mod layout;
mod lengths;
mod link;
pub mod malformed;
mod names;
pub mod options;
pub mod packet;
mod parse;
mod place;
mod presence;
pub mod replace;
mod retag;
pub mod rewrite;
pub mod show;
mod tags;
pub mod translate;
pub mod tunnel;
mod window;
mod wire;

pub use bits::Bits;
pub use build::{NewPayload, Shape, build_fresh, build_new, build_with_options};
pub use burst::{BURST, Burst, Reached};
pub use diff::{Difference, diff_fields};
pub use field::{Access, Base, DECLARATIONS, FIELDS, Field, FieldInfo, HEADERS, Header};
pub use flow::FlowKey;
pub use frame::{Frame, Pool};
pub use layout::Layout;
pub use link::Link;
pub use malformed::Malformed;
pub use packet::{MOST, Packet};
pub use place::Spot;
pub use presence::presences;
pub use show::format_field;
pub use tags::Tags;
pub use wire::ipv6::fragment_header;
pub use wire::{ether_type, proto};
