//! Flow records: the engine `fused` (SpeedyBox, made automatic).
//!
//! A packet whose flow has a record is parsed, found, checked and written at once, however many functions there
//! are. What comes of a packet is one of three things (`fly.rs`):
//! - **hit**: its flow's record fits the packet, and says all;
//! - **misfit**: there is a record, but the packet is not as the record takes for granted (its guards), or is
//!   outdated and no other one can be made in its place, or time is due: the program runs;
//! - **miss**: there is none: the program runs; a flow's fourth packet is the first for which one is tried.
//!
//! A record is the program specialised to the flow and to the state as it is (`probe.rs`): the program runs without
//! effect, and what it does is written down, as long as it hangs on nothing but the flow's key, state that the
//! record then rests on ([`braid_state::Record`]), and bits of the packet for which the record has guards. What each
//! packet changes in entries is counted with the record or computed for each (`live.rs`); where packets make or remove
//! entries or send others than copies, there is no record, and the program runs for each.

mod aside;
mod batches;
mod bound;
mod change;
mod class;
mod fields;
mod filter;
mod find;
mod fly;
mod follow;
mod guard;
mod legs;
mod live;
mod natives;
mod path;
mod plan;
mod probe;
mod rest;
mod sample;
mod show;
mod tags;
mod write;

use crate::program::Program;
use crate::{Compiled, PART};
pub use aside::Splice;
pub use batches::Payload;
use braid_ir::chain::Chain;
use braid_ir::model::Op;
use braid_ir::residual::{Residual, What};
use braid_packet::blend::{WIDE, Window};
use braid_state::RecordCounters;
pub(crate) use change::Changed;
pub use change::{Basis, Part};
use class::Classes;
use filter::Filter;
use find::Flow;
pub(crate) use natives::end_changed;
use natives::{Counted, Entry, Ties};
pub use path::{Path, Taken};
use plan::Plan;
use probe::Notes;
use sample::Sample;
pub use show::{
    FlowClass, FlowEnd, FlowField, FlowGuard, FlowNative, FlowPart, FlowRecord, FlowTable, FlowTag,
};
use std::cell::RefCell;

/// No record, no program.
const NONE: u32 = u32::MAX;

/// How packets were processed, and what has become of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flows {
    /// Packets that took their flow's record.
    pub hits: u64,
    /// Packets whose flow had a record that they did not fit, or that came when something was due.
    pub misfits: u64,
    /// Packets whose flow had none.
    pub misses: u64,
    /// Records that were made in place of outdated ones, since what these rested on had changed.
    pub renewed: u64,
    /// Records that were made, ended, and not made since there were too many.
    pub records: RecordCounters,
}

impl Compiled {
    /// How packets were processed, if records are made.
    #[must_use]
    pub fn flows(&self) -> Option<Flows> {
        let Fused { hits, misfits, renewed, .. } = **self.fused.as_ref()?;
        let misses = self.tally.packets_in - hits - misfits;
        let records = self.functions.store.record_counters();
        Some(Flows { hits, misfits, misses, renewed, records })
    }
}

/// What the engine keeps for records, beside those.
pub(crate) struct Fused {
    classes: Classes,
    /// By program; `None` where a packet's way is as fast without a record.
    plans: Vec<Option<Plan>>,
    filter: Filter,
    sample: Sample,
    /// Whether the packets of the part that is on its way are left out.
    is_left_out: bool,
    /// Whether records are made at once, and for ways that look nothing up, too.
    eager: bool,
    /// Of the packets of the part that is on its way.
    flows: [Flow; PART],
    /// Wide keys of those that have such.
    wide: [Window<WIDE>; PART],
    /// How many records had ended when the records of those were found.
    ended: u64,
    /// Whether there were packets without a record in the last part.
    missed: bool,
    /// Memory for probes.
    notes: Notes,
    /// Whether packets may meet native functions.
    is_open: bool,
    /// Where they enter then, and the entry of the last packet.
    entries: Vec<Entry>,
    last_entry: usize,
    /// What native functions do for narrow and for wide records, by number of those.
    ties: [Vec<Ties>; 2],
    /// What ways have counted that is in no program's counters.
    pub(crate) counted: RefCell<Counted>,
    /// As in [`Flows`].
    hits: u64,
    misfits: u64,
    renewed: u64,
}

impl Fused {
    pub(crate) fn new(chain: &Chain, records: usize, eager: bool) -> Self {
        Self {
            classes: Classes::default(),
            plans: Vec::new(),
            filter: Filter::new(if eager { 2 } else { 4 }, records),
            sample: Sample::new(),
            is_left_out: false,
            eager,
            flows: [Flow::NO; PART],
            wide: [[0; WIDE]; PART],
            ended: 0,
            missed: false,
            notes: Notes::new(),
            is_open: Self::is_open(chain),
            entries: Vec::new(),
            last_entry: 0,
            ties: [Vec::new(), Vec::new()],
            counted: RefCell::default(),
            hits: 0,
            misfits: 0,
            renewed: 0,
        }
    }

    /// Whether a packet of the part on its way is known to have a record.
    pub(crate) fn has_record(&self, at: usize) -> bool {
        !self.is_left_out && self.flows[at].record != NONE
    }

    /// Makes the plans of programs that have none yet.
    #[inline(always)]
    fn plan(&mut self, programs: &[Program], many_workers: bool) {
        if let Some(new @ [_, ..]) = programs.get(self.plans.len()..) {
            self.plan_new(new, many_workers);
        }
    }

    #[inline(never)]
    fn plan_new(&mut self, new: &[Program], many_workers: bool) {
        let plan = |program: &Program| {
            let pays = self.eager || looks_up(&program.residual);
            pays.then(|| Plan::of(&program.residual, many_workers))
        };
        let new: Vec<_> = new.iter().map(plan).collect();
        self.plans.extend(new);
    }
}

/// Whether a program looks anything up but routes. One that does not takes no longer than finding a record.
fn looks_up(residual: &Residual) -> bool {
    let mut steps = residual.blocks.iter().flat_map(|block| &block.steps);
    steps.any(|step| match &step.what {
        What::Find { .. } | What::Classify { .. } => true,
        What::Op(op) => matches!(
            op,
            Op::Extern { .. }
                | Op::Patterns { .. }
                | Op::StateSet { .. }
                | Op::StatePut { .. }
                | Op::StateDelete { .. }
        ),
        _ => false,
    })
}
