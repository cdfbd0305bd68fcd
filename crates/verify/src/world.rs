//! The state of functions as terms: tables, pools, counters, events and sent packets.
//!
//! A table's content is a token, and an assignment makes a new token from it. The result of a
//! lookup is a function of content and key. So equal lookups have equal results, and a lookup after
//! an assignment returns the assigned value. Two runs leave equal state if their tokens are equal:
//! they made the same assignments in the same order.

use std::collections::{BTreeMap, BTreeSet};

use braid_ir::chain::Chain;
use braid_ir::model::{Granularity, Setting, StateId};
use braid_ir::residual::Counter;
use braid_ir::value::ParamValue;

use crate::term::{Node, Sort, Term, Terms};

/// A function's state.
#[derive(Clone, PartialEq)]
pub(crate) struct Keep {
    /// The content of each table.
    pub(crate) tables: Vec<Term>,
    /// For each table, the entry that was last found or assigned.
    pub(crate) touched: Vec<Term>,
    /// The pools and the generator of random numbers.
    pub(crate) pools: Term,
    /// The rules that were counted.
    pub(crate) rules: Term,
    /// For each counter: the number of packets, and the sum of their lengths minus the arriving
    /// packet's length.
    pub(crate) counts: BTreeMap<Counter, (Term, Term)>,
}

/// The state of all functions, and the events and packets that they sent.
#[derive(Clone, PartialEq)]
pub(crate) struct World {
    pub(crate) keeps: BTreeMap<u16, Keep>,
    pub(crate) events: Term,
    pub(crate) sent: Term,
    /// Whether the current function has sent anything.
    pub(crate) sends: Term,
}

/// A packet found an entry, which renews it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) node: u16,
    pub(crate) state: StateId,
    pub(crate) when: Term,
    pub(crate) content: Term,
    pub(crate) key: Term,
    /// Whether it was an assignment. An assignment renews too, but is compared by the content that
    /// it makes.
    pub(crate) assigned: bool,
}

/// A table of a function.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    pub(crate) chain: &'a Chain,
    pub(crate) node: u16,
    pub(crate) state: StateId,
}

/// The result of an assignment.
pub(crate) struct Assigned {
    pub(crate) ok: Term,
    /// The content before the assignment.
    pub(crate) before: Term,
}

