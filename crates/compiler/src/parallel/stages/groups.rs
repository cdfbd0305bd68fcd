//! Groups of functions that become stages.

use super::visits::{Visit, Visits};
use braid_ir::chain::Chain;
use braid_ir::model::{Model, Op, Program};
use braid_ir::service_graph::stages::{Together, Why};
use braid_ir::subscriptions::Subscriptions;

/// The work of an operation that looks at the payload, in other operations.
const PAYLOAD: usize = 100;

/// The functions of a chain in groups. A group has the number of its first function.
pub(super) struct Groups {
    /// The group of each function.
    of: Vec<u16>,
    /// The work of each function, in operations.
    work: Vec<usize>,
    /// Why functions have joined.
    pub(super) together: Vec<Together>,
}

impl Groups {
    /// The functions that must be one stage in every division.
    pub(super) fn new(chain: &Chain, visits: &Visits, subscriptions: &Subscriptions) -> Self {
        let of = (0..).zip(&chain.nodes).map(|(node, _)| node).collect();
        let work = chain.nodes.iter().map(|node| work(&node.model.packet)).collect();
        let mut groups = Self { of, work, together: Vec::new() };
        for (node, _) in visits.all.keys() {
            for member in visits.graph.group(*node) {
                groups.join((*node).into(), (*member).into(), Why::Priority);
            }
        }
        for ((node, _), ways) in &visits.all {
            for next in &ways.elsewhere {
                for (behind, _) in visits.behind(*next) {
                    groups.join((*node).into(), behind.into(), Why::Sends(*node));
                }
            }
        }
        for (publisher, taker) in subscriptions.pairs(chain) {
            groups.join(publisher.into(), taker.into(), Why::Handlers);
        }
        let mut speaking = (0..).zip(&chain.nodes).filter(|(_, node)| speaks_on_time(&node.model));
        if let Some((first, _)) = speaking.next() {
            speaking.for_each(|(node, _)| groups.join(first, node, Why::Events));
        }
        groups
    }

    /// The group of a function.
    pub(super) fn of(&self, node: u16) -> usize {
        self.of.get(usize::from(node)).copied().map_or(usize::MAX, usize::from)
    }

    /// The functions of a group.
    pub(super) fn functions(&self, group: usize) -> Vec<u16> {
        let all = (0..).zip(&self.of).filter(|(_, of)| usize::from(**of) == group);
        all.map(|(node, _)| node).collect()
    }

    /// The number of groups.
    pub(super) fn count(&self) -> usize {
        self.numbers().len()
    }

    /// The numbers of all groups.
    pub(super) fn numbers(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.of.iter().map(|group| usize::from(*group)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The work of a group for each packet, in operations.
    pub(super) fn work(&self, group: usize) -> usize {
        self.functions(group).iter().map(|node| self.work[usize::from(*node)]).sum()
    }

    /// Makes one group of the groups of two functions.
    pub(super) fn join(&mut self, a: usize, b: usize, why: Why) {
        let (Some(&a), Some(&b)) = (self.of.get(a), self.of.get(b)) else { return };
        if a == b {
            return;
        }
        let (kept, gone) = (a.min(b), a.max(b));
        self.of.iter_mut().filter(|group| **group == gone).for_each(|group| *group = kept);
        let functions = self.functions(kept.into());
        // A later reason of the same kind replaces an earlier one about fewer functions.
        self.together
            .retain(|one| one.why != why || !one.functions.iter().all(|f| functions.contains(f)));
        self.together.push(Together { functions, why });
    }

    /// Joins groups until each path passes each group once.
    ///
    /// # Errors
    /// A path comes back to a function.
    pub(super) fn close(&mut self, visits: &Visits) -> Result<(), Why> {
        let entries: Vec<Visit> = visits.all.keys().copied().collect();
        loop {
            let mut torn = None;
            for entry in &entries {
                let row = row(visits, *entry)?;
                let groups: Vec<usize> = row.iter().map(|node| self.of(*node)).collect();
                torn = torn.or_else(|| split(&groups).map(|(a, b)| (row[a], row[b])));
            }
            let Some((a, b)) = torn else { return Ok(()) };
            self.join(a.into(), b.into(), Why::Between);
        }
    }
}

/// The functions on the path from a visit on, in order: of a group under `Priority` the first one.
///
/// # Errors
/// The path comes back to a function, or changes its direction.
pub(super) fn row(visits: &Visits, from: Visit) -> Result<Vec<u16>, Why> {
    let mut row = Vec::new();
    let mut next = Some(from);
    while let Some((node, backward)) = next {
        if row.contains(&node) || backward != from.1 {
            return Err(Why::Circle);
        }
        row.push(node);
        next = visits.visit(visits.all.get(&(node, backward)).and_then(|ways| ways.onward));
    }
    Ok(row)
}

/// The places of a function behind a group, and of the group's next function behind that.
fn split(groups: &[usize]) -> Option<(usize, usize)> {
    (1..groups.len()).find_map(|at| {
        let before = groups[at - 1];
        let again = groups[at..].iter().rposition(|group| *group == before)?;
        (groups[at] != before).then_some((at, at + again))
    })
}

/// Whether a function publishes events when an entry ends or a timer fires. Native functions
/// publish such events when their next packet comes.
pub(super) fn speaks_on_time(model: &Model) -> bool {
    let programs = model.expire.iter().map(|(_, program)| program);
    programs.chain(model.timers.iter().map(|timer| &timer.body)).any(speaks)
}

/// Whether a program publishes events.
fn speaks(program: &Program) -> bool {
    ops(program).any(|op| matches!(op, Op::Emit { .. } | Op::Native { .. }))
}

fn ops(program: &Program) -> impl Iterator<Item = &Op> {
    program.blocks.iter().flat_map(|block| &block.ops)
}

/// The work of a program, in operations.
fn work(program: &Program) -> usize {
    let work = |op: &Op| match op {
        Op::Patterns { .. }
        | Op::FindPatterns { .. }
        | Op::Extern { .. }
        | Op::Native { .. }
        | Op::Stream { .. }
        | Op::Encapsulate { seal: Some(_), .. }
        | Op::Decapsulate { association: Some(_), .. }
        | Op::Encrypt { .. }
        | Op::Decrypt { .. } => PAYLOAD,
        _ => 1,
    };
    ops(program).map(work).sum()
}
