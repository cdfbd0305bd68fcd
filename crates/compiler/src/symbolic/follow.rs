//! Follows all packets of a header shape along all their paths: from point to point, and from block
//! to block of each function.

use super::build::{Edge, MOST_BLOCKS, Path, Slot, to};
use super::draft::{Draft, Flow};
use super::enter::{enter, forget_unwanted, missing, resolve_all};
use super::exec::execute_op;
use super::facts::Facts;
use super::guard::guard;
use super::join::{groups, join};
use super::points::Points;
use super::reads::{consulted, entry_fields, live};
use super::split::{resolve, split};
use super::state::State;
use super::terms::term;
use super::visit::{Fields, Visit};
use super::vlan::settle_unlike;
use super::write::leave;
use braid_ir::model::{BlockId, Op, Term};
use braid_ir::residual::{End, Fate, Site};
use braid_ir::subscriptions::{Subscriber, Subscriptions};
use std::collections::BTreeMap;

/// The largest number of model blocks that are followed for single paths, over all paths of a
/// program. In a table with many rows, each matching row decides the conditions of all later rows.
/// Without a limit, the work would grow with the square of the number of rows. After the limit,
/// paths meet at the next block.
const MOST_AHEAD: usize = 100_000;

/// A running symbolic execution.
pub(super) struct Synth<'a> {
    pub(super) draft: Draft,
    pub(super) points: Points<'a>,
    /// The largest number of functions that a packet visits.
    visits: u32,
    /// The number of model blocks that may still be followed for single paths.
    ahead: usize,
    pub(super) subscriptions: Subscriptions,
    /// Handlers that a mutant runs later, each with its event's fields.
    pub(super) postponed: Vec<(Subscriber, Fields)>,
}

impl<'a> Synth<'a> {
    pub(super) fn new(draft: Draft, points: Points<'a>) -> Self {
        // Engines refuse chains whose subscriptions are inconsistent.
        let subscriptions = Subscriptions::new(points.chain).unwrap_or_default();
        Self { draft, points, visits: 0, ahead: MOST_AHEAD, subscriptions, postponed: Vec::new() }
    }

    /// Follows all paths of all packets of the shape.
    pub(super) fn follow(&mut self) {
        let entry = self.draft.blocks.add(Vec::new());
        let general = self.draft.blocks.add(Vec::new());
        self.run_from(general, Facts::default());
        self.draft.blocks.all[entry].end = End::Jump(to(general));
    }

    /// Puts the test for the main path first, and follows the packets that pass the test once more.
    /// Returns false, without any change, if there is no such test.
    pub(super) fn main_path_first(&mut self) -> bool {
        let (entry, general) = (0, 1);
        if self.draft.blocks.all.len() > MOST_BLOCKS / 2 {
            return false;
        }
        let Some(guard) = guard(&mut self.draft.values, &self.draft.blocks.all, general) else {
            return false;
        };
        let main = self.draft.blocks.add(Vec::new());
        self.draft.blocks.all[entry].end =
            End::Branch { cond: guard.cond, yes: to(main), no: to(general) };
        self.run_from(main, guard.facts);
        true
    }

    /// The program, and the largest number of functions that a packet visits.
    pub(super) fn done(mut self) -> (Draft, u32) {
        self.draft.stats.followed += MOST_AHEAD - self.ahead;
        (self.draft, self.visits)
    }

    /// Follows all paths from a block on.
    fn run_from(&mut self, from: usize, facts: Facts) {
        let mut state = State::new(self.draft.entering.headers());
        state.facts = facts.into();
        self.points.send(0, Edge { from, slot: Slot::Open, state });
        for number in 0..self.points.len() {
            let edges = self.points.take(number);
            self.point(number, edges);
        }
    }

    /// Follows all paths that reach a point.
    fn point(&mut self, number: usize, edges: Vec<Edge>) {
        let point = self.points.point(number);
        let full = number > 0 && self.draft.blocks.all.len() >= MOST_BLOCKS;
        let (leaving, edges): (Vec<Edge>, Vec<Edge>) =
            edges.into_iter().partition(|edge| full || edge.state.ends);
        for edge in leaving {
            let mut path = self.draft.blocks.open(edge);
            leave(&mut self.draft, &mut path, Fate::Go(point));
        }
        if edges.is_empty() {
            return;
        }
        let model = &self.points.node(number).model;
        self.draft.values.site = Site { node: point.node, block: 0, op: 0 };
        let mut wanted = consulted(model);
        let mut paths = Vec::new();
        let fields = entry_fields(model);
        for edge in edges {
            if missing(edge.state.headers, wanted, &fields).is_none() {
                paths.push(edge);
                continue;
            }
            let path = self.draft.blocks.open(edge);
            let known = resolve_all(&mut self.draft, path, wanted, &fields);
            paths.extend(known.into_iter().map(Path::edge));
        }
        for later in number + 1..self.points.len() {
            wanted |= consulted(&self.points.node(later).model);
        }
        forget_unwanted(&mut self.draft, &mut paths, wanted);
        let mut alike: BTreeMap<(u128, u128, u128), Vec<Edge>> = BTreeMap::new();
        for mut edge in paths {
            if self.points.goes_to_stack(number, &mut edge.state.headers) {
                self.draft.entering.asked |= edge.state.headers.asked;
                let mut path = self.draft.blocks.open(edge);
                leave(&mut self.draft, &mut path, Fate::Go(point));
                continue;
            }
            alike.entry(edge.state.headers.known()).or_default().push(edge);
        }
        let changes = self.points.tag_changes(number);
        for mut edges in alike.into_values() {
            if !changes.pushes && !changes.pops {
                settle_unlike(&mut self.draft, &mut edges);
            }
            self.function(number, edges);
        }
    }

