//! A residual program with its counters and facts about its ends.
#![expect(
    clippy::indexing_slicing,
    reason = "blocks, steps and counters are numbered by this program"
)]

use crate::exec_context::Functions;
use crate::machine_code::Stage;
use crate::options::Jit;
use crate::work::Emission;
use braid_ir::engine::Outputs;
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Op, RowId};
use braid_ir::residual::{Counter, CounterListId, End, Fate, Residual, Step, What};
use braid_ir::visit::HEAVY;
use braid_ir::walk::{At, ENDED, Reached, fits, onward};
use braid_jit::Count;
use braid_packet::{Layout, Packet};
use std::cell::Cell;
use std::sync::Arc;

/// A residual program and its counters.
pub(crate) struct Program {
    pub(crate) residual: Arc<Residual>,
    pub(crate) stage: Stage,
    /// The count of each counter list.
    pub(crate) counts: Vec<Cell<Count>>,
    /// Facts and counts about the end of each block.
    pub(crate) ends: Vec<AtEnd>,
    /// For each counter list: the number of functions that a packet enters when it is counted
    /// there.
    visits: Vec<u32>,
    /// For each block: the least and the largest number of functions that a packet has entered
    /// before the block.
    entered: Vec<(u32, u32)>,
    /// Whether the least and the largest number are equal for all blocks.
    even: bool,
    /// Whether the program does what no record contains. Behind it, a packet may take a record for
    /// the rest of its path.
    pub(crate) is_beyond_records: bool,
    /// The weight of its lookups on the path with the most.
    pub(crate) weight: u32,
}

/// Facts and counts about the end of a block.
pub(crate) struct AtEnd {
    /// The number of packets that reached the end.
    pub(crate) reached: Cell<u64>,
    /// The number of functions that packets have visited at the end. `None` if it is not the same
    /// for all packets.
    pub(crate) visits: Option<u32>,
    /// Whether packets go backward through the last function.
    backward: bool,
    /// The next place of packets for which the program has sent no other packet. `None` if the
    /// program's end does not determine it.
    pub(crate) next: Option<At>,
}

impl Program {
    pub(crate) fn new(residual: Residual, graph: &Graph, jit: Jit) -> Self {
        let entered = |counter: Counter| matches!(counter, Counter::Forward | Counter::Backward);
        let visits = residual.counter_lists.iter().map(|counters| {
            let count = counters.iter().filter(|one| entered(one.counter)).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        });
        let visits: Vec<u32> = visits.collect();
        let entered = entered_at(&residual, &visits);
        let mut program = Self {
            stage: Stage::first(jit, residual.blocks.len()),
            counts: vec![Cell::default(); residual.counter_lists.len()],
            ends: Vec::new(),
            visits,
            even: entered.iter().all(|(least, most)| least == most),
            entered,
            is_beyond_records: is_beyond_records(&residual),
            weight: weight(&residual),
            residual: Arc::new(residual),
        };
        program.ends =
            (0..program.residual.blocks.len()).map(|at| program.at_end(at, graph)).collect();
        program
    }

    /// Whether [`Self::prefetch`] has an effect.
    pub(crate) fn prefetches(&self) -> bool {
        matches!(&self.stage, Stage::Compiled(machine_code) if machine_code.code.prefetches())
    }

