//! Keys of state tables as values, for tables per flow, per connection or per field.

use super::build::Path;
use super::draft::Draft;
use super::fields::load_entry;
use super::mutants::SynthMutant;
use super::reads::key_fields;
use super::values::{Def, Pure, Values};
use super::visit::Visit;
use braid_ir::model::{BinOp, CmpOp, Granularity, Key, Kind, StateId, Ty, ValueId};
use braid_packet::FlowKey;

/// The parts of a key. `None` if the packet lacks a field of the key.
pub(super) fn key_parts(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    state: StateId,
    key: &Key,
) -> Option<Vec<ValueId>> {
    if let Key::Explicit(values) = key {
        return Some(values.iter().map(|value| path.value(*value)).collect());
    }
    let model = visit.model;
    let granularity = &model.state[state.index()].granularity;
    let fields = key_fields(granularity, key);
    let mut parts = Vec::with_capacity(fields.len());
    for field in fields {
        parts.push(load_entry(draft, visit, path, *field)?);
    }
    if matches!(granularity, Granularity::Flow | Granularity::Biflow) {
        parts = flow(draft, path, parts, key, *granularity == Granularity::Biflow);
    }
    Some(parts)
}

/// A flow's key, made from version, source, destination, protocol and ports.
fn flow(
    draft: &mut Draft,
    path: &Path,
    mut parts: Vec<ValueId>,
    key: &Key,
    both: bool,
) -> Vec<ValueId> {
    if draft.has_mutant(SynthMutant::KeyPartsSwapped) {
        parts.swap(4, 5);
    }
    if let Key::Reversed(_) = key {
        parts.swap(1, 2);
        parts.swap(4, 5);
    }
    if both {
        let (mut src, mut dst) = (narrow(&draft.values, parts[1]), narrow(&draft.values, parts[2]));
        if draft.values.ty(src).width != draft.values.ty(dst).width {
            (src, dst) = (parts[1], parts[2]);
        }
        let bool = Ty::of(Kind::Bool);
        let less = draft.values.cmp(CmpOp::Lt, src, dst);
        let equal = draft.values.cmp(CmpOp::Eq, src, dst);
        let ports = draft.values.cmp(CmpOp::Le, parts[4], parts[5]);
        let tie = draft.values.bin(BinOp::And, bool, equal, ports);
        let ordered = draft.values.bin(BinOp::Or, bool, less, tie);
        let ordered = match path.state.facts.only(&draft.values, ordered) {
            Some(word) => draft.values.truth(word != 0),
            None => ordered,
        };
        for (a, b) in [(1, 2), (4, 5)] {
            let (x, y) = (parts[a], parts[b]);
            parts[a] = draft.values.select(ordered, x, y);
            parts[b] = draft.values.select(ordered, y, x);
        }
    }
    let parts = parts.into_iter().zip(FlowKey::WIDTHS);
    parts.map(|(part, width)| draft.values.resize(Ty::uint(width), part)).collect()
}

/// The value before widening.
fn narrow(values: &Values, value: ValueId) -> ValueId {
    match values.def(value) {
        Def::Pure(Pure::Resize(inner)) if values.ty(*inner).width < values.ty(value).width => {
            *inner
        }
        _ => value,
    }
}
