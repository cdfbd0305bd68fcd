//! The program under construction. All parts of the symbolic execution add values, steps and ends
//! to it.

use super::build::{Blocks, Edge, Path, Slot};
use super::cells::Cell;
use super::headers::Entering;
use super::mutants::{self, SynthMutant};
use super::state::{Memo, State};
use super::values::{Def, Values};
use super::visit::Visit;
use braid_ir::engine::Fault;
use braid_ir::model::{Ty, ValueId};
use braid_ir::residual::{Counter, Fate, ListedCounter, Site, Step, What};
use braid_packet::{Field, Header};
use serde::Serialize;

/// The work that synthesis saved, over all paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Stats {
    /// Conditions that were already decided.
    pub decided: usize,
    /// Lookups and faulting operations whose result was already known.
    pub reused: usize,
    /// Field assignments that were overwritten before they were written to the packet.
    pub overwritten: usize,
    /// Field assignments that were never written, because the packet went no further.
    pub unwritten: usize,
    /// VLAN tags that were added and removed again, or removed and added again.
    pub cancelled: usize,
    /// The number of blocks of models that were followed. A block counts once for each path that
    /// reached it separately.
    #[serde(skip)]
    pub followed: usize,
}

/// How execution continues after an operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Flow {
    /// The execution continues with the next operation.
    Next,
    /// The path has ended.
    Ended,
    /// The operation must be executed again on two paths: with and without this header.
    Needs(Header),
    /// The operation must be executed again on two paths: this condition holds, or it does not.
    Splits(ValueId),
}

/// The program under construction.
pub(super) struct Draft {
    pub(super) values: Values,
    pub(super) blocks: Blocks,
    /// The packets that it is for.
    pub(super) entering: Entering,
    pub(super) stats: Stats,
    /// The active mutant, if any.
    bug: Option<SynthMutant>,
}

impl Draft {
    /// An empty program for packets with these headers. `site` is the place in the chain that its
    /// first values come from.
    pub(super) fn new(presence: u128, site: Site, bug: Option<SynthMutant>) -> Self {
        Self {
            values: Values::new(site),
            blocks: Blocks::default(),
            entering: Entering::new(presence),
            stats: Stats::default(),
            bug,
        }
    }

    /// Whether this mutant is active. Without the feature `mutants`, none is.
    pub(super) fn has_mutant(&self, bug: SynthMutant) -> bool {
        mutants::is(self.bug, bug)
    }

    /// Adds a step that cannot fault.
    pub(super) fn step(&mut self, at: usize, what: What) {
        let site = self.values.site;
        self.blocks.all[at].steps.push(Step { site, what, fault: None });
    }

    /// A cell's current value. `None` if it must be loaded from the packet's bytes.
    pub(super) fn bound(&mut self, state: &State, cell: Field) -> Option<ValueId> {
        match state.cells.get(&cell) {
            Some(Cell::Value(_, true))
                if self.has_mutant(SynthMutant::StaleBinding) && self.entering.has_field(cell) =>
            {
                Some(self.values.init(cell))
            }
            Some(Cell::Value(value, _)) => Some(*value),
            None if self.entering.has_field(cell) => Some(self.values.init(cell)),
            Some(Cell::Reload) | None => None,
        }
    }

    /// Adds the pending counts now.
    pub(super) fn count_now(&mut self, path: &mut Path) {
        let counters = path.state.counters();
        path.state.pending.clear();
        if !counters.is_empty() {
            let counters = self.blocks.counters(counters);
            self.step(path.at, What::Count(counters));
        }
    }

    /// Binds a value of the model. If only one value is possible, binds it to a constant.
    pub(super) fn bind(&mut self, path: &mut Path, out: ValueId, value: ValueId) {
        let value = match path.state.facts.only(&self.values, value) {
            Some(word) => {
                let ty = self.values.ty(value);
                self.values.constant(ty, word)
            }
            None => value,
        };
        path.state.env.insert(out, value);
    }

    /// Adds a step with results of these types. `faults` says whether the step may end with a
    /// fault. In handlers no step does, because a branch leads past it ([`super::faults`]).
    pub(super) fn act(
        &mut self,
        visit: &Visit<'_>,
        path: &mut Path,
        types: &[Ty],
        faults: bool,
        make: impl FnOnce(&[ValueId]) -> What,
    ) -> Vec<ValueId> {
        let outs: Vec<ValueId> = types.iter().map(|ty| self.values.fresh(*ty, Def::Step)).collect();
        let fault = (faults && visit.event.is_none()).then(|| {
            let counter = Counter::Row(visit.fault_row());
            let mut counters = path.state.counters();
            let length = path.state.waiting.length();
            counters.push(ListedCounter { node: visit.node(), counter, length });
            counters.sort_unstable();
            self.blocks.counters(counters)
        });
        let step = Step { site: self.values.site, what: make(&outs), fault };
        self.blocks.all[path.at].steps.push(step);
        outs
    }

    /// Ends the path with a fault. In a handler, the fault ends only the handler.
    pub(super) fn fault(&mut self, visit: &mut Visit<'_>, path: &mut Path, fault: Fault) -> Flow {
        let node = visit.node();
        if let Some(event) = &mut visit.event
            && !self.has_mutant(SynthMutant::HandlerFaultDrops)
        {
            path.state.count(node, Counter::Background);
            event.ended.push(Edge { from: path.at, slot: Slot::Open, state: path.state.clone() });
            return Flow::Ended;
        }
        let row = visit.fault_row();
        path.state.count(visit.node(), Counter::Row(row));
        self.blocks.exit(path, Fate::Fault { node: visit.node(), fault });
        Flow::Ended
    }

    /// As [`Draft::act`], unless this path already has the result. Then returns that result.
    pub(super) fn once(
        &mut self,
        visit: &Visit<'_>,
        path: &mut Path,
        memo: Memo,
        types: &[Ty],
        faults: bool,
        make: impl FnOnce(&[ValueId]) -> What,
    ) -> Vec<ValueId> {
        if let Some(outs) = path.state.memo.get(&memo) {
            self.stats.reused += 1;
            return outs.clone();
        }
        let outs = self.act(visit, path, types, faults, make);
        path.state.memo.insert(memo, outs.clone());
        outs
    }
}
