//! Sides of a function beside the left and the right one, declared by `side`: packets come in and
//! leave there.
//!
//! A packet that comes in at such a side enters the function by its left port, with a tag: the
//! chain puts a gate that sets the tag in front of the function ([`gate`]). The function takes the
//! tag off before anything else, and puts it back on where it will see the packet again.

use braid_ir::model::{
    BinOp, CmpOp, Dest, LEFT, Model, Op, PortId, RIGHT, RowDecl, RowId, TagDecl, TagId, Term, Ty,
    ValueId,
};
use braid_packet::Field;

use super::build::Builder;
use super::facts::Facts;
use super::lower::{Lower, Mode};
use super::types::BOOL;
use super::{needs, path};
use crate::ast::Ident;
use crate::diag::{Diagnostic, codes};

/// The name of the tag begins with this, and ends with the name of the function, or in a chain of
/// its instance. Programs have no such names.
const TAG: &str = "side of ";
/// The tag is the number of the side's port. Without it, the packet came from the left or right.
const NUMBER: Ty = Ty::uint(16);

/// The tag of packets that come in at other ports of a function than `left` and `right`, if it has
/// such sides.
pub fn tag(model: &Model) -> Option<&TagDecl> {
    model.tags.iter().find(|tag| tag.name.starts_with(TAG))
}

/// Names the tag of a function after an instance.
pub fn name_tag(model: &mut Model, instance: &str) {
    let of = |tag: &&mut TagDecl| tag.name.starts_with(TAG);
    if let Some(tag) = model.tags.iter_mut().find(of) {
        tag.name = format!("{TAG}{instance}");
    }
}

/// The model of the gate of a side: it sends packets on with this tag, which has the side's number.
pub fn gate(tag: TagDecl, side: PortId) -> Model {
    let mut model = Model::new("side");
    model.tags.push(tag);
    for label in ["body", "fault"] {
        model.rows.push(RowDecl { label: label.to_owned(), text: String::new(), line: 0 });
    }
    let mut b = Builder::new(Facts::start());
    let row = RowId(0);
    b.op(Op::Count { row });
    let a = b.constant(NUMBER, side.0.into());
    b.op(Op::StoreTag { tag: TagId(0), a });
    b.end(Term::Output { ports: vec![Dest::Onward], row });
    model.packet = b.finish();
    model
}

/// Declares the port with this number to be a side.
pub fn declare(lower: &mut Lower<'_>, port: PortId) {
    if lower.side_tag.is_none() {
        lower.side_tag = Some(TagId(u32::try_from(lower.model.tags.len()).unwrap_or(u32::MAX)));
        let name = format!("{TAG}{}", lower.model.name);
        lower.model.tags.push(TagDecl { name, ty: NUMBER });
    }
    lower.sides.push(port);
}

/// Takes the tag off packets that have it. The program for packets begins with this.
pub fn enter(lower: &mut Lower<'_>) {
    let Some(tag) = lower.side_tag else { return };
    let came = lower.b.emit(NUMBER, |out| Op::LoadTag { out, tag });
    lower.came = Some(came);
    let (tagged, done) = (lower.b.block(), lower.b.block());
    let untagged = is_from(&mut lower.b, came, LEFT);
    lower.b.branch(untagged, done, tagged);
    lower.b.start(tagged);
    take_off(lower);
    lower.b.jump(done, Vec::new());
    lower.b.start(done);
}

/// Takes the tag off.
pub fn take_off(lower: &mut Lower<'_>) {
    if let Some(tag) = lower.side_tag {
        let a = lower.b.constant(NUMBER, 0);
        lower.b.op(Op::StoreTag { tag, a });
    }
}

/// Puts the tag back on, in front of an end after which the function sees the packet again.
pub fn put_back(lower: &mut Lower<'_>) {
    if let (Some(tag), Some(a)) = (lower.side_tag, lower.came) {
        lower.b.op(Op::StoreTag { tag, a });
    }
}

/// Whether the packet came from this side. `None` after an error, which is then reported.
pub fn from(lower: &mut Lower<'_>, side: &Ident) -> Option<ValueId> {
    if !needs::packet(lower, side.span) {
        return None;
    }
    let at = lower.model.ports.iter().position(|port| *port == side.text);
    let port = PortId(u32::try_from(at.unwrap_or(usize::MAX)).unwrap_or(u32::MAX));
    let (backward, _) = match port {
        LEFT | RIGHT => path::read_field(lower, Field::PktBackward, side.span)?,
        _ if lower.sides.contains(&port) => {
            let came = lower.came?;
            return Some(is_from(&mut lower.b, came, port));
        }
        _ => return no_side(lower, side, at.is_some()),
    };
    if port == RIGHT {
        return Some(backward);
    }
    let forward = lower.b.complement(backward, BOOL);
    let Some(came) = lower.came else { return Some(forward) };
    let none = is_from(&mut lower.b, came, LEFT);
    Some(lower.b.bin(BOOL, BinOp::And, forward, none))
}

fn no_side(lower: &mut Lower<'_>, side: &Ident, is_port: bool) -> Option<ValueId> {
    let name = &side.text;
    let message = match is_port {
        true => format!("packets do not come in at the port `{name}`"),
        false => format!("there is no side `{name}`"),
    };
    let known: Vec<String> = lower.model.ports.clone();
    let help = lower.suggest(name, known.iter().map(String::as_str));
    let wrong = Diagnostic::new(codes::UNKNOWN_PORT, message, side.span, "unknown side");
    lower.fail(match is_port {
        true => wrong.help(format!("declare it with `side {name};` in place of `port {name};`")),
        false if name == "back" => wrong.help("name the side"),
        false => wrong.help(format!("declare it: `side {name};`")).help_if(help),
    })
}

/// Whether the packet came from the side with this number; `LEFT` stands for no declared side.
fn is_from(b: &mut Builder, came: ValueId, side: PortId) -> ValueId {
    let number = b.constant(NUMBER, side.0.into());
    b.emit(BOOL, |out| Op::Cmp { out, op: CmpOp::Eq, a: came, b: number })
}

/// Lowers something for packets of each origin: a declared side, or `None` for the left and the
/// right one.
pub fn by_origin(lower: &mut Lower<'_>, mut each: impl FnMut(&mut Lower<'_>, Option<PortId>)) {
    let Some(came) = lower.came.filter(|_| lower.mode == Mode::Packet) else {
        return each(lower, None);
    };
    let done = lower.b.block();
    for side in lower.sides.clone() {
        let (here, next) = (lower.b.block(), lower.b.block());
        let cond = is_from(&mut lower.b, came, side);
        lower.b.branch(cond, here, next);
        lower.b.start(here);
        each(lower, Some(side));
        lower.b.jump(done, Vec::new());
        lower.b.start(next);
    }
    each(lower, None);
    lower.b.jump(done, Vec::new());
    lower.b.start(done);
}

/// Lowers something that sends packets, for each declared side that the packet may have come from
/// if one of them goes back.
pub fn to_origin(
    lower: &mut Lower<'_>,
    goes_back: bool,
    mut each: impl FnMut(&mut Lower<'_>, Option<PortId>),
) {
    match goes_back {
        true => by_origin(lower, each),
        false => each(lower, None),
    }
}

/// The destination of a packet that came from this declared side, or from the left or right.
pub fn back_to(dest: Dest, origin: Option<PortId>) -> Dest {
    match (dest, origin) {
        (Dest::Back, Some(side)) => Dest::Port(side),
        _ => dest,
    }
}
