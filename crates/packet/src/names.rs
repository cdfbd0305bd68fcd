//! The names of headers and fields, as the list of headers gives them.

macro_rules! names {
    ($($header:ident $file:ident :: $declaration:ident [$($field:ident)*];)*) => {
        /// A header (or part of a packet) whose presence a model can test with `has`. Its
        /// declaration ([`crate::field::Declaration`]) describes it.
        #[allow(missing_docs, reason = "their declarations describe them")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Header { $($header,)* }

        /// A header field or packet attribute. The field table ([`crate::FIELDS`]) describes it.
        #[allow(missing_docs, reason = "the field table describes them")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Field { $($($field,)*)* }

        impl Header {
            /// All headers, in the order of their numbers.
            pub(crate) const LIST: &'static [Header] = &[$(Header::$header,)*];
        }

        impl Field {
            /// How many fields there are.
            pub(crate) const COUNT: usize = [$($(Field::$field,)*)*].len();
        }
    };
}

headers!(names);

/// The base of a field's offset. The packet's [`Layout`] holds the offset of each base.
///
/// [`Layout`]: crate::Layout
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// The packet's first byte.
    Packet,
    /// The header behind the link header, unless that is an IP header.
    Network,
    /// The IP header.
    Ip,
    /// The first byte behind the IP header, its extensions and AH.
    L4,
    /// The authentication header.
    Ah,
    /// The TCP option with the maximum segment size.
    Mss,
    /// The TCP option with the window scale.
    Wscale,
    /// The TCP option with the timestamps.
    Ts,
    /// The GRE key.
    GreKey,
    /// The IP header of the quoted packet.
    QuotedIp,
    /// The first byte behind the quoted packet's IP headers.
    QuotedL4,
}
