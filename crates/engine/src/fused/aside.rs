//! What a record says of a packet beside what is written over its first bytes: VLAN tags that come and go, tags that
//! it carries from then on, events that functions publish, copies that they send out of the chain.

use super::change::Part;
use super::class::{Leg, Way};
use super::guard::Number;
use super::legs::World;
use super::live::Words;
use super::plan::Bits;
use super::probe::{Hang, Probe};
use crate::act::Values;
use crate::report::Tally;
use crate::walk::{At, Reached, onward};
use braid_ir::chain::Chain;
use braid_ir::engine::{Event, EventValue, Outputs};
use braid_ir::graph::port;
use braid_ir::model::{Dest, EventArg, EventId, Kind, TagId, ValueId, Word};
use braid_ir::residual::{End, Exit, Fate};
use braid_ir::value::ParamValue;
use braid_packet::Packet;
use braid_packet::blend::{Retag, WIDE_BYTES};
use braid_state::RecordBug;
use std::fmt;
use std::sync::Arc;

/// All of it, as ways have it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Aside {
    /// VLAN tags.
    pub(super) vlans: Retag,
    /// Tags that packets get, by name.
    pub(super) tags: Vec<(Arc<str>, Word)>,
    /// Events in order.
    pub(super) says: Vec<Say>,
    /// Functions that send a copy of the packet as it leaves, and where.
    pub(super) copies: Vec<(u16, Dest)>,
    /// What a native function puts in and takes out behind all that, in order.
    pub(super) splices: Vec<Splice>,
}

/// Bytes that packets get or lose at an offset from their start (SpeedyBox's encapsulation and decapsulation).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Splice {
    /// These are put in.
    In {
        /// Where.
        at: usize,
        /// What.
        bytes: Box<[u8]>,
    },
    /// So many are taken out.
    Out {
        /// From where.
        at: usize,
        /// How many.
        len: usize,
    },
}

impl fmt::Display for Splice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Splice::In { at, bytes } => {
                write!(f, "puts in at byte {at}:")?;
                bytes.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
            }
            Splice::Out { at, len } => write!(f, "takes out bytes {at}..{}", at + len),
        }
    }
}

impl Splice {
    /// Where the bytes are that must be there, how many of them go, and how many come.
    pub(super) fn change(&self) -> (usize, usize, usize) {
        match self {
            Splice::In { at, bytes } => (*at, 0, bytes.len()),
            Splice::Out { at, len } => (*at, *len, 0),
        }
    }
}

/// A copy that a function sends, with what had been done to the packet by then.
#[derive(PartialEq)]
pub(super) struct Image {
    head: [u8; WIDE_BYTES],
    mask: [u8; WIDE_BYTES],
    ttl: u8,
    vlans: Retag,
    tags: Vec<(Arc<str>, Word)>,
}

/// Where packets of a way go.
#[derive(Debug)]
pub(super) struct Goal {
    pub(super) reached: Reached,
    /// Interfaces by which copies leave, in order.
    pub(super) copies: Vec<u16>,
    /// The interface by which the packet leaves, if no program counts that.
    pub(super) leaves: Option<u16>,
}

/// An event that a function publishes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Say {
    pub(super) node: u16,
    pub(super) event: EventId,
    args: Vec<Arg>,
}

/// An argument of an event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Arg {
    Word(Kind, Word),
    /// These bits of the packet.
    Bits(Kind, Bits),
    /// A number in the packet, shifted down, plus this.
    Number(Kind, Number, u32, i64),
    Time(Kind),
    /// A value that is computed for each packet.
    Live(Kind, u8),
    Text(String),
}

