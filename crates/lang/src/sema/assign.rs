//! Lowers assignments to fields, tags and state.

use braid_ir::model::{Granularity, Model, Op, StateId, Ty, ValueId, WhenFull};
use braid_packet::Access;

use super::lower::{Lower, Mode};
use super::names::{self, Named};
use super::scope::{Binding, Value};
use super::state::{self, Entry, StatePlace};
use super::types::{self, BOOL};
use super::{bytes, declared_sums, ends, locals, needs, operators};
use crate::ast::{BinOp, Expr, ExprKind, Span, Stmt};
use crate::diag::{Diagnostic, codes};

/// Lowers `PLACE = VALUE else STMT;`, or with `op` the statement `PLACE op= VALUE`.
pub fn assign<'a>(
    lower: &mut Lower<'a>,
    place: &Expr,
    op: Option<BinOp>,
    value: &Expr,
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    if let Some(found) = state::state_place(&lower.scope, place) {
        return assign_state(lower, &found, place, op, value, otherwise, span);
    }
    if let ExprKind::At(at) = &place.kind {
        if op.is_some() {
            return bytes::no_sum(lower, span);
        }
        return bytes::assign(lower, at, value, otherwise, place.span);
    }
    if let ExprKind::Path(path) = &place.kind
        && let Some(first) = path.parts.first()
        && let Some(Value::Mutable(parts)) = lower.scope.local(&first.text)
    {
        let parts = parts.clone();
        return locals::assign(lower, (&parts, path), op, value, otherwise);
    }
    if let Some(otherwise) = otherwise {
        let message = "only assignments of state and of bytes can be refused";
        lower.say(Diagnostic::new(
            codes::UNREACHABLE_STATEMENT,
            message,
            otherwise.span,
            "this `else` is never reached",
        ));
    }
    assign_named(lower, place, op, value, span)
}

/// Lowers an assignment to a field or a tag.
fn assign_named(
    lower: &mut Lower<'_>,
    place: &Expr,
    op: Option<BinOp>,
    value: &Expr,
    span: Span,
) -> Option<()> {
    let ExprKind::Path(path) = &place.kind else {
        return not_assignable(lower, "this cannot be assigned", place.span);
    };
    match names::resolve(lower, path)? {
        Named::Field(field) => {
            let info = field.info();
            if info.access == Access::Ro {
                let message = format!("`{}` cannot be assigned", info.name);
                return lower.fail(
                    Diagnostic::new(codes::READ_ONLY_FIELD, message, place.span, "read-only")
                        .note(info.doc)
                        .help_if(read_only_help(info.name)),
                );
            }
            if !needs::packet(lower, place.span) {
                return None;
            }
            let ty = types::of_field(field);
            let known =
                needs::header(lower, info.header, false, place.span, &format!("`{}`", info.name));
            let a = new_value(lower, place, op, value, ty, span);
            known?;
            let a = a?;
            lower.b.op(Op::Store { field, a });
            lower.b.facts.stored(field);
            Some(())
        }
        Named::Declared(field) => {
            let new = |lower: &mut Lower<'_>, ty| new_value(lower, place, op, value, ty, span);
            declared_sums::write(lower, field, new, place.span)
        }
        Named::Bound(Binding::Tag(tag)) if path.parts.len() == 1 => {
            let ty = lower.model.tags.get(tag.0 as usize)?.ty;
            if !needs::packet(lower, place.span) {
                return None;
            }
            let a = new_value(lower, place, op, value, ty, span)?;
            lower.b.op(Op::StoreTag { tag, a });
            Some(())
        }
        Named::Local(Value::Wrong) => None,
        Named::Local(_) => {
            let message = "locals keep their value";
            let wrong =
                Diagnostic::new(codes::NOT_ASSIGNABLE, message, place.span, "not assignable");
            lower.fail(wrong.help("declare it with `let mut`"))
        }
        Named::Bound(Binding::Param(_)) => {
            not_assignable(lower, "parameters are set by the chain", place.span)
        }
        _ => not_assignable(lower, "this cannot be assigned", place.span),
    }
}

