//! Regions: parts of a program that depend only on an address.
//!
//! A program may look up one address in several route tables. Addresses that have the same next hop
//! in all of these tables form an *address group*. A *region* begins with such a lookup and
//! contains the following steps that depend only on the address group: the hop, members of lists at
//! the hop, arithmetic on these, and branches on the results. All packets of a group leave the
//! region by the same exit with the same values. Exit and values are the *outcome* of the group.
//! Machine code determines an outcome once and keeps it.
#![expect(
    clippy::indexing_slicing,
    reason = "`Facts` has checked the values and jumps of blocks that the program reaches"
)]

use crate::abi::{AddressGroups, Resources};
use crate::facts::Facts;
use braid_ir::model::{Op, ParamId, SetRef, Target, ValueId};
use braid_ir::residual::{End, Residual, What};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The largest product of the numbers of regions and blocks, which bounds the time of the analysis.
const WORK: usize = 1 << 22;
/// The largest number of words of all outcomes of a program.
const WORDS: u64 = 1 << 23;
/// The largest number of words of one outcome.
const LONGEST: usize = 64;

/// The regions of a program.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    pub(crate) lookups: Vec<Lookups>,
    pub(crate) all: Vec<Region>,
    /// The number of the region that begins at a block and step.
    pub(crate) starts: HashMap<(usize, usize), usize>,
    /// Exits inside blocks: region and exit, by block and by the first step after the region. The
    /// number of the block's steps stands for its end.
    pub(crate) cuts: HashMap<(usize, usize), (usize, usize)>,
    /// Jumps out of regions: region and exit, by block and by number of the jump's target.
    pub(crate) jumps: HashMap<(usize, usize), (usize, usize)>,
    /// Values of regions that are used after their region.
    pub(crate) outs: Vec<ValueId>,
    /// By block: whether only the first packet of an address group runs it.
    pub(crate) first_only: Vec<bool>,
    /// The number of words of all outcomes.
    pub(crate) words: usize,
}

/// The lookups of one address in all route tables.
#[derive(Debug)]
pub(crate) struct Lookups {
    pub(crate) addr: ValueId,
    pub(crate) groups: AddressGroups,
}

/// A region.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) lookups: usize,
    /// Whether an earlier region has already found the address group on every path to this one.
    pub(crate) is_group_known: bool,
    pub(crate) exits: Vec<Exit>,
    /// The exit that is tested first.
    pub(crate) likely: usize,
    /// The distance from one outcome to the next, in words.
    pub(crate) stride: usize,
    /// The position of the region's first outcome, in words.
    pub(crate) first: usize,
}

/// An exit of a region.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) block: usize,
    /// The number of a jump's target in the block's end. `None` if the block continues after the
    /// region.
    pub(crate) target: Option<usize>,
    /// The values that are used after the exit, and their positions in the outcome (in words).
    pub(crate) used: Vec<(ValueId, usize)>,
}

/// Finds regions.
struct Finder<'a> {
    residual: &'a Residual,
    facts: &'a Facts,
    resources: &'a mut dyn Resources,
    /// By address: the number of its lookups.
    lookups: BTreeMap<ValueId, usize>,
    /// By block: the end of the steps that belong to earlier regions.
    taken: Vec<usize>,
    /// By block: the edges that lead to it.
    before: Vec<Vec<(usize, &'a Target)>>,
    /// By block: the lookups whose address group is known on every path to its end.
    known: Vec<Option<HashSet<usize>>>,
    unlikely: Vec<bool>,
    found: Regions,
}

/// The steps of a region that is being built.
struct Body {
    /// By block: the first step of the region, and the end of its steps. The end is one more than
    /// the number of steps if the region contains the block's end, too.
    spans: BTreeMap<usize, (usize, usize)>,
    values: HashSet<ValueId>,
}

impl Regions {
    /// The regions of a program.
    pub(crate) fn of(residual: &Residual, facts: &Facts, resources: &mut dyn Resources) -> Regions {
        let blocks = &residual.blocks;
        let mut before: Vec<Vec<(usize, &Target)>> = vec![Vec::new(); blocks.len()];
        for (from, block) in facts.reached(residual) {
            for target in block.end.targets() {
                before[target.block.index()].push((from, target));
            }
        }
        let mut finder = Finder {
            residual,
            facts,
            resources,
            lookups: BTreeMap::new(),
            taken: vec![0; blocks.len()],
            before,
            known: vec![None; blocks.len()],
            unlikely: unlikely(residual, facts),
            found: Regions { first_only: vec![false; blocks.len()], ..Regions::default() },
        };
        finder.find_lookups();
        if !finder.lookups.is_empty() {
            finder.find_regions();
        }
        finder.found
    }
}

