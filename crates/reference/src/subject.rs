//! What a program for an event of a TCP connection works on.

use braid_ir::model::{ParamId, StreamField, Word};
use braid_packet::FlowKey;
use braid_streams::{Alert, View};

/// What a program sees of the event for which it runs, as [`View`].
pub(super) struct StreamSubject {
    pub(super) flow: FlowKey,
    len: u64,
    offset: u64,
    matches: Vec<(ParamId, Option<u32>)>,
    /// The alert, whose message is beside it.
    alert: Option<(Alert<'static>, String)>,
}

impl StreamSubject {
    pub(super) fn of(view: &View<'_>) -> Self {
        let View { flow, len, offset, matches, alert } = *view;
        let alert = alert.map(|alert| (Alert { message: "", ..alert }, alert.message.to_owned()));
        Self { flow, len, offset, matches: matches.to_vec(), alert }
    }

    pub(super) fn view(&self) -> View<'_> {
        let Self { flow, len, offset, .. } = *self;
        let alert = self.alert.as_ref();
        let alert = alert.map(|(alert, message)| Alert { message, ..*alert });
        View { flow, len, offset, matches: &self.matches, alert }
    }

    /// The number of bytes that have come.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn number(&self, field: StreamField) -> Word {
        self.view().number(field)
    }
}
