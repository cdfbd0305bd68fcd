//! Turns the intermediate representation into micrographs (NFP §4.4.2) and the final graph
//! (§4.4.3).
//!
//! Functions that cannot run in parallel run in sequence, and all others run in parallel. So the
//! equivalent length is that of the longest row of functions that must wait for each other. No
//! graph is shorter. Among the candidates with that length, the plan takes one with the fewest
//! copies.

use super::depend::Parallel;
use super::policy::{Function, Representation};
use super::versions::{Cost, Sharing, Versions};
use braid_ir::service_graph::Node;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// The kinds of micrographs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// One function, with or without a position.
    Single,
    /// Several functions. Some of them wait for others.
    Tree,
    /// Several functions side by side.
    Plain,
}

/// A micrograph: functions that rules relate to each other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Micrograph {
    /// Its kind.
    pub shape: Shape,
    /// Its functions, in an order in which they could run in sequence.
    pub functions: Vec<usize>,
}

/// The arrangement of units (functions, or groups under `Priority`).
#[derive(Clone, Debug)]
pub(super) enum Layout {
    Unit(usize),
    Sequence(Vec<Layout>),
    Parallel(Vec<Layout>),
}

/// The inputs of planning: the relation of each pair of functions, and the units.
pub(super) struct Plan<'p> {
    pub(super) functions: &'p [Function],
    pub(super) representation: &'p Representation,
    /// The result of Algorithm 1, by (first, second).
    pub(super) found: HashMap<(usize, usize), Parallel>,
    /// For each function, its position in an order in which the functions could run in sequence. In
    /// a group under `Priority`, branches with lower priority come first.
    pub(super) rank: Vec<usize>,
    pub(super) sharing: Sharing,
}

impl<'p> Plan<'p> {
    pub(super) fn new(
        functions: &'p [Function],
        representation: &'p Representation,
        sharing: Sharing,
    ) -> Self {
        let pairs = representation.pairs.iter();
        let found = pairs.map(|pair| ((pair.first, pair.second), pair.finding.parallel)).collect();
        let mut rank = vec![0; functions.len()];
        for (place, function) in representation.units.iter().flatten().enumerate() {
            rank[*function] = place;
        }
        Self { functions, representation, found, rank, sharing }
    }

    fn members(&self, unit: usize) -> &[usize] {
        &self.representation.units[unit]
    }

    /// The relation of two functions, the first one first. Functions without a known relation are
    /// not parallel.
    pub(super) fn between(&self, first: usize, second: usize) -> Parallel {
        self.found.get(&(first, second)).copied().unwrap_or(Parallel::No)
    }

    /// The most restrictive relation between members of two units. `a` comes first.
    fn units(&self, a: usize, b: usize) -> Parallel {
        let pairs =
            self.members(a).iter().flat_map(|x| self.members(b).iter().map(move |y| (x, y)));
        pairs.map(|(x, y)| self.between(*x, *y)).max().unwrap_or(Parallel::WithoutCopy)
    }

    /// The micrographs, in order: units that rules relate.
    pub(super) fn micrographs(&self) -> Vec<(Micrograph, Vec<usize>)> {
        let representation = self.representation;
        let placed = |unit: &[usize]| {
            unit.iter().any(|f| [representation.first, representation.last].contains(&Some(*f)))
        };
        let (alone, rest): (Vec<usize>, Vec<usize>) =
            (0..representation.units.len()).partition(|unit| placed(self.members(*unit)));
        let mut unit_of = vec![0; self.functions.len()];
        for (number, unit) in representation.units.iter().enumerate() {
            unit.iter().for_each(|function| unit_of[*function] = number);
        }
        let ruled = representation.pairs.iter().filter(|pair| pair.rule.is_some());
        let ruled: HashSet<(usize, usize)> =
            ruled.map(|pair| (unit_of[pair.first], unit_of[pair.second])).collect();
        let mut groups = components(&rest, |a, b| ruled.contains(&(a, b)));
        groups.extend(alone.into_iter().map(|unit| vec![unit]));
        groups.into_iter().map(|units| (self.micrograph(&units), units)).collect()
    }

    fn micrograph(&self, units: &[usize]) -> Micrograph {
        let functions: Vec<usize> =
            units.iter().flat_map(|unit| self.members(*unit)).copied().collect();
        let waits = |(at, a): (usize, &usize)| {
            units[at + 1..].iter().any(|b| self.units(*a, *b) == Parallel::No)
        };
        let shape = match functions.len() {
            1 => Shape::Single,
            _ if units.iter().enumerate().any(waits) => Shape::Tree,
            _ => Shape::Plain,
        };
        Micrograph { shape, functions }
    }

    /// The graph: the first function, then all micrographs in parallel, then the last function.
    pub(super) fn graph(&self, micrographs: &[(Micrograph, Vec<usize>)]) -> (Node, Versions) {
        let position = |function: Option<usize>| {
            let function = function?;
            self.representation.units.iter().position(|unit| unit.contains(&function))
        };
        let first = position(self.representation.first);
        let last = position(self.representation.last);
        let middle = micrographs
            .iter()
            .filter(|(_, units)| !units.iter().any(|unit| [first, last].contains(&Some(*unit))));
        let middle: Vec<Layout> = middle.map(|(_, units)| self.layout(units)).collect();
        let mut row: Vec<Layout> = first.map(Layout::Unit).into_iter().collect();
        row.extend(beside(middle));
        row.extend(last.map(Layout::Unit));
        let mut versions = Versions::default();
        let node = self.node(&after(row), 1, &mut versions);
        (node, versions)
    }

