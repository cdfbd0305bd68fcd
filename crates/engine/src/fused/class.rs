//! What many records have in common: where programs end, what is counted, what is written where.

use super::aside::{Aside, Goal};
use super::change::{Basis, Part};
use super::guard::{ByteGuard, Guard, Link};
use super::live::{Live, Words};
use super::plan::{LENGTH, OPEN};
use crate::report::Tally;
use crate::walk::Reached;
use braid_ir::chain::Chain;
use braid_ir::engine::Outputs;
use braid_ir::model::ParamId;
use braid_ir::residual::TallyId;
use braid_ir::value::ParamValue;
use braid_jit::Count;
use braid_native::Payload;
use braid_packet::blend::{Blend, NARROW_BYTES, NarrowBlend, Outline};
use braid_packet::{Field, Layout, Packet};
use braid_state::Store;
use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};

/// Most classes. Flows of further ones get no records.
const MOST: usize = 1 << 16;
/// Most links' addresses that classes have. Records with further ones are wide.
const MOST_LINKS: usize = 1 << 12;
/// Most of those that have something aside: where that is what each flow has of its own, there are many.
const MOST_ASIDE: usize = MOST / 2;

/// So many classes may differ in the very backend that they rest on.
const FINE: usize = 1 << 12;

/// A way through programs and native functions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Way {
    /// The program, or where packets may meet native functions the number of the entry, by which they come.
    pub(super) entry: u32,
    /// Those, in order. A way without native functions has one program.
    pub(super) legs: Vec<Leg>,
    /// Tallies of all programs, in order, and by how many bytes the packets are then longer than when they came.
    pub(super) tallies: Vec<(TallyId, i32)>,
    /// Rules that are counted: function, rule set, rule.
    pub(super) rules: Vec<(u16, ParamId, u32)>,
    pub(super) guards: Vec<Guard>,
    pub(super) searches: Vec<Search>,
    pub(super) live: Live,
    /// Parameters that it rests on.
    pub(super) bases: Vec<Basis>,
    /// Where the packets' headers are.
    pub(super) outline: Outline,
    pub(super) blend: Blend,
    /// What the first two words of packets with narrow records are, and what is written to them.
    pub(super) link: Link,
    pub(super) first: [u64; 2],
    pub(super) aside: Aside,
}

/// A part of a way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Leg {
    Program(Through),
    Native(Native),
}

/// A way through a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Through {
    /// The program.
    pub(super) program: u32,
    /// The block where it ends.
    pub(super) block: u32,
    /// Where its tallies end among those of the way.
    tallies: usize,
}

/// What a native function does with packets by what it has recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Native {
    pub(super) node: u16,
    pub(super) backward: bool,
    /// What happens to the packets' headers before, since the last one whose functions see them, if any of its own do.
    pub(super) before: Option<Box<Blend>>,
    /// What its state functions do with the payload, in order.
    pub(super) state: Vec<Payload>,
    /// How many conditions it looks at after each packet.
    pub(super) guards: usize,
    /// Fields that it writes.
    pub(super) writes: Vec<Field>,
    /// The reason for which it drops them.
    pub(super) drops: Option<u32>,
    /// By how many bytes they become longer.
    pub(super) longer: i64,
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

impl Hash for Way {
    /// By what ways of a program mostly differ in.
    fn hash<H: Hasher>(&self, state: &mut H) {
        for leg in &self.legs {
            state.write_u64(match leg {
                Leg::Program(through) => {
                    u64::from(through.program) << 32 | u64::from(through.block)
                }
                Leg::Native(native) => native.node.into(),
            });
        }
        state.write_usize(self.outline.ip);
        self.first.iter().chain(&self.link.is).for_each(|word| state.write_u64(*word));
        self.rules.iter().for_each(|(_, _, rule)| state.write_u32(*rule));
        for Guard { least, most, .. } in &self.guards {
            state.write_u64(u64::from(*least) << 32 | u64::from(*most));
        }
        for Basis { part, .. } in &self.bases {
            state.write_u32(if let Part::Backend(number) = part { *number } else { u32::MAX });
        }
        self.live.hash_values(state);
        self.aside.hash(state);
    }
}