fn not_assignable<T>(lower: &mut Lower<'_>, message: &str, span: Span) -> Option<T> {
    lower.fail(
        Diagnostic::new(codes::NOT_ASSIGNABLE, message, span, "not assignable")
            .help("give the new value a name of its own: `let x = …;`"),
    )
}

/// The new value of a place: `value`, or `place op value`.
fn new_value(
    lower: &mut Lower<'_>,
    place: &Expr,
    op: Option<BinOp>,
    value: &Expr,
    ty: Ty,
    span: Span,
) -> Option<ValueId> {
    let Some(op) = op else { return lower.typed(value, ty) };
    let (old, by) = (lower.value(place, None), lower.value(value, Some(ty)));
    let combined = operators::combine(lower, op, (old?, place.span), (by?, value.span), span)?;
    operators::coerce(lower, combined, ty, span)
}

fn assign_state<'a>(
    lower: &mut Lower<'a>,
    found: &StatePlace<'_>,
    place: &Expr,
    op: Option<BinOp>,
    value: &Expr,
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    let decl = lower.model.state.get(found.state.0 as usize)?.clone();
    if lower.mode == Mode::Expire(found.state) && found.key.is_none() {
        let message = format!("this entry of `{}` is ending", decl.name);
        return lower.fail(Diagnostic::new(codes::NOT_ASSIGNABLE, message, place.span, ""));
    }
    let slot = match found.slot_of(&decl) {
        Some(Err(diagnostic)) => return lower.fail(diagnostic),
        Some(Ok(slot)) => Some(slot),
        None => None,
    };
    let scalar = matches!(decl.slots.as_slice(), [(name, _)] if name.is_empty());
    match (slot, scalar) {
        (Some((at, ty)), _) => {
            let new = new_value(lower, place, op, value, ty, span)?;
            let entry = state::entry(lower, found.state, found.key, place.span)?;
            assign_slot(lower, &entry, at, new, otherwise, span)
        }
        (None, true) => {
            let ty = decl.slots.first()?.1;
            let new = new_value(lower, place, op, value, ty, span)?;
            let entry = state::entry(lower, found.state, found.key, place.span)?;
            assign_entry(lower, &entry, vec![new], otherwise, span);
            Some(())
        }
        (None, false) if op.is_some() => {
            let message = "a record is assigned part by part here";
            lower.fail(
                Diagnostic::new(codes::BAD_OPERANDS, message, place.span, "a record")
                    .help(format!("name a part: `{}.{}`", decl.name, decl.slots.first()?.0)),
            )
        }
        (None, false) => {
            let record = state::record(lower, &decl.slots, value)?;
            let entry = state::entry(lower, found.state, found.key, place.span)?;
            let values = record.into_iter().map(|(_, id, _)| id).collect();
            assign_entry(lower, &entry, values, otherwise, span);
            Some(())
        }
    }
}

/// Whether a table may refuse an assignment.
fn refusable(model: &Model, state: StateId) -> bool {
    state::table(model, state).is_some_and(|decl| {
        decl.granularity != Granularity::Global
            && (decl.when_full == WhenFull::Refuse || decl.lives_with.is_some())
    })
}

/// Lowers `S = …`, which assigns all slots.
pub fn assign_entry<'a>(
    lower: &mut Lower<'a>,
    entry: &Entry,
    values: Vec<ValueId>,
    otherwise: Option<&'a Stmt>,
    span: Span,
) {
    let (state, key) = (entry.state, entry.key.clone());
    let ok = lower.b.emit(BOOL, |ok| Op::StateSet { ok, state, key, values });
    assigned(lower, entry, ok, otherwise, span);
}