impl Finder<'_> {
    /// Collects the lookups of each address, if the engine has address groups for them.
    fn find_lookups(&mut self) {
        let mut tables: BTreeMap<ValueId, Vec<(u16, ParamId)>> = BTreeMap::new();
        for (_, block) in self.facts.reached(self.residual) {
            for step in &block.steps {
                if let What::Op(Op::Route { param, addr, .. }) = &step.what {
                    tables.entry(*addr).or_default().push((step.site.node, *param));
                }
            }
        }
        for (addr, mut tables) in tables {
            tables.sort_unstable();
            tables.dedup();
            let wide = self.residual.values[addr.index()].width > 32;
            if let Some(groups) = self.resources.address_groups(&tables, wide) {
                self.lookups.insert(addr, self.found.lookups.len());
                self.found.lookups.push(Lookups { addr, groups });
            }
        }
    }

    fn find_regions(&mut self) {
        for (number, block) in self.facts.reached(self.residual) {
            self.groups_known_at(number);
            for (at, step) in block.steps.iter().enumerate() {
                let What::Op(Op::Route { addr, .. }) = &step.what else { continue };
                let Some(lookups) = self.lookups.get(addr).copied() else { continue };
                if at >= self.taken[number]
                    && (self.found.all.len() + 1) * self.residual.blocks.len() <= WORK
                {
                    self.region(number, at, lookups);
                }
            }
        }
    }

    /// Determines which address groups are known at the start of a block.
    fn groups_known_at(&mut self, block: usize) {
        let mut known = self.before[block].iter().filter_map(|(from, _)| self.known[*from].clone());
        let first = known.next().unwrap_or_default();
        self.known[block] = Some(known.fold(first, |all, one| &all & &one));
    }

    /// Adds the region that begins with a step, unless its outcomes would be too large.
    #[expect(clippy::cast_possible_truncation, reason = "outcomes have at most `WORDS` words")]
    fn region(&mut self, block: usize, step: usize, lookups: usize) {
        let body = self.body(block, step, lookups);
        let (exits, longest) = self.exits(&body);
        let stride =
            if longest <= 8 { longest.next_power_of_two() } else { longest.next_multiple_of(8) };
        let groups = u64::from(self.found.lookups[lookups].groups.count);
        let words = groups * stride as u64;
        if longest > LONGEST || self.found.words as u64 + words > WORDS {
            return;
        }
        let number = self.found.all.len();
        for (at, (from, to)) in &body.spans {
            self.taken[*at] = (*to).max(self.taken[*at]);
            self.found.first_only[*at] |= *from == 0;
        }
        for (which, exit) in exits.iter().enumerate() {
            for (value, _) in &exit.used {
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
        let known = &mut self.known[block];
        let is_group_known = !known.get_or_insert_default().insert(lookups);
        self.found.starts.insert((block, step), number);
        let first = self.found.words;
        self.found.words += words as usize;
        self.found.all.push(Region { lookups, is_group_known, exits, likely, stride, first });
    }

    /// The steps from a lookup on that depend only on the address group.
    fn body(&self, block: usize, step: usize, lookups: usize) -> Body {
        let mut body = Body { spans: BTreeMap::new(), values: HashSet::new() };
        let steps = |at: usize| self.residual.blocks[at].steps.len();
        for at in block..self.residual.blocks.len() {
            let from = if at == block { step } else { 0 };
            if self.facts.in_edges[at] == 0 || at != block && !self.leads_into(&mut body, at) {
                continue;
            }
            let mut to = from;
            while to < steps(at) && self.is_of(&body, at, to, lookups) {
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

    /// Whether all edges to a block come from the region and have arguments that depend only on the
    /// address group.
    fn leads_into(&self, body: &mut Body, at: usize) -> bool {
        let edges = &self.before[at];
        let inside = |from: &usize| {
            let steps = self.residual.blocks[*from].steps.len();
            body.spans.get(from).is_some_and(|(_, to)| *to > steps)
        };
        let all = edges.iter().all(|(from, target)| {
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

    /// Whether a step depends only on the address group.
    fn is_of(&self, body: &Body, at: usize, step: usize, lookups: usize) -> bool {
        let step = &self.residual.blocks[at].steps[step];
        let What::Op(op) = &step.what else { return false };
        match op {
            Op::Route { addr, .. } => return self.lookups.get(addr) == Some(&lookups),
            Op::ListGet { param, .. } => {
                if self.resources.list(step.site.node, *param).is_none() {
                    return false;
                }
            }
            Op::InSet { set: SetRef::Const(_), .. } => {}
            op if op.is_arithmetic() => {}
            _ => return false,
        }
        step.what.uses().iter().all(|value| self.is_known(body, *value))
    }

    /// The exits of a region, and the number of words of its longest outcome.
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
            let used = used.into_iter().map(&mut place).collect();
            longest = longest.max(words);
            Exit { block, target, used }
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

    /// By block: the region's values that this block or a later one uses.
    fn live(&self, body: &Body) -> Vec<HashSet<ValueId>> {
        let blocks = &self.residual.blocks;
        let first = body.spans.keys().next().copied().unwrap_or(0);
        let mut live = vec![HashSet::new(); blocks.len()];
        for at in (first..blocks.len()).rev().filter(|at| self.facts.in_edges[*at] > 0) {
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

/// By block: whether every packet that reaches the block is dropped, consumed or answered.
fn unlikely(residual: &Residual, facts: &Facts) -> Vec<bool> {
    let mut unlikely = vec![false; residual.blocks.len()];
    for (at, block) in facts.reached(residual).rev() {
        unlikely[at] = block.is_unlikely(&unlikely);
    }
    unlikely
}
