//! The facts at a point of a program: headers that are present or absent, entries that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use braid_ir::model::{ParamId, StateId, ValueId, Word};
use braid_packet::field::HEADERS;
use braid_packet::field::Where;
use braid_packet::{Field, Header};

/// A set of headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Headers(u128);

impl Headers {
    /// Whether `header` is in the set.
    #[must_use]
    pub fn has(self, header: Header) -> bool {
        self.0 & header.bit() != 0
    }

    fn insert(&mut self, header: Header) {
        self.0 |= header.bit();
    }

    fn remove(&mut self, header: Header) {
        self.0 &= !header.bit();
    }
}

/// Part of a key. Two notations of one key give the same parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KeyPart {
    /// A constant.
    Const(Word),
    /// A parameter's value.
    Param(ParamId),
    /// Any other value.
    Value(ValueId),
}

/// A key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KeyFact {
    /// The implicit key.
    Entry,
    /// The quoted packet's key.
    Quoted,
    /// The reverse of the implicit key (`false`) or of the quoted key (`true`).
    Reversed(bool),
    /// A key with written parts.
    Explicit(Vec<KeyPart>),
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// A constant.
    Const(u32),
    /// A value of the program (`u32`).
    Value(ValueId),
}

impl Default for Amount {
    fn default() -> Self {
        Amount::Const(0)
    }
}

/// A field: of the header table, or of a header that the program declares, by the numbers of the
/// header and the field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AnyField {
    /// A field of the header table.
    Known(Field),
    /// The header's number, then the field's.
    Declared(usize, usize),
}

/// What is known of a declared header that is present.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Declared {
    /// Where it begins in the payload.
    pub start: Amount,
    /// Its length.
    pub len: Amount,
    /// The fields that its presence, its place and its length depend on.
    pub reads: BTreeSet<AnyField>,
}

/// The facts that hold at a point of a program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Facts {
    /// No packet reaches this point, so everything counts as known.
    pub nowhere: bool,
    /// The packet was counted at the row `body`.
    pub counted: bool,
    present: Headers,
    absent: Headers,
    entry_present: Headers,
    entry_absent: Headers,
    /// Headers that may have been added or removed since the packet entered.
    touched: Headers,
    /// The payload has at least this number of bytes.
    payload: u32,
    /// The declared headers that are present, by their numbers.
    declared: BTreeMap<usize, Rc<Declared>>,
    loads: BTreeMap<(bool, Field), ValueId>,
    /// The values of the event's fields that were read.
    event: BTreeMap<u32, ValueId>,
    exists: BTreeSet<(StateId, KeyFact)>,
}

/// The most entries that are known to exist at a time. Further ones are forgotten.
const MAX_EXISTS: usize = 64;

impl Facts {
    /// The facts at the start: only the packet itself is known.
    #[must_use]
    pub fn start() -> Self {
        let mut facts = Self::default();
        facts.learn(Header::Pkt);
        facts
    }

    /// The facts at a point that no packet reaches.
    #[must_use]
    pub fn nowhere() -> Self {
        Self { nowhere: true, ..Self::start() }
    }

    /// Whether a header is known to be present now, or with `entry` on the entering packet.
    #[must_use]
    pub fn knows(&self, header: Header, entry: bool) -> bool {
        self.nowhere || if entry { self.entry_present } else { self.present }.has(header)
    }

    /// Whether a header is known to be absent, now or with `entry` on the entering packet.
    #[must_use]
    pub fn lacks(&self, header: Header, entry: bool) -> bool {
        !self.nowhere && if entry { self.entry_absent } else { self.absent }.has(header)
    }

    /// Whether the presence of a header may have changed since the packet entered.
    #[must_use]
    pub fn is_touched(&self, header: Header) -> bool {
        self.touched.has(header)
    }

    /// Records that a header is present.
    pub fn learn(&mut self, header: Header) {
        for &known in std::iter::once(&header).chain(header.implies()) {
            self.present.insert(known);
            self.absent.remove(known);
            if !self.touched.has(known) {
                self.entry_present.insert(known);
            }
        }
    }

    /// Records that a header is absent, and all headers that need it.
    pub fn learn_absent(&mut self, header: Header) {
        let gone = HEADERS.iter().map(|(h, _)| *h);
        for known in gone.filter(|h| *h == header || h.implies().contains(&header)) {
            self.absent.insert(known);
            self.present.remove(known);
            if !self.touched.has(known) {
                self.entry_absent.insert(known);
            }
        }
    }