/// Lowers `S.slot = …`, which assigns one slot. Without a default, the entry must exist.
fn assign_slot<'a>(
    lower: &mut Lower<'a>,
    entry: &Entry,
    slot: usize,
    value: ValueId,
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    state::need_entry(lower, entry, span)?;
    let (state, key) = (entry.state, entry.key.clone());
    let slot = u32::try_from(slot).unwrap_or(u32::MAX);
    let ok = lower.b.emit(BOOL, |ok| Op::StatePut { ok, state, key, slot, value });
    assigned(lower, entry, ok, otherwise, span);
    Some(())
}

fn assigned<'a>(
    lower: &mut Lower<'a>,
    entry: &Entry,
    ok: ValueId,
    otherwise: Option<&'a Stmt>,
    span: Span,
) {
    let Some(decl) = state::table(&lower.model, entry.state) else { return };
    let (name, evicts) = (decl.name.clone(), decl.when_full == WhenFull::EvictOldest);
    let known = lower.b.facts.exists(entry.state, &entry.fact);
    if evicts && !known {
        forget_relatives(lower, entry.state);
    }
    if !refusable(&lower.model, entry.state) {
        if let Some(otherwise) = otherwise {
            lower.say(never_refused(&name, otherwise.span));
        }
        lower.b.facts.learn_entry(entry.state, entry.fact.clone());
        return;
    }
    if known && otherwise.is_none() {
        return;
    }
    let (done, refused) = (lower.b.block(), lower.b.block());
    let (state, fact) = (entry.state, entry.fact.clone());
    lower.b.branch_learning(ok, done, refused, |facts, there| {
        if there {
            facts.learn_entry(state, fact.clone());
        }
    });
    lower.b.start(refused);
    match otherwise {
        Some(otherwise) => {
            lower.scoped(|this| this.statement(otherwise));
        }
        None if lower.mode == Mode::Packet => {
            ends::drop_packet(lower, &format!("{name} full"), span);
        }
        None => {}
    }
    lower.b.jump(done, Vec::new());
    lower.b.start(done);
}

/// Lowers `delete S;`.
pub fn delete(lower: &mut Lower<'_>, place: &Expr) -> Option<()> {
    let found = state::state_place(&lower.scope, place).filter(|found| found.slot.is_none());
    let Some(found) = found else {
        let message = "`delete` needs a state";
        return lower.fail(Diagnostic::new(codes::NOT_A_STATE, message, place.span, ""));
    };
    if matches!(state::table(&lower.model, found.state)?.granularity, Granularity::Global) {
        let message = "a global state has one entry, which stays";
        return lower.fail(Diagnostic::new(codes::NOT_A_STATE, message, place.span, ""));
    }
    let Entry { state, key, .. } = state::entry(lower, found.state, found.key, place.span)?;
    lower.b.op(Op::StateDelete { state, key });
    forget_relatives(lower, state);
    Some(())
}

/// Forgets entries of a table and of the tables that live with it, because they may have ended.
fn forget_relatives(lower: &mut Lower<'_>, state: StateId) {
    let root = |at: StateId| lower.roots.get(at.0 as usize).copied().unwrap_or(at);
    let mine = root(state);
    lower.b.facts.forget_entries(|at| root(at) == mine);
}

fn read_only_help(name: &str) -> Option<String> {
    let text = match name {
        "ip.checksum" | "l4.checksum" => "checksums follow by themselves",
        "inet.src" => "assign `ip.src` or `ip6.src`",
        "inet.dst" => "assign `ip.dst` or `ip6.dst`",
        "inet.sport" => "assign `l4.sport` or `icmp.id`",
        "inet.dport" => "assign `l4.dport` or `icmp.id`",
        _ => return None,
    };
    Some(text.into())
}

fn never_refused(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        codes::UNREACHABLE_STATEMENT,
        format!("assigning `{name}` is never refused"),
        span,
        "this `else` is never reached",
    )
    .help("leave it out")
}
