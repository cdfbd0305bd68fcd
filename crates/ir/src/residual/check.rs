//! Checks that a residual program is well formed: its graph, its values, and the references of its
//! steps.

use super::program::{CounterListId, End, Fate, ListedCounter, Residual, RuleFields, What};
use crate::chain::Chain;
use crate::model::{Granularity, Key, Model, Op, Target, Ty, ValueId};
use braid_packet::{Access, Field, FlowKey};
use std::collections::{BTreeSet, HashMap};

/// Checks a program against its chain.
///
/// # Errors
/// All problems of the program.
pub fn check(program: &Residual, chain: &Chain) -> Result<(), Vec<String>> {
    let count = program.blocks.len();
    let mut check = Check {
        program,
        chain,
        problems: Vec::new(),
        place: String::new(),
        block: 0,
        homes: HashMap::new(),
        dominators: Dominators { parent: vec![0; count], depth: vec![0; count] },
    };
    check.program();
    if check.problems.is_empty() { Ok(()) } else { Err(check.problems) }
}

struct Check<'a> {
    program: &'a Residual,
    chain: &'a Chain,
    problems: Vec<String>,
    place: String,
    /// The current block.
    block: usize,
    /// The block that defines each value.
    homes: HashMap<ValueId, usize>,
    dominators: Dominators,
}

/// Dominators of the blocks so far. A block's parent is the last block that all paths to it share.
struct Dominators {
    parent: Vec<usize>,
    depth: Vec<usize>,
}

#[expect(
    clippy::indexing_slicing,
    reason = "the caller gives numbers of blocks, and parents are blocks"
)]
impl Dominators {
    /// Adds a jump from one block to another. `first`: it is the first jump to that block.
    fn join(&mut self, to: usize, from: usize, first: bool) {
        let (mut a, mut b) = (from, if first { from } else { self.parent[to] });
        while a != b {
            if self.depth[a] >= self.depth[b] {
                a = self.parent[a];
            } else {
                b = self.parent[b];
            }
        }
        (self.parent[to], self.depth[to]) = (a, self.depth[a] + 1);
    }

    fn dominates(&self, above: usize, mut below: usize) -> bool {
        while self.depth[below] > self.depth[above] {
            below = self.parent[below];
        }
        above == below
    }
}