    /// Prefetches the memory that the program will probably look up first for packets.
    pub(crate) fn prefetch<'p>(
        &self,
        functions: &mut Functions,
        packets: impl Iterator<Item = (&'p mut Packet, &'p mut Layout)>,
        out: &mut dyn Outputs,
        emissions: &mut Vec<Emission>,
    ) {
        let Stage::Compiled(machine_code) = &self.stage else { return };
        let now = functions.now;
        let mut machine = machine_code.machine(&self.residual, &mut [], functions, out, emissions);
        let Ok(mut prefetcher) = machine_code.code.prefetcher(&mut machine) else { return };
        for (packet, layout) in packets {
            let machine = prefetcher.host();
            machine.set_worker(machine.functions.chain.worker(packet, layout));
            prefetcher.prefetch(packet, layout, now);
        }
    }

    fn at_end(&self, block: usize, graph: &Graph) -> AtEnd {
        let residual = &self.residual;
        let (backward, next) = match &residual.blocks[block].end {
            End::Hold { node, counters, .. } => (goes_backward(residual, *node, *counters), None),
            End::Exit(exit) => match &exit.fate {
                Fate::Output { node, ports } => {
                    let backward = goes_backward(residual, *node, exit.counters);
                    let next = match **ports {
                        [dest] => Some(onward(graph.next(*node, port(dest, backward)))),
                        _ => None,
                    };
                    (backward, next)
                }
                Fate::Resubmit { node } => (goes_backward(residual, *node, exit.counters), None),
                Fate::Drop { node, .. } | Fate::Fault { node, .. } | Fate::Consume { node } => {
                    (goes_backward(residual, *node, exit.counters), Some(ENDED))
                }
                Fate::Leave { interface } => (false, Some(At::End(Reached::Interface(*interface)))),
                Fate::Go(point) => (false, Some(At::Point(*point))),
            },
            End::Jump(_) | End::Branch { .. } => (false, None),
        };
        let visits = self.entered_by(block, None).map(|entered| entered + self.queue_visits());
        AtEnd { reached: Cell::new(0), visits, backward, next }
    }

    /// Whether the place of a packet's end determines the number of functions that it has visited,
    /// and packets that visited `hops` functions before stay within the limit.
    #[inline]
    pub(crate) fn is_even(&self, hops: u32) -> bool {
        self.even && fits(hops, self.residual.visits)
    }

    /// The number of visits that are not entries: a packet that comes from a queue visits the
    /// function again but does not enter it.
    fn queue_visits(&self) -> u32 {
        self.residual.point.held.into()
    }

    /// Counts a packet that has reached the end of a block, adds its visits to `hops`, and returns
    /// its next place. Returns `None`, without any effect, if the next place is not known. The
    /// program must have sent no other packet. `before` is as for [`Self::hops`].
    #[inline(always)]
    pub(crate) fn pass(&self, block: usize, before: u64, hops: &mut u32) -> Option<At> {
        let end = &self.ends[block];
        let at = end.next?;
        end.reached.update(|times| times + 1);
        // Ended packets count, too: they share the hop count with other packets of the same walk
        // that may still run.
        match end.visits {
            Some(visits) => *hops += visits,
            None => *hops += self.hops(block, None, before),
        }
        Some(at)
    }

    /// Whether the packet goes backward through the function at the end of a block.
    pub(crate) fn ends_backward(&self, block: usize) -> bool {
        self.ends[block].backward
    }

    /// Whether the packet goes backward through a function in which a step faults.
    pub(crate) fn faults_backward(&self, node: u16, counters: Option<CounterListId>) -> bool {
        match counters {
            Some(counters) => goes_backward(&self.residual, node, counters),
            None => self.residual.point.backward,
        }
    }

    /// The number of functions that a packet has entered when it ends in a block, or by a fault of
    /// one of its steps. `None` if the number is not the same for all packets.
    fn entered_by(&self, block: usize, step: Option<usize>) -> Option<u32> {
        let (least, most) = self.entered[block];
        let steps = &self.residual.blocks[block].steps;
        let on_way = steps[..step.unwrap_or(steps.len())].iter().map(|step| match step.what {
            What::Count(counters) => self.visits[counters.0 as usize],
            _ => 0,
        });
        let last = match (step, &self.residual.blocks[block].end) {
            (Some(step), _) => steps[step].fault,
            (None, End::Exit(exit)) => Some(exit.counters),
            (None, End::Hold { counters, .. }) => Some(*counters),
            (None, End::Jump(_) | End::Branch { .. }) => None,
        };
        let last = last.map_or(0, |counters| self.visits[counters.0 as usize]);
        (least == most).then(|| least + on_way.sum::<u32>() + last)
    }

    /// The number of functions that a packet has visited when its run ends at the end of `block`,
    /// or by a fault of `step`. `before` is the result of [`Program::mark`] before the run.
    #[inline(never)]
    pub(crate) fn hops(&self, block: usize, step: Option<usize>, before: u64) -> u32 {
        let entered = self.entered_by(block, step).unwrap_or_else(|| {
            u32::try_from(self.marked().wrapping_sub(before)).unwrap_or(u32::MAX)
        });
        entered + self.queue_visits()
    }

    /// A value that [`Program::hops`] needs from before the run.
    #[inline]
    pub(crate) fn mark(&self) -> u64 {
        if self.even { 0 } else { self.marked() }
    }

    #[inline(never)]
    fn marked(&self) -> u64 {
        let counts = self.counts.iter().zip(&self.visits);
        counts.fold(0, |sum, (count, visits)| {
            sum.wrapping_add(count.get().packets.wrapping_mul(u64::from(*visits)))
        })
    }

    /// The counters of functions, as (function, counter, packets, bytes).
    pub(crate) fn counters(&self) -> impl Iterator<Item = (u16, Counter, u64, u64)> + '_ {
        let counts = self.counts.iter().map(Cell::get);
        let counter_lists = self.residual.counter_lists.iter().zip(counts);
        counter_lists.filter(|(_, count)| count.packets > 0).flat_map(|(counters, count)| {
            counters.iter().map(move |one| {
                let more = i64::from(one.length).wrapping_mul(count.packets.cast_signed());
                let bytes = count.bytes.wrapping_add_signed(more);
                (one.node, one.counter, count.packets, bytes)
            })
        })
    }

    /// The ends of packets' paths, with the number of packets that reached each.
    pub(crate) fn reached(&self) -> impl Iterator<Item = (&Fate, u64)> {
        let blocks = self.residual.blocks.iter().zip(&self.ends);
        blocks.filter(|(_, at)| at.reached.get() > 0).filter_map(|(block, at)| match &block.end {
            End::Exit(exit) => Some((&exit.fate, at.reached.get())),
            _ => None,
        })
    }
}

