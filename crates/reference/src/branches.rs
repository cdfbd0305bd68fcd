//! Functions under `Priority`: branches of functions take the same packet side by side.

use super::engine::{Reference, Walk};
use super::merge::{merge, native_writes};
use super::run::{Emission, Outcome, Write};
use crate::trace::Verdict;
use braid_ir::engine::{HOP_LIMIT, LOST_HOP_LIMIT};
use braid_ir::graph::{is_onward, may_drop};
use braid_packet::Packet;

/// What a branch did with its copy of the packet.
struct Ran {
    /// The writes of its functions, in order.
    writes: Vec<Write>,
    /// The function where the packet's way in the branch ended.
    node: u16,
    /// What that function sent.
    emissions: Vec<Emission>,
    /// Its verdict.
    verdict: Verdict,
    /// Whether the verdict of the branch's first function may decide: the function may drop
    /// packets, or dropped this packet by a fault.
    decides: bool,
    /// Whether a function behind the first one ended the packet or led it elsewhere.
    ended_between: bool,
}

/// Runs branches on the same packet, winners first, and merges their writes. A function behind the
/// first one of its branch gives the verdict if it ends the packet or leads it elsewhere. Otherwise
/// the verdict is that of the first branch whose first function may drop packets or had a fault,
/// and without such a branch, that of the last one.
pub(super) fn run(
    engine: &mut Reference,
    branches: &[Vec<u16>],
    packet: Packet,
    walk: &mut Walk<'_>,
) {
    let visits = branches.iter().map(Vec::len).sum();
    if !walk.fits(visits) {
        return engine.lose(LOST_HOP_LIMIT, walk);
    }
    walk.hops += u32::try_from(visits).unwrap_or(HOP_LIMIT);
    let mut all: Vec<Ran> = Vec::with_capacity(branches.len());
    for branch in branches {
        let decided = all.iter().find(|ran| ran.decides);
        let passes = decided.is_some_and(|ran| matches!(ran.verdict, Verdict::Output { .. }));
        all.push(run_branch(engine, branch, packet.clone(), passes, walk));
    }
    let mut merged = packet.clone();
    merge(&mut merged, &all.iter().map(|ran| &*ran.writes).collect::<Vec<_>>());
    let stands = all.iter().position(|ran| ran.ended_between);
    let stands = stands.or_else(|| all.iter().position(|ran| ran.decides));
    let stands = stands.unwrap_or(all.len() - 1);
    walk.observer.stands(all[stands].node);
    let mut verdict = None;
    for (place, ran) in all.into_iter().enumerate() {
        engine.account_emissions(ran.node, ran.emissions, packet.backward, walk);
        if place == stands {
            verdict = Some((ran.node, ran.verdict));
        }
    }
    if let Some((node, verdict)) = verdict {
        engine.settle(node, verdict, merged, walk);
    }
}

/// Runs the functions of a branch one after the other. If a winner has decided that the packet
/// goes on, the verdict of the first function does not count: the others get the packet, too.
fn run_branch(
    engine: &mut Reference,
    branch: &[u16],
    mut packet: Packet,
    passes: bool,
    walk: &mut Walk<'_>,
) -> Ran {
    let mut writes = Vec::new();
    let mut decides = false;
    for (place, node) in branch.iter().enumerate() {
        engine.count_entry(*node, &packet);
        walk.observer.visit(*node, &packet);
        let Outcome { packet: after, emissions, writes: logged, verdict } =
            engine.run_on_packet(*node, packet.clone(), walk);
        let model = &engine.nodes[usize::from(*node)].model;
        if place == 0 {
            decides = may_drop(model) || matches!(verdict, Verdict::Fault(_));
        }
        match model.native {
            Some(_) => writes.extend(native_writes(&packet, &after)),
            None => writes.extend(logged),
        }
        let is_onward = matches!(&verdict, Verdict::Output { ports, .. }
                if is_onward(ports, packet.backward));
        packet = after;
        let goes_on = is_onward || place == 0 && passes;
        if place + 1 == branch.len() || !goes_on {
            let ended_between = place > 0 && !is_onward;
            return Ran { writes, node: *node, emissions, verdict, decides, ended_between };
        }
        engine.account_emissions(*node, emissions, packet.backward, walk);
        walk.observer.output(*node, &packet);
    }
    unreachable!("a branch has a function")
}