impl Check<'_> {
    fn say(&mut self, problem: impl std::fmt::Display) {
        self.problems.push(format!("{}: {problem}", self.place));
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "the program has an entry, and `target` is true only for blocks of it"
    )]
    fn program(&mut self) {
        let blocks = &self.program.blocks;
        if blocks.first().is_none_or(|entry| !entry.params.is_empty()) {
            return self.say("no entry, or one with parameters");
        }
        let mut reached = vec![false; blocks.len()];
        reached[0] = true;
        for (at, block) in blocks.iter().enumerate() {
            self.place = format!("b{at}");
            self.block = at;
            if !reached[at] {
                self.say("nothing leads here");
                continue;
            }
            for param in &block.params {
                self.define(*param);
            }
            for (number, step) in block.steps.iter().enumerate() {
                self.place = format!("b{at} step {number}");
                let uses = step.what.uses();
                for value in &uses {
                    self.used(*value);
                }
                self.step(&step.what, step.site.node);
                if let Some(counters) = step.fault {
                    self.counters(counters);
                }
                let outs = step.what.outs();
                for value in &outs {
                    self.define(*value);
                }
                if uses.iter().max() >= outs.iter().min() && !outs.is_empty() {
                    self.say("a value is computed from one with a higher number");
                }
            }
            self.place = format!("b{at} end");
            self.end(&block.end);
            for target in block.end.targets() {
                if self.target(at, target) {
                    let there = target.block.index();
                    self.dominators.join(there, at, !reached[there]);
                    reached[there] = true;
                }
            }
        }
    }

    fn ty(&self, value: ValueId) -> Option<Ty> {
        self.program.values.get(value.index()).copied()
    }

    fn width(&self, value: ValueId) -> u16 {
        self.ty(value).map_or(0, |ty| ty.width)
    }

    fn define(&mut self, value: ValueId) {
        if self.ty(value).is_none_or(|ty| !ty.is_valid()) {
            self.say(format_args!("{value} has no type"));
        }
        if self.homes.insert(value, self.block).is_some() {
            self.say(format_args!("{value} is defined twice"));
        }
    }

    /// A value is defined on all paths to a use if its block dominates the block of the use.
    fn used(&mut self, value: ValueId) {
        let home = self.homes.get(&value);
        if home.is_none_or(|home| !self.dominators.dominates(*home, self.block)) {
            self.say(format_args!("{value} is used before it is defined"));
        }
    }

    fn target(&mut self, from: usize, target: &Target) -> bool {
        let Some(block) = self.program.blocks.get(target.block.index()) else {
            self.say(format_args!("{} does not exist", target.block));
            return false;
        };
        if target.block.index() <= from {
            self.say(format_args!("{} is not a later block", target.block));
            return false;
        }
        let params: Vec<u16> = block.params.iter().map(|value| self.width(*value)).collect();
        let args: Vec<u16> = target.args.iter().map(|value| self.width(*value)).collect();
        if params != args {
            self.say(format_args!("{} takes other values", target.block));
        }
        for value in &target.args {
            self.used(*value);
        }
        true
    }

    fn model(&mut self, node: u16) -> Option<std::sync::Arc<Model>> {
        let found = self.chain.nodes.get(usize::from(node)).map(|node| node.model.clone());
        if found.is_none() {
            self.say(format_args!("there is no function {node}"));
        }
        found
    }

    fn counters(&mut self, counters: CounterListId) {
        let Some(counters) = self.program.counter_lists.get(counters.0 as usize) else {
            return self.say("a counters that does not exist");
        };
        for ListedCounter { node, counter, .. } in counters {
            let rows = self.model(*node).map_or(0, |model| model.rows.len());
            if let super::program::Counter::Row(row) = counter
                && row.index() >= rows
            {
                self.say(format_args!("function {node} has no {row}"));
            }
        }
    }

    fn end(&mut self, end: &End) {
        let mut used = Vec::new();
        end.visit_uses(&mut |value| used.push(*value));
        used.iter().for_each(|value| self.used(*value));
        match end {
            End::Branch { cond, .. } if self.width(*cond) != 1 => {
                self.say("a condition that is no bool");
            }
            End::Hold { node, queue, delay, counters, .. } => {
                self.counters(*counters);
                if self.width(*delay) != 64 {
                    self.say("a delay that has not 64 bits");
                }
                let queues = self.model(*node).map_or(0, |model| model.queues.len());
                if queue.index() >= queues {
                    self.say(format_args!("function {node} has no {queue}"));
                }
            }
            End::Exit(exit) => {
                self.counters(exit.counters);
                match &exit.fate {
                    Fate::Leave { interface } => {
                        if usize::from(*interface) >= self.chain.interfaces.len() {
                            self.say("an interface that does not exist");
                        }
                    }
                    Fate::Go(point) => {
                        self.model(point.node);
                    }
                    Fate::Output { node, .. }
                    | Fate::Drop { node, .. }
                    | Fate::Fault { node, .. }
                    | Fate::Consume { node }
                    | Fate::Resubmit { node } => {
                        self.model(*node);
                    }
                }
            }
            End::Jump(_) | End::Branch { .. } => {}
        }
    }

    fn step(&mut self, what: &What, node: u16) {
        let Some(model) = self.model(node) else { return };
        match what {
            What::Op(op) => self.op(op, &model),
            What::Classify { pass, rule, packet, .. } => {
                self.widths(&[(*pass, 1), (*rule, 32)]);
                if let Some(packet) = packet {
                    self.rule_fields(packet);
                }
            }
            What::CountRule { rule, .. } => self.widths(&[(*rule, 32)]),
            What::Find { found, entry, state, key } => {
                self.widths(&[(*found, 1), (*entry, 64)]);
                self.key(&model, *state, key);
            }
            What::Read { outs, state, entry } => {
                self.widths(&[(*entry, 64)]);
                match model.state.get(state.index()) {
                    Some(decl) if decl.slots.len() == outs.len() => {
                        for (out, (_, ty)) in outs.iter().zip(&decl.slots) {
                            self.widths(&[(*out, ty.width)]);
                        }
                    }
                    _ => self.say(format_args!("other slots than {state} has")),
                }
            }
            What::Write(fields) => self.write(fields),
            What::Count(counters) => self.counters(*counters),
            What::Enter | What::Parse => {}
        }
    }

    fn widths(&mut self, wanted: &[(ValueId, u16)]) {
        for (value, width) in wanted {
            if self.width(*value) != *width {
                self.say(format_args!("{value} should have {width} bits"));
            }
        }
    }

    fn rule_fields(&mut self, packet: &RuleFields) {
        let address = if packet.version == 4 { 32 } else { 128 };
        self.widths(&[(packet.src, address), (packet.dst, address), (packet.proto, 8)]);
        if let Some((a, b)) = packet.ports {
            self.widths(&[(a, 16), (b, 16)]);
        }
        if let Some((a, b)) = packet.icmp {
            self.widths(&[(a, 8), (b, 8)]);
        }
        if let Some(flags) = packet.tcp_flags {
            self.widths(&[(flags, 8)]);
        }
    }

    fn key(&mut self, model: &Model, state: crate::model::StateId, key: &[ValueId]) {
        let Some(decl) = model.state.get(state.index()) else {
            return self.say(format_args!("there is no {state}"));
        };
        let widths = key_widths(&decl.granularity);
        let given: Vec<u16> = key.iter().map(|value| self.width(*value)).collect();
        if widths != given {
            self.say(format_args!("a key of {given:?} bits for one of {widths:?}"));
        }
    }

    fn write(&mut self, fields: &[(Field, ValueId)]) {
        let mut seen = BTreeSet::new();
        for (field, value) in fields {
            let info = field.info();
            if info.access == Access::Ro {
                self.say(format_args!("{} cannot be written", info.name));
            }
            if self.width(*value) != info.width {
                self.say(format_args!("{} has {} bits", info.name, info.width));
            }
            if !seen.insert(*field) {
                self.say(format_args!("{} is written twice", info.name));
            }
        }
    }

    fn op(&mut self, op: &Op, model: &Model) {
        match op {
            Op::LoadEntry { .. }
            | Op::Store { .. }
            | Op::Rules { .. }
            | Op::StateExists { .. }
            | Op::StateGet { .. }
            | Op::Expiring { .. }
            | Op::ExpiringKey { .. }
            | Op::Count { .. } => self.say("an operation that residual programs do not have"),
            Op::StateSet { state, key, .. }
            | Op::StatePut { state, key, .. }
            | Op::StateDelete { state, key } => match key {
                Key::Explicit(parts) => self.key(model, *state, parts),
                _ => self.say("a key that is not spelt out"),
            },
            Op::Bin { out, a, b, .. } => {
                let width = self.width(*out);
                self.widths(&[(*a, width), (*b, width)]);
            }
            Op::Cmp { out, a, b, .. } => {
                let width = self.width(*a);
                self.widths(&[(*out, 1), (*b, width)]);
            }
            Op::Select { out, cond, a, b } => {
                let width = self.width(*out);
                self.widths(&[(*cond, 1), (*a, width), (*b, width)]);
            }
            Op::Load { out, field } => self.widths(&[(*out, field.info().width)]),
            Op::Has { out, .. } | Op::InSet { out, .. } => self.widths(&[(*out, 1)]),
            _ => {}
        }
    }
}

/// Widths of the parts of a table's key.
fn key_widths(granularity: &Granularity) -> Vec<u16> {
    match granularity {
        Granularity::Global => Vec::new(),
        Granularity::Flow | Granularity::Biflow => FlowKey::WIDTHS.to_vec(),
        Granularity::Fields(fields) => fields.iter().map(|field| field.info().width).collect(),
        Granularity::Key(types) => types.iter().map(|ty| ty.width).collect(),
    }
}
