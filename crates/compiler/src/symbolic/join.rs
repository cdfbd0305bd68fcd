//! Joins paths where they meet: one block for several edges, with parameters for the values that
//! differ.

use super::build::{Edge, Path};
use super::cells::Cell;
use super::draft::Draft;
use super::facts::Facts;
use super::mutants::SynthMutant;
use super::range::union;
use super::state::{Memo, Shared, State, common};
use super::values::{Def, Values};
use super::waiting::Outline;
use super::write::flush;
use braid_ir::model::ValueId;
use braid_ir::residual::{ListedCounter, What};
use braid_packet::Field;
use std::collections::{BTreeMap, BTreeSet};

/// Values that differ between edges, and the parameters that stand for them.
#[derive(Default)]
struct Phis {
    columns: BTreeMap<Vec<ValueId>, ValueId>,
    order: Vec<(Vec<ValueId>, ValueId)>,
}

impl Phis {
    /// A value that stands for one value of each edge. It is a new parameter if the values differ.
    fn value(&mut self, values: &mut Values, column: Vec<ValueId>) -> ValueId {
        if column.iter().all(|value| *value == column[0]) {
            return column[0];
        }
        if let Some(found) = self.columns.get(&column) {
            return *found;
        }
        let ty = values.ty(column[0]);
        let param = values.fresh(ty, Def::Param);
        self.columns.insert(column.clone(), param);
        self.order.push((column, param));
        param
    }
}

/// The largest number of groups of paths that are kept apart at one place.
const MOST_GROUPS: usize = 8;

/// The properties in which paths must agree to be joined: headers, checksums that pending writes
/// update, waiting tag changes, and whether the function has sent other packets.
type Kind = ((u128, u128, u128), u32, Outline, bool);

/// Groups the edges to one place. The edges of one group can be joined.
pub(super) fn groups(draft: &mut Draft, edges: Vec<Edge>) -> Vec<Vec<Edge>> {
    let mut groups: BTreeMap<Kind, Vec<Edge>> = BTreeMap::new();
    for mut edge in edges {
        let mut kind = of(&edge.state);
        let open = kind.1 != 0 || !edge.state.waiting.is_empty();
        if !groups.contains_key(&kind) && groups.len() >= MOST_GROUPS && open {
            // There are too many groups. After writing its assigned fields, the path may fit into
            // an existing one.
            let mut path = draft.blocks.open(edge);
            flush(draft, &mut path);
            edge = path.edge();
            kind = of(&edge.state);
        }
        groups.entry(kind).or_default().push(edge);
    }
    groups.into_values().collect()
}

/// Joins the edges of one group. `live` has the values of the model's program that later blocks
/// use.
pub(super) fn join(
    draft: &mut Draft,
    mut edges: Vec<Edge>,
    live: &BTreeSet<ValueId>,
) -> Option<Path> {
    if edges.len() <= 1 {
        let mut edge = edges.pop()?;
        edge.state.keep_values(live);
        return Some(draft.blocks.open(edge));
    }
    flush_clashes(draft, &mut edges);
    let pending = settle_counts(draft, &mut edges);
    let mut phis = Phis::default();
    let states: Vec<&State> = edges.iter().map(|edge| &edge.state).collect();
    let mut state = states[0].clone();
    state.pending = pending;
    if !states[1..].iter().all(|other| other.facts.is(&state.facts)) {
        let all = states.iter().map(|state| &*state.facts);
        state.facts = Facts::meet(&draft.values, all).into();
    }
    for other in &states[1..] {
        state.sent |= other.sent;
        state.ends |= other.ends;
        state.stale |= other.stale;
        state.moved |= other.moved;
        state.written.extend(&other.written);
        state.visits = state.visits.max(other.visits);
        keep_common(&mut state.tags, &other.tags);
        keep_common(&mut state.last, &other.last);
    }
    state.env = join_env(&mut draft.values, &states, live, &mut phis).into();
    state.entry = join_entry(&mut draft.values, &states, &mut phis).into();
    state.cells = join_cells(draft, &states, &mut phis).into();
    if !states[1..].iter().all(|other| other.memo.is(&state.memo)) {
        state.memo = join_memo(&mut draft.values, &states, &mut phis).into();
    }
    for (column, param) in &phis.order {
        let sets = states.iter().zip(column);
        let sets = sets.map(|(state, value)| state.facts.range(&draft.values, *value));
        if let Some(set) = sets.reduce(|a, b| union(&a, &b)) {
            state.facts.note(&draft.values, *param, set);
        }
    }
    let params = phis.order.iter().map(|(_, param)| *param).collect();
    let at = draft.blocks.add(params);
    for (number, edge) in edges.iter().enumerate() {
        let args = phis.order.iter().map(|(column, _)| column[number]).collect();
        draft.blocks.lead(edge, at, args);
    }
    Some(Path { at, state })
}

