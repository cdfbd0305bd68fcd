//! The stages of an engine together: counters, state, snapshots.

use super::Parallel;
use super::stage::{Core, lock};
use braid_ir::engine::{Counters, Engine, Outputs, StateEntry};
use braid_ir::snapshot::{FunctionState, ImportError, Snapshot, Totals, transfer};
use std::sync::MutexGuard;

impl Parallel {
    /// The engine of a stage. The stage must rest.
    pub(super) fn core(&self, stage: usize) -> Option<MutexGuard<'_, Core>> {
        self.cores.get(stage).map(|core| lock(core))
    }

    /// The engines of all stages, which must rest.
    pub(super) fn all(&self) -> impl Iterator<Item = MutexGuard<'_, Core>> {
        self.cores.iter().map(|core| lock(core))
    }

    /// Calls `work` for the engine of each stage. Only one stage's due work has outputs.
    pub(super) fn each(
        &self,
        out: &mut dyn Outputs,
        work: impl Fn(&mut dyn Engine, &mut dyn Outputs),
    ) {
        self.all().for_each(|mut core| work(core.engine.as_mut(), out));
    }

    pub(super) fn united_counters(&self) -> Counters {
        let mut sum = self.own.clone();
        let parts: Vec<Counters> = self.all().map(|core| core.engine.counters()).collect();
        for (part, before) in parts.iter().zip(&self.before) {
            sum.created += part.created;
            sum.copied += part.copied;
            sum.consumed += part.consumed;
            sum.held += part.held;
            for (interface, count) in part.out.iter().filter(|(to, _)| self.is_outside(**to)) {
                *sum.out.entry(*interface).or_default() += count;
            }
            for (reason, count) in &part.lost {
                let new = count - before.lost.get(reason).copied().unwrap_or(0);
                if new > 0 {
                    *sum.lost.entry(reason.clone()).or_default() += new;
                }
            }
            for (drop, count) in &part.drops {
                *sum.drops.entry(drop.clone()).or_default() += count;
            }
        }
        let node = |(node, stage): (usize, &usize)| parts.get(*stage)?.nodes.get(node).cloned();
        sum.nodes = self.stage_of.iter().enumerate().filter_map(node).collect();
        sum
    }

    /// Whether an interface is one of the chain.
    fn is_outside(&self, interface: u16) -> bool {
        usize::from(interface) < self.entries.len()
    }

    pub(super) fn united_state(&self) -> Vec<StateEntry> {
        let parts = self.all().map(|core| core.engine.state());
        let mut all: Vec<StateEntry> = parts.flatten().collect();
        all.sort_by_key(|entry| entry.node);
        all
    }

    pub(super) fn united_export(&self) -> Snapshot {
        let mut parts: Vec<Snapshot> = self.all().map(|mut core| core.engine.export()).collect();
        let mut all = parts.first().cloned().unwrap_or_default();
        let of = |(node, stage): (usize, &usize)| {
            Some(std::mem::take(parts.get_mut(*stage)?.functions.get_mut(node)?))
        };
        all.functions = self.stage_of.iter().enumerate().filter_map(of).collect();
        all.now_ns = self.steerer.now_ns();
        all.started = self.steerer.has_started();
        let counters = self.united_counters();
        let interfaces = &self.steerer.chain.interfaces;
        let named = |(number, count): (&u16, &u64)| {
            Some((interfaces.get(usize::from(*number))?.name.clone(), *count))
        };
        all.totals.packets_in = counters.packets_in;
        all.totals.created = counters.created;
        all.totals.copied = counters.copied;
        all.totals.consumed = counters.consumed;
        all.totals.out = counters.out.iter().filter_map(named).collect();
        all.totals.lost = counters.lost;
        all
    }

    /// Gives each stage the state of its functions. The first stage also gets the functions that
    /// the chain does not have any more.
    pub(super) fn divide(&mut self, snapshot: Snapshot) -> Result<(), ImportError> {
        let owner = |old: &FunctionState| {
            let node = self.steerer.chain.nodes.iter().position(|node| node.name == old.name);
            node.and_then(|node| self.stage_of.get(node)).copied().unwrap_or(0)
        };
        let owners: Vec<usize> = snapshot.functions.iter().map(owner).collect();
        for stage in 0..self.cores.len() {
            let mut part = Snapshot { functions: Vec::new(), ..snapshot.clone() };
            part.totals = Totals::default();
            let own = snapshot.functions.iter().zip(&owners);
            let own = own.filter(|(_, owner)| **owner == stage);
            part.functions = own.map(|(function, _)| function.clone()).collect();
            if let Some(mut core) = self.core(stage) {
                core.engine.import(part)?;
            }
        }
        self.before = self.all().map(|core| core.engine.counters()).collect();
        let moved = transfer(snapshot.clone(), &self.steerer.chain)?;
        let totals = moved.snapshot.totals;
        let interfaces = &self.steerer.chain.interfaces;
        let number = |name: &str| {
            let place = interfaces.iter().position(|interface| interface.name == name)?;
            u16::try_from(place).ok()
        };
        self.own = Counters {
            packets_in: totals.packets_in,
            created: totals.created,
            copied: totals.copied,
            consumed: totals.consumed,
            out: totals.out.iter().filter_map(|(name, n)| Some((number(name)?, *n))).collect(),
            lost: totals.lost,
            ..Counters::default()
        };
        self.steerer.resume(snapshot)
    }
}