impl Way {
    /// One that nothing is known of.
    pub(super) fn new() -> Self {
        Self {
            entry: 0,
            legs: Vec::new(),
            tallies: Vec::new(),
            rules: Vec::new(),
            guards: Vec::new(),
            searches: Vec::new(),
            live: Live::default(),
            bases: Vec::new(),
            outline: Outline::PLAIN,
            blend: Blend::NONE,
            link: Link::default(),
            first: [0; 2],
            aside: Aside::default(),
        }
    }

    /// Nothing is known any more but by what packets come, and where their headers are.
    pub(super) fn start(&mut self, entry: u32, outline: Outline) {
        (self.entry, self.outline) = (entry, outline);
        (self.blend, self.link, self.first) = (Blend::NONE, Link::default(), [0; 2]);
        self.legs.clear();
        self.tallies.clear();
        self.rules.clear();
        self.guards.clear();
        self.searches.clear();
        self.live.clear();
        self.bases.clear();
        self.aside = Aside::default();
    }

    /// Whether packets do something beside their way.
    pub(super) fn has_aside(&self) -> bool {
        self.aside != Aside::default()
    }

    /// It leads through a program, to the end of a block.
    pub(super) fn pass(&mut self, program: u32, block: u32) {
        let tallies = self.tallies.len();
        self.legs.push(Leg::Program(Through { program, block, tallies }));
    }

    /// The ways through programs, with what is counted there.
    pub(super) fn programs(&self) -> impl Iterator<Item = (Through, &[(TallyId, i32)])> {
        let mut from = 0;
        self.legs.iter().filter_map(move |leg| {
            let Leg::Program(through) = leg else { return None };
            let tallies = &self.tallies[from..through.tallies];
            from = through.tallies;
            Some((*through, tallies))
        })
    }

    /// The native functions.
    pub(super) fn natives(&self) -> impl Iterator<Item = &Native> {
        self.legs.iter().filter_map(|leg| match leg {
            Leg::Program(_) => None,
            Leg::Native(native) => Some(native),
        })
    }

    /// What happens to headers, in order.
    pub(super) fn blends(&self) -> impl Iterator<Item = &Blend> {
        self.natives().filter_map(|native| native.before.as_deref()).chain([&self.blend])
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
    /// Guards but for those below.
    pub(super) guards: Box<[Guard]>,
    /// The least TTL where it mostly is, most bytes on the wire, and bits of some byte (TCP's flags, mostly).
    least_ttl: u8,
    byte: ByteGuard,
    most_bytes: u32,
    /// Where the packets go.
    pub(super) reached: Reached,
    pub(super) blend: Blend,
    /// Packets and bytes that are in the counters of program and rules.
    pub(super) settled: Cell<Count>,
}

/// What is asked, and done, for each packet of some classes.
#[derive(Debug)]
pub(super) struct More {
    /// Whether anything is asked, or said of packets as they come.
    pub(super) asks: bool,
    pub(super) searches: Vec<Search>,
    live: Live,
    aside: Aside,
    pub(super) goal: Goal,
}

impl Class {
    /// Whether the bits of a packet are what its records take for granted.
    pub(super) fn fits(&self, packet: &Packet) -> bool {
        let (data, wire_len) = (packet.data(), packet.wire_len);
        let ttl = data.get(Outline::PLAIN.ttl()).copied().unwrap_or(u8::MAX);
        ttl >= self.least_ttl
            && wire_len <= self.most_bytes
            && self.byte.holds(data)
            && self.link.holds(data)
            && self.guards.iter().all(|guard| guard.holds(data, wire_len))
    }

