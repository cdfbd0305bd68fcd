//! Options and extension headers whose bytes a program reads.

/// What an option belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionOf {
    /// `tcp.option(KIND)`
    Tcp,
    /// `ip.option(KIND)`
    Ip,
    /// `ip6.extension(PROTOCOL)`: an extension header.
    Ip6,
}

impl OptionOf {
    /// All of them, each with the words of its name.
    pub const ALL: [(Self, [&'static str; 2]); 3] = [
        (Self::Tcp, ["tcp", "option"]),
        (Self::Ip, ["ip", "option"]),
        (Self::Ip6, ["ip6", "extension"]),
    ];

    /// Its name, with `…` in place of its kind.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp.option(…)",
            Self::Ip => "ip.option(…)",
            Self::Ip6 => "ip6.extension(…)",
        }
    }
}
