//! Checks that headers are known to be present where they are used.
//!
//! Blocks are in topological order, so one pass can carry the knowledge along every edge. Where
//! paths meet, the knowledge that they share stays. On the true side of a branch on `has H`, `H`
//! and the headers that it implies are known to be present. Some operations invalidate knowledge
//! that may no longer hold: adding or removing a VLAN tag, and writing a field that decides about
//! other headers. A condition that was computed before such a change describes the packet on entry.
//! A condition that was computed after the change describes only the current packet.
//!
//! One case is not checked here. A packet with more VLAN tags than parsing follows is malformed, so
//! adding or removing a tag can hide or uncover all headers behind it. Engines make that a fault.

use super::place::{Part, Place, Problem, VerifyError, Which};
use crate::model::{Area, BinOp, BlockId, Granularity, Key, Model, Op, Program, StateId, ValueId};
use braid_packet::{Field, Header};
use std::collections::BTreeSet;

/// A set of headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Headers(u128);

impl Headers {
    const NONE: Self = Self(0);

    fn of(headers: impl IntoIterator<Item = Header>) -> Self {
        Self(Header::bits(headers))
    }

    /// A header and all headers that it implies.
    fn with(header: Header) -> Self {
        Self::of(header.implies().iter().copied().chain([header]))
    }

    fn has(self, header: Header) -> bool {
        header == Header::Pkt || self.0 >> header as u8 & 1 == 1
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The knowledge at one place.
#[derive(Clone, PartialEq, Eq)]
struct Known {
    /// Headers that are present.
    now: Headers,
    /// Headers that were present on entry.
    entry: Headers,
    /// Headers whose presence may differ from their presence on entry.
    changed: Headers,
    /// Conditions on presence that still describe the current packet.
    live: BTreeSet<ValueId>,
}

impl Known {
    fn at_entry() -> Self {
        let (now, entry, changed) = (Headers::NONE, Headers::NONE, Headers::NONE);
        Self { now, entry, changed, live: BTreeSet::new() }
    }

    /// A stream belongs to a TCP flow.
    fn of_stream() -> Self {
        let headers = Headers::with(Header::Tcp);
        Self { now: headers, entry: headers, ..Self::at_entry() }
    }

    fn meet(&mut self, other: &Known) {
        self.now.0 &= other.now.0;
        self.entry.0 &= other.entry.0;
        self.changed.0 |= other.changed.0;
        self.live.retain(|value| other.live.contains(value));
    }
}

/// The definition of a condition.
#[derive(Clone, Copy)]
enum Cond {
    /// Whether a header is present, and whether this also describes the packet on entry.
    Has(Header, bool),
    Not(ValueId),
    And(ValueId, ValueId),
    Or(ValueId, ValueId),
}

/// The pass over one program.
pub(super) struct Facts<'a> {
    model: &'a Model,
    which: Which,
    program: &'a Program,
    reached: &'a [bool],
    conds: Vec<Option<Cond>>,
}

#[expect(clippy::indexing_slicing, reason = "the program passed the checks of numbers")]
impl<'a> Facts<'a> {
    pub(super) fn new(
        model: &'a Model,
        which: Which,
        program: &'a Program,
        reached: &'a [bool],
    ) -> Self {
        Self { model, which, program, reached, conds: vec![None; program.values.len()] }
    }

    pub(super) fn check(mut self, errors: &mut Vec<VerifyError>) {
        let program = self.program;
        let mut known: Vec<Option<Known>> = vec![None; program.blocks.len()];
        known[0] = Some(match self.which {
            Which::Stream(_) => Known::of_stream(),
            _ => Known::at_entry(),
        });
        for (at, block) in program.blocks.iter().enumerate() {
            let Some(mut here) = known[at].take().filter(|_| self.reached[at]) else { continue };
            let id = BlockId(u32::try_from(at).unwrap_or(u32::MAX));
            for (number, op) in block.ops.iter().enumerate() {
                if let Some(problem) = self.problem(&here, op) {
                    let place = Place::Block(self.which, id, Part::Op(number));
                    errors.push(VerifyError { place, problem });
                }
                self.after(&mut here, op);
            }
            let cond = match &block.term {
                crate::model::Term::Branch { cond, .. } => Some(*cond),
                _ => None,
            };
            for (side, target) in block.term.targets().into_iter().enumerate() {
                let mut there = here.clone();
                if let Some(cond) = cond {
                    self.learn(&mut there, cond, side == 0);
                }
                match &mut known[target.block.index()] {
                    Some(other) => other.meet(&there),
                    none => *none = Some(there),
                }
            }
        }
    }

