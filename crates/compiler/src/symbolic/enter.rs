//! The entry of paths into a function. Each path must know the headers that the function consults.

use super::build::{Edge, Path};
use super::cells::{Cell, place};
use super::draft::Draft;
use super::fields::load_cell;
use super::headers::{Headers, all};
use super::reads::entry_fields;
use super::split::resolve;
use super::visit::Visit;
use super::write::flush;
use braid_ir::residual::{Counter, What};
use braid_packet::{Field, Header};
use std::collections::BTreeSet;

/// Splits a path until it is known whether these headers are present, and where these fields are.
pub(super) fn resolve_all(
    draft: &mut Draft,
    path: Path,
    wanted: u128,
    fields: &BTreeSet<Field>,
) -> Vec<Path> {
    let mut known = Vec::new();
    let mut open = vec![path];
    while let Some(path) = open.pop() {
        match missing(path.state.headers, wanted, fields) {
            None => known.push(path),
            Some(header) => {
                let (yes, no) = resolve(draft, path, header);
                open.extend([no, yes]);
            }
        }
    }
    known
}

/// The next header whose presence must be known. `None` if all are known.
pub(super) fn missing(
    mut headers: Headers,
    wanted: u128,
    fields: &BTreeSet<Field>,
) -> Option<Header> {
    let unknown = headers.open() & wanted;
    all().find(|header| unknown & header.bit() != 0).or_else(|| {
        fields.iter().find_map(|field| match headers.has(field.info().header) {
            Ok(true) => place(*field, &mut headers).err(),
            Ok(false) => None,
            Err(header) => Some(header),
        })
    })
}

/// Drops the differences between paths in headers that no later function reads. Assigned fields of
/// these headers are written first, because the paths are about to join others, whose packets may
/// lack the headers.
pub(super) fn forget_unwanted(draft: &mut Draft, edges: &mut Vec<Edge>, wanted: u128) {
    let Some(first) = edges.first() else { return };
    let (present, open, together) = first.state.headers.known();
    let differ = edges.iter().fold(0, |bits, edge| {
        let known = edge.state.headers.known();
        bits | (known.0 ^ present) | (known.1 ^ open) | (known.2 ^ together)
    });
    let unwanted = differ & !wanted;
    if unwanted == 0 {
        return;
    }
    for mut edge in std::mem::take(edges) {
        let is_assigned = |(field, cell): (&Field, &Cell)| {
            matches!(cell, Cell::Value(_, true)) && field.info().header.bit() & unwanted != 0
        };
        if edge.state.cells.iter().any(is_assigned) {
            let mut path = draft.blocks.open(edge);
            flush(draft, &mut path);
            edge = path.edge();
        }
        edge.state.headers.forget(unwanted);
        edges.push(edge);
    }
}

/// Makes a path enter the function: counts the packet, and keeps the entry values of the fields
/// that the function reads as they were on entry.
pub(super) fn enter(draft: &mut Draft, visit: &mut Visit<'_>, mut edge: Edge) -> Edge {
    let node = visit.node();
    let state = &mut edge.state;
    visit.entry.asked |= state.headers.asked;
    state.enter_function();
    if !visit.point.held {
        let counter = if visit.point.backward { Counter::Backward } else { Counter::Forward };
        state.count(node, counter);
    }
    let ties = visit.model.state.iter().any(|decl| decl.lives_with.is_some());
    if ties {
        let mut path = draft.blocks.open(edge);
        draft.step(path.at, What::Enter);
        path.state.forget_state(node);
        edge = path.edge();
    }
    // These fields must keep the values that they had on entry.
    for field in entry_fields(visit.model) {
        if visit.entry.has(field.info().header) != Ok(true) {
            continue;
        }
        let Ok(place) = place(field, &mut visit.entry) else { continue };
        for cell in place.cells() {
            let value = match draft.bound(&edge.state, cell) {
                Some(value) => value,
                None => {
                    let mut path = draft.blocks.open(edge);
                    let value = load_cell(draft, &mut path, cell);
                    edge = path.edge();
                    value
                }
            };
            edge.state.entry.insert(cell, value);
        }
    }
    edge
}