impl<'a> Table<'a> {
    fn decl(&self) -> &'a braid_ir::model::StateDecl {
        &self.model().state[self.state.index()]
    }

    fn model(&self) -> &'a braid_ir::model::Model {
        &self.chain.nodes[usize::from(self.node)].model
    }

    fn name(&self, what: &str) -> String {
        format!("{what} {}.{}", self.node, self.state)
    }

    pub(crate) fn is_global(&self) -> bool {
        self.decl().granularity == Granularity::Global
    }

    /// Whether an assignment may end other entries.
    pub(crate) fn evicts(&self) -> bool {
        self.decl().evicts()
    }

    /// The value of each slot when there is no entry.
    pub(crate) fn default(&self, terms: &mut Terms) -> Option<Vec<Term>> {
        let decl = self.decl();
        let params = &self.chain.nodes[usize::from(self.node)].params;
        let slots = decl.default.as_ref()?;
        let values = slots.iter().zip(&decl.slots).map(|(slot, (_, ty))| {
            let value = match slot {
                Setting::Const(value) => *value,
                Setting::Param(param) => match params.get(param.index()) {
                    Some(ParamValue::Scalar(value)) => *value,
                    _ => 0,
                },
            };
            terms.bits(ty.width, value)
        });
        Some(values.collect())
    }

    /// The key's parts as one term.
    pub(crate) fn key(&self, terms: &mut Terms, parts: &[Term]) -> Term {
        let widths = self.key_widths();
        let parts: Vec<_> =
            parts.iter().zip(widths).map(|(part, width)| terms.resize(*part, width)).collect();
        terms.apply(format!("key {}", parts.len()), &parts, Sort::Token)
    }

    fn key_widths(&self) -> Vec<u16> {
        match &self.decl().granularity {
            Granularity::Global => Vec::new(),
            Granularity::Flow | Granularity::Biflow => braid_packet::FlowKey::WIDTHS.to_vec(),
            Granularity::Fields(fields) => fields.iter().map(|field| field.info().width).collect(),
            Granularity::Key(types) => types.iter().map(|ty| ty.width).collect(),
        }
    }

    /// Whether an entry exists under a key.
    pub(crate) fn exists(&self, terms: &mut Terms, content: Term, key: Term) -> Term {
        if self.is_global() {
            return terms.bool(true);
        }
        match self.history(terms, content) {
            History::Either(cond, a, b) => {
                let (a, b) = (self.exists(terms, a, key), self.exists(terms, b, key));
                terms.ite(cond, a, b)
            }
            History::Set { before, key: at, ok, .. } => {
                let same = self.same_key(terms, key, at);
                let assigned = terms.both(same, ok);
                let else_there = if self.evicts() {
                    terms.apply(self.name("exists"), &[content, key], Sort::Bool)
                } else {
                    self.exists(terms, before, key)
                };
                terms.ite(assigned, assigned, else_there)
            }
            History::Delete { before, key: at } => {
                let same = self.same_key(terms, key, at);
                let other = if self.stands_alone() {
                    self.exists(terms, before, key)
                } else {
                    terms.apply(self.name("exists"), &[content, key], Sort::Bool)
                };
                let not_same = terms.not(same);
                terms.both(not_same, other)
            }
            History::Unknown => terms.apply(self.name("exists"), &[content, key], Sort::Bool),
        }
    }

    fn same_key(&self, terms: &mut Terms, a: Term, b: Term) -> Term {
        let parts = |terms: &Terms, key: Term| match terms.node(key) {
            Node::Apply(_, parts) => parts.to_vec(),
            _ => Vec::new(),
        };
        let (a, b) = (parts(terms, a), parts(terms, b));
        terms.all_eq(&a, &b)
    }

    /// The slots of the entry under a key. The entry must exist.
    pub(crate) fn slots(&self, terms: &mut Terms, content: Term, key: Term) -> Vec<Term> {
        match self.history(terms, content) {
            History::Either(cond, a, b) => {
                let (a, b) = (self.slots(terms, a, key), self.slots(terms, b, key));
                a.iter().zip(b).map(|(a, b)| terms.ite(cond, *a, b)).collect()
            }
            History::Set { before, key: at, ok, values } => {
                let same = self.same_key(terms, key, at);
                let assigned = terms.both(same, ok);
                let old = if self.evicts() {
                    self.unknown_slots(terms, content, key)
                } else {
                    self.slots(terms, before, key)
                };
                values.iter().zip(old).map(|(new, old)| terms.ite(assigned, *new, old)).collect()
            }
            History::Delete { before, .. } if self.stands_alone() => self.slots(terms, before, key),
            _ => self.unknown_slots(terms, content, key),
        }
    }

    fn unknown_slots(&self, terms: &mut Terms, content: Term, key: Term) -> Vec<Term> {
        let decl = self.decl();
        let slots = decl.slots.iter().enumerate().map(|(place, (_, ty))| {
            let name = format!("{} {place}", self.name("slot"));
            terms.apply(name, &[content, key], Sort::Bits(ty.width))
        });
        slots.collect()
    }

    /// Whether no table's entries live with this table's entries, or the reverse.
    fn stands_alone(&self) -> bool {
        self.group().len() == 1
    }

    /// The tables whose entries may live with this table's entries, including this table.
    fn group(&self) -> BTreeSet<u32> {
        let state = &self.model().state;
        let mut group = BTreeSet::from([self.state.0]);
        loop {
            let before = group.len();
            for (place, decl) in (0..).zip(state) {
                if let Some(with) = decl.lives_with
                    && (group.contains(&with.0) || group.contains(&place))
                {
                    group.extend([with.0, place]);
                }
            }
            if group.len() == before {
                return group;
            }
        }
    }

    /// The last operation on a content, if its form shows it.
    fn history(&self, terms: &mut Terms, content: Term) -> History {
        match terms.node(content).clone() {
            Node::Ite(cond, a, b) => History::Either(cond, a, b),
            Node::Apply(function, args) => {
                let name = &terms.function(function).name;
                if *name == self.name("set") {
                    let slots = self.decl().slots.len();
                    let (start, ok) = (args.len() - slots, args[2]);
                    History::Set { before: args[0], key: args[1], ok, values: args[start..].into() }
                } else if *name == self.name("delete") {
                    History::Delete { before: args[0], key: args[1] }
                } else {
                    History::Unknown
                }
            }
            _ => History::Unknown,
        }
    }

    /// The entry under a key. The entry must exist.
    pub(crate) fn entry(&self, terms: &mut Terms, content: Term, key: Term) -> Term {
        match self.history(terms, content) {
            History::Either(cond, a, b) => {
                let (a, b) = (self.entry(terms, a, key), self.entry(terms, b, key));
                terms.ite(cond, a, b)
            }
            History::Set { before, key: at, .. } if !self.evicts() => {
                let (same, there) =
                    (self.same_key(terms, key, at), self.exists(terms, before, key));
                let not_there = terms.not(there);
                let fresh = terms.both(same, not_there);
                let new = terms.apply(self.name("entry"), &[content, key], Sort::Token);
                let old = self.entry(terms, before, key);
                terms.ite(fresh, new, old)
            }
            _ => terms.apply(self.name("entry"), &[content, key], Sort::Token),
        }
    }

    /// Records that this run found or assigned an entry, if another table's entries live with it.
    pub(crate) fn touch(&self, terms: &mut Terms, world: &mut World, when: Term, key: Term) {
        let is_partner = self.model().state.iter().any(|decl| decl.lives_with == Some(self.state));
        if !is_partner {
            return;
        }
        let content = world.keep(terms, self.chain, self.node).tables[self.state.index()];
        let entry = self.entry(terms, content, key);
        let touched = &mut world.keep(terms, self.chain, self.node).touched[self.state.index()];
        *touched = terms.ite(when, entry, *touched);
    }

    /// Assigns all slots of the entry under a key.
    pub(crate) fn assign(
        &self,
        terms: &mut Terms,
        world: &mut World,
        key: Term,
        values: &[Term],
    ) -> Assigned {
        let keep = world.keep(terms, self.chain, self.node).clone();
        let before = keep.tables[self.state.index()];
        let widths = self.decl().slots.iter().map(|(_, ty)| ty.width);
        let values: Vec<_> =
            values.iter().zip(widths).map(|(value, width)| terms.resize(*value, width)).collect();
        // The entry to live with also decides the result.
        let partner: Vec<_> = self.decl().lives_with.map_or_else(Vec::new, |with| {
            vec![keep.touched[with.index()], keep.tables[with.index()]]
        });
        let mut args = vec![before, key];
        args.extend(&partner);
        let room = terms.apply(self.name("room"), &args, Sort::Bool);
        let there = self.exists(terms, before, key);
        let ok = terms.or(&[there, room]);
        let mut args = vec![before, key, ok];
        args.extend(partner);
        args.extend(values);
        let after = terms.apply(self.name("set"), &args, Sort::Token);
        if self.evicts() {
            self.disturb(terms, world, &args, !self.model().expire.is_empty());
        }
        world.keep(terms, self.chain, self.node).tables[self.state.index()] = after;
        self.touch(terms, world, ok, key);
        Assigned { ok, before }
    }

    /// Removes the entry under a key and the entries that live with it.
    pub(crate) fn delete(&self, terms: &mut Terms, world: &mut World, key: Term) {
        let before = world.keep(terms, self.chain, self.node).tables[self.state.index()];
        let args = [before, key];
        let after = terms.apply(self.name("delete"), &args, Sort::Token);
        self.disturb(terms, world, &args, false);
        world.keep(terms, self.chain, self.node).tables[self.state.index()] = after;
    }

    /// Changes the tables whose entries end together with entries of this table. With `programs`,
    /// also changes everything that `on expire` programs reach.
    fn disturb(&self, terms: &mut Terms, world: &mut World, args: &[Term], programs: bool) {
        let group = self.group();
        let keep = world.keep(terms, self.chain, self.node).clone();
        let mut cause = args.to_vec();
        cause.push(keep.pools);
        cause.extend(&keep.tables);
        for (place, content) in (0..).zip(&keep.tables) {
            if place != self.state.0 && (programs || group.contains(&place)) {
                let name = format!("{} in {place}", self.name("ends"));
                let mut args = vec![*content];
                args.extend(&cause);
                let after = terms.apply(name, &args, Sort::Token);
                world.keep(terms, self.chain, self.node).tables[place as usize] = after;
            }
        }
        if programs {
            let pools = terms.apply(self.name("ends in pools"), &cause, Sort::Token);
            world.keep(terms, self.chain, self.node).pools = pools;
            cause.push(world.events);
            world.events = terms.apply(self.name("ends in events"), &cause, Sort::Token);
        }
    }

    /// Number of entries.
    pub(crate) fn len(&self, terms: &mut Terms, content: Term) -> Term {
        terms.apply(self.name("entries"), &[content], Sort::Bits(32))
    }
}

