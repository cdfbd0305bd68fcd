//! Parts of programs that depend on nothing but the class of an address.
//!
//! All routes that a program looks up for one address make a *group*: addresses with the same hops in all
//! of its tables are a class. What follows from a lookup (its hop, members of lists at the hop,
//! arithmetic on these, branches on that) is the same for all packets of the class, as far as it hangs on nothing
//! else: a *region*. Where packets of a class leave the region, and with which values, is found out once
//! and kept in a record.

use crate::abi::{Classes, Resources};
use crate::facts::Facts;
use braid_ir::model::{Op, ParamId, SetRef, Target, ValueId};
use braid_ir::residual::{Block, End, Fate, Residual, What};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Most regions times blocks, which bounds the work.
const WORK: usize = 1 << 22;
/// Most words of the records of a program.
const WORDS: u64 = 1 << 23;
/// Most words of a record.
const LONGEST: usize = 64;

/// The regions of a program.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    pub(crate) groups: Vec<Group>,
    pub(crate) all: Vec<Region>,
    /// By block and step.
    pub(crate) starts: HashMap<(usize, usize), usize>,
    /// Where ways leave regions: by block and the step before which they do; behind all steps is the
    /// block's end. Region and exit.
    pub(crate) cuts: HashMap<(usize, usize), (usize, usize)>,
    /// Jumps out of regions: by block and number of the target.
    pub(crate) jumps: HashMap<(usize, usize), (usize, usize)>,
    /// Values of regions that are used behind them.
    pub(crate) outs: Vec<ValueId>,
    /// By block: whether it is of use to the first packet of a class only.
    pub(crate) first_only: Vec<bool>,
    /// Words of all records.
    pub(crate) words: usize,
}

/// Routes for one address.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) addr: ValueId,
    pub(crate) classes: Classes,
}

/// What follows from a lookup.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) group: usize,
    /// Whether the class is known from an earlier region on all ways.
    pub(crate) known: bool,
    pub(crate) exits: Vec<Exit>,
    /// The exit to test for first.
    pub(crate) likely: usize,
    /// Words of a record.
    pub(crate) stride: usize,
    /// Words before its first record.
    pub(crate) first: usize,
}

/// Where ways leave a region.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) block: usize,
    /// The target of a jump, or none where the block goes on outside.
    pub(crate) target: Option<usize>,
    /// The values that are used from here on, and their words in the record.
    pub(crate) live: Vec<(ValueId, usize)>,
}

/// Finds regions.
struct Finder<'a> {
    residual: &'a Residual,
    facts: &'a Facts,
    resources: &'a mut dyn Resources,
    /// Groups by address.
    groups: BTreeMap<ValueId, usize>,
    /// By block: the steps of earlier regions end here.
    taken: Vec<usize>,
    /// By block: where ways lead in from.
    before: Vec<Vec<(usize, &'a Target)>>,
    /// By block: groups whose class is known on all ways there.
    classes: Vec<Option<HashSet<usize>>>,
    unlikely: Vec<bool>,
    found: Regions,
}

/// A region in the making.
struct Body {
    /// Steps in it by block: from, and up to. Up to one more than there are for those whose end is in it.
    spans: BTreeMap<usize, (usize, usize)>,
    values: HashSet<ValueId>,
}

impl Regions {
    /// The regions of a program.
    pub(crate) fn of(residual: &Residual, facts: &Facts, resources: &mut dyn Resources) -> Regions {
        let blocks = &residual.blocks;
        let mut before: Vec<Vec<(usize, &Target)>> = vec![Vec::new(); blocks.len()];
        for (from, block) in blocks.iter().enumerate().filter(|(from, _)| facts.ways[*from] > 0) {
            for target in block.end.targets() {
                before[target.block.index()].push((from, target));
            }
        }
        let mut finder = Finder {
            residual,
            facts,
            resources,
            groups: BTreeMap::new(),
            taken: vec![0; blocks.len()],
            before,
            classes: vec![None; blocks.len()],
            unlikely: unlikely(blocks),
            found: Regions { first_only: vec![false; blocks.len()], ..Regions::default() },
        };
        finder.group();
        if !finder.groups.is_empty() {
            finder.find();
        }
        finder.found
    }
}

