//! The side effects of a path besides the rewrite of a packet's first bytes: added and removed VLAN
//! tags, packet tags, events, copies that leave the chain, outer headers, and bytes that native
//! functions insert or remove.

use crate::guard::Number;
use braid_ir::chain::Chain;
use braid_ir::engine::{Content, Event, Outputs};
use braid_ir::model::{Dest, EventId, Word};
use braid_packet::rewrite::{
    NARROW_AT, NARROW_BYTES, Retag, WIDE, WIDE_BYTES, Window, bytes, wide_window,
};
use braid_packet::tunnel::{self, Envelope};
use braid_packet::{Bits, Header, Layout, Packet};
use std::sync::Arc;

/// The side effects of a path.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SideEffects {
    /// VLAN tags that the record removes and adds.
    pub vlans: Retag,
    /// Tags that packets get, by name.
    pub tags: Vec<(Arc<str>, Word)>,
    /// Whether programs have set some of them, and not recordings of native functions alone.
    pub(crate) programs_tag: bool,
    /// The events, in order.
    pub publications: Vec<Publication>,
    /// Copies of the packet as it leaves: the function that sends the copy, and its destination.
    pub copies: Vec<(u16, Dest)>,
    /// Bytes that native functions insert and remove, in order. This comes after all other changes.
    pub splices: Vec<Splice>,
    /// Outer headers that functions add, in order. This comes after all other changes.
    pub outer: Vec<OuterHeaders>,
}

/// Bytes that a record inserts into packets or removes from them (SpeedyBox's encapsulation and
/// decapsulation). Offsets are in bytes from the packet's start.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Splice {
    /// Bytes are inserted.
    In {
        /// The offset at which they are inserted.
        at: usize,
        /// The inserted bytes.
        bytes: Box<[u8]>,
    },
    /// Bytes are removed.
    Out {
        /// The offset of the first removed byte.
        at: usize,
        /// The number of removed bytes.
        len: usize,
    },
}

impl Splice {
    /// The number of bytes that the packet must have at least, the number of removed bytes, and the
    /// number of inserted bytes.
    pub(crate) fn change(&self) -> (usize, usize, usize) {
        match self {
            Splice::In { at, bytes } => (*at, 0, bytes.len()),
            Splice::Out { at, len } => (*at, *len, 0),
        }
    }
}

/// Outer headers that functions add.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OuterHeaders {
    pub(crate) parts: Vec<Header>,
    /// Their bytes, with zeros in the place of stored ones.
    pub(crate) envelope: Envelope,
    pub(crate) stored: Vec<Stored>,
}

/// Bytes of outer headers that each record stores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Stored {
    /// The offset of the first byte in the headers.
    pub(crate) at: usize,
    /// The place among the new bytes of the record's rewrite.
    pub(crate) from: Bits,
}

impl Stored {
    /// Whether narrow records have these bytes.
    pub(crate) fn is_narrow(&self) -> bool {
        let Bits { at, len, .. } = self.from;
        NARROW_AT <= at && at + len <= NARROW_BYTES
    }
}

impl OuterHeaders {
    /// The names of the headers, the outermost first.
    #[must_use]
    pub fn names(&self) -> String {
        tunnel::names(&self.parts)
    }

    /// Adds the headers to a packet. `stored` holds the new bytes of the record's rewrite. Returns
    /// whether the headers fit.
    fn add(&self, packet: &mut Packet, layout: &Layout, stored: &[u8; WIDE_BYTES]) -> bool {
        self.envelope.add(packet, layout, |bytes| {
            for Stored { at, from: Bits { at: from, len, .. } } in &self.stored {
                let (to, from) = (bytes.get_mut(*at..at + len), stored.get(*from..from + len));
                if let (Some(to), Some(from)) = (to, from) {
                    to.copy_from_slice(from);
                }
            }
        })
    }
}

/// An event that a function publishes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Publication {
    /// The function.
    pub node: u16,
    /// The event.
    pub event: EventId,
    pub(crate) args: Vec<Arg>,
}

/// An argument of an event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Arg {
    Word(Word),
    /// Bits of the packet.
    Bits(Bits),
    /// A number in the packet, shifted right, plus an addend.
    Number(Number, u32, i64),
    Time,
    /// A dynamic value, by number.
    Dynamic(u8),
    Text(String),
}

