//! A packet's visit of a function: follows the function's blocks in order, for all paths that enter
//! with the same knowledge about headers.

use super::Synth;
use super::build::{Edge, Way, nowhere};
use super::cells::{needs, place};
use super::exec::Flow;
use super::headers::{self, Headers, behind_icmp, behind_ports, bit, listed};
use super::state::{Memo, Shared};
use super::terms::pass;
use braid_ir::model::{
    BlockId, Granularity, Key, Model, Op, ParamId, Program, Setting, StateId, Term, ValueId, Word,
};
use braid_ir::residual::{Counter, End, Fate, Point, Site, What};
use braid_ir::value::ParamValue;
use braid_packet::{Field, FlowKey, Header};
use std::collections::{BTreeMap, BTreeSet};

/// The visit of one function.
pub(super) struct Visit<'a> {
    pub(super) point: Point,
    /// The point's number in the order of points.
    pub(super) number: usize,
    pub(super) model: &'a Model,
    pub(super) params: &'a [ParamValue],
    /// The headers of the packet when it entered, as far as they are known.
    pub(super) entry: Headers,
    /// For each block, the values that it or a later block uses and that are defined before it.
    live: Vec<BTreeSet<ValueId>>,
    /// The edges that wait at each block.
    inbox: BTreeMap<BlockId, Vec<Edge>>,
}

impl Visit<'_> {
    pub(super) fn node(&self) -> u16 {
        self.point.node
    }

    pub(super) fn scalar(&self, param: ParamId) -> Word {
        match self.params.get(param.index()) {
            Some(ParamValue::Scalar(value)) => *value,
            _ => 0,
        }
    }

    pub(super) fn setting(&self, setting: Setting) -> Word {
        match setting {
            Setting::Const(value) => value,
            Setting::Param(param) => self.scalar(param),
        }
    }

    /// The slots that a table returns when it has no entry.
    pub(super) fn default(&self, state: StateId) -> Option<Vec<Word>> {
        let default = self.model.state[state.index()].default.as_ref()?;
        Some(default.iter().map(|slot| self.setting(*slot)).collect())
    }

    /// Adds an edge to a block of the function.
    pub(super) fn send(&mut self, block: BlockId, edge: Edge) {
        self.inbox.entry(block).or_default().push(edge);
    }
}

impl<'a> Synth<'a> {
    /// Follows all paths that reach a point.
    pub(super) fn point(&mut self, number: usize, edges: Vec<Edge>) {
        let point = self.order[number];
        let full = self.blocks.all.len() >= super::MOST_BLOCKS;
        if number > 0 && full {
            for edge in edges {
                let mut way = self.blocks.open(edge);
                self.leave(&mut way, Fate::Go(point));
            }
            return;
        }
        let model = &self.chain.nodes[usize::from(point.node)].model;
        self.values.site = Site { node: point.node, block: 0, op: 0 };
        let mut wanted = consulted(model);
        let mut ways = Vec::new();
        let fields = entry_fields(model);
        for edge in edges {
            if missing(edge.state.headers, wanted, &fields).is_none() {
                ways.push(edge);
                continue;
            }
            let way = self.blocks.open(edge);
            ways.extend(self.resolve_all(way, wanted, &fields).into_iter().map(Way::edge));
        }
        for later in &self.order[number + 1..] {
            wanted |= consulted(&self.chain.nodes[usize::from(later.node)].model);
        }
        forget_unwanted(&mut ways, wanted);
        let mut alike: BTreeMap<(u128, u128, u128), Vec<Edge>> = BTreeMap::new();
        for edge in ways {
            alike.entry(edge.state.headers.known()).or_default().push(edge);
        }
        for mut edges in alike.into_values() {
            self.settle_unlike(&mut edges, number);
            self.function(number, edges);
        }
    }

