//! Stream functions: each has a TCP stack of its own, which runs the function's programs.

use super::instance::Instance;
use super::run::{Env, Role, on_stream};
use super::subject::StreamSubject;
use braid_ir::engine::Fault;
use braid_ir::model::{Model, ParamId};
use braid_streams::{Answer, End};

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
    let answer =
        stack.next_packet((&state.now, &state.layout), (0, &params), &mut |view| match model
            .stream(view.event)
        {
            Some(program) => on_stream(env.nested(), StreamSubject::of(view), program),
            None => End::Forward,
        });
    env.shard().stack = Some(stack);
    Ok(answer)
}
