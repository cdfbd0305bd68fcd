//! The hub: the thread that calls the engine. It gives bundles to the stages and takes them back,
//! merges versions, and runs the first stage. Where cores are scarce, it also runs the stages whose
//! work processes do.

use super::bundle::{Bundle, Copier, Handle, Out, Target};
use super::merger::Merger;
use super::options::Options;
use super::stage::{Rings, Stage};
use super::tables::Actions;
use braid_ir::service_graph::stages::Meta;
use braid_packet::{Packet, Reached};
use rtrb::{Consumer, Producer};
use std::sync::atomic::Ordering;

/// The most packets that are on their way.
pub(super) const MOST: usize = braid_packet::BURST;

/// The hub's ends of the rings, and its stages.
pub(super) type Ends = (Vec<Stage>, Vec<Consumer<Handle>>, Vec<Producer<Handle>>, Rings);

/// By route: what happens to a new bundle, and the mergers with what happens afterwards.
pub(super) type OfRoutes = (Vec<Actions>, Vec<Vec<(Merger, Actions)>>);

pub(super) struct Hub {
    /// The stages that the hub runs.
    own: Vec<Stage>,
    inputs: Vec<Consumer<Handle>>,
    /// By stage: takes back the copies that it has made.
    used: Vec<Producer<Handle>>,
    rings: Rings,
    first: Vec<Actions>,
    mergers: Vec<Vec<(Merger, Actions)>>,
    copier: Copier,
    options: Options,
    /// Bundles that are free.
    spare: Vec<Handle>,
    /// Copies that were merged.
    merged: Vec<Handle>,
    /// The number of bundles that each stage has got or will get.
    turns: Vec<u64>,
    /// The number of the next packet, and of the burst.
    packet: u64,
    burst: u64,
    /// By stage: the place behind the last packet of the burst that it has seen for certain.
    seen: Vec<u16>,
    /// The packets of the burst that are on their way.
    away: usize,
    /// The packets of the burst that are back, by place.
    pub(super) back: Vec<Option<(Packet, Reached)>>,
    /// What functions have sent and published.
    pub(super) outs: Vec<Out>,
}

impl Hub {
    pub(super) fn new(
        (own, inputs, used, rings): Ends,
        (first, mergers): OfRoutes,
        stages: usize,
        options: Options,
    ) -> Self {
        Self {
            own,
            inputs,
            used,
            rings,
            first,
            mergers,
            copier: Copier::new(0),
            options,
            spare: Vec::new(),
            merged: Vec::new(),
            turns: vec![0; stages],
            packet: 0,
            burst: 0,
            seen: vec![0; stages],
            away: 0,
            back: Vec::new(),
            outs: Vec::new(),
        }
    }

    /// An empty bundle.
    pub(super) fn bundle(&mut self) -> Handle {
        self.spare.pop().unwrap_or_else(|| Box::new(Bundle::new()))
    }

    /// Begins a burst.
    pub(super) fn begin(&mut self) {
        self.burst += 1;
        self.seen.fill(0);
    }

    /// The number of the burst.
    pub(super) fn burst(&self) -> u64 {
        self.burst
    }

    /// Whether a stage has certainly seen the packet before a place. If not, its engine knows.
    pub(super) fn has_seen(&self, stage: usize, place: u16) -> bool {
        self.seen.get(stage).is_some_and(|seen| *seen >= place)
    }

    /// Whether no further packet may be sent before others are back.
    pub(super) fn is_full(&self) -> bool {
        self.away >= MOST
    }

    /// Sends a bundle on its route.
    pub(super) fn send(&mut self, mut bundle: Handle, number: usize, route: &[usize]) {
        let route_number = u32::try_from(number).unwrap_or(u32::MAX);
        bundle.meta = Meta::new(route_number, self.packet, 1);
        bundle.burst_number = self.burst;
        bundle.last = bundle.places.last().copied().unwrap_or_default();
        bundle.seen = 0;
        self.packet += bundle.places.len() as u64;
        self.away += bundle.places.len();
        for stage in route {
            if let Some(turn) = self.turns.get_mut(*stage) {
                bundle.turns.push(*turn);
                *turn += 1;
            }
        }
        if let Some(actions) = self.first.get(number) {
            actions.run(bundle, &mut self.copier, |bundle| self.rings.send(bundle));
        }
    }

