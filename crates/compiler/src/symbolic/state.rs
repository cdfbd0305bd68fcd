//! The abstract state of a packet on a way through the program.

use super::cells::{ICMP, TRANSPORTS, checksums};
use super::facts::Facts;
use super::headers::Headers;
use super::vlan::Waiting;
use braid_ir::model::{ParamId, StateId, ValueId};
use braid_ir::residual::{Counter, Tallied};
use braid_packet::Field;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// What ways have in common until one of them changes it: most of what is known when ways part stays as it is on
/// both.
#[derive(Clone, Default)]
pub(super) struct Shared<T>(Rc<T>);

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Rc::new(value))
    }
}

impl<T> Shared<T> {
    /// Whether both are the same one, unchanged.
    pub(super) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Rc::make_mut(&mut self.0)
    }
}

/// What is known on a way.
#[derive(Clone)]
pub(super) struct State {
    pub(super) headers: Headers,
    /// Cells that are not as they were when the packet entered the program.
    pub(super) cells: Shared<BTreeMap<Field, Cell>>,
    pub(super) facts: Shared<Facts>,
    /// Counted already, but not yet by a step.
    pub(super) pending: Vec<Tallied>,
    /// Whether the function has sent anything.
    pub(super) sent: bool,
    /// Whether the layout's presence of headers may be out of date.
    pub(super) stale: bool,
    /// Whether the layout's offsets are out of date.
    pub(super) moved: bool,
    /// Changes of VLAN tags that the packet's bytes have still to see.
    pub(super) waiting: Waiting,
    /// Cells whose bytes may not be those that the packet entered with.
    pub(super) written: BTreeSet<Field>,
    /// Tags that functions of the program have read or written: values of the tag's whole width,
    /// or of the width that was read.
    pub(super) tags: Shared<BTreeMap<String, Tag>>,
    /// Results of operations that would come out the same again.
    pub(super) memo: Shared<BTreeMap<Memo, Vec<ValueId>>>,
    /// The key of each table's entry that the function last found or assigned.
    pub(super) last: Shared<BTreeMap<(u16, StateId), Vec<ValueId>>>,
    /// Values of the model's program, by their numbers there.
    pub(super) env: Shared<BTreeMap<ValueId, ValueId>>,
    /// Cells as they were when the packet entered the function, as far as it asks.
    pub(super) entry: Shared<BTreeMap<Field, ValueId>>,
    /// Most functions visited.
    pub(super) visits: u32,
}

/// A cell's content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Cell {
    /// This value; whether it has still to be written.
    Value(ValueId, bool),
    /// What the packet's bytes say now.
    Reload,
}

/// A tag's value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Tag {
    /// All of it.
    Stored(ValueId),
    /// Its low bits.
    Loaded(ValueId),
}

/// An operation whose result is remembered.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Memo {
    /// Whether there is an entry, and its handle.
    Find(u16, StateId, Vec<ValueId>),
    /// Its slots.
    Read(u16, StateId, Vec<ValueId>),
    ListGet(u16, ParamId, ValueId, u32),
    Up(u16, ParamId, ValueId),
    Quotient(bool, ValueId, ValueId),
}

impl Memo {
    /// The function whose state it depends on.
    fn state_of(&self) -> Option<u16> {
        match self {
            Memo::Find(node, ..) | Memo::Read(node, ..) => Some(*node),
            _ => None,
        }
    }
}

impl State {
    pub(super) fn new(headers: Headers) -> Self {
        Self {
            headers,
            cells: Shared::default(),
            facts: Shared::default(),
            pending: Vec::new(),
            sent: false,
            stale: false,
            moved: false,
            waiting: Waiting::default(),
            written: BTreeSet::new(),
            tags: Shared::default(),
            memo: Shared::default(),
            last: Shared::default(),
            env: Shared::default(),
            entry: Shared::default(),
            visits: 0,
        }
    }

    /// Forgets values of the model's program that are not among these.
    pub(super) fn keep_values(&mut self, live: &BTreeSet<ValueId>) {
        if self.env.keys().any(|value| !live.contains(value)) {
            self.env.retain(|value, _| live.contains(value));
        }
    }

    /// Counts the packet, with its length now.
    pub(super) fn count(&mut self, node: u16, counter: Counter) {
        self.pending.push(Tallied { node, counter, length: self.waiting.length() });
    }

    /// The packet gets longer by so many bytes.
    pub(super) fn lengthen(&mut self, bytes: i32) {
        for tallied in &mut self.pending {
            tallied.length -= bytes;
        }
    }

    /// What is counted, in order.
    pub(super) fn tally(&self) -> Vec<Tallied> {
        let mut tally = self.pending.clone();
        tally.sort_unstable();
        tally
    }

    /// A function's state changes: what was found there may no longer be so.
    pub(super) fn forget_state(&mut self, node: u16) {
        if self.memo.keys().any(|memo| memo.state_of() == Some(node)) {
            self.memo.retain(|memo, _| memo.state_of() != Some(node));
        }
    }

    /// Checksums that the writes to come make canonical.
    pub(super) fn checksums(&self) -> u32 {
        let dirty = self.cells.iter().filter(|(_, cell)| matches!(cell, Cell::Value(_, true)));
        let bits = dirty.fold(0, |bits, (field, _)| bits | checksums(*field));
        match bits {
            _ if bits & ICMP != 0 => bits & !TRANSPORTS,
            // Without the destination's part of the transport checksum where all of it is in.
            _ if bits & 2 != 0 => bits & !4,
            _ => bits,
        }
    }

    /// How many fields have still to be written.
    pub(super) fn dirty(&self) -> usize {
        self.cells.values().filter(|cell| matches!(cell, Cell::Value(_, true))).count()
    }
}

/// Takes from several lists what is in all of them (as often as in each); the rest of each.
pub(super) fn common(lists: &[&[Tallied]]) -> (Vec<Tallied>, Vec<Vec<Tallied>>) {
    let mut rests: Vec<Vec<Tallied>> = lists.iter().map(|list| list.to_vec()).collect();
    let Some(first) = lists.first() else { return (Vec::new(), rests) };
    let mut shared = Vec::new();
    for tallied in *first {
        let places: Option<Vec<usize>> =
            rests.iter().map(|rest| rest.iter().position(|other| other == tallied)).collect();
        if let Some(places) = places {
            shared.push(*tallied);
            for (rest, place) in rests.iter_mut().zip(places) {
                rest.remove(place);
            }
        }
    }
    (shared, rests)
}
