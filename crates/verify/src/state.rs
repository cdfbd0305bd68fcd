//! Operations on state tables, as terms.

use braid_ir::engine::Fault;
use braid_ir::model::{EventId, Granularity, Key, Op, StateId, ValueId};
use braid_packet::Field;

use crate::ops::Run;
use crate::term::Term;
use crate::values::Faults;
use crate::world::{Table, Touch};

/// The fields of a flow key, then those of the flow key of a packet that an ICMP error quotes.
const FLOW: [Field; 6] = [
    Field::InetVersion,
    Field::InetSrc,
    Field::InetDst,
    Field::InetProto,
    Field::InetSport,
    Field::InetDport,
];
const QUOTED_FLOW: [Field; 6] = [
    Field::QuotedInetVersion,
    Field::QuotedInetSrc,
    Field::QuotedInetDst,
    Field::QuotedProto,
    Field::QuotedInetSport,
    Field::QuotedInetDport,
];

impl<'a> Run<'a> {
    /// A table of the function.
    pub(crate) fn table(&self, state: StateId) -> Result<Table<'a>, String> {
        match self.model().state.get(state.index()) {
            Some(_) => Ok(Table { chain: self.chain, node: self.node, state }),
            None => Err(format!("function {} has no {state}", self.node)),
        }
    }

    /// The current content of a table.
    pub(crate) fn content(&mut self, state: StateId) -> Term {
        self.state.world.keep(self.terms, self.chain, self.node).tables[state.index()]
    }

    pub(crate) fn state_op(&mut self, op: &Op) -> Result<Faults, String> {
        match op {
            Op::StateExists { out, state, key } => {
                let (found, _) = self.find(*state, key)?;
                self.define(*out, found)?;
            }
            Op::StateGet { outs, state, key } => return self.get(outs, *state, key),
            Op::StateSet { ok, state, key, values } => {
                let key = self.key(*state, key)?;
                let values = self.all(values)?;
                self.assign(*ok, *state, key, &values)?;
            }
            Op::StatePut { ok, state, key, slot, value } => {
                let table = self.table(*state)?;
                let key = self.key(*state, key)?;
                let content = self.content(*state);
                let there = table.exists(self.terms, content, key);
                let mut slots = table.slots(self.terms, content, key);
                let mut faults = Faults::new();
                match table.default(self.terms) {
                    Some(default) => {
                        for (slot, default) in slots.iter_mut().zip(default) {
                            *slot = self.terms.ite(there, *slot, default);
                        }
                    }
                    None => faults.push((self.terms.not(there), Fault::NoEntry)),
                }
                let value = self.value(*value)?;
                *slots.get_mut(*slot as usize).ok_or("there is no such slot")? = value;
                let before = (self.guard, self.state.clone());
                if let [(missing, _)] = faults.as_slice() {
                    let there = self.terms.not(*missing);
                    self.guard = self.terms.both(self.guard, there);
                }
                self.assign(*ok, *state, key, &slots)?;
                self.guard = before.0;
                return Ok(faults);
            }
            Op::StateDelete { state, key } => {
                let table = self.table(*state)?;
                let key = self.key(*state, key)?;
                table.delete(self.terms, &mut self.state.world, key);
            }
            Op::StateLen { out, state } => {
                let (table, content) = (self.table(*state)?, self.content(*state));
                let len = table.len(self.terms, content);
                self.define(*out, len)?;
            }
            other => return Err(format!("an operation that packets' programs lack: {other:?}")),
        }
        Ok(Faults::new())
    }

    fn get(&mut self, outs: &[ValueId], state: StateId, key: &Key) -> Result<Faults, String> {
        let table = self.table(state)?;
        let content = self.content(state);
        let (found, key) = self.find(state, key)?;
        let slots = table.slots(self.terms, content, key);
        let default = table.default(self.terms);
        for (place, (out, slot)) in outs.iter().zip(slots).enumerate() {
            let value = match &default {
                Some(default) => self.terms.ite(found, slot, default[place]),
                None => slot,
            };
            self.define(*out, value)?;
        }
        let missing = self.terms.not(found);
        let fails = default.is_none() && self.terms.decided(missing) != Some(false);
        Ok(if fails { vec![(missing, Fault::NoEntry)] } else { Faults::new() })
    }

    /// Looks up an entry, which renews it.
    pub(crate) fn find(&mut self, state: StateId, key: &Key) -> Result<(Term, Term), String> {
        let key = self.key(state, key)?;
        Ok((self.find_key(state, key)?, key))
    }

    /// Does the same as [`Run::find`] for a known key.
    pub(crate) fn find_key(&mut self, state: StateId, key: Term) -> Result<Term, String> {
        let (table, content) = (self.table(state)?, self.content(state));
        let found = table.exists(self.terms, content, key);
        let when = self.terms.both(self.guard, found);
        self.touches.push(Touch { node: self.node, state, when, content, key, assigned: false });
        table.touch(self.terms, &mut self.state.world, found, key);
        Ok(found)
    }

    fn assign(
        &mut self,
        ok: ValueId,
        state: StateId,
        key: Term,
        values: &[Term],
    ) -> Result<(), String> {
        let table = self.table(state)?;
        let expire = self.model().expire.iter().flat_map(|(_, program)| &program.blocks);
        let is_taken = |event: EventId| !self.subscriptions.of(self.node, event).is_empty();
        let is_heard = |op: &Op| matches!(op, Op::Emit { event, .. } if is_taken(*event));
        if table.evicts() && expire.flat_map(|block| &block.ops).any(is_heard) {
            return Err(
                "other functions take an event of an entry that ends early, which this check \
                        does not cover"
                    .into(),
            );
        }
        let done = table.assign(self.terms, &mut self.state.world, key, values);
        let when = self.terms.both(self.guard, done.ok);
        let content = done.before;
        self.touches.push(Touch { node: self.node, state, when, content, key, assigned: true });
        self.define(ok, done.ok)
    }

    /// A key as one term.
    pub(crate) fn key(&mut self, state: StateId, key: &Key) -> Result<Term, String> {
        let table = self.table(state)?;
        let parts = match key {
            Key::Explicit(values) => self.all(values)?,
            _ => self.implicit_key(state, key)?,
        };
        Ok(table.key(self.terms, &parts))
    }

    fn implicit_key(&mut self, state: StateId, key: &Key) -> Result<Vec<Term>, String> {
        let entry = self.entry.clone().ok_or("a residual program with a key of the packet")?;
        let granularity = &self.model().state[state.index()].granularity;
        let mut field = |field| entry.get(self.terms, self.kind, &entry, field);
        Ok(match granularity {
            Granularity::Global | Granularity::Key(_) => Vec::new(),
            Granularity::Fields(fields) => fields.iter().map(|of| field(*of)).collect(),
            Granularity::Flow | Granularity::Biflow => {
                let quoted = matches!(key, Key::Quoted | Key::Reversed(true));
                let mut parts = if quoted { QUOTED_FLOW } else { FLOW }.map(field);
                if matches!(key, Key::Reversed(_)) {
                    parts.swap(1, 2);
                    parts.swap(4, 5);
                }
                if *granularity == Granularity::Biflow {
                    self.order_ends(&mut parts);
                }
                parts.to_vec()
            }
        })
    }

    /// Puts the smaller pair of address and port first.
    fn order_ends(&mut self, parts: &mut [Term; 6]) {
        let [_, src, dst, _, sport, dport] = *parts;
        let terms = &mut *self.terms;
        let (less, same) = (terms.less(src, dst), terms.eq(src, dst));
        let by_port = terms.at_most(sport, dport);
        let tie = terms.both(same, by_port);
        let in_order = terms.or(&[less, tie]);
        for (a, b) in [(1, 2), (4, 5)] {
            let (first, second) = (parts[a], parts[b]);
            parts[a] = terms.ite(in_order, first, second);
            parts[b] = terms.ite(in_order, second, first);
        }
    }
}