    /// Finds out whether these headers are present, and finds out each further header that decides
    /// the place of these fields.
    fn resolve_all(&mut self, way: Way, wanted: u128, fields: &BTreeSet<Field>) -> Vec<Way> {
        let mut known = Vec::new();
        let mut open = vec![way];
        while let Some(way) = open.pop() {
            match missing(way.state.headers, wanted, fields) {
                None => known.push(way),
                Some(header) => {
                    let (yes, no) = self.resolve(way, header);
                    open.extend([no, yes]);
                }
            }
        }
        known
    }

    /// Finds out whether a header is present. The result has one path for each outcome.
    pub(super) fn resolve(&mut self, mut way: Way, header: Header) -> (Way, Way) {
        self.freshen(&mut way);
        let bool = braid_ir::model::Ty::of(braid_ir::model::Kind::Bool);
        let out = self.values.fresh(bool, super::values::Def::Step);
        self.step(way.at, What::Op(Op::Has { out, header }));
        let (mut yes, mut no) = self.split(way, out);
        yes.state.headers.set(header, true);
        no.state.headers.set(header, false);
        (yes, no)
    }

    /// One path for each outcome of a condition.
    fn split(&mut self, way: Way, cond: ValueId) -> (Way, Way) {
        self.blocks.all[way.at].end = End::Branch { cond, yes: nowhere(), no: nowhere() };
        let (mut yes, mut no) = (way.state.clone(), way.state);
        yes.facts.decide(&self.values, cond, true);
        no.facts.decide(&self.values, cond, false);
        let edge = |slot, state| Edge { from: way.at, slot, state };
        let yes = edge(super::Slot::Yes, yes);
        let no = edge(super::Slot::No, no);
        (self.blocks.open(yes), self.blocks.open(no))
    }

    /// Follows a function for paths that agree about the packet's headers.
    fn function(&mut self, number: usize, edges: Vec<Edge>) {
        let point = self.order[number];
        let node = &self.chain.nodes[usize::from(point.node)];
        let model: &'a Model = &node.model;
        let Some(first) = edges.first() else { return };
        let mut visit = Visit {
            point,
            number,
            model,
            params: &node.params,
            entry: first.state.headers,
            live: live(&model.packet),
            inbox: BTreeMap::new(),
        };
        for edge in edges {
            let edge = self.enter(&mut visit, edge);
            visit.send(BlockId(0), edge);
        }
        while let Some((block, edges)) = visit.inbox.pop_first() {
            let mut here = Vec::with_capacity(edges.len());
            for edge in edges {
                here.extend(self.thread(&mut visit, edge, block));
            }
            let live = visit.live[block.index()].clone();
            for group in self.groups(here) {
                if let Some(way) = self.join(group, &live) {
                    self.block(&mut visit, way, block);
                }
            }
        }
        self.asked |= visit.entry.asked;
    }

    /// Lets a path enter the function.
    fn enter(&mut self, visit: &mut Visit<'a>, mut edge: Edge) -> Edge {
        let node = visit.node();
        let state = &mut edge.state;
        visit.entry.asked |= state.headers.asked;
        state.visits += 1;
        self.visits = self.visits.max(state.visits);
        state.sent = false;
        state.env = Shared::default();
        state.entry = Shared::default();
        state.last = Shared::default();
        // The results of other functions' lookups are not valid for this function.
        if state.memo.keys().any(|memo| !matches!(memo, Memo::Quotient(..))) {
            state.memo.retain(|memo, _| matches!(memo, Memo::Quotient(..)));
        }
        if !visit.point.held {
            let counter = if visit.point.backward { Counter::Backward } else { Counter::Forward };
            state.count(node, counter);
        }
        let ties = visit.model.state.iter().any(|decl| decl.lives_with.is_some());
        if ties {
            let mut way = self.blocks.open(edge);
            self.step(way.at, What::Enter);
            way.state.forget_state(node);
            edge = way.edge();
        }
        // The fields that the function reads in their state on entry.
        for field in entry_fields(visit.model) {
            if visit.entry.has(field.info().header) != Ok(true) {
                continue;
            }
            let Ok(place) = place(field, &mut visit.entry) else { continue };
            for cell in place.cells() {
                let value = match self.bound(&edge.state, cell) {
                    Some(value) => value,
                    None => {
                        let mut way = self.blocks.open(edge);
                        let value = self.cell(&mut way, cell);
                        edge = way.edge();
                        value
                    }
                };
                edge.state.entry.insert(cell, value);
            }
        }
        edge
    }