/// The last operation on the content of a table.
enum History {
    Either(Term, Term, Term),
    Set { before: Term, key: Term, ok: Term, values: Vec<Term> },
    Delete { before: Term, key: Term },
    Unknown,
}

impl World {
    /// An arbitrary state.
    pub(crate) fn any(terms: &mut Terms) -> Self {
        Self {
            keeps: BTreeMap::new(),
            events: terms.var("events", Sort::Token),
            sent: terms.var("sent", Sort::Token),
            sends: terms.bool(false),
        }
    }

    /// The state of a function.
    pub(crate) fn keep(&mut self, terms: &mut Terms, chain: &Chain, node: u16) -> &mut Keep {
        self.keeps.entry(node).or_insert_with(|| Keep::any(terms, chain, node))
    }

    /// Counts a packet that has grown by this much.
    pub(crate) fn count(
        &mut self,
        terms: &mut Terms,
        chain: &Chain,
        (node, counter): (u16, Counter),
        grown: Term,
    ) {
        let zero = terms.bits(16, 0);
        let one = terms.bits(16, 1);
        let keep = self.keep(terms, chain, node);
        let (packets, bytes) = keep.counts.entry(counter).or_insert((zero, zero));
        *packets = terms.op(crate::term::BitOp::Add, *packets, one);
        *bytes = terms.op(crate::term::BitOp::Add, *bytes, grown);
    }