impl Say {
    /// Says it of a packet as it came.
    fn run(
        &self,
        chain: &Chain,
        packet: &Packet,
        (now, words): (u64, &Words),
        out: &mut dyn Outputs,
    ) {
        let value = |arg: &Arg| {
            let (kind, value) = match arg {
                Arg::Word(kind, value) => (kind, *value),
                Arg::Bits(kind, bits) => (kind, bits.get(&packet.wide_window())),
                Arg::Number(kind, number, shift, add) => {
                    let number = number.of(packet.data(), packet.wire_len) >> shift;
                    (kind, Word::from(number).wrapping_add_signed((*add).into()))
                }
                Arg::Time(kind) => (kind, now.into()),
                Arg::Live(kind, number) => (kind, words[usize::from(*number)]),
                Arg::Text(text) => return EventValue::Str(text.clone()),
            };
            EventValue::Scalar(*kind, value)
        };
        let decl = &chain.nodes[usize::from(self.node)].model.events[self.event.index()];
        let names = decl.fields.iter().map(|(name, _)| name.clone());
        out.event(Event {
            time_ns: now,
            node: self.node,
            name: decl.name.clone(),
            ancestors: decl.ancestors.clone(),
            fields: names.zip(self.args.iter().map(value)).collect(),
        });
    }
}

impl Aside {
    /// Says what there is to say of a packet as it came.
    pub(super) fn say(
        &self,
        chain: &Chain,
        packet: &Packet,
        at_hand: (u64, &Words),
        out: &mut dyn Outputs,
    ) {
        self.says.iter().for_each(|say| say.run(chain, packet, at_hand, out));
    }

    /// Does the rest for a packet whose first bytes have been written.
    pub(super) fn finish(&self, packet: &mut Packet) {
        for (name, value) in &self.tags {
            match packet.tags.get_mut(name) {
                Some(old) => *old = *value,
                None => drop(packet.tags.insert(Arc::clone(name), *value)),
            }
        }
        if self.vlans != Retag::default() {
            packet.retag(&self.vlans);
        }
        for splice in &self.splices {
            // It is known that they are there, and that there is room.
            let _done = match splice {
                Splice::In { at, bytes } => packet.insert(*at, bytes),
                Splice::Out { at, len } => packet.remove(*at, *len),
            };
        }
    }

    /// By how many bytes packets become longer by what native functions put in and take out.
    pub(super) fn longer(&self) -> i64 {
        let of = |splice: &Splice| {
            let (_, less, more) = splice.change();
            more as i64 - less as i64
        };
        self.splices.iter().map(of).sum()
    }

    /// Whether there is anything but what native functions put in and take out.
    pub(super) fn is_of_programs(&self) -> bool {
        let Self { vlans, tags, says, copies, splices: _ } = self;
        *vlans != Retag::default() || !(tags.is_empty() && says.is_empty() && copies.is_empty())
    }
}

impl Goal {
    /// Sends copies of a packet, as it is, and counts what leaves.
    pub(super) fn send(&self, packet: &Packet, tally: &mut Tally, out: &mut dyn Outputs) {
        for interface in &self.copies {
            tally.copied += 1;
            tally.leave(*interface, 1);
            out.packet(*interface, packet.clone());
        }
        if let Some(interface) = self.leaves {
            tally.leave(interface, 1);
        }
    }

    /// Where packets of a way go that are there behind its last leg, if it leads out of the chain: copies by
    /// interfaces, and packets, too, unless they are gone.
    pub(super) fn of(way: &Way, at: Option<At>, world: &World<'_>) -> Option<Self> {
        let (graph, copies) = (world.graph, Vec::new());
        let Some(Leg::Program(through)) = way.legs.last() else {
            return match at? {
                At::End(reached) => Some(Self { reached, copies, leaves: None }),
                At::Leaves(interface) => {
                    let (reached, leaves) = (Reached::Interface(interface), Some(interface));
                    Some(Self { reached, copies, leaves })
                }
                At::Point(_) | At::Unlinked => None,
            };
        };
        let (program, block) = (&world.programs[through.program as usize], through.block as usize);
        let backward = program.ends_backward(block);
        let leaves = |node, dest| match onward(graph.next(node, port(dest, backward))) {
            At::Leaves(interface) => Some(interface),
            _ => None,
        };
        let copies = way.aside.copies.iter().map(|(node, dest)| leaves(*node, *dest));
        let mut copies: Vec<u16> = copies.collect::<Option<_>>()?;
        if let End::Exit(Exit { fate: Fate::Output { node, ports }, .. }) =
            &program.residual.blocks[block].end
        {
            let (last, others) = ports.split_last()?;
            let others = others.iter().map(|dest| leaves(*node, *dest));
            copies.extend(others.collect::<Option<Vec<u16>>>()?);
            let interface = leaves(*node, *last)?;
            let reached = Reached::Interface(interface);
            return Some(Self { reached, copies, leaves: Some(interface) });
        }
        match at? {
            At::End(reached) => Some(Self { reached, copies, leaves: None }),
            _ => None,
        }
    }
}

