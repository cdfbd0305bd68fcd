//! What a program for an event of a TCP connection works on.

use braid_ir::model::{ParamId, StreamEvent, StreamField, StreamText, Word};
use braid_packet::FlowKey;
use braid_streams::{Alert, Message, Request, View};

/// What a program sees of the event for which it runs, as [`View`].
pub(super) struct StreamSubject {
    pub(super) flow: FlowKey,
    event: StreamEvent,
    bytes: Vec<u8>,
    offset: u64,
    matches: Vec<(ParamId, Option<u32>)>,
    /// The alert, whose message is beside it.
    alert: Option<(Alert<'static>, String)>,
    http: Option<Box<Http>>,
}

/// An HTTP message, whose request is beside it: its time and its strings.
struct Http {
    message: Message<'static>,
    request: Option<(u64, [Vec<u8>; StreamText::OF_REQUEST.len()])>,
}

impl StreamSubject {
    pub(super) fn of(view: &View<'_>) -> Self {
        let View { event, flow, bytes, offset, matches, alert, http } = *view;
        let alert = alert.map(|alert| (Alert { message: "", ..alert }, alert.message.to_owned()));
        let http = http.map(|Message { request, status, content_length }| {
            let message = Message { request: None, status, content_length };
            let owned = |Request { time, texts }: Request<'_>| (time, texts.map(<[u8]>::to_vec));
            Box::new(Http { message, request: request.map(owned) })
        });
        let (bytes, matches) = (bytes.to_vec(), matches.to_vec());
        Self { flow, event, bytes, offset, matches, alert, http }
    }

    pub(super) fn view(&self) -> View<'_> {
        let Self { flow, event, offset, .. } = *self;
        let alert = self.alert.as_ref();
        let alert = alert.map(|(alert, message)| Alert { message, ..*alert });
        let http = self.http.as_deref().map(|Http { message, request }| {
            let request = request.as_ref().map(|(time, texts)| {
                let texts = texts.each_ref().map(Vec::as_slice);
                Request { time: *time, texts }
            });
            Message { request, ..*message }
        });
        View { event, flow, bytes: &self.bytes, offset, matches: &self.matches, alert, http }
    }

    /// The number of bytes that have come.
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn number(&self, field: StreamField) -> Word {
        self.view().number(field)
    }
}
