//! What many records have in common: where the program ends, what is counted, what is written where.

use super::guard::Guard;
use super::live::Live;
use crate::walk::Reached;
use braid_ir::chain::Chain;
use braid_ir::model::ParamId;
use braid_ir::residual::TallyId;
use braid_ir::value::ParamValue;
use braid_jit::Count;
use braid_packet::blend::{Blend, NarrowBlend, Outline};
use braid_packet::{Layout, Packet};
use std::cell::Cell;
use std::collections::HashMap;

/// Most classes. Flows of further ones get no records.
const MOST: usize = 1 << 16;

/// A way through a program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Way {
    /// The program.
    pub(super) program: u32,
    /// The block where it ends.
    pub(super) block: u32,
    pub(super) tallies: Vec<TallyId>,
    /// Rules that are counted: function, rule set, rule.
    pub(super) rules: Vec<(u16, ParamId, u32)>,
    pub(super) guards: Vec<Guard>,
    pub(super) searches: Vec<Search>,
    pub(super) live: Live,
    /// Where the packets' headers are.
    pub(super) outline: Outline,
    pub(super) blend: Blend,
    /// What is written to the first two words of packets with narrow records.
    pub(super) first: [u64; 2],
}

/// Patterns of which a packet's payload must have none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Search {
    pub(super) node: u16,
    pub(super) param: ParamId,
}

impl Search {
    /// Whether a packet's payload is there as a whole, and has none of them.
    pub(super) fn finds_nothing(self, chain: &Chain, packet: &Packet, layout: &Layout) -> bool {
        match &chain.nodes[usize::from(self.node)].params[self.param.index()] {
            ParamValue::Patterns(set) if !layout.payload_truncated() => {
                set.lowest_match(packet.payload(layout)).is_none()
            }
            _ => false,
        }
    }
}

/// A class of records: what each of their packets needs.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Class {
    pub(super) narrow: NarrowBlend,
    pub(super) blend: Blend,
    pub(super) guards: Box<[Guard]>,
    pub(super) searches: Box<[Search]>,
    pub(super) live: Option<Box<Live>>,
    /// Where the packets go.
    pub(super) reached: Reached,
    /// Packets and bytes that are in the counters of program and rules.
    pub(super) settled: Cell<Count>,
}

/// All classes.
#[derive(Debug, Default)]
pub(super) struct Classes {
    pub(super) all: Vec<Class>,
    /// The way of each.
    pub(super) ways: Vec<Way>,
    numbers: HashMap<Way, u32>,
}

impl Classes {
    /// The number of a class, made if need be; `None` if there are too many.
    pub(super) fn number(&mut self, way: Way, reached: Reached) -> Option<u32> {
        if let Some(number) = self.numbers.get(&way) {
            return Some(*number);
        }
        if self.all.len() == MOST {
            return None;
        }
        let number = self.all.len() as u32;
        self.numbers.insert(way.clone(), number);
        let (narrow, blend) = (way.blend.narrow(way.first), way.blend);
        let (guards, searches) = (way.guards.clone().into(), way.searches.clone().into());
        let live = (!way.live.is_empty()).then(|| Box::new(way.live.clone()));
        let settled = Cell::default();
        self.all.push(Class { narrow, blend, guards, searches, live, reached, settled });
        self.ways.push(way);
        Some(number)
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.ways.clear();
        self.numbers.clear();
    }
}