impl Publication {
    /// Publishes the event for a packet that has not been changed yet.
    #[expect(
        clippy::indexing_slicing,
        reason = "events and values have their numbers from the program that published the event"
    )]
    fn run(
        &self,
        chain: &Chain,
        packet: &Packet,
        (now, dynamic): (u64, &dyn Fn(u8) -> Word),
        out: &mut dyn Outputs,
    ) {
        let value = |arg: &Arg| {
            Content::Word(match arg {
                Arg::Word(value) => *value,
                Arg::Bits(bits) => bits.get(&wide_window(packet.data())),
                Arg::Number(number, shift, add) => {
                    let number = number.of(packet.data(), packet.wire_len) >> shift;
                    Word::from(number).wrapping_add_signed((*add).into())
                }
                Arg::Time => now.into(),
                Arg::Dynamic(number) => dynamic(*number),
                Arg::Text(text) => return Content::Str(text.clone()),
            })
        };
        let decl = &chain.nodes[usize::from(self.node)].model.events[self.event.index()];
        out.event(Event::new(decl, (now, self.node), self.args.iter().map(value)));
    }
}

impl SideEffects {
    /// Publishes the events for a packet that has not been changed yet.
    pub(crate) fn publish(
        &self,
        chain: &Chain,
        packet: &Packet,
        at_hand: (u64, &dyn Fn(u8) -> Word),
        out: &mut dyn Outputs,
    ) {
        self.publications.iter().for_each(|publish| publish.run(chain, packet, at_hand, out));
    }

    /// Sets tags, changes VLAN tags, inserts and removes bytes, and adds outer headers. The
    /// packet's first bytes have already been rewritten. `new` holds the new bytes of that rewrite,
    /// and what they store for outer headers. The layout is the packet's.
    pub(crate) fn finish(&self, packet: &mut Packet, layout: &Layout, new: &Window<WIDE>) {
        for (name, value) in &self.tags {
            // A tag that the packet lacks is 0, and takes no memory.
            if *value != 0 || packet.tags.contains_key(name) {
                match packet.tags.get_mut(name) {
                    Some(old) => *old = *value,
                    None => drop(packet.tags.insert(Arc::clone(name), *value)),
                }
            }
        }
        if self.vlans != Retag::default() {
            packet.retag(&self.vlans);
        }
        for splice in &self.splices {
            // An earlier check has found that the packet has the removed bytes, and room for the
            // inserted ones.
            let _done = match splice {
                Splice::In { at, bytes } => packet.insert(*at, bytes),
                Splice::Out { at, len } => packet.remove(*at, *len),
            };
        }
        let Some((first, others)) = self.outer.split_first() else { return };
        let (stored, is_moved) = (bytes(new), self.vlans != Retag::default());
        // A guard has made sure that the headers fit.
        let done = match is_moved || !self.splices.is_empty() {
            true => first.add(packet, &packet.parse(), &stored),
            false => first.add(packet, layout, &stored),
        };
        debug_assert!(done, "outer headers that a record adds");
        for outer in others {
            let done = outer.add(packet, &packet.parse(), &stored);
            debug_assert!(done, "further outer headers that a record adds");
        }
    }

    /// The number of bytes by which inserted and removed bytes, and outer headers, make packets
    /// longer.
    pub(crate) fn longer(&self) -> i64 {
        let of = |splice: &Splice| {
            let (_, less, more) = splice.change();
            more as i64 - less as i64
        };
        let outer = self.outer.iter().map(|outer| outer.envelope.len() as i64).sum::<i64>();
        outer + self.splices.iter().map(of).sum::<i64>()
    }

    /// Sets a tag.
    pub(crate) fn set_tag(&mut self, name: Arc<str>, value: Word) {
        match self.tags.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.tags.push((name, value)),
        }
    }

    /// Removes tags of 0, which a packet without tags need not get. Returns whether there were any.
    pub(crate) fn forget_zero_tags(&mut self) -> bool {
        let all = self.tags.len();
        self.tags.retain(|(_, value)| *value != 0);
        self.programs_tag &= !self.tags.is_empty();
        self.tags.len() < all
    }

    /// Whether there are side effects of programs: tags, events or copies.
    pub(crate) fn is_of_programs(&self) -> bool {
        let Self { programs_tag, publications, copies, .. } = self;
        *programs_tag || !(publications.is_empty() && copies.is_empty())
    }
}