/// For each block: the least and the largest number of functions that packets have entered before
/// it. Unreachable blocks have (0, 0).
fn entered_at(residual: &Residual, visits: &[u32]) -> Vec<(u32, u32)> {
    let mut at: Vec<Option<(u32, u32)>> = vec![None; residual.blocks.len()];
    if let Some(entry) = at.first_mut() {
        *entry = Some((0, 0));
    }
    for (number, block) in residual.blocks.iter().enumerate() {
        let Some((least, most)) = at[number] else { continue };
        let more: u32 = block
            .steps
            .iter()
            .map(|step| match step.what {
                What::Count(counters) => visits[counters.0 as usize],
                _ => 0,
            })
            .sum();
        let (least, most) = (least + more, most + more);
        block.end.visit_targets(&mut |target| {
            let next = &mut at[target.block.index()];
            let (low, high) = next.unwrap_or((least, most));
            *next = Some((low.min(least), high.max(most)));
        });
    }
    at.into_iter().map(Option::unwrap_or_default).collect()
}

/// The weight of a program's lookups on the path with the most.
fn weight(residual: &Residual) -> u32 {
    let mut behind = vec![0; residual.blocks.len()];
    for (at, block) in residual.blocks.iter().enumerate().rev() {
        let mut most = 0;
        block.end.visit_targets(&mut |target| most = most.max(behind[target.block.index()]));
        let of = |step: &Step| match &step.what {
            What::Find { .. } => 1,
            What::Classify { .. } | What::Op(Op::Extern { .. }) => HEAVY,
            _ => 0,
        };
        behind[at] = block.steps.iter().map(of).sum::<u32>() + most;
    }
    behind.first().copied().unwrap_or(0)
}

/// Whether a program does what no record contains.
fn is_beyond_records(residual: &Residual) -> bool {
    let mut steps = residual.blocks.iter().flat_map(|block| &block.steps);
    steps.any(|step| matches!(&step.what, What::Op(op) if op.is_beyond_records()))
}

/// Whether packets that are counted at a counter list go backward through a function. A path visits
/// a function at most once, so any counter of the function on the path shows the direction. If this
/// list has none, another list has one.
fn goes_backward(residual: &Residual, node: u16, counters: CounterListId) -> bool {
    let says = |counters: &[braid_ir::residual::ListedCounter]| {
        counters.iter().filter(|one| one.node == node).find_map(|one| match one.counter {
            Counter::Forward => Some(false),
            Counter::Backward => Some(true),
            Counter::Row(RowId(_)) | Counter::Background => None,
        })
    };
    let own = residual.counter_lists.get(counters.0 as usize).and_then(|own| says(own));
    let here = (node == residual.point.node).then_some(residual.point.backward);
    let any = || residual.counter_lists.iter().find_map(|counters| says(counters));
    own.or(here).or_else(any).unwrap_or(false)
}