    /// Works until all packets are back.
    ///
    /// # Panics
    /// When a stage's thread has panicked.
    pub(super) fn finish(&mut self) {
        while self.away > 0 {
            if self.step() {
                continue;
            }
            let Self { own, inputs, rings, options, .. } = &*self;
            let shared = &rings.shared;
            let is_called = || {
                own.iter().any(Stage::is_called)
                    || inputs.iter().any(|input| !input.is_empty())
                    || shared.has_failed.load(Ordering::Acquire)
            };
            if let Some(bell) = shared.bells.first() {
                bell.wait(options.spins, is_called);
            }
            assert!(
                !shared.has_failed.load(Ordering::Acquire),
                "a stage of the chain has panicked"
            );
        }
        debug_assert!(self.mergers.iter().flatten().all(|(merger, _)| merger.is_empty()));
    }

    /// Takes bundles back, and runs the hub's stages on one bundle each. Returns whether there was
    /// anything to do.
    fn step(&mut self) -> bool {
        let mut is_done = false;
        for at in 0..self.inputs.len() {
            while let Some(bundle) = self.inputs.get_mut(at).and_then(|input| input.pop().ok()) {
                is_done = true;
                self.take(bundle);
            }
        }
        for stage in &mut self.own {
            // While a process works, the hub does other things.
            is_done |= match stage.is_process {
                true => stage.begin() || stage.is_full() && stage.end(),
                false => stage.step(),
            };
        }
        let mut processes = self.own.iter_mut().filter(|stage| stage.is_process);
        is_done || processes.any(Stage::end)
    }

    fn take(&mut self, bundle: Handle) {
        let Target::Merger(number) = bundle.target else { return self.collect(bundle) };
        let of_route = self.mergers.get_mut(bundle.meta.route());
        let Some((merger, actions)) = of_route.and_then(|all| all.get_mut(number)) else { return };
        let Some(mut merged) = merger.take(bundle, &mut self.merged) else { return };
        if !actions.is_merged() {
            merged.let_out();
        }
        let mut ended = None;
        actions.run(merged, &mut self.copier, |bundle| match bundle.target {
            Target::Stage(_) => self.rings.send(bundle),
            _ => ended = Some(bundle),
        });
        for copy in std::mem::take(&mut self.merged) {
            match copy.maker.checked_sub(1).and_then(|stage| self.used.get_mut(stage)) {
                // A ring that is full has enough copies.
                Some(ring) => drop(ring.push(copy)),
                None => self.copier.take_back(copy),
            }
        }
        // The hub merges again, or the route ends here.
        if let Some(bundle) = ended {
            self.take(bundle);
        }
    }

    /// Takes back a bundle that has reached the end of its route.
    fn collect(&mut self, mut bundle: Handle) {
        let left = bundle.burst.drain().zip(bundle.places.drain(..));
        let left = left.map(|(packet, place)| (place, Reached::Ended, packet));
        for (place, reached, packet) in left.chain(bundle.ended.drain(..)) {
            self.away = self.away.saturating_sub(1);
            if let Some(back) = self.back.get_mut(usize::from(place)) {
                *back = Some((packet, reached));
            }
        }
        let mut stages = bundle.seen;
        while stages != 0 {
            let stage = stages.trailing_zeros() as usize;
            stages &= stages - 1;
            if let Some(seen) = self.seen.get_mut(stage) {
                *seen = (*seen).max(bundle.last + 1);
            }
        }
        self.outs.append(&mut bundle.outs);
        bundle.clear();
        self.spare.push(bundle);
    }

    /// Ends the threads of the stages.
    pub(super) fn end(&self) {
        let shared = &self.rings.shared;
        shared.ends.store(true, Ordering::Release);
        shared.bells.iter().for_each(super::bell::Bell::ring);
    }
}
