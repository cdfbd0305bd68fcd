//! Packet functions in the place of stream functions and native functions, for the analysis alone.
//!
//! A TCP stack follows connections, and runs the programs of a stream function for what a packet
//! brings. A packet may bring something in both directions of its connection: an acknowledgement
//! may give up missing bytes of the other direction, and then later ones are delivered. So the
//! stand-in for a stream function does this for each TCP packet, and for each packet of IP if the
//! function has a program for alerts:
//!
//! - If the packet has ports, it changes the entry of the packet's connection in a hidden table,
//!   which stands for the stack. Packets without ports belong to no connection.
//! - It runs any of the function's programs, each once for the packet's direction and once for the
//!   opposite one. A second hidden table has unknown values. They decide which programs run, and
//!   they stand for numbers of streams, matches of patterns, and the stack's verdict.
//!
//! A handler that decides about the flow of its event changes the entry of this flow in the first
//! hidden table. So the worker that publishes the event must have the flow.
//!
//! The stand-in may do everything that the stream function may do with its tables.
//!
//! The stand-in for a native function has the programs of [`native`] in the place of these
//! programs, and unknown values decide its answer. In the programs of a native stream function,
//! they stand for its decision.

use super::mutants::ShardingMutant::{self, NoConnections, OneWay, OrdersIgnored};
use super::mutants::is;
use super::native::{self, unknown};
use braid_ir::chain::Chain;
use braid_ir::model::{
    Block, BlockId, Granularity, Key, Kind, Model, Op, Program, Setting, StateDecl, StateId,
    StreamEvent, Target, Term, Ty, ValueId,
};
use braid_ir::native::Keeps;
use braid_packet::{Field, FlowKey, Header};
use std::sync::Arc;

/// The names of the hidden tables. No declared table has a space in its name.
const CONNECTIONS: &str = "the connections";
const FLOWS: &str = "the flows";
const UNKNOWN: &str = "unknown values";

/// Whether a table with this name is hidden.
pub(super) fn is_hidden(table: &str) -> bool {
    [CONNECTIONS, FLOWS, UNKNOWN].contains(&table)
}

/// The chain with packet functions in the place of stream functions and native functions.
pub(super) fn chain(chain: &Chain, bug: Option<ShardingMutant>) -> Chain {
    let mut shadow = chain.clone();
    let is_replaced = |model: &Model| model.is_stream() || model.native.is_some();
    for node in shadow.nodes.iter_mut().filter(|node| is_replaced(&node.model)) {
        node.model = Arc::new(model(&node.model, bug));
    }
    shadow
}

/// The packet function in the place of a stream function or a native function. A packet function
/// stays as it is, and so does a native function that cannot be followed.
pub(super) fn model(model: &Model, bug: Option<ShardingMutant>) -> Model {
    let mut shadow = model.clone();
    let blocks = (0..).zip(&model.packet.blocks);
    let mut places = blocks.filter_map(|(block, of)| {
        let is_call = |op: &Op| matches!(op, Op::Stream { .. } | Op::Native { .. });
        Some((block, of.ops.iter().position(is_call)?))
    });
    let is_followed = model.native.as_ref().is_none_or(|native| unknown(native).is_none());
    if let Some((block, op)) = places.next().filter(|_| is_followed) {
        let tables = number(model.state.len());
        let hidden = [StateId(tables), StateId(tables + 1)];
        let mut draft = Draft { program: shadow.packet, unknown: Vec::new() };
        match shadow.native.take().filter(|_| !model.is_stream()) {
            Some(native) => {
                let kept = (!is(bug, NoConnections)).then_some(hidden[0]);
                let programs = native::programs(model, &native, kept).into_iter();
                let events: Vec<_> =
                    programs.map(|program| OfEvent { program, needs_tcp: false }).collect();
                draft.inline((block, op), &events);
                draft.read_unknown(block, hidden[1]);
                let (name, flows) = match native.keeps {
                    Keeps::Flows => (FLOWS, Granularity::Flow),
                    Keeps::Biflows => (FLOWS, Granularity::Biflow),
                    Keeps::Anything | Keeps::Nothing | Keeps::Connections => {
                        (CONNECTIONS, Granularity::Biflow)
                    }
                };
                shadow.state.extend(draft.tables(name, flows));
            }
            None => {
                draft.inline((block, op), &events(model, bug));
                draft.stack(block, hidden, bug);
                shadow.state.extend(draft.tables(CONNECTIONS, Granularity::Biflow));
            }
        }
        shadow.packet = draft.program;
        shadow.streams.clear();
        let handlers = shadow.handlers.iter_mut().map(|(_, program)| program);
        handlers.for_each(|handler| steered(handler, hidden[0], bug));
    }
    debug_assert_eq!(braid_ir::verify::verify(&shadow), Ok(()));
    shadow
}

