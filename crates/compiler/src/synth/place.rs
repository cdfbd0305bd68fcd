//! Where pure values are computed: as late as they may be, in the last block that all their uses
//! come after (Click, "Global Code Motion", PLDI 1995; there are no loops here). Cheap ones that
//! only ends of the program need are computed there, each time anew, and not on the way past them.

use super::finish::{Finish, meet, operands};
use super::values::{Def, Pure, Values};
use braid_ir::model::ValueId;
use std::collections::BTreeMap;

/// A place in a block: before the step with this number.
pub(crate) type Spot = (usize, usize);

/// Where a value is computed.
#[derive(Clone, Default)]
pub(crate) struct Places {
    /// For all who come later, in each [`Part`] of the program.
    pub(super) spots: [Option<Spot>; 3],
    /// For blocks that end the program: before the step with this number.
    pub(super) ends: BTreeMap<usize, usize>,
}

/// Parts of a program that do not share what they compute, so that the main way does not compute
/// what it only might need: the test in front, the general program, the one for the main way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Front,
    General,
    Main,
}

/// Most blocks that compute a value each for itself.
const MOST_ENDS: usize = 64;

/// Most operations in a row that are done anew for an end.
const MOST_HEIGHT: u32 = 6;

/// Places for all values.
pub(super) struct Placement<'a> {
    graph: &'a Finish,
    places: Vec<Places>,
    /// How many operations in a row lead to a cheap value; `None` for lookups.
    heights: Vec<Option<u32>>,
}

/// Places of the values that are needed; constants have none, they are wherever they are used.
pub(crate) fn place(graph: &Finish) -> Vec<Places> {
    let values = &graph.values;
    let places = vec![Places::default(); values.len()];
    let mut placement = Placement { graph, places, heights: heights(values) };
    for (at, block) in graph.blocks.iter().enumerate() {
        for (number, step) in block.steps.iter().enumerate() {
            step.what.visit_uses(&mut |value| placement.need(*value, (at, number)));
        }
        let end = (at, block.steps.len());
        block.end.visit_uses(&mut |value| placement.need(*value, end));
        block.end.visit_targets(&mut |target| {
            for value in &target.args {
                placement.need(*value, end);
            }
        });
    }
    // Operands come before what is made of them, so users are placed first.
    for number in (0..values.len()).rev() {
        placement.settle(ValueId(u32::try_from(number).unwrap_or(u32::MAX)));
    }
    placement.places
}

fn heights(values: &Values) -> Vec<Option<u32>> {
    let mut heights: Vec<Option<u32>> = Vec::with_capacity(values.len());
    for number in 0..values.len() {
        let value = ValueId(u32::try_from(number).unwrap_or(u32::MAX));
        heights.push(match values.def(value) {
            Def::Pure(Pure::Route(..) | Pure::Classify(..) | Pure::InColumn(..)) => None,
            Def::Second(_) => None,
            Def::Param | Def::Step => Some(0),
            Def::Pure(pure) => {
                let mut most = 0;
                operands(pure, &mut |operand| {
                    most = most.max(heights[operand.index()].map_or(0, |height| height + 1));
                });
                Some(most)
            }
        });
    }
    heights
}

impl Placement<'_> {
    fn part(&self, block: usize) -> Part {
        match self.graph.main {
            Some(_) if block == 0 => Part::Front,
            Some(main) if block >= main => Part::Main,
            _ => Part::General,
        }
    }

    fn need(&mut self, value: ValueId, at: Spot) {
        let cheap = self.heights[value.index()].is_some_and(|height| height <= MOST_HEIGHT);
        let ends = self.graph.blocks[at.0].end.targets().is_empty();
        let places = &mut self.places[value.index()];
        if cheap && ends && places.ends.len() < MOST_ENDS {
            let number = places.ends.entry(at.0).or_insert(at.1);
            *number = at.1.min(*number);
        } else {
            self.need_before(value, at);
        }
    }

    fn need_before(&mut self, value: ValueId, at: Spot) {
        let graph = self.graph;
        let part = self.part(at.0);
        let spot = &mut self.places[value.index()].spots[part as usize];
        *spot = Some(match *spot {
            None => at,
            Some(other) if other.0 == at.0 => (at.0, at.1.min(other.1)),
            Some(other) => {
                let block = meet(&graph.dominator, &graph.depth, other.0, at.0);
                if block == other.0 {
                    other
                } else if block == at.0 {
                    at
                } else {
                    (block, graph.blocks[block].steps.len())
                }
            }
        });
    }

    /// All users of a value are placed: it is, and so are its operands needed there.
    fn settle(&mut self, value: ValueId) {
        let graph = self.graph;
        let pure = match graph.values.def(value) {
            Def::Param | Def::Step => return,
            Def::Pure(Pure::Const(_)) => {
                self.places[value.index()] = Places::default();
                return;
            }
            Def::Second(first) => {
                for spot in self.places[value.index()].spots.into_iter().flatten() {
                    self.need_before(*first, spot);
                }
                return;
            }
            Def::Pure(pure) => pure,
        };
        let init = matches!(pure, Pure::Init(_));
        let ends = std::mem::take(&mut self.places[value.index()].ends);
        let mut own = BTreeMap::new();
        for (block, number) in ends {
            if init && graph.changed[block] {
                self.need_before(value, (block, number));
            } else {
                own.insert(block, if init { number.min(graph.change[block]) } else { number });
            }
        }
        let mut spots = self.places[value.index()].spots;
        if spots[Part::Front as usize].is_some() {
            spots[1..].fill(None);
        }
        for spot in spots.iter_mut().flatten() {
            if init {
                *spot = self.before_changes(*spot);
            }
            own.retain(|end, _| {
                *end == spot.0 || meet(&graph.dominator, &graph.depth, *end, spot.0) != spot.0
            });
            // In the block where it is computed for later ones too.
            if let Some(own) = own.remove(&spot.0) {
                spot.1 = own.min(spot.1);
            }
        }
        self.places[value.index()] = Places { spots, ends: own.clone() };
        for at in spots.into_iter().flatten().chain(own) {
            operands(pure, &mut |operand| self.need(operand, at));
        }
    }

    /// The last spot no later than this one where the packet is still as it entered.
    fn before_changes(&self, spot: Spot) -> Spot {
        let (mut block, mut number) = spot;
        while self.graph.changed[block] {
            block = self.graph.dominator[block];
            number = self.graph.blocks[block].steps.len();
        }
        (block, number.min(self.graph.change[block]))
    }
}
