//! Lowers token buckets: `spend(BUCKET, SIZE, RATE, BURST) else STMT;`.
//!
//! A bucket holds its credit in bits × nanoseconds a second, and the time at which it had this
//! credit. So no fraction of a byte is lost, whatever the rate and the times between packets.

use braid_ir::model::{BinOp, CmpOp, Granularity, Op, Ty, ValueId};
use braid_packet::Field;

use super::arith::BIT_NANOS;
use super::lower::Lower;
use super::scope::Scope;
use super::state::Entry;
use super::types::{BITRATE, BOOL, SIZE, U128};
use super::{assign, path, state, types};
use crate::ast::{Arg, Expr, Span, Stmt};
use crate::diag::{Diagnostic, codes};

/// The name of the call.
pub const SPEND: &str = "spend";

/// Whether a call is one of `spend`, and not of an action of the program with this name.
pub fn is_spend(scope: &Scope<'_>, name: &str) -> bool {
    name == SPEND && scope.binding(name).is_none()
}

/// Lowers `spend(BUCKET, SIZE, RATE, BURST) else STMT;`: takes the size from the bucket, which
/// fills with the rate up to the burst. If the bucket has less, nothing is taken, and the statement
/// runs. A bucket without an entry is full.
pub fn spend<'a>(
    lower: &mut Lower<'a>,
    args: &[Arg],
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    let [bucket, size, rate, burst] = args else {
        let message = "`spend` takes a bucket, a size, a rate and a burst";
        return lower.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, ""));
    };
    let Some(otherwise) = otherwise else {
        let message = "the bucket may have too little credit";
        let wrong = Diagnostic::new(codes::NEEDS_ELSE, message, span, "and then what?");
        return lower.fail(wrong.help("write `spend(…) else drop \"over rate\";`"));
    };
    let entry = entry(lower, &bucket.value)?;
    let (size, rate) = (lower.typed(&size.value, SIZE), lower.typed(&rate.value, BITRATE));
    let burst = lower.typed(&burst.value, SIZE);
    let (size, rate, burst) = (size?, rate?, burst?);
    let (now, time) = path::read_field(lower, Field::PktTime, span)?;
    let (cost, full) = (parts(lower, size, SIZE, BIT_NANOS), parts(lower, burst, SIZE, BIT_NANOS));
    let credit = credit(lower, &entry, (now, time), (rate, full))?;
    let ok = lower.b.emit(BOOL, |out| Op::Cmp { out, op: CmpOp::Ge, a: credit, b: cost });
    let rest = lower.b.bin(U128, BinOp::SubSat, credit, cost);
    let kept = lower.b.emit(U128, |out| Op::Select { out, cond: ok, a: rest, b: credit });
    assign::assign_entry(lower, &entry, vec![kept, now], None, span);
    lower.or_else(ok, otherwise);
    Some(())
}

/// The entry of a bucket.
fn entry(lower: &mut Lower<'_>, place: &Expr) -> Option<Entry> {
    let found = state::state_place(&lower.scope, place).filter(|found| found.slot.is_none());
    let is_bucket = |found: &state::StatePlace<'_>| {
        let decl = state::table(&lower.model, found.state);
        decl.is_some_and(|decl| decl.slots == types::bucket())
    };
    let Some(found) = found.filter(is_bucket) else {
        let message = "`spend` needs a state of the type `bucket`";
        let wrong = Diagnostic::new(codes::NOT_A_STATE, message, place.span, "no bucket");
        return lower.fail(wrong.help("declare it, such as `state credit: bucket per ip.src;`"));
    };
    let is_global = state::table(&lower.model, found.state)
        .is_some_and(|decl| matches!(decl.granularity, Granularity::Global));
    if is_global {
        let message = "a global state begins empty, and a bucket begins full";
        let wrong = Diagnostic::new(codes::NOT_A_STATE, message, place.span, "a global bucket");
        return lower.fail(wrong.help("write `per (u8)`, and `[0]` behind the name"));
    }
    state::entry(lower, found.state, found.key, place.span)
}

/// A value times a number, in 128 bits.
fn parts(lower: &mut Lower<'_>, value: ValueId, ty: Ty, each: u128) -> ValueId {
    let (wide, each) = (lower.b.widen(value, ty, U128), lower.b.constant(U128, each));
    lower.b.bin(U128, BinOp::MulSat, wide, each)
}

/// The credit that a bucket has now.
fn credit(
    lower: &mut Lower<'_>,
    entry: &Entry,
    (now, time): (ValueId, Ty),
    (rate, full): (ValueId, ValueId),
) -> Option<ValueId> {
    let (known, new) = (lower.b.block(), lower.b.block());
    let (join, credit) = lower.b.block_with_one(U128);
    let (state, key, fact) = (entry.state, entry.key.clone(), entry.fact.clone());
    let there = lower.b.emit(BOOL, |out| Op::StateExists { out, state, key });
    lower.b.branch_learning(there, known, new, |facts, there| {
        if there {
            facts.learn_entry(state, fact.clone());
        }
    });
    lower.b.start(known);
    let (old, since) = (lower.b.value(U128), lower.b.value(time));
    let key = entry.key.clone();
    lower.b.op(Op::StateGet { outs: vec![old, since], state, key });
    let (now, since) = (lower.b.widen(now, time, U128), lower.b.widen(since, time, U128));
    let gone = lower.b.bin(U128, BinOp::SubSat, now, since);
    let rate = lower.b.widen(rate, BITRATE, U128);
    let gained = lower.b.bin(U128, BinOp::MulSat, rate, gone);
    let sum = lower.b.bin(U128, BinOp::AddSat, old, gained);
    let filled = lower.b.bin(U128, BinOp::Min, sum, full);
    lower.b.jump(join, vec![filled]);
    lower.b.start(new);
    lower.b.jump(join, vec![full]);
    lower.b.start(join);
    Some(credit)
}
