//! Stream functions in the engine: a packet passes the TCP stack, which runs programs.

use crate::event_run::{self, Interpreter};
use crate::exec_context::ExecContext;
use braid_packet::{Layout, Packet};
use braid_streams::Answer;

/// Passes the packet to the function's stack, which runs the function's programs.
pub(crate) fn pass(
    context: &mut ExecContext<'_>,
    packet: (&Packet, &Layout),
    interpreter: &Interpreter,
) -> Answer {
    let taken = context.stacks.take(context.node, context.shard);
    let Some(mut taken) = taken else { return Answer::default() };
    let function = (taken.at, context.params);
    let answer = taken.stack.packet(taken.packet, packet, function, &mut |event, view| {
        event_run::run(context, (event, view), interpreter)
    });
    context.stacks.put(taken);
    answer
}
