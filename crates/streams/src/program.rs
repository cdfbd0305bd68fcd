//! What a program for an event of a TCP connection sees, and how it ends.

use braid_ir::model::{ParamId, ReasonId, StreamField, Word};
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
}

impl View<'_> {
    /// What a program sees of an event without bytes.
    #[must_use]
    pub fn of(flow: FlowKey) -> Self {
        Self { flow, len: 0, offset: 0, matches: &[] }
    }

    /// A number of the stream.
    #[must_use]
    pub fn number(&self, field: StreamField) -> Word {
        Word::from(match field {
            StreamField::Len => self.len,
            StreamField::Offset => self.offset,
        })
    }

    /// A field's value in the packets of the flow, if the flow decides it.
    #[must_use]
    pub fn field(&self, field: Field) -> Option<Word> {
        self.flow.get(field)
    }

    /// Whether the packets of the flow have a header, as far as the flow decides that.
    #[must_use]
    pub fn has(&self, header: Header) -> bool {
        match header {
            Header::Ip4 => self.flow.version == 4,
            Header::Ip6 => self.flow.version == 6,
            _ => Header::Tcp.implies().contains(&header) || header == Header::Tcp,
        }
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