    /// Number of functions that the packet visited.
    pub(crate) fn visits(&self, terms: &mut Terms) -> Term {
        let mut sum = terms.bits(16, 0);
        for keep in self.keeps.values() {
            for counter in [Counter::Forward, Counter::Backward] {
                if let Some((packets, _)) = keep.counts.get(&counter) {
                    sum = terms.op(crate::term::BitOp::Add, sum, *packets);
                }
            }
        }
        sum
    }

    /// Chooses one of several worlds: the first whose condition holds, otherwise the last.
    pub(crate) fn choose(terms: &mut Terms, chain: &Chain, from: &[(Term, &World)]) -> World {
        let Some(((_, last), others)) = from.split_last() else { return World::any(terms) };
        let mut chosen = (*last).clone();
        for (cond, world) in others.iter().rev() {
            chosen.or_if(terms, chain, *cond, world);
        }
        chosen
    }

    fn or_if(&mut self, terms: &mut Terms, chain: &Chain, cond: Term, other: &World) {
        self.events = terms.ite(cond, other.events, self.events);
        self.sent = terms.ite(cond, other.sent, self.sent);
        self.sends = terms.ite(cond, other.sends, self.sends);
        let mut other = other.clone();
        let nodes: BTreeSet<u16> = self.keeps.keys().chain(other.keeps.keys()).copied().collect();
        for node in nodes {
            let theirs = other.keep(terms, chain, node).clone();
            self.keep(terms, chain, node).or_if_copy(terms, cond, &theirs);
        }
    }