    /// Follows a path alone while its blocks need no steps and all their conditions are decided.
    /// The path meets others only behind those blocks. `None`: the path has moved on to a later
    /// block.
    fn thread(&mut self, visit: &mut Visit<'a>, mut edge: Edge, from: BlockId) -> Option<Edge> {
        let program = &visit.model.packet;
        let mut block = from;
        loop {
            let code = &program.blocks[block.index()];
            let fuel = self.ahead.checked_sub(1);
            if fuel.is_none() || !matches!(code.term, Term::Jump(_) | Term::Branch { .. }) {
                break;
            }
            self.ahead = fuel.unwrap_or(0);
            // Without this, the state would carry values that no later block uses, and each block
            // would copy them.
            edge.state.keep_values(&visit.live[block.index()]);
            let stats = self.stats;
            let scratch = self.blocks.add(Vec::new());
            let mut way = Way { at: scratch, state: edge.state.clone() };
            let free = code.ops.iter().enumerate().all(|(number, op)| {
                self.values.site = site(visit.node(), block, number);
                self.op(visit, &mut way, op) == Flow::Next
                    && self.blocks.all.len() == scratch + 1
                    && self.blocks.all[scratch].steps.is_empty()
            });
            self.blocks.all.truncate(scratch);
            let next = match &code.term {
                Term::Jump(target) if free => Some(target),
                Term::Branch { cond, yes, no } if free => {
                    let cond = way.state.env[cond];
                    let truth = way.state.facts.only(&self.values, cond);
                    truth.map(|word| if word == 0 { no } else { yes })
                }
                _ => None,
            };
            let Some(target) = next else {
                // This block will be executed again, for all paths that meet here.
                self.stats = stats;
                break;
            };
            pass(visit, &mut way, target);
            self.asked |= way.state.headers.asked;
            self.stats.decided += usize::from(matches!(code.term, Term::Branch { .. }));
            edge.state = way.state;
            block = target.block;
        }
        if block == from {
            return Some(edge);
        }
        visit.send(block, edge);
        None
    }

    fn block(&mut self, visit: &mut Visit<'a>, way: Way, block: BlockId) {
        self.stats.followed += 1;
        let code = &visit.model.packet.blocks[block.index()];
        let mut open = vec![(way, 0)];
        'ways: while let Some((mut way, from)) = open.pop() {
            for (number, op) in code.ops.iter().enumerate().skip(from) {
                self.values.site = site(visit.node(), block, number);
                loop {
                    match self.op(visit, &mut way, op) {
                        Flow::Next => break,
                        Flow::Ended => {
                            self.asked |= way.state.headers.asked;
                            continue 'ways;
                        }
                        Flow::Needs(header) => {
                            let (yes, no) = self.resolve(way, header);
                            open.push((no, number));
                            way = yes;
                        }
                        Flow::Splits(cond) => {
                            let (yes, no) = self.split(way, cond);
                            open.push((no, number));
                            way = yes;
                        }
                    }
                }
            }
            self.values.site = site(visit.node(), block, code.ops.len());
            self.asked |= way.state.headers.asked;
            self.term(visit, way, &code.term);
        }
    }
}

fn site(node: u16, block: BlockId, op: usize) -> Site {
    Site { node, block: block.0, op: u32::try_from(op).unwrap_or(u32::MAX) }
}

/// A header whose presence must be found out.
fn missing(mut headers: Headers, wanted: u128, fields: &BTreeSet<Field>) -> Option<Header> {
    let unknown = headers.open() & wanted;
    headers::all().find(|header| unknown & bit(*header) != 0).or_else(|| {
        fields.iter().find_map(|field| match headers.has(field.info().header) {
            Ok(true) => place(*field, &mut headers).err(),
            Ok(false) => None,
            Err(header) => Some(header),
        })
    })
}