    /// Adds the knowledge that follows if a condition is true or false.
    fn learn(&self, known: &mut Known, cond: ValueId, truth: bool) {
        let mut seen = BTreeSet::new();
        let mut todo = vec![(cond, truth)];
        while let Some((value, truth)) = todo.pop() {
            if !seen.insert((value, truth)) {
                continue;
            }
            match self.conds[value.index()] {
                Some(Cond::Has(header, entry)) if truth => {
                    let headers = Headers::with(header);
                    if known.live.contains(&value) {
                        known.now = known.now.union(headers);
                    }
                    if entry {
                        known.entry = known.entry.union(headers);
                    }
                }
                Some(Cond::Not(inner)) => todo.push((inner, !truth)),
                Some(Cond::And(a, b)) if truth => todo.extend([(a, true), (b, true)]),
                Some(Cond::Or(a, b)) if !truth => todo.extend([(a, false), (b, false)]),
                _ => {}
            }
        }
    }

    /// Updates the knowledge after an operation.
    fn after(&mut self, known: &mut Known, op: &Op) {
        let one_bit = |value: &ValueId| self.program.values[value.index()].width == 1;
        match op {
            Op::Has { out, header } => {
                let entry = !known.changed.has(*header) || *header == Header::Pkt;
                self.conds[out.index()] = Some(Cond::Has(*header, entry));
                known.live.insert(*out);
            }
            Op::Not { out, a } if one_bit(a) => self.conds[out.index()] = Some(Cond::Not(*a)),
            Op::Bin { out, op: BinOp::And, a, b } if one_bit(a) => {
                self.conds[out.index()] = Some(Cond::And(*a, *b));
            }
            Op::Bin { out, op: BinOp::Or, a, b } if one_bit(a) => {
                self.conds[out.index()] = Some(Cond::Or(*a, *b));
            }
            Op::PushVlan { .. } => {
                let second = if known.now.has(Header::Vlan) { Header::Vlan2 } else { Header::Vlan };
                known.now = known.now.union(Headers::with(second));
                known.changed = known.changed.union(vlans());
                self.forget(known, vlans());
            }
            Op::PopVlan => {
                let left = if known.now.has(Header::Vlan2) { Header::Vlan } else { Header::Eth };
                known.now = known.now.minus(vlans()).union(Headers::with(left));
                known.changed = known.changed.union(vlans());
                self.forget(known, vlans());
            }
            Op::PushOption { option, .. } | Op::PopOption { option } => {
                // The headers in front of it stay.
                let there = Headers::of([*option]);
                known.now = match op {
                    Op::PushOption { .. } => known.now.union(there),
                    _ => known.now.minus(there),
                };
                known.changed = known.changed.union(there);
                self.forget(known, there);
            }
            Op::StoreBytes { area: Area::TcpOption(_), .. } => {}
            Op::Encapsulate { .. } | Op::Decapsulate { .. } | Op::Translate { .. } => {
                let all = Headers::of(braid_packet::HEADERS.iter().map(|(header, _)| *header));
                let all = all.minus(Headers::with(Header::Pkt));
                known.now = known.now.minus(all);
                known.changed = known.changed.union(all);
                self.forget(known, all);
            }
            op if op.changes_payload() || matches!(op, Op::Store { .. }) => {
                // The bytes of a payload may become a header that a port announces.
                let field = if let Op::Store { field, .. } = op { *field } else { Field::L4Dport };
                let decided = Headers::of(field.decides());
                known.now = known.now.minus(decided);
                known.changed = known.changed.union(decided);
                self.forget(known, decided);
            }
            _ => {}
        }
    }

    /// Makes conditions about these headers invalid for the current packet.
    fn forget(&self, known: &mut Known, headers: Headers) {
        known.live.retain(|value| match self.conds[value.index()] {
            Some(Cond::Has(header, _)) => Headers::with(header).0 & headers.0 == 0,
            _ => true,
        });
    }

    /// The requirement of an operation that is not known to be met.
    fn problem(&self, known: &Known, op: &Op) -> Option<Problem> {
        let now = |header| (!known.now.has(header)).then_some(Problem::Absent(header));
        match op {
            Op::Load { field, .. } | Op::Store { field, .. } => now(field.info().header),
            Op::PushVlan { .. } => now(Header::Eth),
            Op::PopVlan => now(Header::Vlan),
            Op::PushOption { .. } => now(Header::Tcp),
            Op::PopOption { option } => now(*option),
            Op::LoadEntry { field, .. } => on_entry(known, field.info().header),
            op => op.entry().and_then(|(state, key)| self.key(known, state, key)),
        }
    }

    fn key(&self, known: &Known, state: StateId, key: &Key) -> Option<Problem> {
        let granularity = &self.model.state[state.index()].granularity;
        match (key, granularity) {
            (Key::Explicit(_), _) | (_, Granularity::Global | Granularity::Key(_)) => None,
            (_, Granularity::Fields(fields)) => {
                fields.iter().find_map(|field| on_entry(known, field.info().header))
            }
            (Key::Entry | Key::Reversed(false), _) => on_entry(known, Header::Inet),
            (Key::Quoted | Key::Reversed(true), _) => on_entry(known, Header::Quoted),
        }
    }
}

fn on_entry(known: &Known, header: Header) -> Option<Problem> {
    (!known.entry.has(header)).then_some(Problem::AbsentOnEntry(header))
}

fn vlans() -> Headers {
    Headers::of([Header::Vlan, Header::Vlan2])
}
