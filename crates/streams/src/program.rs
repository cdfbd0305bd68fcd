//! What a program for an event of a TCP connection, or for an alert on a datagram, sees, and how it
//! ends.

use braid_ir::model::{MESSAGE_WORDS, ParamId, ReasonId, StreamField, Word};
use braid_packet::{Field, FlowKey, Header};

/// For each parameter whose patterns are searched: the lowest number of a pattern with a match that
/// ends in the bytes that have come.
pub type Matches = Vec<(ParamId, Option<u32>)>;

/// What a program sees of the event for which it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View<'a> {
    /// The flow of the bytes, from their sender to their receiver. For events without bytes: from the
    /// client to the server.
    pub flow: FlowKey,
    /// The number of bytes that have come.
    pub len: u64,
    /// The place of the first one in the stream.
    pub offset: u64,
    /// The results of searches for patterns.
    pub matches: &'a [(ParamId, Option<u32>)],
    /// The alert for which it runs.
    pub alert: Option<Alert<'a>>,
}

/// What a program sees of an alert.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alert<'a> {
    /// The signature's number.
    pub sid: u32,
    /// Its revision.
    pub rev: u32,
    /// Its priority.
    pub priority: u8,
    /// Whether the client has sent the bytes.
    pub from_client: bool,
    /// Whether the signature's action is `drop` or `reject`.
    pub is_drop: bool,
    /// Its message.
    pub message: &'a str,
}

/// The most bytes of a message that programs see.
const MAX_MESSAGE: usize = 16 * MESSAGE_WORDS as usize;

impl Alert<'_> {
    /// The message, cut between two characters if it is too long.
    fn message(&self) -> &str {
        let end = self.message.floor_char_boundary(MAX_MESSAGE);
        self.message.get(..end).unwrap_or_default()
    }

    fn number(&self, field: StreamField) -> Word {
        match field {
            StreamField::Len | StreamField::Offset => 0,
            StreamField::Sid => self.sid.into(),
            StreamField::Rev => self.rev.into(),
            StreamField::Priority => self.priority.into(),
            StreamField::FromClient => self.from_client.into(),
            StreamField::Drop => self.is_drop.into(),
            StreamField::MessageLen => self.message().len() as Word,
            StreamField::Message(number) => {
                let bytes = self.message().bytes().chain(std::iter::repeat(0));
                let word = bytes.skip(16 * usize::from(number)).take(16);
                word.fold(0, |word, byte| word << 8 | Word::from(byte))
            }
        }
    }
}

impl View<'_> {
    /// What a program sees of an event without bytes.
    #[must_use]
    pub fn of(flow: FlowKey) -> Self {
        Self { flow, len: 0, offset: 0, matches: &[], alert: None }
    }

    /// A number of the stream or of the alert.
    #[must_use]
    pub fn number(&self, field: StreamField) -> Word {
        match field {
            StreamField::Len => self.len.into(),
            StreamField::Offset => self.offset.into(),
            _ => self.alert.map_or(0, |alert| alert.number(field)),
        }
    }

    /// A field's value in the packets of the flow, if the flow decides it.
    #[must_use]
    pub fn field(&self, field: Field) -> Option<Word> {
        self.flow.get(field)
    }

    /// Whether the packets of the flow have a header, as far as the flow decides that.
    #[must_use]
    pub fn has(&self, header: Header) -> bool {
        self.flow.has(header)
    }

    /// The lowest number of a pattern of a parameter that has a match.
    #[must_use]
    pub fn found(&self, param: ParamId) -> Option<u32> {
        self.matches.iter().find(|(of, _)| *of == param).and_then(|(_, number)| *number)
    }
}

/// How a program for an event has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The connection goes on.
    Forward,
    /// The connection is reset.
    Reset(ReasonId),
    /// The connection goes on without further events for the function.
    Bypass,
}