impl Finder<'_> {
    /// Puts lookups of one address together.
    fn group(&mut self) {
        let mut tables: BTreeMap<ValueId, Vec<(u16, ParamId)>> = BTreeMap::new();
        for (block, ways) in self.residual.blocks.iter().zip(&self.facts.ways) {
            for step in block.steps.iter().filter(|_| *ways > 0) {
                if let What::Op(Op::Route { param, addr, .. }) = &step.what {
                    tables.entry(*addr).or_default().push((step.site.node, *param));
                }
            }
        }
        for (addr, mut tables) in tables {
            tables.sort_unstable();
            tables.dedup();
            let wide = self.residual.values[addr.index()].width > 32;
            if let Some(classes) = self.resources.classes(&tables, wide) {
                self.groups.insert(addr, self.found.groups.len());
                self.found.groups.push(Group { addr, classes });
            }
        }
    }

    fn find(&mut self) {
        for (number, block) in self.residual.blocks.iter().enumerate() {
            if self.facts.ways[number] == 0 {
                continue;
            }
            self.known_at(number);
            for (at, step) in block.steps.iter().enumerate() {
                let What::Op(Op::Route { addr, .. }) = &step.what else { continue };
                let Some(group) = self.groups.get(addr).copied() else { continue };
                if at >= self.taken[number]
                    && (self.found.all.len() + 1) * self.residual.blocks.len() <= WORK
                {
                    self.region(number, at, group);
                }
            }
        }
    }

    /// Which classes are known when packets come to a block.
    fn known_at(&mut self, block: usize) {
        let mut ways =
            self.before[block].iter().filter_map(|(from, _)| self.classes[*from].clone());
        let first = ways.next().unwrap_or_default();
        self.classes[block] = Some(ways.fold(first, |all, one| &all & &one));
    }

    /// A region that begins with a step.
    fn region(&mut self, block: usize, step: usize, group: usize) {
        let body = self.body(block, step, group);
        let (exits, longest) = self.exits(&body);
        let stride =
            if longest <= 8 { longest.next_power_of_two() } else { longest.next_multiple_of(8) };
        let classes = u64::from(self.found.groups[group].classes.count);
        let words = classes * stride as u64;
        if longest > LONGEST || self.found.words as u64 + words > WORDS {
            return;
        }
        let number = self.found.all.len();
        for (at, (from, to)) in &body.spans {
            self.taken[*at] = (*to).max(self.taken[*at]);
            self.found.first_only[*at] |= *from == 0;
        }
        for (which, exit) in exits.iter().enumerate() {
            for (value, _) in &exit.live {
                self.found.outs.push(*value);
            }
            match exit.target {
                Some(target) => {
                    self.found.jumps.insert((exit.block, target), (number, which));
                }
                None => {
                    let cut = body.spans[&exit.block].1;
                    self.found.cuts.insert((exit.block, cut), (number, which));
                }
            }
        }
        let likely = exits.iter().rposition(|exit| !self.is_unlikely(exit)).unwrap_or(0);
        let known = &mut self.classes[block];
        let known = !known.get_or_insert_default().insert(group);
        self.found.starts.insert((block, step), number);
        let first = self.found.words;
        self.found.words += words as usize;
        self.found.all.push(Region { group, known, exits, likely, stride, first });
    }

    /// The steps from one on that depend on the class alone.
    fn body(&self, block: usize, step: usize, group: usize) -> Body {
        let mut body = Body { spans: BTreeMap::new(), values: HashSet::new() };
        let steps = |at: usize| self.residual.blocks[at].steps.len();
        for at in block..self.residual.blocks.len() {
            let from = if at == block { step } else { 0 };
            if self.facts.ways[at] == 0 || at != block && !self.leads_into(&mut body, at) {
                continue;
            }
            let mut to = from;
            while to < steps(at) && self.is_of(&body, at, to, group) {
                body.values.extend(self.residual.blocks[at].steps[to].what.outs());
                to += 1;
            }
            let goes_on = to == steps(at)
                && match &self.residual.blocks[at].end {
                    End::Jump(_) => true,
                    End::Branch { cond, .. } => self.is_known(&body, *cond),
                    End::Exit(_) | End::Hold { .. } => false,
                };
            body.spans.insert(at, (from, to + usize::from(goes_on)));
        }
        body
    }

    /// Whether all ways to a block come from the region, with values that hang on the class.
    fn leads_into(&self, body: &mut Body, at: usize) -> bool {
        let ways = &self.before[at];
        let inside = |from: &usize| {
            let steps = self.residual.blocks[*from].steps.len();
            body.spans.get(from).is_some_and(|(_, to)| *to > steps)
        };
        let all = ways.iter().all(|(from, target)| {
            inside(from) && target.args.iter().all(|arg| self.is_known(body, *arg))
        });
        if all {
            body.values.extend(&self.residual.blocks[at].params);
        }
        all
    }

    fn is_known(&self, body: &Body, value: ValueId) -> bool {
        self.facts.consts[value.index()].is_some() || body.values.contains(&value)
    }

    /// Whether a step hangs on the class alone.
    fn is_of(&self, body: &Body, at: usize, step: usize, group: usize) -> bool {
        let step = &self.residual.blocks[at].steps[step];
        let What::Op(op) = &step.what else { return false };
        match op {
            Op::Route { addr, .. } => return self.groups.get(addr) == Some(&group),
            Op::ListGet { param, .. } => {
                if self.resources.list(step.site.node, *param).is_none() {
                    return false;
                }
            }
            Op::InSet { set: SetRef::Const(_), .. }
            | Op::Const { .. }
            | Op::Bin { .. }
            | Op::Cmp { .. }
            | Op::Not { .. }
            | Op::Resize { .. }
            | Op::Clamp { .. }
            | Op::Select { .. } => {}
            _ => return false,
        }
        step.what.uses().iter().all(|value| self.is_known(body, *value))
    }

    /// Where ways leave a region, and the words of its longest record.
    fn exits(&self, body: &Body) -> (Vec<Exit>, usize) {
        let live = self.live(body);
        let mut exits = Vec::new();
        for (at, (_, to)) in &body.spans {
            let block = &self.residual.blocks[*at];
            if *to <= block.steps.len() {
                let mut used = self.used(body, *at, *to);
                for target in block.end.targets() {
                    used.extend(&live[target.block.index()]);
                }
                exits.push((*at, None, used));
                continue;
            }
            for (number, target) in block.end.targets().into_iter().enumerate() {
                let to = target.block.index();
                if !body.spans.contains_key(&to) {
                    let mut used = live[to].clone();
                    used.extend(target.args.iter().filter(|arg| body.values.contains(arg)));
                    exits.push((*at, Some(number), used));
                }
            }
        }
        let mut longest = 1;
        let exits = exits.into_iter().map(|(block, target, used)| {
            let mut used: Vec<ValueId> = used
                .into_iter()
                .filter(|value| self.facts.consts[value.index()].is_none())
                .collect();
            used.sort_unstable();
            let mut words = 1;
            let mut place = |value: ValueId| {
                let at = words;
                words += if self.facts.bits[value.index()] > 64 { 2 } else { 1 };
                (value, at)
            };
            let live = used.into_iter().map(&mut place).collect();
            longest = longest.max(words);
            Exit { block, target, live }
        });
        let exits = exits.collect();
        (exits, longest)
    }

    /// The region's values that a block uses from a step on.
    fn used(&self, body: &Body, block: usize, from: usize) -> HashSet<ValueId> {
        let block = &self.residual.blocks[block];
        let mut used = HashSet::new();
        let mut note = |value: &ValueId| {
            if body.values.contains(value) {
                used.insert(*value);
            }
        };
        block.steps[from..].iter().for_each(|step| step.what.visit_uses(&mut note));
        block.end.visit_uses(&mut note);
        for target in block.end.targets() {
            target.args.iter().for_each(&mut note);
        }
        used
    }

    /// By block: the region's values that are used there or later.
    fn live(&self, body: &Body) -> Vec<HashSet<ValueId>> {
        let blocks = &self.residual.blocks;
        let first = body.spans.keys().next().copied().unwrap_or(0);
        let mut live = vec![HashSet::new(); blocks.len()];
        for at in (first..blocks.len()).rev().filter(|at| self.facts.ways[*at] > 0) {
            let mut all = self.used(body, at, 0);
            for target in blocks[at].end.targets() {
                all.extend(&live[target.block.index()]);
            }
            live[at] = all;
        }
        live
    }

    fn is_unlikely(&self, exit: &Exit) -> bool {
        match exit.target {
            None => self.unlikely[exit.block],
            Some(number) => {
                let targets = self.residual.blocks[exit.block].end.targets();
                targets.get(number).is_some_and(|target| self.unlikely[target.block.index()])
            }
        }
    }
}

/// By block: whether packets only come there to be dropped or answered.
fn unlikely(blocks: &[Block]) -> Vec<bool> {
    let mut unlikely = vec![false; blocks.len()];
    for (at, block) in blocks.iter().enumerate().rev() {
        let answers =
            block.steps.iter().any(|step| matches!(step.what, What::Op(Op::Create { .. })));
        unlikely[at] = answers
            || match &block.end {
                End::Exit(exit) => matches!(
                    exit.fate,
                    Fate::Drop { .. } | Fate::Fault { .. } | Fate::Consume { .. }
                ),
                End::Hold { .. } => false,
                end => end.targets().iter().all(|target| unlikely[target.block.index()]),
            };
    }
    unlikely
}