    fn forget(&mut self, header: Header) {
        self.present.remove(header);
        self.absent.remove(header);
        self.touched.insert(header);
    }

    /// Records that a VLAN tag was added in front.
    pub fn pushed_vlan(&mut self) {
        let (had, lacked) = (self.present.has(Header::Vlan), self.absent.has(Header::Vlan));
        self.changed_vlan();
        self.learn(Header::Vlan);
        if had {
            self.learn(Header::Vlan2);
        } else if lacked {
            self.learn_absent(Header::Vlan2);
        }
    }

    /// Records that the outermost VLAN tag was removed.
    pub fn popped_vlan(&mut self) {
        let (had, lacked) = (self.present.has(Header::Vlan2), self.absent.has(Header::Vlan2));
        self.changed_vlan();
        if had {
            self.learn(Header::Vlan);
        } else if lacked {
            self.learn_absent(Header::Vlan);
        }
    }

    /// Records that outer headers were added or removed.
    pub fn changed_outer(&mut self) {
        for (header, _) in HEADERS.iter().filter(|(header, _)| *header != Header::Pkt) {
            self.forget(*header);
        }
        self.declared.clear();
        self.payload = 0;
        self.loads.retain(|(entry, _), _| *entry);
    }

    /// Records that a TCP option was added.
    pub fn pushed_option(&mut self, option: Header) {
        self.popped_option(option);
        self.learn(option);
    }

    /// Records that a TCP option was removed. The packet may have had it twice.
    pub fn popped_option(&mut self, option: Header) {
        self.forget(option);
        self.loads.retain(|(entry, _), _| *entry);
    }

    fn changed_vlan(&mut self) {
        self.forget(Header::Vlan);
        self.forget(Header::Vlan2);
        self.declared.clear();
        self.loads.retain(|(entry, _), _| *entry);
    }

    /// Records that a field was assigned. Some fields decide which header follows their own.
    pub fn stored(&mut self, field: Field) {
        for header in field.decides() {
            self.forget(header);
            // The payload may begin elsewhere.
            self.payload = 0;
            self.declared.clear();
        }
        self.forget_declared(&parts(field));
        self.loads.retain(|(entry, _), _| *entry);
    }

    /// Records that a field of a declared header was assigned. Headers in front of it stay declared
    /// ones, but the bytes of a payload of UDP may now be a header that a port announces.
    pub fn stored_declared(&mut self, header: usize, field: usize) {
        if !self.present.has(Header::Tcp) {
            Field::L4Dport.decides().for_each(|header| self.forget(header));
        }
        self.forget_declared(&[AnyField::Declared(header, field)]);
        self.loads.retain(|(entry, _), _| *entry);
    }

    /// Forgets the declared headers that depend on fields.
    fn forget_declared(&mut self, fields: &[AnyField]) {
        self.declared.retain(|_, known| !fields.iter().any(|field| known.reads.contains(field)));
    }

    /// Records that a declared header is present.
    pub fn learn_declared(&mut self, header: usize, known: Declared) {
        self.declared.insert(header, Rc::new(known));
    }

    /// What is known of a declared header, if it is known to be present.
    #[must_use]
    pub fn declared(&self, header: usize) -> Option<&Rc<Declared>> {
        self.declared.get(&header)
    }

    /// Records that bytes of the payload were assigned. They may now be a header that a UDP port
    /// announces; behind TCP there is none.
    pub fn stored_payload(&mut self) {
        self.declared.clear();
        match self.present.has(Header::Tcp) {
            true => self.loads.retain(|(entry, _), _| *entry),
            false => self.stored(Field::L4Dport),
        }
    }

    /// Records that bytes of the payload were replaced by others, which may be fewer.
    pub fn replaced_payload(&mut self) {
        self.stored_payload();
        self.payload = 0;
    }

    /// Records that bytes of a TCP option were assigned.
    pub fn stored_option(&mut self) {
        self.loads.retain(|(entry, _), _| *entry);
    }

    /// Records that the payload has at least this number of bytes.
    pub fn learn_payload(&mut self, bytes: u32) {
        self.payload = self.payload.max(bytes);
    }

    /// Whether the payload is known to have this number of bytes.
    #[must_use]
    pub fn has_payload(&self, bytes: u32) -> bool {
        self.nowhere || bytes <= self.payload
    }