    /// Whether there is nothing else to be asked and done, and a packet with these bytes, and so many on the wire, fits,
    /// which has a narrow record. (No function is called for that: the loop that takes records needs no memory for what it
    /// works with.)
    #[inline(always)]
    pub(super) fn simply_fits(&self, data: &[u8], wire_len: u32) -> bool {
        let Some(head) = data.first_chunk::<NARROW_BYTES>() else { return false };
        self.more.is_none()
            && self.guards.is_empty()
            && head[Outline::PLAIN.ttl()] >= self.least_ttl
            && wire_len <= self.most_bytes
            && self.byte.holds(data)
            && self.link.holds(head)
    }
}

/// Guards of packets with an outline, apart.
struct Split {
    least_ttl: u8,
    most_bytes: u32,
    byte: ByteGuard,
    others: Box<[Guard]>,
}

impl Split {
    fn of(guards: &[Guard], outline: Outline) -> Self {
        let (mut least_ttl, mut most_bytes, mut byte) = (0, u32::MAX, None);
        let mut others = Vec::new();
        for guard in guards {
            let ttl = guard.least_ttl().filter(|_| outline == Outline::PLAIN);
            if let Some(ttl) = ttl {
                least_ttl = ttl.max(least_ttl);
            } else if guard.number == LENGTH && guard.least == 0 {
                most_bytes = guard.most.min(most_bytes);
            } else if let Some(one) = ByteGuard::of(guard).filter(|_| byte.is_none()) {
                byte = Some(one);
            } else {
                others.push(*guard);
            }
        }
        let (byte, others) = (byte.unwrap_or_default(), others.into());
        Self { least_ttl, most_bytes, byte, others }
    }
}

impl More {
    /// What there is for packets of a way that go there, if anything.
    fn of(way: &Way, goal: Goal) -> Option<Box<Self>> {
        let (searches, live) = (way.searches.clone(), way.live.clone());
        let mut aside = way.aside.clone();
        if goal.reached == Reached::Gone && goal.copies.is_empty() {
            aside.tags.clear();
            aside.splices.clear();
        }
        let asks = !searches.is_empty() || !live.is_empty() || !aside.says.is_empty();
        // Where packets may meet native functions, it is asked what those have to do.
        let is_there = asks || aside != Aside::default() || goal.leaves.is_some();
        let is_there = is_there || way.entry >= OPEN;
        is_there.then(|| Box::new(Self { asks, searches, live, aside, goal }))
    }

    /// Asks, does and says this for a packet that takes the record with this number; false, and nothing has happened,
    /// if the packet does not fit.
    #[inline(never)]
    pub(super) fn run(
        &self,
        (store, chain): (&mut Store, &Chain),
        record: u32,
        (packet, layout): (&Packet, &Layout),
        time: u64,
        out: &mut dyn Outputs,
    ) -> bool {
        let mut words = Words::default();
        let fits = self.searches.iter().all(|search| search.finds_nothing(chain, packet, layout))
            && self.live.run(store, record, packet, time, &mut words);
        if fits {
            self.aside.say(chain, packet, (time, &words), out);
        }
        fits
    }

    /// Does what comes behind for a packet whose first bytes have been written.
    #[inline(never)]
    pub(super) fn finish(&self, packet: &mut Packet, tally: &mut Tally, out: &mut dyn Outputs) {
        self.aside.finish(packet);
        self.goal.send(packet, tally, out);
    }
}

/// All classes.
#[derive(Debug, Default)]
pub(super) struct Classes {
    pub(super) all: Vec<Class>,
    /// The way of each.
    pub(super) ways: Vec<Way>,
    pub(super) numbers: HashMap<Way, u32>,
    /// The link's addresses, and how many classes have each.
    links: HashMap<(Link, [u64; 2]), u32>,
    /// How many have something aside.
    asides: usize,
}

impl Classes {
    /// A class and its way.
    pub(super) fn get(&self, number: u32) -> Option<(&Class, &Way)> {
        Some((self.all.get(number as usize)?, self.ways.get(number as usize)?))
    }

    /// The number of the class of a way, which is made what it is to be if there are many; `None` if it has none yet.
    pub(super) fn known(&self, way: &mut Way) -> Option<u32> {
        if self.numbers.len() >= FINE {
            way.coarsen();
        }
        self.numbers.get(way).copied()
    }