/// Forgets differences between paths about headers that no function reads any more.
fn forget_unwanted(edges: &mut [Edge], wanted: u128) {
    let Some(first) = edges.first() else { return };
    let (present, open, together) = first.state.headers.known();
    let differ = edges.iter().fold(0, |bits, edge| {
        let known = edge.state.headers.known();
        bits | (known.0 ^ present) | (known.1 ^ open) | (known.2 ^ together)
    });
    for edge in edges {
        edge.state.headers.forget(differ & !wanted);
    }
}

/// The headers whose presence a function's packet program may depend on, as bits.
fn consulted(model: &Model) -> u128 {
    let mut bits = 0;
    let mut add = |header: Header| {
        bits |= bit(header);
        bits |= header.implies().iter().fold(0, |bits, header| bits | bit(*header));
    };
    for op in model.packet.blocks.iter().flat_map(|block| &block.ops) {
        match op {
            Op::Has { header, .. } => add(*header),
            Op::Load { field, .. } | Op::LoadEntry { field, .. } | Op::Store { field, .. } => {
                add(field.info().header);
                needs(*field).into_iter().for_each(&mut add);
            }
            Op::PushVlan { .. } | Op::PopVlan => add(Header::Vlan2),
            Op::Rules { .. } => {
                [Header::Tcp, Header::Icmp, Header::Icmp6, Header::L4]
                    .into_iter()
                    .for_each(&mut add);
            }
            Op::Patterns { .. } | Op::Extern { .. } => listed(behind_ports()).for_each(&mut add),
            _ => {}
        }
    }
    for field in entry_fields(model) {
        add(field.info().header);
        needs(field).into_iter().for_each(&mut add);
    }
    let quoted = bit(Header::Quoted);
    if bits & behind_icmp() & !quoted != 0 {
        bits |= quoted;
    }
    bits
}

/// The fields that a function reads in their state on entry.
fn entry_fields(model: &Model) -> BTreeSet<Field> {
    let mut found = BTreeSet::new();
    for op in model.packet.blocks.iter().flat_map(|block| &block.ops) {
        match op {
            Op::LoadEntry { field, .. } => {
                found.insert(*field);
            }
            Op::StateExists { state, key, .. }
            | Op::StateGet { state, key, .. }
            | Op::StateSet { state, key, .. }
            | Op::StatePut { state, key, .. }
            | Op::StateDelete { state, key } => {
                found.extend(key_fields(&model.state[state.index()].granularity, key));
            }
            _ => {}
        }
    }
    found
}

/// The fields that make up a key. An explicit key has none.
pub(super) fn key_fields<'a>(granularity: &'a Granularity, key: &Key) -> &'a [Field] {
    match (key, granularity) {
        (Key::Explicit(_), _) | (_, Granularity::Global | Granularity::Key(_)) => &[],
        (_, Granularity::Fields(fields)) => fields,
        (Key::Entry | Key::Reversed(false), _) => &FlowKey::FIELDS,
        (Key::Quoted | Key::Reversed(true), _) => &FlowKey::QUOTED_FIELDS,
    }
}

/// For each block, the values that it or a later block uses and that are defined before it or are
/// its parameters.
fn live(program: &Program) -> Vec<BTreeSet<ValueId>> {
    let mut live: Vec<BTreeSet<ValueId>> = vec![BTreeSet::new(); program.blocks.len()];
    for (number, block) in program.blocks.iter().enumerate().rev() {
        let mut here: BTreeSet<ValueId> = block.term.uses().into_iter().collect();
        for target in block.term.targets() {
            let there = &program.blocks[target.block.index()];
            let passed = live[target.block.index()].iter();
            here.extend(passed.filter(|value| !there.params.contains(value)));
            here.extend(&target.args);
        }
        for op in block.ops.iter().rev() {
            op.visit_outs(&mut |value| {
                here.remove(value);
            });
            op.visit_uses(&mut |value| {
                here.insert(*value);
            });
        }
        live[number] = here;
    }
    live
}