/// Writes all assigned fields of all paths, if a field is unwritten on one path and must be loaded
/// from the packet's bytes on another.
fn flush_clashes(draft: &mut Draft, edges: &mut Vec<Edge>) {
    let of = |wanted: fn(&Cell) -> bool| -> BTreeSet<Field> {
        let cells = edges.iter().flat_map(|edge| edge.state.cells.iter());
        cells.filter(|(_, cell)| wanted(cell)).map(|(field, _)| *field).collect()
    };
    let mut reload = of(|cell| *cell == Cell::Reload);
    let dirty = of(|cell| matches!(cell, Cell::Value(_, true)));
    reload.extend(dirty.iter().filter(|field| !draft.entering.has_field(**field)));
    if reload.is_disjoint(&dirty) {
        return;
    }
    for edge in std::mem::take(edges) {
        let mut path = draft.blocks.open(edge);
        flush(draft, &mut path);
        edges.push(path.edge());
    }
}

/// Keeps the counts pending that all paths share, and adds the other counts to counters here.
fn settle_counts(draft: &mut Draft, edges: &mut Vec<Edge>) -> Vec<ListedCounter> {
    let lists: Vec<&[_]> = edges.iter().map(|edge| &*edge.state.pending).collect();
    let (shared, rests) = common(&lists);
    let all = std::mem::take(edges);
    for (edge, mut rest) in all.into_iter().zip(rests) {
        if rest.is_empty() {
            edges.push(edge);
            continue;
        }
        rest.sort_unstable();
        if draft.has_mutant(SynthMutant::CountDropped) {
            edges.push(edge);
            continue;
        }
        let what = What::Count(draft.blocks.counters(rest));
        let path = draft.blocks.open(edge);
        draft.step(path.at, what);
        edges.push(path.edge());
    }
    shared
}

fn join_env(
    values: &mut Values,
    states: &[&State],
    live: &BTreeSet<ValueId>,
    phis: &mut Phis,
) -> BTreeMap<ValueId, ValueId> {
    let mut env = BTreeMap::new();
    for value in live {
        let column = states.iter().map(|state| state.env.get(value).copied());
        if let Some(column) = column.collect::<Option<Vec<_>>>() {
            env.insert(*value, phis.value(values, column));
        }
    }
    env
}

fn join_entry(values: &mut Values, states: &[&State], phis: &mut Phis) -> BTreeMap<Field, ValueId> {
    let mut entry = BTreeMap::new();
    for field in states[0].entry.keys() {
        let column = states.iter().map(|state| state.entry.get(field).copied());
        if let Some(column) = column.collect::<Option<Vec<_>>>() {
            entry.insert(*field, phis.value(values, column));
        }
    }
    entry
}

fn join_cells(draft: &mut Draft, states: &[&State], phis: &mut Phis) -> BTreeMap<Field, Cell> {
    let fields: BTreeSet<Field> =
        states.iter().flat_map(|state| state.cells.keys().copied()).collect();
    let mut cells = BTreeMap::new();
    for field in fields {
        let mut column = Vec::with_capacity(states.len());
        let mut dirty = false;
        for state in states {
            match state.cells.get(&field) {
                Some(Cell::Value(value, unwritten)) => {
                    column.push(*value);
                    dirty |= unwritten;
                }
                None if draft.entering.has_field(field) => column.push(draft.values.init(field)),
                Some(Cell::Reload) | None => {}
            }
        }
        if draft.has_mutant(SynthMutant::WrongMerge)
            && column.iter().all(|v| draft.values.is_of_packet(*v))
        {
            let last = column.last().copied();
            column.fill(last.unwrap_or(ValueId(0)));
        }
        let cell = match column.len() == states.len() {
            true => Cell::Value(phis.value(&mut draft.values, column), dirty),
            false => Cell::Reload,
        };
        cells.insert(field, cell);
    }
    cells
}

/// Keeps the results of operations that all paths have, even if they differ in value.
fn join_memo(
    values: &mut Values,
    states: &[&State],
    phis: &mut Phis,
) -> BTreeMap<Memo, Vec<ValueId>> {
    let mut joined = BTreeMap::new();
    for (memo, outs) in states[0].memo.iter() {
        let all: Option<Vec<_>> = states.iter().map(|state| state.memo.get(memo)).collect();
        let Some(all) = all else { continue };
        let columns = (0..outs.len()).map(|out| all.iter().map(|outs| outs[out]).collect());
        let outs = columns.map(|column| phis.value(values, column)).collect();
        joined.insert(memo.clone(), outs);
    }
    joined
}

/// Keeps the entries that both maps share.
fn keep_common<K: Ord + Clone, V: PartialEq + Clone>(
    all: &mut Shared<BTreeMap<K, V>>,
    other: &Shared<BTreeMap<K, V>>,
) {
    if !all.is(other) {
        all.retain(|key, value| other.get(key) == Some(value));
    }
}

fn of(state: &State) -> Kind {
    (state.headers.known(), state.checksums(), state.waiting.outline(), state.sent)
}