    /// Follows a function for paths that have the same knowledge about the packet's headers.
    fn function(&mut self, number: usize, edges: Vec<Edge>) {
        let node = self.points.node(number);
        let Some(first) = edges.first() else { return };
        let mut visit = Visit {
            point: self.points.point(number),
            number,
            may_end: self.points.may_end(number),
            tag_changes: self.points.tag_changes(number),
            model: &node.model,
            params: &node.params,
            program: &node.model.packet,
            event: None,
            entry: first.state.headers,
            live: live(&node.model.packet),
            inbox: BTreeMap::new(),
        };
        for edge in edges {
            let edge = enter(&mut self.draft, &mut visit, edge);
            self.visits = self.visits.max(edge.state.visits);
            visit.send(BlockId(0), edge);
        }
        self.blocks(&mut visit);
        self.draft.entering.asked |= visit.entry.asked;
    }

    /// Follows the paths that wait at the blocks of a program.
    pub(super) fn blocks(&mut self, visit: &mut Visit<'_>) {
        while let Some((block, edges)) = visit.inbox.pop_first() {
            let mut here = Vec::with_capacity(edges.len());
            for edge in edges {
                here.extend(self.thread(visit, edge, block));
            }
            let live = visit.live[block.index()].clone();
            for group in groups(&mut self.draft, here) {
                if let Some(path) = join(&mut self.draft, group, &live) {
                    self.block(visit, path, block);
                }
            }
        }
    }

    /// Follows a single path while its blocks need no steps and all their conditions are decided.
    /// The path meets other paths only after those blocks. `None` if the path has moved on to a
    /// later block.
    fn thread(&mut self, visit: &mut Visit<'_>, mut edge: Edge, from: BlockId) -> Option<Edge> {
        let program = visit.program;
        let mut block = from;
        loop {
            let code = &program.blocks[block.index()];
            let fuel = self.ahead.checked_sub(1);
            if fuel.is_none() || !matches!(code.term, Term::Jump(_) | Term::Branch { .. }) {
                break;
            }
            self.ahead = fuel.unwrap_or(0);
            // Removes values that no later block uses. Otherwise each block would copy them.
            edge.state.keep_values(&visit.live[block.index()]);
            let stats = self.draft.stats;
            let ended = visit.event.as_ref().map_or(0, |event| event.ended.len());
            let scratch = self.draft.blocks.add(Vec::new());
            let mut path = Path { at: scratch, state: edge.state.clone() };
            let free = code.ops.iter().enumerate().all(|(number, op)| {
                self.draft.values.site = visit.site(block, number);
                execute_op(&mut self.draft, visit, &mut path, op) == Flow::Next
                    && self.draft.blocks.all.len() == scratch + 1
                    && self.draft.blocks.all[scratch].steps.is_empty()
            });
            self.draft.blocks.all.truncate(scratch);
            if let Some(event) = &mut visit.event {
                event.ended.truncate(ended);
            }
            let next = match &code.term {
                Term::Jump(target) if free => Some(target),
                Term::Branch { cond, yes, no } if free => {
                    let cond = path.state.env[cond];
                    let truth = path.state.facts.only(&self.draft.values, cond);
                    truth.map(|word| if word == 0 { no } else { yes })
                }
                _ => None,
            };
            let Some(target) = next else {
                // The block will be executed again for all paths that meet here, so its counts must
                // not count twice.
                self.draft.stats = stats;
                break;
            };
            visit.pass(&mut path, target);
            self.draft.entering.asked |= path.state.headers.asked;
            self.draft.stats.decided += usize::from(matches!(code.term, Term::Branch { .. }));
            edge.state = path.state;
            block = target.block;
        }
        if block == from {
            return Some(edge);
        }
        visit.send(block, edge);
        None
    }

    /// Executes a block for one path.
    fn block(&mut self, visit: &mut Visit<'_>, path: Path, block: BlockId) {
        self.draft.stats.followed += 1;
        let code = &visit.program.blocks[block.index()];
        let mut open = vec![(path, 0)];
        'paths: while let Some((mut path, from)) = open.pop() {
            for (number, op) in code.ops.iter().enumerate().skip(from) {
                self.draft.values.site = visit.site(block, number);
                loop {
                    match execute_op(&mut self.draft, visit, &mut path, op) {
                        Flow::Next => break,
                        Flow::Ended => {
                            self.draft.entering.asked |= path.state.headers.asked;
                            continue 'paths;
                        }
                        Flow::Needs(header) => {
                            let (yes, no) = resolve(&mut self.draft, path, header);
                            open.push((no, number));
                            path = yes;
                        }
                        Flow::Splits(cond) => {
                            let (yes, no) = split(&mut self.draft, path, cond);
                            open.push((no, number));
                            path = yes;
                        }
                    }
                }
                if let Op::Emit { event, args } = op
                    && !self.deliver(visit, &mut path, *event, args)
                {
                    continue 'paths;
                }
            }
            self.draft.values.site = visit.site(block, code.ops.len());
            self.draft.entering.asked |= path.state.headers.asked;
            term(&mut self.draft, &mut self.points, visit, path, &code.term);
        }
    }
}
