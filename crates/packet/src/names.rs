//! The names of headers and fields, as the list of headers gives them.

macro_rules! names {
    ($($header:ident $file:ident :: $declaration:ident [$($field:ident)*];)*) => {
        /// A header (or part of a packet) whose presence a model can test with `has`. Its declaration
        /// ([`crate::field::Declaration`]) describes it.
        #[allow(missing_docs)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Header { $($header,)* }

        /// A header field or packet attribute. The field table ([`crate::FIELDS`]) describes it.
        #[allow(missing_docs)]
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

/// What the offset of a field counts from. Where that is in a packet is in its [`Layout`].
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
    /// What is behind the IP header, its extensions and AH.
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
    /// What is behind the quoted packet's IP headers.
    QuotedL4,
}
