//! Lowers the ends of a packet's path: outputs, drops, holds. Also the ends of a program for an
//! event of a TCP connection.

use braid_ir::model::{
    Dest, EventDecl, EventId, Op, PortId, QueueId, ReasonId, RowId, StreamEvent, Term,
};

use super::lower::{BODY, Lower, Mode};
use super::scope::Binding;
use super::types::DURATION;
use super::{needs, sides};
use crate::ast::{Expr, Ident, Span, Stmt};
use crate::diag::{Diagnostic, codes};

/// Ends the packet's path at the current row.
pub fn end(lower: &mut Lower<'_>, span: Span, term: impl FnOnce(RowId) -> Term) {
    if !needs::packet(lower, span) {
        let nowhere = lower.b.block();
        return lower.b.start(nowhere);
    }
    let row = count_end(lower);
    lower.b.end(term(row));
}

/// The row of an end. Outside of any row, the packet is counted here, once on its path.
fn count_end(lower: &mut Lower<'_>) -> RowId {
    if let Some(row) = lower.row {
        return row;
    }
    if !lower.b.facts.counted {
        lower.b.op(Op::Count { row: BODY });
        lower.b.facts.counted = true;
    }
    BODY
}

/// Drops the packet for this reason.
pub fn drop_packet(lower: &mut Lower<'_>, reason: &str, span: Span) {
    let reason = reason_number(lower, reason);
    end(lower, span, |row| Term::Drop { reason, row });
}

/// The number of a reason for drops.
pub fn reason_number(lower: &mut Lower<'_>, text: &str) -> ReasonId {
    if let Some(known) = lower.reasons.get(text) {
        return *known;
    }
    let id = ReasonId(u32::try_from(lower.model.reasons.len()).unwrap_or(u32::MAX));
    lower.model.reasons.push(text.to_owned());
    lower.reasons.insert(text.to_owned(), id);
    id
}

/// Lowers `output PORT, …;`.
pub fn output(lower: &mut Lower<'_>, ports: &[Ident], span: Span) {
    let found: Vec<Option<Dest>> = ports.iter().map(|port| dest(lower, port)).collect();
    let mut dests: Vec<Dest> = found.into_iter().flatten().collect();
    if ports.is_empty() {
        dests.push(Dest::Onward);
    }
    sides::to_origin(lower, dests.contains(&Dest::Back), |lower, origin| {
        let ports = dests.iter().map(|dest| sides::back_to(*dest, origin)).collect();
        end(lower, span, |row| Term::Output { ports, row });
    });
}

/// The destination: `back` or a port.
pub fn dest(lower: &mut Lower<'_>, port: &Ident) -> Option<Dest> {
    if port.text == "back" {
        return Some(Dest::Back);
    }
    if let Some(at) = lower.model.ports.iter().position(|known| *known == port.text) {
        return Some(Dest::Port(PortId(u32::try_from(at).unwrap_or(u32::MAX))));
    }
    let known = lower.model.ports.iter().map(String::as_str).chain(["back"]);
    let help = lower.suggest(&port.text, known);
    let message = format!("there is no port `{}`", port.text);
    let diagnostic = Diagnostic::new(codes::UNKNOWN_PORT, message, port.span, "unknown port");
    lower.fail(diagnostic.help(format!("declare it: `port {};`", port.text)).help_if(help))
}

/// Lowers `hold QUEUE for DELAY else STMT;`.
pub fn hold<'a>(
    lower: &mut Lower<'a>,
    queue: &Ident,
    delay: &Expr,
    otherwise: Option<&'a Stmt>,
    span: Span,
) {
    let id = queue_named(lower, queue);
    let delay = lower.typed(delay, DURATION);
    let (Some(id), Some(delay)) = (id, delay) else {
        return end(lower, span, |row| Term::Consume { row });
    };
    if !needs::packet(lower, span) {
        return;
    }
    let row = count_end(lower);
    sides::put_back(lower);
    let full = lower.b.block();
    let target = braid_ir::model::Target { block: full, args: Vec::new() };
    lower.b.hold(Term::Hold { queue: id, delay, row, full: target }, full);
    lower.b.start(full);
    sides::take_off(lower);
    match otherwise {
        Some(otherwise) => lower.scoped(|this| this.statement(otherwise)),
        None => drop_packet(lower, &format!("{} full", queue.text), span),
    }
}

/// The queue with this name.
fn queue_named(lower: &mut Lower<'_>, name: &Ident) -> Option<QueueId> {
    if let Some(Binding::Queue(queue)) = lower.scope.binding(&name.text) {
        return Some(queue);
    }
    let known = lower.model.queues.iter().map(|queue| queue.name.as_str());
    let help = lower.suggest(&name.text, known);
    let message = format!("there is no queue `{}`", name.text);
    let diagnostic = Diagnostic::new(codes::UNKNOWN_QUEUE, message, name.span, "unknown queue");
    lower.fail(
        diagnostic.help(format!("declare it: `queue {} capacity N;`", name.text)).help_if(help),
    )
}

/// Ends the path of an event by the word `what`, at the current row.
pub fn event(lower: &mut Lower<'_>, what: &str, span: Span, term: impl FnOnce(RowId) -> Term) {
    match lower.mode {
        Mode::Stream(StreamEvent::Close) if what != "forward" => {
            let message = format!("`{what};` is too late when the connection is over");
            lower.say(
                Diagnostic::new(codes::MIXED_STREAM, message, span, "")
                    .help("write it in `on open` or `on data`"),
            );
        }
        Mode::Stream(_) if what == "resume" => {
            let message = "`resume;` belongs to handlers of events";
            let wrong = Diagnostic::new(codes::MIXED_STREAM, message, span, "");
            lower.say(wrong.help("no block runs after `bypass;`: write it in `on EVENT`"));
        }
        Mode::Stream(_) => {
            let row = count_end(lower);
            lower.b.end(term(row));
        }
        Mode::Handler(event) if lower.of_stream => steer(lower, event, what, span, term),
        _ => {
            let message = format!("`{what};` belongs to stream functions");
            lower.say(
                Diagnostic::new(codes::MIXED_STREAM, message, span, "")
                    .help("write `output;` or `drop;`"),
            );
        }
    }
}

/// Ends a handler of a stream function, which decides about the flow that its event names.
fn steer(
    lower: &mut Lower<'_>,
    event: EventId,
    what: &str,
    span: Span,
    term: impl FnOnce(RowId) -> Term,
) {
    let decl = lower.model.events.get(event.index());
    let names_flow = decl.is_some_and(EventDecl::names_flow);
    if what != "forward" && !names_flow {
        let name = decl.map_or("", |decl| decl.name.as_str());
        let message = format!("an event {name} names no connection");
        let wrong = Diagnostic::new(codes::MIXED_STREAM, message, span, "which one?");
        return lower.say(wrong.help("let the type extend `FLOW`, or take a type that does"));
    }
    lower.b.end(term(BODY));
}