    /// Whether there may be one more class for a way.
    pub(super) fn takes(&self, way: &Way) -> bool {
        self.asides < MOST_ASIDE || !way.has_aside()
    }

    /// Adds a class, in the place of another one if so: its number; `None` if there are too many.
    pub(super) fn add(&mut self, way: Way, goal: Goal, instead: Option<u32>) -> Option<u32> {
        let number = instead.unwrap_or(self.all.len() as u32);
        let (narrow, blend) = (way.blend.narrow(way.first), way.blend);
        let Split { least_ttl, most_bytes, byte, others: guards } =
            Split::of(&way.guards, way.outline);
        let link = way.link;
        let reached = goal.reached;
        let more = More::of(&way, goal);
        let settled = Cell::default();
        let class = Class {
            narrow,
            more,
            link,
            guards,
            least_ttl,
            byte,
            most_bytes,
            reached,
            blend,
            settled,
        };
        if instead.is_some() {
            self.leave(number);
            self.all[number as usize] = class;
            self.ways[number as usize] = way.clone();
        } else if self.all.len() < MOST {
            self.all.push(class);
            self.ways.push(way.clone());
        } else {
            return None;
        }
        self.asides += usize::from(way.has_aside());
        *self.links.entry((way.link, way.first)).or_default() += 1;
        self.numbers.insert(way, number);
        Some(number)
    }

    /// Another class is about to take the place of this one.
    fn leave(&mut self, number: u32) {
        let way = &self.ways[number as usize];
        self.asides -= usize::from(way.has_aside());
        if let Entry::Occupied(mut link) = self.links.entry((way.link, way.first)) {
            *link.get_mut() -= 1;
            if *link.get() == 0 {
                link.remove();
            }
        }
    }

    /// Whether a class would have addresses of the link that none has, where there are many.
    pub(super) fn lacks_link(&self, way: &Way) -> bool {
        self.links.len() >= MOST_LINKS && !self.links.contains_key(&(way.link, way.first))
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.ways.clear();
        self.numbers.clear();
        self.links.clear();
        self.asides = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A way by a backend of a load balancer.
    fn way(backend: u32) -> Way {
        let basis = Basis { node: 0, param: ParamId(0), part: Part::Backend(backend) };
        Way { bases: vec![basis], ..Way::new() }
    }

    fn goal() -> Goal {
        Goal { reached: Reached::Gone, copies: Vec::new(), leaves: None }
    }

    #[test]
    fn ways_by_too_many_backends_share_a_class() {
        let mut classes = Classes::default();
        let mut number = |backend| {
            let mut way = way(backend);
            let known = classes.known(&mut way);
            known.or_else(|| classes.add(way, goal(), None))
        };
        let fine: Vec<_> = (0..FINE as u32).map(&mut number).collect();
        assert_eq!((fine[1], number(1)), (Some(1), Some(FINE as u32)));
        assert_eq!(number(FINE as u32 + 7), Some(FINE as u32));
        assert_eq!(classes.ways[FINE].bases[0].part, Part::Whole);
    }

    #[test]
    fn class_takes_the_place_of_another_one() {
        let mut classes = Classes::default();
        assert_eq!(classes.add(way(0), goal(), None), Some(0));
        classes.numbers.clear();
        assert_eq!(classes.add(way(1), goal(), Some(0)), Some(0));
        assert_eq!(classes.known(&mut way(1)), Some(0));
        assert_eq!((classes.known(&mut way(0)), classes.all.len()), (None, 1));
    }

    #[test]
    fn addresses_of_the_link_that_no_class_has_any_more_are_forgotten() {
        let mut classes = Classes::default();
        let to = |address: u64| Way { first: [address, 0], ..Way::new() };
        for address in 0..2 * MOST_LINKS as u64 {
            let instead = (address > 0).then_some(0);
            assert!(!classes.lacks_link(&to(address)));
            classes.add(to(address), goal(), instead);
        }
        assert_eq!(classes.links.len(), 1);
    }
}
