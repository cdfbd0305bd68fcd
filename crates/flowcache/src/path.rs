//! The path of a flow's packets through programs and native functions, with everything that a
//! record template needs.

use crate::basis::{Basis, Changed, Part};
use crate::computed::Computed;
use crate::dynamic::Dynamic;
use crate::effects::SideEffects;
use crate::guard::{Guard, Link};
use crate::key::SharedBytes;
use crate::peel::Front;
use braid_ir::chain::Chain;
use braid_ir::model::ParamId;
use braid_ir::residual::CounterListId;
use braid_ir::value::ParamValue;
use braid_native::Payload;
use braid_packet::rewrite::{Outline, Rewrite, bytes};
use braid_packet::{Field, Layout, Packet};
use std::hash::{Hash, Hasher};

/// A path through programs and native functions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// The number of the program. In chains with native functions, the number of the entry
    /// ([`crate::extractors::Extractors`]).
    pub(crate) entry: u32,
    /// The programs and native functions, in order. A path without native functions has one
    /// program.
    pub subpaths: Vec<Subpath>,
    /// The edge counters of all programs on the path, in order. Each has the number of bytes by
    /// which packets are longer there than on arrival.
    pub(crate) counter_lists: Vec<(CounterListId, i32)>,
    /// Rules that are counted: function, rule set, rule.
    pub rules: Vec<(u16, ParamId, u32)>,
    /// Conditions on packets.
    pub guards: Vec<Guard>,
    pub(crate) searches: Vec<Search>,
    pub(crate) dynamic: Dynamic,
    /// Parameters that the records depend on.
    pub bases: Vec<Basis>,
    /// The end of a tunnel, if the path begins with one. Everything else is about the packets
    /// inside.
    pub(crate) front: Option<Box<Front>>,
    /// The places of the packets' headers.
    pub outline: Outline,
    pub(crate) rewrite: Rewrite,
    /// The link addresses of packets with narrow records (in the packet's first two words), and the
    /// new bits of these words.
    pub(crate) link: Link,
    pub(crate) first: [u64; 2],
    /// All changes besides rewrites.
    pub effects: SideEffects,
}

/// A part of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subpath {
    /// Through a program.
    Program(Through),
    /// Through a native function.
    Native(Native),
}

/// A path through a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Through {
    /// The program.
    pub program: u32,
    /// The block where the path ends.
    pub block: u32,
    /// Where the program's counters end among the counters of the path.
    counter_lists: usize,
}

/// The actions of a native function on the path's packets, according to its recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Native {
    /// The function.
    pub node: u16,
    /// Whether the packets go backward through it.
    pub backward: bool,
    /// The header rewrite that is applied before this function runs: all changes since the last
    /// function that reads headers. `None` if this function does not read headers.
    pub(crate) before: Option<Box<Rewrite>>,
    /// The payload access of each of its state functions, in order.
    pub state: Vec<Payload>,
    /// How many guards it evaluates after each packet.
    pub guards: usize,
    /// Fields that it writes.
    pub writes: Vec<Field>,
    /// The reason, if it drops the packets.
    pub drops: Option<u32>,
    /// The number of bytes by which the function makes the packets longer.
    pub(crate) longer: i64,
}

/// Patterns that must not occur in a packet's payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Search {
    pub(crate) node: u16,
    pub(crate) param: ParamId,
}

impl Search {
    /// Whether a packet's payload is complete and matches none of the patterns.
    #[expect(
        clippy::indexing_slicing,
        reason = "a search names a function of the chain and a parameter of its model"
    )]
    pub(crate) fn finds_nothing(self, chain: &Chain, packet: &Packet, layout: &Layout) -> bool {
        match &chain.nodes[usize::from(self.node)].params[self.param.index()] {
            ParamValue::Patterns(set) if !layout.payload_truncated() => {
                set.lowest_match(packet.payload(layout)).is_none()
            }
            _ => false,
        }
    }
}

