//! Stream functions in the engine: a packet passes the TCP stack, which runs programs.

use crate::event_run::{self, Interpreter};
use crate::exec_context::ExecContext;
use braid_ir::engine::Fault;
use braid_ir::model::Op;
use braid_ir::values::Values;
use braid_packet::{Field, Layout, Packet};
use braid_streams::{Answer, View};

/// Passes the packet to the function's stack, which runs the function's programs.
pub(crate) fn pass(
    context: &mut ExecContext<'_>,
    packet: (&Packet, &Layout),
    interpreter: &Interpreter,
) -> Answer {
    let taken = context.stacks.take(context.node, context.shard);
    let Some(mut taken) = taken else { return Answer::default() };
    let function = (taken.at, context.params);
    let answer = taken.stack.packet(taken.packet, packet, function, &mut |view| {
        event_run::run(context, view, interpreter)
    });
    context.stacks.put(taken);
    answer
}

/// Executes an operation on an event of a TCP connection. Returns false for other operations.
pub(crate) fn step(
    context: &mut ExecContext<'_>,
    view: &View<'_>,
    values: &mut Values<'_>,
    op: &Op,
) -> Result<bool, Fault> {
    match op {
        Op::LoadStream { out, field } => values.set(*out, view.number(*field)),
        Op::StreamMatch { found, number, param, text } => {
            let first = context.params.get(param.index());
            let first = first.and_then(|value| view.found((*param, value), *text));
            values.set(*found, first.is_some().into());
            values.set(*number, first.unwrap_or(0).into());
        }
        Op::Has { out, header } => values.set(*out, view.has(*header).into()),
        Op::Load { out, field } if *field != Field::PktTime => {
            values.set(*out, view.field(*field).ok_or(Fault::Truncated)?);
        }
        Op::Native { out } => {
            let answer = context.native_stream(view)?;
            values.set(*out, answer);
        }
        _ => return Ok(false),
    }
    Ok(true)
}
