//! Computes the dynamic values of a path for each packet.
#![expect(
    clippy::indexing_slicing,
    reason = "numbers and places of values and entries are positions in lists of this module"
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "there are at most `MOST + 2` places, and no more entries than slots"
)]

use crate::dynamic::{Dynamic, Expr, MOST, Operation};
use crate::host::State;
use arrayvec::ArrayVec;
use braid_ir::arith::{binary, compare};
use braid_ir::model::{BinOp, Word};
use braid_packet::Packet;
use std::sync::Arc;

/// The dynamic values of one packet, by place: the time, the packet's length, the constants, the
/// slots, and then the results of the steps.
pub(crate) type Words = ArrayVec<Word, { MOST + 2 }>;

/// The places of the time and of the packet's length.
const TIME: u8 = 0;
const LENGTH: u8 = 1;

/// The dynamic values of a path, in a form that computes each value once and looks up each entry
/// once.
#[derive(Debug, Default)]
pub(crate) struct Computed {
    constants: Vec<Word>,
    /// The entries with slots that are read or assigned. Each number counts from the last entry
    /// that the record depends on.
    entries: Vec<usize>,
    /// The slots that are read: the position of the entry, and the number of the slot.
    slots: Vec<(u8, u32)>,
    /// The operations, which name values by place.
    steps: Vec<Operation>,
    /// Conditions: the place of a value, and whether it must be true.
    checks: Vec<(u8, bool)>,
    /// The assignments: the position of the entry, its slot, and the place of the value.
    puts: Vec<(u8, u32, u8)>,
    /// Tags that the packet must not have.
    lacks: Vec<Arc<str>>,
    /// The places of the values, by number.
    places: Vec<u8>,
}

impl Computed {
    /// The form of a path's dynamic values.
    pub(crate) fn of(dynamic: &Dynamic) -> Self {
        let mut computed = Self { lacks: dynamic.lacks.clone(), ..Self::default() };
        let mut places = vec![0; dynamic.values.len()];
        for (place, value) in places.iter_mut().zip(&dynamic.values) {
            match *value {
                Expr::Time => *place = TIME,
                Expr::Length => *place = LENGTH,
                Expr::Const(word) => {
                    *place = LENGTH + 1 + computed.constants.len() as u8;
                    computed.constants.push(word);
                }
                _ => {}
            }
        }
        let mut next = LENGTH + 1 + computed.constants.len() as u8;
        for (place, value) in places.iter_mut().zip(&dynamic.values) {
            if let Expr::Slot(entry, slot) = *value {
                let entry = computed.entry(dynamic, entry);
                computed.slots.push((entry, slot));
                *place = next;
                next += 1;
            }
        }
        // Values refer to earlier ones, so the places of operands are known.
        for (number, value) in dynamic.values.iter().enumerate() {
            let Expr::Of(operation) = *value else { continue };
            let at = |operand: u8| places[usize::from(operand)];
            computed.steps.push(match operation {
                Operation::Bin(op, width, a, b) => Operation::Bin(op, width, at(a), at(b)),
                Operation::Cmp(op, a, b) => Operation::Cmp(op, at(a), at(b)),
                Operation::Not(most, a) => Operation::Not(most, at(a)),
                Operation::Resize(most, a) => Operation::Resize(most, at(a)),
                Operation::Clamp(most, a) => Operation::Clamp(most, at(a)),
            });
            places[number] = next;
            next += 1;
        }
        let place = |number: u8| places[usize::from(number)];
        computed.checks = dynamic.checks.iter().map(|(number, is)| (place(*number), *is)).collect();
        for (entry, slot, number) in &dynamic.puts {
            let entry = computed.entry(dynamic, *entry);
            computed.puts.push((entry, *slot, place(*number)));
        }
        computed.places = places;
        computed
    }

    /// The position of an entry, which is added if it is not there.
    fn entry(&mut self, dynamic: &Dynamic, entry: u8) -> u8 {
        let number = usize::from(dynamic.entries - 1 - entry);
        let known = self.entries.iter().position(|one| *one == number);
        known.unwrap_or_else(|| {
            self.entries.push(number);
            self.entries.len() - 1
        }) as u8
    }

    /// Whether there is nothing to test or to assign. A division tests its divisor.
    pub(crate) fn is_empty(&self) -> bool {
        let tests = !self.checks.is_empty() || !self.lacks.is_empty() || self.divides();
        !tests && self.puts.is_empty()
    }

    /// Whether it divides, so that packets may fault.
    pub(crate) fn divides(&self) -> bool {
        let divides =
            |step: &Operation| matches!(step, Operation::Bin(BinOp::Div | BinOp::Rem, ..));
        self.steps.iter().any(divides)
    }

    /// A value of a packet, by its number.
    pub(crate) fn value(&self, words: &Words, number: u8) -> Word {
        words[usize::from(self.places[usize::from(number)])]
    }

    /// Computes the values for a packet that takes the record with number `record`, tests the
    /// conditions and assigns the slots. Returns false, without any change, if a condition does not
    /// hold.
    pub(crate) fn run(
        &self,
        state: &mut State,
        record: u32,
        packet: &Packet,
        time: u64,
        words: &mut Words,
    ) -> bool {
        if self.lacks.iter().any(|tag| packet.tags.contains_key(tag)) {
            return false;
        }
        let (records, tables) = state.parts();
        let mut entries = ArrayVec::<_, MOST>::new();
        for number in &self.entries {
            // The record is there, so it has the entries that its path depends on.
            let Some(entry) = records.entry(record, *number) else { return false };
            entries.push(entry);
        }
        words.push(time.into());
        words.push(packet.wire_len.into());
        words.extend(self.constants.iter().copied());
        for (entry, slot) in &self.slots {
            let (table, place) = entries[usize::from(*entry)];
            words.push(tables.slot(table, place, *slot as usize));
        }
        for step in &self.steps {
            let value = |place: u8| words[usize::from(place)];
            let result = match *step {
                Operation::Bin(op, width, a, b) => match binary(op, width, value(a), value(b)) {
                    Ok(value) => value,
                    Err(_) => return false,
                },
                Operation::Cmp(op, a, b) => compare(op, value(a), value(b)).into(),
                Operation::Not(most, a) => !value(a) & most,
                Operation::Resize(most, a) => value(a) & most,
                Operation::Clamp(most, a) => value(a).min(most),
            };
            words.push(result);
        }
        let value = |place: u8| words[usize::from(place)];
        if self.checks.iter().any(|(place, is)| (value(*place) != 0) != *is) {
            return false;
        }
        for (entry, slot, place) in &self.puts {
            let (table, at) = entries[usize::from(*entry)];
            tables.put_slot(table, at, *slot as usize, value(*place));
        }
        true
    }
}
