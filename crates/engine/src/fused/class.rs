//! What many records have in common: where the program ends, what is counted, what is written where.

use super::guard::{Guard, Link};
use super::live::Live;
use crate::walk::Reached;
use braid_ir::chain::Chain;
use braid_ir::model::ParamId;
use braid_ir::residual::TallyId;
use braid_ir::value::ParamValue;
use braid_jit::Count;
use braid_packet::blend::{Blend, NarrowBlend, Outline};
use braid_packet::{Layout, Packet};
use braid_state::Store;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

/// Most classes. Flows of further ones get no records.
const MOST: usize = 1 << 16;
/// Most links' addresses that classes have. Records with further ones are wide.
const MOST_LINKS: usize = 1 << 12;

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
    /// What the first two words of packets with narrow records are, and what is written to them.
    pub(super) link: Link,
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

/// A class of records: what each of their packets needs, in the order in which most do.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Class {
    pub(super) narrow: NarrowBlend,
    /// What else is asked and done for each packet.
    pub(super) more: Option<Box<More>>,
    pub(super) link: Link,
    pub(super) guards: Box<[Guard]>,
    /// Where the packets go.
    pub(super) reached: Reached,
    pub(super) blend: Blend,
    /// Packets and bytes that are in the counters of program and rules.
    pub(super) settled: Cell<Count>,
}

/// What is asked, and done, for each packet of some classes.
#[derive(Debug)]
pub(super) struct More {
    pub(super) searches: Vec<Search>,
    pub(super) live: Live,
}

impl Class {
    /// Whether the bits of a packet are what its records take for granted.
    pub(super) fn fits(&self, packet: &Packet) -> bool {
        let data = packet.data();
        let mut guards = self.guards.iter();
        self.link.holds(data) && guards.all(|guard| guard.holds(data, packet.wire_len))
    }

    /// Whether there is nothing else to be asked and done, and the packet fits, as far as that is easily said.
    #[inline(always)]
    pub(super) fn simply_fits(&self, packet: &Packet) -> bool {
        let data = packet.data();
        let mut guards = self.guards.iter();
        self.more.is_none()
            && self.link.holds(data)
            && guards.all(|guard| guard.surely_holds(data, packet.wire_len))
    }
}

impl More {
    /// Asks, and does, this for a packet that takes the record with this number; false, and nothing has happened, if
    /// the packet does not fit.
    #[inline(never)]
    pub(super) fn run(
        &self,
        (store, chain): (&mut Store, &Chain),
        record: u32,
        (packet, layout): (&Packet, &Layout),
        time: u64,
    ) -> bool {
        self.searches.iter().all(|search| search.finds_nothing(chain, packet, layout))
            && self.live.run(store, record, packet.wire_len, time)
    }
}

/// All classes.
#[derive(Debug, Default)]
pub(super) struct Classes {
    pub(super) all: Vec<Class>,
    /// The way of each.
    pub(super) ways: Vec<Way>,
    numbers: HashMap<Way, u32>,
    /// The link's addresses of all.
    links: HashSet<(Link, [u64; 2])>,
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
        self.links.insert((way.link, way.first));
        let (narrow, blend) = (way.blend.narrow(way.first), way.blend);
        let (link, guards) = (way.link, way.guards.clone().into());
        let is_more = !way.searches.is_empty() || !way.live.is_empty();
        let more = || Box::new(More { searches: way.searches.clone(), live: way.live.clone() });
        let more = is_more.then(more);
        let settled = Cell::default();
        self.all.push(Class { narrow, more, link, guards, reached, blend, settled });
        self.ways.push(way);
        Some(number)
    }

    /// Whether a class would have addresses of the link that none has, where there are many.
    pub(super) fn lacks_link(&self, way: &Way) -> bool {
        self.links.len() >= MOST_LINKS && !self.links.contains(&(way.link, way.first))
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.ways.clear();
        self.numbers.clear();
        self.links.clear();
    }
}
