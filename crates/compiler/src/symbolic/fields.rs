//! Fields of the packet as values: reads and assignments.

use super::announce::decide_headers;
use super::build::Path;
use super::cells::{Cell, Place, place};
use super::draft::Draft;
use super::mutants::SynthMutant;
use super::values::{Def, field_ty};
use super::visit::Visit;
use super::waiting::is_tag;
use super::write::{flush, freshen};
use braid_ir::model::{Op, ValueId};
use braid_ir::residual::{RuleFields, What};
use braid_ir::rules::RuleParts;
use braid_packet::field::Where;
use braid_packet::{Field, Header};

/// A field's current value. `None` if its header is absent. The error is a header whose presence
/// must be known first.
pub(super) fn load(
    draft: &mut Draft,
    visit: &Visit<'_>,
    path: &mut Path,
    field: Field,
) -> Result<Option<ValueId>, Header> {
    let ty = field_ty(field);
    match field {
        Field::PktBackward => return Ok(Some(draft.values.truth(visit.point.backward))),
        Field::PktHeld => return Ok(Some(draft.values.truth(visit.point.held))),
        _ => {}
    }
    if !path.state.headers.has(field.info().header)? {
        return Ok(None);
    }
    if field == Field::PktPayloadLen {
        for header in Header::behind_ports() {
            path.state.headers.has(header)?;
        }
    }
    Ok(Some(match place(field, &mut path.state.headers)? {
        Place::Const(word) => draft.values.constant(ty, word),
        Place::Cell(cell, shift) => {
            let value = load_cell(draft, path, cell);
            draft.values.extract(ty, value, shift)
        }
        Place::Halves(halves) => {
            let [upper, lower] = halves.map(|half| load_cell(draft, path, half));
            draft.values.join(ty, upper, lower)
        }
    }))
}

/// A field's value when the packet entered the function. `None` if its header was absent.
pub(super) fn load_entry(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    field: Field,
) -> Option<ValueId> {
    let ty = field_ty(field);
    match field {
        Field::PktBackward => return Some(draft.values.truth(visit.point.backward)),
        Field::PktHeld => return Some(draft.values.truth(visit.point.held)),
        _ => {}
    }
    if visit.entry.has(field.info().header) != Ok(true) {
        return None;
    }
    if draft.has_mutant(SynthMutant::EntryIsCurrent) {
        return load(draft, visit, path, field).ok().flatten();
    }
    match place(field, &mut visit.entry) {
        Ok(Place::Const(word)) => Some(draft.values.constant(ty, word)),
        Ok(Place::Cell(cell, shift)) => {
            let value = *path.state.entry.get(&cell)?;
            Some(draft.values.extract(ty, value, shift))
        }
        Ok(Place::Halves([upper, lower])) => {
            let entry = &path.state.entry;
            let (upper, lower) = (*entry.get(&upper)?, *entry.get(&lower)?);
            Some(draft.values.join(ty, upper, lower))
        }
        Err(_) => None,
    }
}

/// A cell's current value.
pub(super) fn load_cell(draft: &mut Draft, path: &mut Path, cell: Field) -> ValueId {
    if let Some(value) = draft.bound(&path.state, cell) {
        return value;
    }
    let checksum = matches!(cell, Field::IpChecksum | Field::L4Checksum);
    let waits = is_tag(cell) && !path.state.waiting.is_empty();
    if checksum || waits || path.state.stale || path.state.moved {
        freshen(draft, path);
    }
    let out = draft.values.fresh(field_ty(cell), Def::Step);
    draft.step(path.at, What::Op(Op::Load { out, field: cell }));
    path.state.cells.insert(cell, Cell::Value(out, false));
    out
}

/// The fields that rules read.
pub(super) fn rule_fields(
    draft: &mut Draft,
    visit: &Visit<'_>,
    path: &mut Path,
) -> Result<Option<RuleFields>, Header> {
    if !path.state.headers.has(Header::Inet)? {
        return Ok(None);
    }
    let version4 = path.state.headers.has(Header::Ip4)?;
    // Addresses have the width of their version.
    let of_version = |field: Field| match field.info().place {
        Where::Same(Header::Ip4, field4, field6) => {
            if version4 {
                field4
            } else {
                field6
            }
        }
        _ => field,
    };
    let parts = RuleParts::read(|field| load(draft, visit, path, of_version(field)))?;
    let Some(RuleParts { addrs: (src, dst), proto, ports, tcp_flags, icmp }) = parts else {
        return Ok(None);
    };
    let version = if version4 { 4 } else { 6 };
    Ok(Some(RuleFields { version, src, dst, proto, ports, tcp_flags, icmp }))
}

/// Assigns a field. Returns false if its header is absent.
pub(super) fn store(
    draft: &mut Draft,
    path: &mut Path,
    field: Field,
    value: ValueId,
) -> Result<bool, Header> {
    if !path.state.headers.has(field.info().header)? {
        return Ok(false);
    }
    match place(field, &mut path.state.headers)? {
        Place::Const(_) => {}
        Place::Cell(cell, shift) => assign(draft, path, cell, (value, shift)),
        Place::Halves(halves) => {
            for (half, shift) in halves.into_iter().zip([16, 0]) {
                let part = draft.values.extract(field_ty(half), value, shift);
                assign(draft, path, half, (part, 0));
            }
        }
    }
    Ok(true)
}

/// Assigns bits of a cell, from bit `shift` on.
fn assign(draft: &mut Draft, path: &mut Path, cell: Field, (value, shift): (ValueId, u16)) {
    let decided = cell.decided_bits();
    if decided != 0 {
        // Fields that the assignment may remove or divide are written before.
        let behind = |field: &Field| match field.info().place {
            Where::Halves(header, ..) => decided & header.bit() != 0,
            _ => decided & field.info().header.bit() != 0,
        };
        let dirty = path
            .state
            .cells
            .iter()
            .any(|(field, cell)| matches!(cell, Cell::Value(_, true)) && behind(field));
        if dirty {
            flush(draft, path);
        }
    }
    let new = if draft.values.ty(value).width == cell.info().width && shift == 0 {
        value
    } else {
        let old = load_cell(draft, path, cell);
        draft.values.insert(old, value, shift)
    };
    if draft.has_mutant(SynthMutant::FactKept)
        && let Some(old) = draft.bound(&path.state, cell)
    {
        let kept = path.state.facts.range(&draft.values, old);
        path.state.facts.note(&draft.values, new, kept);
    }
    if decided != 0 {
        let range = path.state.facts.range(&draft.values, new);
        decide_headers(&mut path.state, cell, &range);
    }
    let before = path.state.cells.insert(cell, Cell::Value(new, true));
    draft.stats.overwritten += usize::from(matches!(before, Some(Cell::Value(_, true))));
    path.state.reload([Field::IpChecksum, Field::L4Checksum]);
}
