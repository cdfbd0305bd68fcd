//! The limits of what is kept of a connection.

/// The most bytes of the head of a message. A longer one is malformed.
pub const MAX_HEAD: usize = 16 << 10;
/// The most fields of the head of a message. A message with more is malformed.
pub const MAX_FIELDS: usize = 128;
/// The most requests that wait for their responses. Beyond that, responses are not parsed.
pub const MAX_PIPELINED: usize = 1_024;
/// The most bytes of a method, if its request is the first one.
pub const MAX_METHOD: usize = 24;
/// The most bytes of the extensions of a chunk.
pub const MAX_EXTENSIONS: u32 = 1_024;
