//! Events of TCP connections, for which stream functions have programs, and what these can read.

/// The words that hold a message of an alert. Longer messages are cut.
pub const MESSAGE_WORDS: u8 = 15;

/// An event of a TCP connection, for which a stream function can have a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum StreamEvent {
    /// The connection is open: both ends have agreed, or its first bytes have come.
    Open,
    /// The next bytes of the client, which opened the connection, have come.
    Client,
    /// The next bytes of the server have come.
    Server,
    /// A signature holds for bytes that have come. It comes before the event of these bytes, and
    /// before the end of the connection.
    Alert,
    /// The connection has ended.
    Close,
}

impl StreamEvent {
    /// All events, in the order of the text form.
    pub const ALL: [StreamEvent; 5] =
        [Self::Open, Self::Client, Self::Server, Self::Alert, Self::Close];

    /// The word of the text form.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Client => "client",
            Self::Server => "server",
            Self::Alert => "alert",
            Self::Close => "close",
        }
    }
}

/// A number that a program for an event of a TCP connection can read. Those of alerts are 0 in
/// programs for other events.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StreamField {
    /// The number of bytes that have come. It is 0 for events without bytes.
    Len,
    /// The place of the first of these bytes in the stream, from 0.
    Offset,
    /// The number of the signature that holds.
    Sid,
    /// Its revision.
    Rev,
    /// Its priority.
    Priority,
    /// Whether the client has sent the bytes.
    FromClient,
    /// Whether its action is `drop` or `reject`.
    Drop,
    /// The number of bytes of its message, at most 16 for each of [`MESSAGE_WORDS`].
    MessageLen,
    /// 16 bytes of its message: the word with this number.
    Message(u8),
}

impl StreamField {
    /// Its width in bits.
    #[must_use]
    pub fn width(self) -> u16 {
        match self {
            Self::Len | Self::Offset => 64,
            Self::Sid | Self::Rev => 32,
            Self::Priority | Self::MessageLen => 8,
            Self::FromClient | Self::Drop => 1,
            Self::Message(_) => 128,
        }
    }

    /// The word of the text form.
    #[must_use]
    pub fn word(self) -> String {
        let word = match self {
            Self::Message(number) => return format!("message{number}"),
            Self::Len => "len",
            Self::Offset => "offset",
            Self::Sid => "sid",
            Self::Rev => "rev",
            Self::Priority => "priority",
            Self::FromClient => "from_client",
            Self::Drop => "drop",
            Self::MessageLen => "message_len",
        };
        word.to_owned()
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let named = [
            Self::Len,
            Self::Offset,
            Self::Sid,
            Self::Rev,
            Self::Priority,
            Self::FromClient,
            Self::Drop,
            Self::MessageLen,
        ];
        named.into_iter().chain((0..MESSAGE_WORDS).map(Self::Message))
    }
}
