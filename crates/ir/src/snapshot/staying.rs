//! The functions whose entries and pools need not become data when a changed chain takes over,
//! because the tables stay the same.

use super::schema::{is_held, steering};
use crate::chain::{Chain, Node};
use crate::model::{Model, StateDecl};
use crate::text;

/// The functions of a chain whose tables and pools another chain can take over as they are: pairs
/// of a function of `next` and the function of `old` with the same name. Values of parameters may
/// differ. All tables of these functions move ([`super::Plan`]).
#[must_use]
pub fn staying(old: &Chain, next: &Chain) -> Vec<(u16, u16)> {
    if old.workers.max(1) != next.workers.max(1) || steering(old) != steering(next) {
        return Vec::new();
    }
    let pairs = (0..).zip(&next.nodes).filter_map(|(number, node)| {
        let from = old.nodes.iter().position(|one| one.name == node.name)?;
        let is_same = old.nodes.get(from).is_some_and(|old| stays(old, node));
        is_same.then_some((number, u16::try_from(from).ok()?))
    });
    pairs.collect()
}

fn stays(old: &Node, next: &Node) -> bool {
    let (old, next) = (&*old.model, &*next.model);
    let tables = old.state.iter().map(|decl| table(old, decl));
    let held = |model: &Model| -> Vec<_> {
        let held = model.params.iter().filter(|decl| is_held(&decl.ty));
        held.map(|decl| (decl.name.clone(), decl.ty.clone())).collect()
    };
    // The memory of native functions is data in any case. So is what TCP stacks hold, but functions
    // with a stack may have tables besides.
    old.native.is_none()
        && next.native.is_none()
        && old.name == next.name
        && tables.eq(next.state.iter().map(|decl| table(next, decl)))
        && held(old) == held(next)
}

/// What a table's memory depends on, besides the values of parameters.
fn table(model: &Model, decl: &StateDecl) -> impl PartialEq {
    let is_timed = decl.idle.is_some() || decl.hard.is_some();
    let schema = text::state_schema(model, decl);
    (decl.name.clone(), schema, decl.when_full, is_timed)
}