    /// The layout of a micrograph: of three candidates with the least equivalent length, the one
    /// with the lowest [`Cost`].
    fn layout(&self, units: &[usize]) -> Layout {
        let candidates = [
            self.nested(units),
            self.stages(units, &self.earliest(units)),
            self.stages(units, &self.latest(units)),
        ];
        let cost = |layout: &Layout| -> Cost {
            let mut versions = Versions::default();
            let _ = self.node(layout, 1, &mut versions);
            versions.cost()
        };
        let best = candidates.iter().min_by_key(|layout| cost(layout)).cloned();
        best.unwrap_or(Layout::Sequence(Vec::new()))
    }

    /// Runs unrelated groups of units in parallel. Each group has its own sequence.
    fn nested(&self, units: &[usize]) -> Layout {
        if let [unit] = units {
            return Layout::Unit(*unit);
        }
        let groups = components(units, |a, b| self.units(a, b) == Parallel::No);
        if groups.len() > 1 {
            return beside(groups.iter().map(|group| self.nested(group)).collect())
                .unwrap_or(Layout::Sequence(Vec::new()));
        }
        let levels = self.earliest(units);
        let (now, later): (Vec<usize>, Vec<usize>) =
            units.iter().partition(|unit| levels[unit] == 0);
        after(vec![self.nested(&now), self.nested(&later)])
    }

    /// Runs stages in sequence. `levels` gives the stage of each unit.
    fn stages(&self, units: &[usize], levels: &HashMap<usize, usize>) -> Layout {
        let most = levels.values().copied().max().unwrap_or(0);
        let stage = |level: usize| {
            let here = units.iter().filter(|unit| levels[unit] == level);
            beside(here.map(|unit| Layout::Unit(*unit)).collect())
        };
        after((0..=most).filter_map(stage).collect())
    }

    /// The least level of each unit. A unit comes after the units that it must wait for. It may
    /// share a level with a unit if their order makes a difference, but it never comes before it.
    fn earliest(&self, units: &[usize]) -> HashMap<usize, usize> {
        let mut levels: HashMap<usize, usize> = HashMap::new();
        for (at, unit) in units.iter().enumerate() {
            let before = units[..at].iter().filter_map(|a| Some(levels[a] + self.gap(*a, *unit)?));
            let level = before.max().unwrap_or(0);
            levels.insert(*unit, level);
        }
        levels
    }

    /// The largest level of each unit in a graph of the same length.
    fn latest(&self, units: &[usize]) -> HashMap<usize, usize> {
        let most = self.earliest(units).into_values().max().unwrap_or(0);
        let mut levels: HashMap<usize, usize> = HashMap::new();
        for (at, unit) in units.iter().enumerate().rev() {
            let behind = units[at + 1..]
                .iter()
                .filter_map(|b| Some(levels[b].saturating_sub(self.gap(*unit, *b)?)));
            let level = behind.min().unwrap_or(most);
            levels.insert(*unit, level);
        }
        levels
    }

    /// The least number of levels by which a unit must come after an earlier one. `None` if it may
    /// also come before it.
    fn gap(&self, before: usize, unit: usize) -> Option<usize> {
        match self.units(before, unit) {
            Parallel::No => Some(1),
            _ if self.swappable(before, unit) => None,
            _ => Some(0),
        }
    }

    /// Whether the order of two units makes no difference.
    fn swappable(&self, a: usize, b: usize) -> bool {
        use super::depend::{Reading, identify};
        let pairs =
            self.members(a).iter().flat_map(|x| self.members(b).iter().map(move |y| (x, y)));
        pairs.into_iter().all(|(x, y)| {
            let (of_x, of_y) = (&self.functions[*x].actions, &self.functions[*y].actions);
            [identify(of_x, of_y, Reading::default()), identify(of_y, of_x, Reading::default())]
                .iter()
                .all(|finding| finding.parallel == Parallel::WithoutCopy)
        })
    }
}

/// The connected components of a graph, each in the order of `things`. `joined` takes the earlier
/// and the later thing.
fn components(things: &[usize], joined: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..things.len()).collect();
    for (b, later) in things.iter().enumerate() {
        for (a, earlier) in things[..b].iter().enumerate() {
            if group[a] != group[b] && joined(*earlier, *later) {
                let (kept, gone) = (group[a].min(group[b]), group[a].max(group[b]));
                group.iter_mut().filter(|g| **g == gone).for_each(|g| *g = kept);
            }
        }
    }
    let of = |number: usize| {
        let here = things.iter().zip(&group).filter(move |(_, g)| **g == number);
        here.map(|(thing, _)| *thing).collect::<Vec<_>>()
    };
    (0..things.len()).map(of).filter(|members| !members.is_empty()).collect()
}

/// The parts in parallel. `None` if there are no parts.
fn beside(mut parts: Vec<Layout>) -> Option<Layout> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => {
            let flat = parts.into_iter().flat_map(|part| match part {
                Layout::Parallel(inner) => inner,
                other => vec![other],
            });
            Some(Layout::Parallel(flat.collect()))
        }
    }
}

/// The parts in sequence.
fn after(mut parts: Vec<Layout>) -> Layout {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let flat = parts.into_iter().flat_map(|part| match part {
        Layout::Sequence(inner) => inner,
        other => vec![other],
    });
    Layout::Sequence(flat.collect())
}