    /// The equalities that make two worlds equal, each with its name.
    pub(crate) fn same(
        &self,
        terms: &mut Terms,
        chain: &Chain,
        other: &World,
    ) -> Vec<(String, Term)> {
        let mut found = vec![
            ("events".to_owned(), terms.eq(self.events, other.events)),
            ("packets sent".to_owned(), terms.eq(self.sent, other.sent)),
        ];
        let nodes: BTreeSet<u16> = self.keeps.keys().chain(other.keeps.keys()).copied().collect();
        let (mut mine, mut theirs) = (self.clone(), other.clone());
        for node in nodes {
            let a = mine.keep(terms, chain, node).clone();
            let b = theirs.keep(terms, chain, node).clone();
            a.same(terms, &chain.nodes[usize::from(node)], &b, &mut found);
        }
        found.retain(|(_, equal)| terms.decided(*equal) != Some(true));
        found
    }
}

impl Keep {
    fn any(terms: &mut Terms, chain: &Chain, node: u16) -> Self {
        let model = &chain.nodes[usize::from(node)].model;
        let count = model.state.len();
        Self {
            tables: (0..count)
                .map(|place| terms.var(format!("table {node}.{place}"), Sort::Token))
                .collect(),
            touched: (0..count)
                .map(|place| terms.var(format!("stale entry {node}.{place}"), Sort::Token))
                .collect(),
            pools: terms.var(format!("pools {node}"), Sort::Token),
            rules: terms.var(format!("rules counted {node}"), Sort::Token),
            counts: BTreeMap::new(),
        }
    }

    /// Forgets the entries that a run found or assigned.
    pub(crate) fn forget(&mut self, terms: &mut Terms) {
        let none = terms.var("no entry", Sort::Token);
        self.touched.fill(none);
    }

    fn or_if_copy(&mut self, terms: &mut Terms, cond: Term, other: &Keep) {
        for (mine, theirs) in self.tables.iter_mut().zip(&other.tables) {
            *mine = terms.ite(cond, *theirs, *mine);
        }
        for (mine, theirs) in self.touched.iter_mut().zip(&other.touched) {
            *mine = terms.ite(cond, *theirs, *mine);
        }
        self.pools = terms.ite(cond, other.pools, self.pools);
        self.rules = terms.ite(cond, other.rules, self.rules);
        let zero = terms.bits(16, 0);
        let counters: BTreeSet<Counter> =
            self.counts.keys().chain(other.counts.keys()).copied().collect();
        for counter in counters {
            let get = |keep: &Keep| keep.counts.get(&counter).copied().unwrap_or((zero, zero));
            let (mine, theirs) = (get(self), get(other));
            let packets = terms.ite(cond, theirs.0, mine.0);
            let bytes = terms.ite(cond, theirs.1, mine.1);
            self.counts.insert(counter, (packets, bytes));
        }
    }

    fn same(
        &self,
        terms: &mut Terms,
        node: &braid_ir::chain::Node,
        other: &Keep,
        found: &mut Vec<(String, Term)>,
    ) {
        for ((a, b), decl) in self.tables.iter().zip(&other.tables).zip(&node.model.state) {
            found.push((format!("state {}.{}", node.name, decl.name), terms.eq(*a, *b)));
        }
        found.push((format!("pools of {}", node.name), terms.eq(self.pools, other.pools)));
        found.push((format!("rules counted in {}", node.name), terms.eq(self.rules, other.rules)));
        let zero = terms.bits(16, 0);
        let counters: BTreeSet<Counter> =
            self.counts.keys().chain(other.counts.keys()).copied().collect();
        for counter in counters {
            let get = |keep: &Keep| keep.counts.get(&counter).copied().unwrap_or((zero, zero));
            let (mine, theirs) = (get(self), get(other));
            let name = match counter {
                Counter::Forward => "packets forward".to_owned(),
                Counter::Backward => "packets backward".to_owned(),
                Counter::Row(row) => {
                    let label = node.model.rows.get(row.index()).map(|row| row.label.as_str());
                    format!("packets at row {}", label.unwrap_or("?"))
                }
                Counter::Background => "faults of handlers".to_owned(),
            };
            let packets = terms.eq(mine.0, theirs.0);
            found.push((format!("{name} of {}", node.name), packets));
            if counter == Counter::Background {
                continue;
            }
            let bytes = terms.eq(mine.1, theirs.1);
            found.push((format!("bytes, {name} of {}", node.name), bytes));
        }
    }
}
