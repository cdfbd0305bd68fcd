//! The limits of rule files and of inspections.

pub use braid_http::limits::MAX_HEAD;

/// The most rules of a file.
pub const MAX_RULES: usize = 65_536;
/// The most bytes of a line.
pub const MAX_LINE: usize = 16 << 10;
/// The most variables and classes of a file.
pub const MAX_NAMES: usize = 4_096;
/// The most ranges of a list of addresses or ports.
pub const MAX_RANGES: usize = 4_096;
/// The most lists within one another.
pub const MAX_NESTED: usize = 16;
/// The most contents, regular expressions and other tests of a rule.
pub const MAX_TESTS: usize = 64;
/// The most bytes of a content.
pub const MAX_CONTENT: usize = 1_024;
/// The most places in groups that rules about packets of a kind have together. Rules beyond that
/// are tried for all packets.
pub const MAX_GROUPED: usize = 1 << 20;
/// The most ranges of values by which a rule is grouped.
pub const MAX_GROUPED_RANGES: usize = 256;
/// The most bytes of a content by which rules are preselected.
pub const MAX_SELECTOR: usize = 32;
/// The most bytes of one compiled regular expression.
pub const MAX_REGEX: usize = 1 << 20;
/// The most bytes that a search by a regular expression keeps for the next one.
pub const REGEX_CACHE: usize = 256 << 10;
/// The most bytes of all compiled regular expressions together, with what their searches keep.
pub const MAX_REGEXES: usize = 512 << 20;
/// The most steps back of a search by backtracking: a search that needs more begins anew with the
/// next number, and is given up behind the last one.
pub const BACKTRACK_STEPS: [usize; 5] = [64, 512, 4_096, 16_384, 65_536];
/// The largest number of an offset, a distance or `isdataat`.
pub const MAX_PLACE: u32 = 1 << 24;

/// The bytes of each direction that rules without HTTP buffers see.
pub const STREAM_DEPTH: usize = 32 << 10;
/// The bytes of a body that rules see.
pub const BODY_DEPTH: usize = 16 << 10;
/// The bytes of a body as they came, with the sizes of chunks, that rules see.
pub const RAW_BODY_DEPTH: usize = 2 * BODY_DEPTH;
/// The work that a rule may take when it is evaluated, in bytes to search.
pub const RULE_WORK: u64 = 2 << 20;
/// The work that all rules may take in a direction of a stream.
pub const STREAM_WORK: u64 = 128 << 20;
/// The work that all rules may take in an HTTP message, for its head and again for its body.
pub const MESSAGE_WORK: u64 = 32 << 20;
/// The work that all rules may take in a packet that they see alone.
pub const PACKET_WORK: u64 = 16 << 20;
/// A rule that does not hold is evaluated this often with each segment, and then only when the
/// stream has grown by one part in [`LATER`]. A rule with bits is evaluated with each segment, as
/// long as half of the direction's work is left.
pub const TRIES: u8 = 32;
/// See [`TRIES`].
pub const LATER: usize = 8;
/// The most rules that a connection remembers because they have alerted.
pub const MAX_DONE: usize = 4_096;
/// The most windows of thresholds that a set of rules keeps. Beyond that, the one that ends first
/// is forgotten, whether it is still open or not.
pub const MAX_WINDOWS: usize = 65_536;
/// The most bits of a connection that are set.
pub const MAX_BITS: usize = 1_024;
/// The most bytes of the name of a bit.
pub const MAX_BIT_NAME: usize = 256;
/// The most numbers that a rule finds and names.
pub const MAX_VARIABLES: usize = 8;
