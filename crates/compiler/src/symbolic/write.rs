//! Brings the packet's bytes up to date with the values of its fields.

use super::build::Path;
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
pub(super) fn settle(draft: &mut Draft, path: &mut Path) {
    if path.state.waiting.is_empty() {
        return;
    }
    let Waiting { popped, pushed } = std::mem::take(&mut path.state.waiting);
    if let Some(popped) = popped {
        change_tags(draft, path, popped.site, Op::PopVlan);
    }
    let count = pushed.len();
    for (number, pushed) in pushed.into_iter().enumerate() {
        let field = if number + 1 == count { Field::VlanId } else { Field::Vlan2Id };
        if let Some(Cell::Value(id, dirty)) = path.state.cells.get_mut(&field) {
            *dirty = false;
            let id = *id;
            change_tags(draft, path, pushed.site, Op::PushVlan { id });
        }
    }
}

/// Adds a tag to the packet's bytes or removes one.
pub(super) fn change_tags(draft: &mut Draft, path: &mut Path, site: Site, op: Op) {
    path.state.lengthen(if op == Op::PopVlan { -LEN } else { LEN });
    (path.state.moved, path.state.stale) = (true, true);
    path.state.written.extend(TAGS);
    draft.blocks.all[path.at].steps.push(Step { site, what: What::Op(op), fault: None });
}

/// Writes all assigned fields to the packet.
pub(super) fn flush(draft: &mut Draft, path: &mut Path) {
    if path.state.waiting.is_empty() {
        write(draft, path, |_| true);
        return;
    }
    // Waiting tag changes do not move other fields in the actual bytes.
    write(draft, path, |field| !is_tag(field));
    settle(draft, path);
    write(draft, path, is_tag);
}

/// Writes the assigned fields that `wanted` selects.
fn write(draft: &mut Draft, path: &mut Path, wanted: impl Fn(Field) -> bool) {
    let cells = path.state.cells.iter();
    let mut dirty = cells.filter(|(_, cell)| matches!(cell, Cell::Value(_, true)));
    if !dirty.any(|(field, _)| wanted(*field)) {
        return;
    }
    if path.state.moved {
        draft.step(path.at, What::Parse);
        path.state.moved = false;
        // `stale` keeps its value, because the presence of headers is right only after every field
        // is written.
    }
    let forget = draft.has_mutant(SynthMutant::ForgottenCanonical);
    let mut writes = Vec::new();
    for (field, cell) in path.state.cells.iter_mut() {
        let Cell::Value(value, dirty @ true) = cell else { continue };
        if !wanted(*field) {
            continue;
        }
        *dirty = false;
        let same = *draft.values.def(*value) == Def::Pure(Pure::Init(*field))
            && !path.state.written.contains(field);
        let covered = checksums(*field) != 0 && !forget;
        if covered || !same {
            writes.push((*field, *value));
        }
    }
    if !writes.is_empty() {
        path.state.written.extend(writes.iter().map(|(field, _)| *field));
        draft.step(path.at, What::Write(writes));
    }
}

/// Writes all assigned fields, and parses the packet if its headers or their places may have
/// changed.
pub(super) fn freshen(draft: &mut Draft, path: &mut Path) {
    flush(draft, path);
    if path.state.stale || path.state.moved {
        draft.step(path.at, What::Parse);
        (path.state.stale, path.state.moved) = (false, false);
    }
}

/// Prepares the packet for an operation that reads the payload.
pub(super) fn freshen_payload(draft: &mut Draft, path: &mut Path) {
    let quoted = quoted_fields()
        .any(|field| matches!(path.state.cells.get(&field), Some(Cell::Value(_, true))));
    // Without a recognised transport header, the bytes of a malformed one belong to the payload.
    // Its checksum also depends on the addresses.
    let sums = path.state.checksums() & TRANSPORTS != 0
        && !transports().any(|header| path.state.headers.has(header) == Ok(true));
    if quoted || sums || path.state.stale || path.state.moved {
        freshen(draft, path);
    }
}

/// Ends the program for a packet that continues elsewhere. First brings its bytes up to date. A
/// packet that goes to another point is parsed there.
pub(super) fn leave(draft: &mut Draft, path: &mut Path, fate: Fate) {
    match fate {
        Fate::Leave { .. } | Fate::Go(_) => flush(draft, path),
        _ => freshen(draft, path),
    }
    draft.entering.asked |= path.state.headers.asked;
    draft.blocks.exit(path, fate);
}
