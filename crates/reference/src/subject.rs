//! What a program for an event of a TCP connection works on.

use braid_ir::model::{ParamId, StreamField, Word};
use braid_packet::FlowKey;
use braid_streams::View;

/// What a program sees of the event for which it runs, as [`View`].
pub(super) struct StreamSubject {
    pub(super) flow: FlowKey,
    len: u64,
    offset: u64,
    matches: Vec<(ParamId, Option<u32>)>,
}

impl StreamSubject {
    pub(super) fn of(view: &View<'_>) -> Self {
        let View { flow, len, offset, matches } = *view;
        Self { flow, len, offset, matches: matches.to_vec() }
    }

    pub(super) fn view(&self) -> View<'_> {
        let Self { flow, len, offset, .. } = *self;
        View { flow, len, offset, matches: &self.matches }
    }

    /// The number of bytes that have come.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn number(&self, field: StreamField) -> Word {
        self.view().number(field)
    }
}
