//! Stream functions: each has a TCP stack of its own, which runs the function's programs.

use super::instance::Instance;
use super::run::{Env, Role, on_stream};
use braid_ir::engine::Fault;
use braid_ir::model::{Model, ParamId, StreamField, Word};
use braid_packet::FlowKey;
use braid_streams::{Answer, End, View};

/// What a program sees of the event for which it runs, as [`View`].
pub(super) struct StreamSubject {
    pub(super) flow: FlowKey,
    len: u64,
    offset: u64,
    matches: Vec<(ParamId, Option<u32>)>,
}

impl StreamSubject {
    fn of(view: &View<'_>) -> Self {
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

/// A parameter has changed, whose patterns the function may search.
pub(super) fn tell(instance: &mut Instance, param: ParamId) {
    for stack in instance.shards.iter_mut().filter_map(|shard| shard.stack.as_mut()) {
        stack.changed(0, param);
    }
}

/// Passes the packet to the function's stack.
pub(super) fn call(env: &mut Env<'_>, role: &Role, model: &Model) -> Result<Answer, Fault> {
    let stack = env.shard().stack.take();
    let (Some(mut stack), Role::Packet(state)) = (stack, role) else {
        return Err(Fault::Truncated);
    };
    let params = env.instance.params.clone();
    let answer = stack.next_packet(
        (&state.now, &state.layout),
        (0, &params),
        &mut |event, view| match model.stream(event) {
            Some(program) => on_stream(env.nested(), StreamSubject::of(view), program),
            None => End::Forward,
        },
    );
    env.shard().stack = Some(stack);
    Ok(answer)
}