    /// The value of an earlier read of a field, if it still holds.
    #[must_use]
    pub fn loaded(&self, field: Field, entry: bool) -> Option<ValueId> {
        if self.nowhere { None } else { self.loads.get(&(entry, field)).copied() }
    }

    /// Records that a field was read.
    pub fn remember(&mut self, field: Field, entry: bool, value: ValueId) {
        self.loads.insert((entry, field), value);
    }

    /// The value of an earlier read of a field of the event.
    #[must_use]
    pub fn event_field(&self, field: u32) -> Option<ValueId> {
        self.event.get(&field).copied()
    }

    /// Records that a field of the event was read.
    pub fn remember_event(&mut self, field: u32, value: ValueId) {
        self.event.insert(field, value);
    }

    /// Whether an entry is known to exist.
    #[must_use]
    pub fn exists(&self, state: StateId, key: &KeyFact) -> bool {
        self.nowhere || self.exists.contains(&(state, key.clone()))
    }

    /// Records that an entry exists.
    pub fn learn_entry(&mut self, state: StateId, key: KeyFact) {
        if self.exists.len() < MAX_EXISTS {
            self.exists.insert((state, key));
        }
    }

    /// Forgets entries of these tables, which may have ended.
    pub fn forget_entries(&mut self, gone: impl Fn(StateId) -> bool) {
        self.exists.retain(|(state, _)| !gone(*state));
    }

    /// The facts that hold on both paths.
    #[must_use]
    pub fn meet(mut self, other: &Facts) -> Facts {
        if other.nowhere {
            return self;
        }
        if self.nowhere {
            return other.clone();
        }
        self.counted &= other.counted;
        self.present.0 &= other.present.0;
        self.absent.0 &= other.absent.0;
        self.entry_present.0 &= other.entry_present.0;
        self.entry_absent.0 &= other.entry_absent.0;
        self.touched.0 |= other.touched.0;
        self.payload = self.payload.min(other.payload);
        self.declared.retain(|header, known| other.declared.get(header) == Some(known));
        self.loads.retain(|at, value| other.loads.get(at) == Some(value));
        self.event.retain(|at, value| other.event.get(at) == Some(value));
        self.exists.retain(|known| other.exists.contains(known));
        self
    }
}

/// The fields that hold a field's bits.
#[must_use]
pub fn parts(field: Field) -> Vec<AnyField> {
    match field.info().place {
        Where::Part(of, _) => parts(of),
        Where::Same(_, a, b) | Where::Halves(_, [a, b], _) => [parts(a), parts(b)].concat(),
        Where::First(all) => all.iter().flat_map(|(_, field)| parts(*field)).collect(),
        Where::Bits(_)
        | Where::Either(..)
        | Where::Words(_)
        | Where::Number(..)
        | Where::Computed => vec![AnyField::Known(field)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn present_header_brings_what_it_implies() {
        let mut facts = Facts::start();
        facts.learn(Header::IcmpEcho);
        assert!(facts.knows(Header::Ip4, false) && facts.knows(Header::Inet, true));
        assert!(!facts.knows(Header::Tcp, false));
    }

    #[test]
    fn absent_header_takes_along_headers_that_need_it() {
        let mut facts = Facts::start();
        facts.learn_absent(Header::L4);
        assert!(facts.lacks(Header::TcpMss, false) && !facts.lacks(Header::Icmp, false));
    }

    #[test]
    fn popped_vlan_forgets_now_and_keeps_entry() {
        let mut facts = Facts::start();
        facts.learn(Header::Vlan);
        facts.popped_vlan();
        assert!(!facts.knows(Header::Vlan, false) && facts.knows(Header::Vlan, true));
        facts.learn(Header::Vlan);
        facts.popped_vlan();
        assert!(!facts.lacks(Header::Vlan, false));
    }

    #[test]
    fn popped_outer_tag_uncovers_the_second() {
        let mut facts = Facts::start();
        facts.learn(Header::Vlan2);
        facts.popped_vlan();
        assert!(facts.knows(Header::Vlan, false) && !facts.knows(Header::Vlan2, false));
    }

    #[test]
    fn meet_keeps_what_both_know() {
        let (mut a, mut b) = (Facts::start(), Facts::start());
        a.learn(Header::Tcp);
        b.learn(Header::Udp);
        let both = a.clone().meet(&b);
        assert!(both.knows(Header::L4, false) && !both.knows(Header::Tcp, false));
        assert_eq!(a.clone().meet(&Facts::nowhere()), a);
    }
}
