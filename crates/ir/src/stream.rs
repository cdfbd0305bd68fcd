//! Events of TCP connections, for which stream functions have programs, and what these can read.

/// The words that hold a string. Longer strings are cut.
pub const TEXT_WORDS: u8 = 15;

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
    /// The head of an HTTP request is complete. It comes after the alerts of the same bytes, and
    /// before the event of the bytes.
    Request,
    /// The head of an HTTP response is complete.
    Response,
    /// The connection has ended.
    Close,
}

impl StreamEvent {
    /// All events, in the order of the text form.
    pub const ALL: [StreamEvent; 7] = [
        Self::Open,
        Self::Client,
        Self::Server,
        Self::Alert,
        Self::Request,
        Self::Response,
        Self::Close,
    ];

    /// The word of the text form.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Client => "client",
            Self::Server => "server",
            Self::Alert => "alert",
            Self::Request => "request",
            Self::Response => "response",
            Self::Close => "close",
        }
    }
}

/// A string that a program for an event of a TCP connection can read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum StreamText {
    /// The message of an alert.
    Message,
    /// The method of an HTTP request.
    Method,
    /// Its target, as it came.
    Target,
    /// The host that it asks, in lower case, without a port.
    Host,
    /// The path and query of its target, with `%HH` replaced by its byte.
    Path,
    /// Its field User-Agent.
    UserAgent,
}

impl StreamText {
    /// All of them.
    pub const ALL: [StreamText; 6] =
        [Self::Message, Self::Method, Self::Target, Self::Host, Self::Path, Self::UserAgent];

    /// Those of an HTTP request.
    pub const OF_REQUEST: [StreamText; 5] =
        [Self::Method, Self::Target, Self::Host, Self::Path, Self::UserAgent];

    /// The word of the text form.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Method => "method",
            Self::Target => "target",
            Self::Host => "host",
            Self::Path => "path",
            Self::UserAgent => "user_agent",
        }
    }
}

/// A number that a program for an event of a TCP connection can read. Those of alerts and HTTP
/// messages are 0 in programs for other events.
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
    /// Whether the HTTP request is known: the one whose head is complete, or the one that the
    /// response answers.
    HasRequest,
    /// The time when its head was complete.
    RequestTime,
    /// Whether the head of the HTTP message has a field Content-Length.
    HasLength,
    /// The number in this field.
    Length,
    /// The status of the HTTP response.
    Status,
    /// The number of bytes of a string, at most 16 for each of [`TEXT_WORDS`].
    TextLen(StreamText),
    /// 16 bytes of a string: the word with this number.
    Text(StreamText, u8),
}

impl StreamField {
    /// Its width in bits.
    #[must_use]
    pub fn width(self) -> u16 {
        match self {
            Self::Len | Self::Offset | Self::RequestTime | Self::Length => 64,
            Self::Sid | Self::Rev => 32,
            Self::Status => 16,
            Self::Priority | Self::TextLen(_) => 8,
            Self::FromClient | Self::Drop | Self::HasRequest | Self::HasLength => 1,
            Self::Text(..) => 128,
        }
    }

    /// The word of the text form.
    #[must_use]
    pub fn word(self) -> String {
        let word = match self {
            Self::TextLen(text) => return format!("{}_len", text.word()),
            Self::Text(text, number) => return format!("{}{number}", text.word()),
            Self::Len => "len",
            Self::Offset => "offset",
            Self::Sid => "sid",
            Self::Rev => "rev",
            Self::Priority => "priority",
            Self::FromClient => "from_client",
            Self::Drop => "drop",
            Self::HasRequest => "has_request",
            Self::RequestTime => "request_time",
            Self::HasLength => "has_content_length",
            Self::Length => "content_length",
            Self::Status => "status",
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
            Self::HasRequest,
            Self::RequestTime,
            Self::HasLength,
            Self::Length,
            Self::Status,
        ];
        let texts = StreamText::ALL.into_iter().flat_map(|text| {
            let words = (0..TEXT_WORDS).map(move |number| Self::Text(text, number));
            std::iter::once(Self::TextLen(text)).chain(words)
        });
        named.into_iter().chain(texts)
    }
}
