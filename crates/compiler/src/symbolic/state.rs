//! The abstract state of a packet on a path.

use super::cells::{Cell, ICMP, TRANSPORTS, checksums};
use super::facts::Facts;
use super::headers::Headers;
use super::waiting::{Before, Waiting};
use braid_ir::model::{ParamId, StateId, ValueId};
use braid_ir::residual::{Counter, ListedCounter};
use braid_packet::Field;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// A part of the state that paths share until one of them changes it. Where paths part, most of the
/// state stays the same on both.
#[derive(Clone, Default)]
pub(super) struct Shared<T>(Rc<T>);

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Rc::new(value))
    }
}

impl<T> Shared<T> {
    /// Whether both share the same unchanged content.
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

/// The abstract state on a path.
#[derive(Clone)]
pub(super) struct State {
    pub(super) headers: Headers,
    /// Cells whose value may differ from the one on entry to the program.
    pub(super) cells: Shared<BTreeMap<Field, Cell>>,
    pub(super) facts: Shared<Facts>,
    /// Counts that no step has added yet.
    pub(super) pending: Vec<ListedCounter>,
    /// Whether the function has sent a packet besides this one: a copy or a new one.
    pub(super) sent: bool,
    /// Whether another program goes on at the next function: outer headers were added or removed,
    /// so that little is known of the packet, or a function has done what no record contains.
    pub(super) ends: bool,
    /// Whether the layout's record of present headers may be out of date.
    pub(super) stale: bool,
    /// Whether the layout's offsets may be out of date.
    pub(super) moved: bool,
    /// Changes of VLAN tags that the packet's bytes do not have yet.
    pub(super) waiting: Waiting,
    /// Cells whose bytes may differ from the bytes on entry.
    pub(super) written: BTreeSet<Field>,
    /// Packet tags that functions of the program have read or written. A value has the tag's full
    /// width, or the width that the reading function declared.
    pub(super) tags: Shared<BTreeMap<String, Tag>>,
    /// Results of operations that would give the same results again.
    pub(super) memo: Shared<BTreeMap<Memo, Vec<ValueId>>>,
    /// For each table, the key of the entry that the function last found or assigned.
    pub(super) last: Shared<BTreeMap<(u16, StateId), Vec<ValueId>>>,
    /// Values of the model's program, by their numbers in the model.
    pub(super) env: Shared<BTreeMap<ValueId, ValueId>>,
    /// Cells as they were when the packet entered the function, as far as the function reads them
    /// so.
    pub(super) entry: Shared<BTreeMap<Field, ValueId>>,
    /// The largest number of functions that a packet on this path has visited.
    pub(super) visits: u32,
}

/// A tag's value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Tag {
    /// The whole value.
    Stored(ValueId),
    /// The low bits of the value.
    Loaded(ValueId),
}

/// An operation whose result is remembered.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Memo {
    /// Whether there is an entry, and its handle.
    Find(u16, StateId, Vec<ValueId>),
    /// The entry's slots.
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
            ends: false,
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

    /// Updates the state for a packet that enters a function.
    pub(super) fn enter_function(&mut self) {
        self.visits += 1;
        self.sent = false;
        self.env = Shared::default();
        self.entry = Shared::default();
        self.last = Shared::default();
        // Memoised lookups belong to the function that did them. Quotients stay valid.
        if self.memo.keys().any(|memo| !matches!(memo, Memo::Quotient(..))) {
            self.memo.retain(|memo, _| matches!(memo, Memo::Quotient(..)));
        }
    }

    /// Forgets the values of the model's program that are not in `live`.
    pub(super) fn keep_values(&mut self, live: &BTreeSet<ValueId>) {
        if self.env.keys().any(|value| !live.contains(value)) {
            self.env.retain(|value, _| live.contains(value));
        }
    }

    /// Counts the packet with its current length, later.
    pub(super) fn count(&mut self, node: u16, counter: Counter) {
        self.pending.push(ListedCounter { node, counter, length: self.waiting.length() });
    }

    /// Adjusts the pending counts to a change of the packet's bytes, because their lengths are
    /// relative to these bytes.
    pub(super) fn lengthen(&mut self, bytes: i32) {
        for tallied in &mut self.pending {
            tallied.length -= bytes;
        }
    }

    /// The pending counts in their order.
    pub(super) fn counters(&self) -> Vec<ListedCounter> {
        let mut counters = self.pending.clone();
        counters.sort_unstable();
        counters
    }

    /// Forgets the memoised results that depend on a function's state, because the state has
    /// changed.
    pub(super) fn forget_state(&mut self, node: u16) {
        if self.memo.keys().any(|memo| memo.state_of() == Some(node)) {
            self.memo.retain(|memo, _| memo.state_of() != Some(node));
        }
    }

    /// The checksums that the pending writes update, as bits of [`checksums`].
    pub(super) fn checksums(&self) -> u32 {
        let dirty = self.cells.iter().filter(|(_, cell)| matches!(cell, Cell::Value(_, true)));
        let bits = dirty.fold(0, |bits, (field, _)| bits | checksums(*field));
        match bits {
            _ if bits & ICMP != 0 => bits & !TRANSPORTS,
            // The bit 4 (the destination address) follows from the bit 2 (the whole transport
            // checksum).
            _ if bits & 2 != 0 => bits & !4,
            _ => bits,
        }
    }

    /// The contents of these cells, for [`State::restore`].
    pub(super) fn before(&self, fields: &[Field]) -> Before {
        fields.iter().map(|field| (*field, self.cells.get(field).copied())).collect()
    }

    /// Sets cells to contents from [`State::before`].
    pub(super) fn restore(&mut self, before: Before) {
        for (field, cell) in before {
            match cell {
                Some(cell) => self.cells.insert(field, cell),
                None => self.cells.remove(&field),
            };
        }
    }

    /// Forgets the contents of cells. From now on, the packet's bytes hold them.
    pub(super) fn reload(&mut self, fields: impl IntoIterator<Item = Field>) {
        self.cells.extend(fields.into_iter().map(|field| (field, Cell::Reload)));
    }

    /// The number of unwritten fields.
    pub(super) fn dirty(&self) -> usize {
        self.cells.values().filter(|cell| matches!(cell, Cell::Value(_, true))).count()
    }
}

/// Splits lists into their common elements and the rest of each list. An element that occurs
/// several times is common as often as all lists have it.
pub(super) fn common(lists: &[&[ListedCounter]]) -> (Vec<ListedCounter>, Vec<Vec<ListedCounter>>) {
    let mut rests: Vec<Vec<ListedCounter>> = lists.iter().map(|list| list.to_vec()).collect();
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