impl Hash for Path {
    /// Hashes the parts that differ most between paths of a program.
    fn hash<H: Hasher>(&self, state: &mut H) {
        for subpath in &self.subpaths {
            state.write_u64(match subpath {
                Subpath::Program(through) => {
                    u64::from(through.program) << 32 | u64::from(through.block)
                }
                Subpath::Native(native) => native.node.into(),
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
        self.dynamic.hash_values(state);
        self.effects.hash(state);
    }
}

impl Path {
    /// An empty path.
    pub(crate) fn new() -> Self {
        Self {
            entry: 0,
            subpaths: Vec::new(),
            counter_lists: Vec::new(),
            rules: Vec::new(),
            guards: Vec::new(),
            searches: Vec::new(),
            dynamic: Dynamic::default(),
            bases: Vec::new(),
            front: None,
            outline: Outline::PLAIN,
            rewrite: Rewrite::NONE,
            link: Link::default(),
            first: [0; 2],
            effects: SideEffects::default(),
        }
    }

    /// Whether each packet must be asked something, or events are published, before the packet
    /// changes.
    pub(crate) fn asks(&self) -> bool {
        let is_fixed = self.searches.is_empty() && Computed::of(&self.dynamic).is_empty();
        !is_fixed || !self.effects.publications.is_empty()
    }

    /// The number of bytes of outer headers that packets lose, if they come in a tunnel that ends
    /// on the path. Guards and rewrites are about the packets inside then.
    #[must_use]
    pub fn lost_headers(&self) -> Option<usize> {
        self.front.as_ref().map(|front| front.less)
    }

    /// The places of the outer headers of such a tunnel.
    #[must_use]
    pub fn outer_outline(&self) -> Option<Outline> {
        self.front.as_ref().map(|front| front.outline)
    }

    /// Conditions on the outer headers of such a tunnel.
    #[must_use]
    pub fn outer_guards(&self) -> &[Guard] {
        self.front.as_ref().map_or(&[], |front| &front.guards)
    }

    /// Makes this an empty path for packets with this entry and outline.
    pub(crate) fn start(&mut self, entry: u32, outline: Outline) {
        (self.entry, self.outline) = (entry, outline);
        (self.rewrite, self.link, self.first) = (Rewrite::NONE, Link::default(), [0; 2]);
        self.subpaths.clear();
        self.counter_lists.clear();
        self.rules.clear();
        self.guards.clear();
        self.searches.clear();
        self.dynamic.clear();
        self.bases.clear();
        self.front = None;
        self.effects = SideEffects::default();
    }

    /// Whether narrow records can hold what the path writes and stores. `link` has the link
    /// addresses that belong to a narrow key. With such addresses, narrow records store nothing:
    /// templates would hold the addresses, and the point of storing bytes is that flows share a
    /// template.
    pub(crate) fn is_narrow(&self, link: &Link) -> bool {
        let mut stored = self.effects.outer.iter().flat_map(|outer| &outer.stored);
        self.rewrite.is_narrow() && stored.all(|one| one.is_narrow() && link.mask == [0; 2])
    }

    /// Whether the path has side effects.
    pub(crate) fn has_effects(&self) -> bool {
        self.effects != SideEffects::default()
    }

    /// Adds a program as a subpath that ends with this block.
    pub(crate) fn pass(&mut self, program: u32, block: u32) {
        let counter_lists = self.counter_lists.len();
        self.subpaths.push(Subpath::Program(Through { program, block, counter_lists }));
    }

    /// The subpaths in programs, with the edge counters of each.
    #[expect(clippy::indexing_slicing, reason = "the ends of subpaths in `counter_lists` rise")]
    pub fn programs(&self) -> impl Iterator<Item = (Through, &[(CounterListId, i32)])> {
        let mut from = 0;
        self.subpaths.iter().filter_map(move |subpath| {
            let Subpath::Program(through) = subpath else { return None };
            let counter_lists = &self.counter_lists[from..through.counter_lists];
            from = through.counter_lists;
            Some((*through, counter_lists))
        })
    }

    /// The native functions of the path.
    pub fn natives(&self) -> impl Iterator<Item = &Native> {
        self.subpaths.iter().filter_map(|subpath| match subpath {
            Subpath::Program(_) => None,
            Subpath::Native(native) => Some(native),
        })
    }

    /// Whether records of the path search the payload for patterns of a function.
    #[must_use]
    pub fn searches_for(&self, node: u16) -> bool {
        self.searches.iter().any(|search| search.node == node)
    }

    /// The link addresses that packets must have.
    #[must_use]
    pub fn link(&self) -> SharedBytes {
        let window = |[a, b]: [u64; 2]| bytes(&[a, b, 0, 0, 0, 0, 0, 0, 0, 0]);
        SharedBytes { mask: window(self.link.mask), bytes: window(self.link.is) }
    }

    /// The amount by which the TTL decreases.
    #[must_use]
    pub fn ttl(&self) -> u8 {
        self.rewrites().map(|rewrite| rewrite.ttl).sum()
    }

    /// The header rewrites, in order.
    pub fn rewrites(&self) -> impl Iterator<Item = &Rewrite> {
        self.natives().filter_map(|native| native.before.as_deref()).chain([&self.rewrite])
    }
}

impl Path {
    /// Replaces each dependency on a single backend by a dependency on the whole parameter.
    pub(crate) fn coarsen(&mut self) {
        for basis in &mut self.bases {
            if let Part::Backend(_) = basis.part {
                basis.part = Part::Whole;
            }
        }
        let all = std::mem::take(&mut self.bases);
        all.into_iter().for_each(|basis| self.depend_on_basis(basis));
    }

    /// Whether records of the path depend on a parameter, or a part of one, that has changed.
    pub(crate) fn depends_on(&self, changed: &Changed) -> bool {
        self.bases.iter().any(|basis| changed.touches(basis))
    }

    pub(crate) fn depend_on_basis(&mut self, basis: Basis) {
        if !self.bases.contains(&basis) {
            self.bases.push(basis);
        }
    }
}
