//! What a statement or expression needs: a packet, and the headers that it uses.

use braid_ir::model::Op;
use braid_packet::Header;

use super::lower::{Lower, Mode};
use super::types::BOOL;
use crate::ast::Span;
use crate::diag::{Diagnostic, codes};

/// Checks that there is a packet here.
pub fn packet(lower: &mut Lower<'_>, span: Span) -> bool {
    if lower.mode == Mode::Packet {
        return true;
    }
    if lower.mode.is_stream() {
        let message = "a stream function sees no packets";
        lower.say(Diagnostic::new(codes::MIXED_STREAM, message, span, "needs a packet"));
        return false;
    }
    const EXPIRE: &str =
        "the state's name gives the ending entry, the fields of its key give the key";
    const HANDLER: &str = "`event.NAME` gives a field of the event, and keys are written out";
    let (place, help) = match lower.mode {
        Mode::Timer => ("a timer", None),
        Mode::Handler(_) => ("the handler of an event", Some(HANDLER)),
        _ => ("`on expire`", Some(EXPIRE)),
    };
    let message = format!("{place} runs without a packet");
    let diagnostic = Diagnostic::new(codes::NO_PACKET, message, span, "needs a packet");
    lower.say(diagnostic.help_if(help.map(str::to_owned)));
    false
}

/// Makes sure that a header is present: it is known to be, or an atom tests it, or its absence is
/// reported. `what` names the construct that needs it. With `entry`, the packet as it entered needs
/// it.
pub fn header(
    lower: &mut Lower<'_>,
    header: Header,
    entry: bool,
    span: Span,
    what: &str,
) -> Option<()> {
    if lower.b.facts.knows(header, entry) {
        return Some(());
    }
    if entry && lower.b.facts.is_touched(header) {
        return lower.fail(header_changed(header, span, what));
    }
    let Some(absent) = lower.absent else {
        lower.say(may_be_absent(header, span, what));
        // One message for each header is enough.
        lower.b.facts.learn(header);
        return Some(());
    };
    let next = lower.b.block();
    if lower.b.facts.lacks(header, entry) {
        lower.b.jump(absent, Vec::new());
    } else {
        let has = lower.b.emit(BOOL, |out| Op::Has { out, header });
        lower.b.branch_on_header(has, header, next, absent);
    }
    lower.b.start(next);
    Some(())
}

fn may_be_absent(header: Header, span: Span, what: &str) -> Diagnostic {
    let name = header.name();
    Diagnostic::new(
        codes::HEADER_MAY_BE_ABSENT,
        format!("{what} needs the header `{name}`, which the packet may lack"),
        span,
        format!("no test of `{name}` on the way here"),
    )
    .help(format!("test it first: `if has {name} {{ … }}`, or `has {name}` in the row's predicate"))
}

fn header_changed(header: Header, span: Span, what: &str) -> Diagnostic {
    let name = header.name();
    Diagnostic::new(
        codes::HEADER_CHANGED,
        format!("{what} needs the header `{name}` of the packet as it entered"),
        span,
        format!("`{name}` was changed on the way here"),
    )
    .help(format!("test `has {name}` before the change"))
}