/// Lets a handler change the entry of the flow about which it decides.
fn steered(handler: &mut Program, connections: StateId, bug: Option<ShardingMutant>) {
    let Program { blocks, values } = handler;
    for block in blocks.iter_mut().filter(|block| block.term.steers()) {
        block.term = Term::Return;
        if is(bug, OrdersIgnored) {
            continue;
        }
        let parts = FlowKey::WIDTHS.map(|width| value(values, Ty::uint(width)));
        let loads = (0..).zip(parts).map(|(field, out)| Op::LoadEvent { out, field });
        block.ops.extend(loads);
        let (ok, out) = (value(values, Ty::of(Kind::Bool)), value(values, Ty::of(Kind::Bool)));
        let (key, state) = (Key::Explicit(parts.to_vec()), connections);
        block.ops.push(Op::Const { out, value: 1 });
        block.ops.push(Op::StateSet { ok, state, key, values: vec![out] });
    }
}

/// A program for an event.
#[derive(PartialEq)]
struct OfEvent {
    program: Program,
    /// Packets of other protocols go to the stack, too, and do not make it run.
    needs_tcp: bool,
}

/// The programs for events, each once for the packet's direction and once for the opposite one.
/// Equal programs are listed once.
fn events(model: &Model, bug: Option<ShardingMutant>) -> Vec<OfEvent> {
    let mut found: Vec<OfEvent> = Vec::new();
    for (event, program) in &model.streams {
        let needs_tcp = model.stacks_all() && *event != StreamEvent::Alert;
        let opposite = (!is(bug, OneWay)).then(|| reversed(model, program));
        for program in std::iter::once(program.clone()).chain(opposite) {
            let of_event = OfEvent { program, needs_tcp };
            if !found.contains(&of_event) {
                found.push(of_event);
            }
        }
    }
    found
}

/// The program as it runs in the direction opposite to the packet's.
fn reversed(model: &Model, program: &Program) -> Program {
    let mut program = program.clone();
    for block in &mut program.blocks {
        for mut op in std::mem::take(&mut block.ops) {
            if let Op::Load { field, .. } | Op::LoadEntry { field, .. } = &mut op {
                *field = opposite(*field);
            }
            if let Some((state, key)) = op.entry_mut()
                && *key == Key::Entry
            {
                match &model.state[state.index()].granularity {
                    Granularity::Flow => *key = Key::Reversed(false),
                    Granularity::Fields(fields) => {
                        let types = &mut program.values;
                        let loads = fields.iter().map(|field| Op::Load {
                            out: value(types, Ty::uint(field.info().width)),
                            field: opposite(*field),
                        });
                        block.ops.extend(loads);
                        let parts = &block.ops[block.ops.len() - fields.len()..];
                        *key = Key::Explicit(parts.iter().flat_map(Op::outs).collect());
                    }
                    Granularity::Global | Granularity::Biflow | Granularity::Key(_) => {}
                }
            }
            block.ops.push(op);
        }
    }
    program
}

/// The field of the other end of a flow. Other fields stay.
fn opposite(field: Field) -> Field {
    field.opposite().unwrap_or(field)
}