impl Probe<'_> {
    /// What has been done to the packet.
    fn image(&self) -> Image {
        let Way { blend, aside, .. } = &self.notes.way;
        Image {
            head: self.headers.head,
            mask: self.headers.mask,
            ttl: blend.ttl,
            vlans: aside.vlans.clone(),
            tags: aside.tags.clone(),
        }
    }

    /// A function sends a copy.
    pub(super) fn copy(&mut self, node: u16, dest: Dest) {
        self.notes.way.aside.copies.push((node, dest));
        self.notes.copies.push(self.image());
    }

    /// Whether all copies are as the packet is now.
    pub(super) fn copies_are_alike(&self) -> bool {
        self.notes.copies.iter().all(|copy| *copy == self.image())
    }

    /// A function publishes an event.
    pub(super) fn say(
        &mut self,
        values: &Values<'_>,
        (node, event): (u16, EventId),
        args: &[EventArg],
    ) -> Option<()> {
        let mut all = Vec::with_capacity(args.len());
        for arg in args {
            all.push(match arg {
                EventArg::Str(text) => Arg::Text(text.clone()),
                EventArg::Param(param) => {
                    self.rest_on(node, *param, Part::Whole);
                    let params = &self.functions.chain.nodes[usize::from(node)].params;
                    match &params[param.index()] {
                        ParamValue::Str(text) => Arg::Text(text.clone()),
                        _ => Arg::Text(String::new()),
                    }
                }
                EventArg::Value(id) => self.arg(values, *id)?,
            });
        }
        self.notes.way.aside.says.push(Say { node, event, args: all });
        Some(())
    }

    fn arg(&mut self, values: &Values<'_>, id: ValueId) -> Option<Arg> {
        let kind = values.ty(id).kind;
        if self.functions.store.has_bug(RecordBug::EventFixed) {
            return Some(Arg::Word(kind, values.get(id)));
        }
        Some(match self.hang(id) {
            Hang::Time => Arg::Time(kind),
            Hang::Live(_) | Hang::Slot { .. } => Arg::Live(kind, self.live(values, id)?),
            Hang::Number { number, shift, add } => Arg::Number(kind, number, shift, add),
            Hang::Bits { number, shift } => Arg::Number(kind, number, shift, 0),
            Hang::Fixed => match self.notes.keys.iter().find(|(value, _)| *value == id) {
                Some((_, bits)) => Arg::Bits(kind, *bits),
                None => Arg::Word(kind, values.get(id)),
            },
            Hang::Packet => return None,
        })
    }

    /// The packet gets a tag.
    pub(super) fn set_tag(
        &mut self,
        values: &Values<'_>,
        (node, tag): (u16, TagId),
        id: ValueId,
    ) -> Option<()> {
        self.fix(values, id)?;
        let name: Arc<str> = self.tag_name(node, tag).into();
        let tags = &mut self.notes.way.aside.tags;
        match tags.iter_mut().find(|(known, _)| *known == name) {
            Some((_, value)) => *value = values.get(id),
            None => tags.push((name, values.get(id))),
        }
        Some(())
    }

    /// A function reads a tag, which the packet has from another one, or else did not have when it came.
    pub(super) fn tag(&mut self, values: &mut Values<'_>, (node, tag): (u16, TagId), out: ValueId) {
        let name = self.tag_name(node, tag);
        let most = self.functions.chain.nodes[usize::from(node)].model.tags[tag.index()].ty.max();
        let known = self.notes.way.aside.tags.iter().find(|(known, _)| **known == *name);
        let value = match known {
            Some((_, value)) => *value,
            None => {
                let name = name.into();
                self.notes.way.live.lack(name);
                0
            }
        };
        self.know(values, out, value & most);
    }

    fn tag_name(&self, node: u16, tag: TagId) -> &str {
        &self.functions.chain.nodes[usize::from(node)].model.tags[tag.index()].name
    }
}
