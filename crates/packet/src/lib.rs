//! Packets: buffers, header parsing, the field table, checksums, building new packets.
#![forbid(unsafe_code)]

pub mod field;

pub use field::{Access, FIELDS, Field, FieldInfo, HEADERS, Header};
