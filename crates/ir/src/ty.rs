//! The types of values: of scalars and of parameters.

/// A scalar value, in the low bits.
pub type Word = u128;

/// The first IPv6 address of the kind [`Kind::Addr`]. Those of `::/96` count as IPv4 addresses.
pub const FIRST_IP6: Word = 1 << 32;

/// The values of the kind [`Kind::Addr`] for an inclusive range of IPv6 addresses. `None` if all of
/// them count as IPv4 addresses. `::` is the unspecified address of both versions.
#[must_use]
pub fn ip6_range(low: Word, high: Word) -> Option<(Word, Word)> {
    match high {
        0 => Some((0, 0)),
        _ => (high >= FIRST_IP6).then_some((low.max(FIRST_IP6), high)),
    }
}

/// The meaning of a scalar. It decides how the scalar is printed, never how it is computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A plain unsigned integer.
    Uint,
    /// `bool`, one bit.
    Bool,
    /// IPv4 address.
    Ip4,
    /// IPv6 address.
    Ip6,
    /// IPv4 address in the low 32 bits, or IPv6 address ([`FIRST_IP6`]).
    Addr,
    /// MAC address.
    Mac,
    /// Transport port.
    Port,
    /// Nanoseconds.
    Duration,
    /// Nanoseconds since the epoch.
    Time,
    /// Bytes.
    Size,
    /// Bits per second.
    Bitrate,
    /// The length of a string of bytes, whose words follow.
    Length,
    /// 16 bytes of a string, the first one highest. Bytes behind the string's end are 0.
    Bytes,
}

/// The type of a scalar value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ty {
    /// Width in bits, 1 to 128.
    pub width: u16,
    /// Its meaning.
    pub kind: Kind,
}

/// The type of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamTy {
    /// One scalar.
    Scalar(Ty),
    /// A list of records. A list of scalars has one column named "".
    List(Vec<(String, Ty)>),
    /// A set of scalars as intervals: prefixes, port ranges, enumerated values.
    Set(Ty),
    /// An ordered rule set over packets. The first rule that matches decides.
    Rules,
    /// A longest-prefix-match table from IPv4 and IPv6 prefixes to a next hop number (32 bits).
    Routes,
    /// Patterns over the payload: literals and regular expressions, each with a number (32 bits).
    Patterns,
    /// Signatures over the streams of TCP connections ([`braid_signatures::Signatures`]).
    Signatures,
    /// A set of byte strings, each of at most this many bytes.
    Strings(u16),
    /// A set of host names ([`crate::strings`]).
    Hosts,
    /// Secret keys by number ([`braid_crypto::Keys`]).
    Keys,
    /// A pool of scalars. The instance keeps the record of taken members.
    Pool(Ty, PoolOrder),
    /// Backends with health: columns as in `List`, plus up or down.
    Backends(Vec<(String, Ty)>),
    /// Text (names in logs and events).
    Str,
}

/// The order in which a pool hands out its members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolOrder {
    /// The lowest free member.
    Lowest,
    /// The member that has been free for longest (first in, first out).
    Fifo,
    /// A uniformly random free member, chosen by the instance's seeded generator (NFD's
    /// non-replacing sampling, §III-B).
    Random,
}
