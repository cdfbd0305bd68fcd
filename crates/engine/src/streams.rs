//! Stream functions in the engine: a packet passes the TCP stack, which runs programs.

use crate::exec_context::ExecContext;
use braid_ir::model::Program;
use braid_packet::{Layout, Packet};
use braid_streams::{Answer, End, View};

/// Runs a program for an event of a connection.
pub(crate) type Run = fn(&mut ExecContext<'_>, &View<'_>, &Program) -> End;

/// Passes the packet to the function's stack, which runs the function's programs.
pub(crate) fn pass(context: &mut ExecContext<'_>, packet: (&Packet, &Layout), run: Run) -> Answer {
    let taken = context.stacks.take(context.node, context.shard);
    let Some(mut taken) = taken else { return Answer::default() };
    let (model, params) = (context.model, context.params);
    let function = (taken.at, params);
    let answer = taken.stack.packet(taken.packet, packet, function, &mut |event, view| {
        model.stream(event).map_or(End::Forward, |program| run(context, view, program))
    });
    context.stacks.put(taken);
    answer
}