/// A new value.
fn value(types: &mut Vec<Ty>, ty: Ty) -> ValueId {
    types.push(ty);
    ValueId(number(types.len() - 1))
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The packet program under construction.
struct Draft {
    program: Program,
    /// The unknown values.
    unknown: Vec<ValueId>,
}

impl Draft {
    /// Puts the programs for events in the place of the call of a stack or of native code.
    fn inline(&mut self, (block, op): (usize, usize), events: &[OfEvent]) {
        let blocks = |of: &OfEvent| of.program.blocks.len() + 1 + usize::from(of.needs_tcp);
        let count = events.iter().map(blocks).sum::<usize>() + 2;
        let mut behind = self.program.blocks.split_off(block);
        let later = number(block) + 1;
        let moved = |at: BlockId| BlockId(if at.0 < later { at.0 } else { at.0 + number(count) });
        self.program.blocks.iter_mut().chain(&mut behind).for_each(|block| shift(block, &moved));
        let mut behind = behind.into_iter();
        let Some(Block { params, mut ops, term }) = behind.next() else { return };
        let rest = ops.split_off(op + 1);
        self.unknown.extend(ops.pop().iter().flat_map(Op::outs));
        self.jump(params, ops);
        // The block for the connection.
        self.jump(Vec::new(), Vec::new());
        for event in events {
            self.event(event);
        }
        self.program.blocks.push(Block { params: Vec::new(), ops: rest, term });
        self.program.blocks.extend(behind);
    }

    /// Adds a block that goes on in the next one.
    fn jump(&mut self, params: Vec<ValueId>, ops: Vec<Op>) {
        let term = Term::Jump(to(self.program.blocks.len() + 1));
        self.program.blocks.push(Block { params, ops, term });
    }

    /// Adds a program that may run or not.
    fn event(&mut self, OfEvent { program: event, needs_tcp }: &OfEvent) {
        let first = self.program.blocks.len() + 1 + usize::from(*needs_tcp);
        let behind = first + event.blocks.len();
        if *needs_tcp {
            let cond = value(&mut self.program.values, Ty::of(Kind::Bool));
            let ops = vec![Op::Has { out: cond, header: Header::Tcp }];
            let term = Term::Branch { cond, yes: to(first - 1), no: to(behind) };
            self.program.blocks.push(Block { params: Vec::new(), ops, term });
        }
        let cond = self.bit();
        let term = Term::Branch { cond, yes: to(first), no: to(behind) };
        self.program.blocks.push(Block { params: Vec::new(), ops: Vec::new(), term });
        let offset = number(self.program.values.len());
        self.program.values.extend(&event.values);
        for block in &event.blocks {
            let mut block = block.clone();
            shift(&mut block, &|at| BlockId(at.0 + number(first)));
            renumber(&mut block, offset);
            block.ops.retain(|op| {
                // A native stream function keeps nothing beyond its connections.
                let is_unknown = matches!(
                    op,
                    Op::LoadStream { .. } | Op::StreamMatch { .. } | Op::Native { .. }
                );
                if is_unknown {
                    self.unknown.extend(op.outs());
                }
                !is_unknown
            });
            if block.term == Term::Return || block.term.steers() {
                block.term = Term::Jump(to(behind));
            }
            self.program.blocks.push(block);
        }
    }

    /// Reads the unknown values at the end of a block, and changes the connection's entry in the
    /// next one, which only packets with ports enter.
    fn stack(
        &mut self,
        block: usize,
        [connections, unknown]: [StateId; 2],
        bug: Option<ShardingMutant>,
    ) {
        let (ok, bit) = (value(&mut self.program.values, Ty::of(Kind::Bool)), self.bit());
        let cond = value(&mut self.program.values, Ty::of(Kind::Bool));
        self.read_unknown(block, unknown);
        let [before, connection] = &mut self.program.blocks[block..block + 2] else { return };
        before.ops.push(Op::Has { out: cond, header: Header::L4 });
        before.term = Term::Branch { cond, yes: to(block + 1), no: to(block + 2) };
        if !is(bug, NoConnections) {
            let (state, values) = (connections, vec![bit]);
            connection.ops.push(Op::StateSet { ok, state, key: Key::Entry, values });
        }
    }

    /// Reads the unknown values at the end of a block.
    fn read_unknown(&mut self, block: usize, unknown: StateId) {
        let outs = self.unknown.clone();
        self.program.blocks[block].ops.push(Op::StateGet { outs, state: unknown, key: Key::Entry });
    }

    /// An unknown bit.
    fn bit(&mut self) -> ValueId {
        let bit = value(&mut self.program.values, Ty::of(Kind::Bool));
        self.unknown.push(bit);
        bit
    }

    /// The hidden tables. The first one has this name, and an entry for each flow of this kind.
    fn tables(&self, name: &str, flows: Granularity) -> [StateDecl; 2] {
        let connection = vec![(String::new(), Ty::of(Kind::Bool))];
        let types = self.unknown.iter().map(|value| self.program.values[value.index()]);
        let slots: Vec<_> =
            types.enumerate().map(|(number, ty)| (format!("v{number}"), ty)).collect();
        let default = vec![Setting::Const(0); slots.len()];
        [
            StateDecl::new(name, flows, connection),
            StateDecl {
                default: Some(default),
                ..StateDecl::new(UNKNOWN, Granularity::Global, slots)
            },
        ]
    }
}

/// A jump to a block without parameters.
fn to(block: usize) -> Target {
    Target { block: BlockId(number(block)), args: Vec::new() }
}

/// Gives the targets of a block other numbers.
fn shift(block: &mut Block, moved: &dyn Fn(BlockId) -> BlockId) {
    for target in block.term.targets_mut() {
        target.block = moved(target.block);
    }
}

/// Gives the values of a block numbers from an offset on.
fn renumber(block: &mut Block, offset: u32) {
    let add = |value: &mut ValueId| value.0 += offset;
    block.params.iter_mut().for_each(add);
    for op in &mut block.ops {
        op.visit_outs_mut(&mut |value| add(value));
        op.visit_uses_mut(&mut |value| add(value));
    }
    if let Term::Branch { cond, .. } = &mut block.term {
        add(cond);
    }
    block.term.targets_mut().into_iter().flat_map(|target| &mut target.args).for_each(add);
}
