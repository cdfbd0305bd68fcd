//! Brings the packet's bytes up to date with the values of its fields.

use super::build::Way;
use super::cells::{Cell, TRANSPORTS, checksums};
use super::draft::Draft;
use super::headers::{quoted_fields, transports};
use super::mutants::SynthMutant;
use super::values::{Def, Pure};
use super::waiting::{LEN, TAGS, Waiting, is_tag};
use braid_ir::model::Op;
use braid_ir::residual::{Fate, Site, Step, What};
use braid_packet::Field;

/// Makes the waiting tag changes in the packet's bytes. Assigned fields stay unwritten.
pub(super) fn settle(draft: &mut Draft, way: &mut Way) {
    if way.state.waiting.is_empty() {
        return;
    }
    let Waiting { popped, pushed } = std::mem::take(&mut way.state.waiting);
    if let Some(popped) = popped {
        change_tags(draft, way, popped.site, Op::PopVlan);
    }
    let count = pushed.len();
    for (number, pushed) in pushed.into_iter().enumerate() {
        let field = if number + 1 == count { Field::VlanId } else { Field::Vlan2Id };
        if let Some(Cell::Value(id, dirty)) = way.state.cells.get_mut(&field) {
            *dirty = false;
            let id = *id;
            change_tags(draft, way, pushed.site, Op::PushVlan { id });
        }
    }
}

/// Adds a tag to the packet's bytes or removes one.
pub(super) fn change_tags(draft: &mut Draft, way: &mut Way, site: Site, op: Op) {
    way.state.lengthen(if op == Op::PopVlan { -LEN } else { LEN });
    (way.state.moved, way.state.stale) = (true, true);
    way.state.written.extend(TAGS);
    draft.blocks.all[way.at].steps.push(Step { site, what: What::Op(op), fault: None });
}

/// Writes all assigned fields to the packet.
pub(super) fn flush(draft: &mut Draft, way: &mut Way) {
    if way.state.waiting.is_empty() {
        write(draft, way, |_| true);
        return;
    }
    // Waiting tag changes do not move other fields in the actual bytes.
    write(draft, way, |field| !is_tag(field));
    settle(draft, way);
    write(draft, way, is_tag);
}

/// Writes the assigned fields that `wanted` selects.
fn write(draft: &mut Draft, way: &mut Way, wanted: impl Fn(Field) -> bool) {
    let cells = way.state.cells.iter();
    let mut dirty = cells.filter(|(_, cell)| matches!(cell, Cell::Value(_, true)));
    if !dirty.any(|(field, _)| wanted(*field)) {
        return;
    }
    if way.state.moved {
        draft.step(way.at, What::Parse);
        way.state.moved = false;
        // `stale` keeps its value, because the presence of headers is right only after every field
        // is written.
    }
    let forget = draft.has_mutant(SynthMutant::ForgottenCanonical);
    let mut writes = Vec::new();
    for (field, cell) in way.state.cells.iter_mut() {
        let Cell::Value(value, dirty @ true) = cell else { continue };
        if !wanted(*field) {
            continue;
        }
        *dirty = false;
        let same = *draft.values.def(*value) == Def::Pure(Pure::Init(*field))
            && !way.state.written.contains(field);
        let covered = checksums(*field) != 0 && !forget;
        if covered || !same {
            writes.push((*field, *value));
        }
    }
    if !writes.is_empty() {
        way.state.written.extend(writes.iter().map(|(field, _)| *field));
        draft.step(way.at, What::Write(writes));
    }
}

/// Writes all assigned fields, and parses the packet if its headers or their places may have
/// changed.
pub(super) fn freshen(draft: &mut Draft, way: &mut Way) {
    flush(draft, way);
    if way.state.stale || way.state.moved {
        draft.step(way.at, What::Parse);
        (way.state.stale, way.state.moved) = (false, false);
    }
}

/// Prepares the packet for an operation that reads the payload.
pub(super) fn freshen_payload(draft: &mut Draft, way: &mut Way) {
    let quoted = quoted_fields()
        .any(|field| matches!(way.state.cells.get(&field), Some(Cell::Value(_, true))));
    // Without a recognised transport header, the bytes of a malformed one belong to the payload.
    // Its checksum also depends on the addresses.
    let sums = way.state.checksums() & TRANSPORTS != 0
        && !transports().any(|header| way.state.headers.has(header) == Ok(true));
    if quoted || sums || way.state.stale || way.state.moved {
        freshen(draft, way);
    }
}

/// Ends the program for a packet that continues elsewhere. First brings its bytes up to date.
pub(super) fn leave(draft: &mut Draft, way: &mut Way, fate: Fate) {
    match fate {
        Fate::Leave { .. } => flush(draft, way),
        _ => freshen(draft, way),
    }
    draft.entering.asked |= way.state.headers.asked;
    draft.blocks.exit(way, fate);
}
