//! Runs functions under `Priority`: branches of functions take the same packet side by side.
#![expect(clippy::indexing_slicing, reason = "this engine and its chain number the functions")]

use crate::executor::Executor;
use crate::merge::{merge, native_writes};
use crate::model_interpreter::{Verdict, Write};
use crate::work::{Emission, Walk};
use braid_ir::engine::{HOP_LIMIT, LOST_HOP_LIMIT};
use braid_ir::graph::{is_onward, may_drop};
use braid_ir::walk::{At, ENDED, fits};
use braid_packet::Packet;

/// What a branch did with its copy of the packet.
struct Ran {
    /// In the order of its functions.
    writes: Vec<Write>,
    /// The function where the packet's way in the branch ended, and what it sent.
    node: u16,
    emissions: Vec<Emission>,
    verdict: Verdict,
    /// Whether its first function may drop packets or had a fault.
    decides: bool,
    /// Whether a function behind the first one ended the packet or led it elsewhere.
    ended_between: bool,
}

/// How much the verdict of a branch counts. The greatest weight of any branch decides, and among
/// equal ones the highest priority.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Passes,
    Decides,
    EndedBetween,
}

impl Ran {
    fn weight(&self) -> Weight {
        match (self.ended_between, self.decides) {
            (true, _) => Weight::EndedBetween,
            (false, true) => Weight::Decides,
            (false, false) => Weight::Passes,
        }
    }
}

/// Runs branches on the same packet, highest priority first, and merges what they wrote.
pub(crate) fn run(
    engine: &mut Executor,
    branches: &[Vec<u16>],
    packet: &mut Packet,
    walk: &mut Walk<'_>,
) -> At {
    let visits = u32::try_from(branches.iter().flatten().count()).unwrap_or(HOP_LIMIT);
    if !fits(walk.hops, visits) {
        engine.chain_counters.lose(LOST_HOP_LIMIT);
        return ENDED;
    }
    walk.hops += visits;
    let mut all: Vec<Ran> = Vec::with_capacity(branches.len());
    for first in branches.iter().filter_map(|branch| branch.first()) {
        let winner = all.iter().find(|ran| ran.decides);
        let is_passed = winner.is_some_and(|ran| matches!(ran.verdict, Verdict::Output(_)));
        all.push(run_branch(engine, *first, packet.clone(), is_passed, walk));
    }
    merge(packet, &all.iter().map(|ran| &*ran.writes).collect::<Vec<_>>());
    let heaviest = all.iter().map(Ran::weight).max().unwrap_or(Weight::Passes);
    let stands = match heaviest {
        Weight::Passes => all.len() - 1,
        _ => all.iter().position(|ran| ran.weight() == heaviest).unwrap_or_default(),
    };
    let mut verdict = None;
    for (place, ran) in all.into_iter().enumerate() {
        engine.send(ran.node, ran.emissions, packet.backward, walk);
        if place == stands {
            verdict = Some((ran.node, ran.verdict));
        }
    }
    match verdict {
        Some((node, verdict)) => engine.settle(node, verdict, packet, walk),
        None => ENDED,
    }
}

/// Runs the functions of a branch in sequence, from its first one on. If a branch with higher
/// priority has decided that the packet goes on, the functions behind the first one get it,
/// whatever that one decides.
fn run_branch(
    engine: &mut Executor,
    first: u16,
    mut packet: Packet,
    is_passed: bool,
    walk: &mut Walk<'_>,
) -> Ran {
    let (backward, mut writes) = (packet.backward, Vec::new());
    let mut at = first;
    let mut decides = false;
    loop {
        let is_first = at == first;
        engine.count_entry(at, &packet);
        walk.enters(at, &packet);
        let model = engine.functions.chain.nodes[usize::from(at)].model.clone();
        let before = model.native.is_some().then(|| packet.clone());
        let outcome = engine.plain_outcome(at, &mut packet, None, walk);
        match before {
            Some(before) => writes.extend(native_writes(&before, &packet)),
            None => writes.extend(outcome.writes),
        }
        if is_first {
            decides = may_drop(&model) || matches!(outcome.verdict, Verdict::Fault(_));
        }
        let goes_onward =
            matches!(&outcome.verdict, Verdict::Output(ports) if is_onward(ports, backward));
        let next = engine.graph.next_in_branch(at, backward);
        if let Some(next) = next.filter(|_| goes_onward || is_first && is_passed) {
            engine.send(at, outcome.emissions, backward, walk);
            walk.leaves(at, &packet);
            at = next;
            continue;
        }
        let (emissions, verdict) = (outcome.emissions, outcome.verdict);
        let ended_between = !is_first && !goes_onward;
        return Ran { writes, node: at, emissions, verdict, decides, ended_between };
    }
}
