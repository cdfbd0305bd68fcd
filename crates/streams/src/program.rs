//! What a program for an event of a TCP connection, or for an alert on a datagram, sees, and how it
//! ends.

use braid_ir::model::{ParamId, ReasonId, StreamEvent, StreamField, StreamText, TEXT_WORDS, Word};
use braid_ir::value::ParamValue;
use braid_packet::{Field, FlowKey, Header};

/// For each parameter whose patterns are searched: the lowest number of a pattern with a match that
/// ends in the bytes that have come.
pub type Matches = Vec<(ParamId, Option<u32>)>;

/// What a program sees of the event for which it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View<'a> {
    /// The event.
    pub event: StreamEvent,
    /// The flow of the bytes, from their sender to their receiver. For events without bytes: from
    /// the client to the server.
    pub flow: FlowKey,
    /// The bytes that have come.
    pub bytes: &'a [u8],
    /// The place of the first one in the stream.
    pub offset: u64,
    /// The results of searches for patterns.
    pub matches: &'a [(ParamId, Option<u32>)],
    /// The alert for which it runs.
    pub alert: Option<Alert<'a>>,
    /// The HTTP message for which it runs.
    pub http: Option<Message<'a>>,
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

/// What a program sees of an HTTP message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// The request, or the one that the response answers. `None` if that one is not known.
    pub request: Option<Request<'a>>,
    /// The status of a response. 0 for requests.
    pub status: u16,
    /// What the head says of the body's length.
    pub content_length: Option<u64>,
}

/// What a program sees of an HTTP request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request<'a> {
    /// When its head was complete (nanoseconds since the epoch).
    pub time: u64,
    /// Its strings, in the order of [`StreamText::OF_REQUEST`]. Programs for responses see at most
    /// as many bytes of each as [`TEXT_WORDS`] hold.
    pub texts: [&'a [u8]; StreamText::OF_REQUEST.len()],
}

/// The most bytes of a string that programs read.
pub const MAX_TEXT: usize = 16 * TEXT_WORDS as usize;

impl<'a> Alert<'a> {
    /// The message, cut between two characters if it is too long.
    fn message(&self) -> &'a str {
        let end = self.message.floor_char_boundary(MAX_TEXT);
        self.message.get(..end).unwrap_or_default()
    }
}

impl<'a> View<'a> {
    /// What a program sees of an event without bytes.
    #[must_use]
    pub fn of(event: StreamEvent, flow: FlowKey) -> Self {
        Self { event, flow, bytes: &[], offset: 0, matches: &[], alert: None, http: None }
    }

    /// The number of bytes that have come.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Whether no bytes have come.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A number of the stream, of the alert or of the HTTP message.
    #[must_use]
    pub fn number(&self, field: StreamField) -> Word {
        let of_alert = |number: fn(&Alert<'a>) -> Word| self.alert.as_ref().map_or(0, number);
        let of_http = |number: fn(&Message<'a>) -> Word| self.http.as_ref().map_or(0, number);
        match field {
            StreamField::Len => self.len().into(),
            StreamField::Offset => self.offset.into(),
            StreamField::Sid => of_alert(|alert| alert.sid.into()),
            StreamField::Rev => of_alert(|alert| alert.rev.into()),
            StreamField::Priority => of_alert(|alert| alert.priority.into()),
            StreamField::FromClient => of_alert(|alert| alert.from_client.into()),
            StreamField::Drop => of_alert(|alert| alert.is_drop.into()),
            StreamField::HasRequest => of_http(|http| http.request.is_some().into()),
            StreamField::RequestTime => {
                of_http(|http| http.request.map_or(0, |request| request.time.into()))
            }
            StreamField::HasLength => of_http(|http| http.content_length.is_some().into()),
            StreamField::Length => of_http(|http| http.content_length.unwrap_or(0).into()),
            StreamField::Status => of_http(|http| http.status.into()),
            StreamField::TextLen(text) => self.text(text).len().min(MAX_TEXT) as Word,
            StreamField::Text(text, number) => {
                let bytes = self.text(text).iter().take(MAX_TEXT).copied();
                let bytes = bytes.chain(std::iter::repeat(0));
                let word = bytes.skip(16 * usize::from(number)).take(16);
                word.fold(0, |word, byte| word << 8 | Word::from(byte))
            }
        }
    }

    /// A string of the alert or of the HTTP message.
    #[must_use]
    pub fn text(&self, text: StreamText) -> &'a [u8] {
        let place = StreamText::OF_REQUEST.iter().position(|of| *of == text);
        match (place, self.alert, self.http) {
            (None, Some(alert), _) => alert.message().as_bytes(),
            (Some(at), _, Some(Message { request: Some(Request { texts, .. }), .. })) => {
                texts.get(at).copied().unwrap_or_default()
            }
            _ => &[],
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

    /// The lowest number of a pattern of a parameter, which has this value, that has a match in the
    /// bytes that have come or in a string.
    #[must_use]
    pub fn found(
        &self,
        (param, value): (ParamId, &ParamValue),
        text: Option<StreamText>,
    ) -> Option<u32> {
        match (text, value) {
            (None, _) => {
                self.matches.iter().find(|(of, _)| *of == param).and_then(|(_, number)| *number)
            }
            (Some(text), ParamValue::Patterns(set)) => set.lowest_match(self.text(text)),
            (Some(_), _) => None,
        }
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
    /// The function takes the connection's events again.
    Resume,
}
