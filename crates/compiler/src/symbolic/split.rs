//! Splits a path where a condition or the presence of a header is not known.

use super::build::{Edge, Path, Slot, nowhere};
use super::draft::Draft;
use super::values::Def;
use super::write::freshen;
use braid_ir::model::{Kind, Op, Ty, ValueId};
use braid_ir::residual::{End, What};
use braid_packet::Header;

/// Splits a path by the presence of a header: (present, absent).
pub(super) fn resolve(draft: &mut Draft, mut path: Path, header: Header) -> (Path, Path) {
    freshen(draft, &mut path);
    let bool = Ty::of(Kind::Bool);
    let out = draft.values.fresh(bool, Def::Step);
    draft.step(path.at, What::Op(Op::Has { out, header }));
    let (mut yes, mut no) = split(draft, path, out);
    yes.state.headers.set(header, true);
    no.state.headers.set(header, false);
    (yes, no)
}

/// Splits a path by the outcome of a condition: (holds, does not hold).
pub(super) fn split(draft: &mut Draft, path: Path, cond: ValueId) -> (Path, Path) {
    draft.blocks.all[path.at].end = End::Branch { cond, yes: nowhere(), no: nowhere() };
    let (mut yes, mut no) = (path.state.clone(), path.state);
    yes.facts.decide(&draft.values, cond, true);
    no.facts.decide(&draft.values, cond, false);
    let edge = |slot, state| Edge { from: path.at, slot, state };
    let yes = edge(Slot::Yes, yes);
    let no = edge(Slot::No, no);
    (draft.blocks.open(yes), draft.blocks.open(no))
}
