//! Programs for events of connections as residual programs, so that engines can compile them.
//!
//! A program for an event sees no packet. What it reads of the flow, of the event and of the
//! function's scalars are inputs (`Op::LoadEvent`), so that the program depends on no parameter,
//! and all instances of a model can share it. It belongs to flows of one IP version and protocol,
//! as a residual program of packets belongs to a header shape.

mod ops;

use braid_ir::engine::Fault;
use braid_ir::model::{
    BlockId, Dest, Model, Op, ParamId, Program, StreamEvent, StreamField, StreamText, Target, Term,
    Ty, ValueId, Word,
};
use braid_ir::residual::{
    Block, CounterListId, End, Exit, Fate, HeaderMask, ListedCounter, Point, Residual, Site, Step,
    What,
};
use braid_packet::FlowKey;
use std::collections::BTreeSet;

/// The number of inputs that every program has ([`common`]).
pub const COMMON: usize = 10;
/// Where the inputs with the ends of the flow begin: as in the flow, and in the order that both
/// directions have.
const FLOW: u32 = 0;
const BIFLOW: u32 = 4;
/// The inputs with the number of the bytes and the place of the first one.
const LEN: u32 = 8;
const OFFSET: u32 = 9;

/// The counter list without counters.
const NOTHING: CounterListId = CounterListId(0);

/// A program for an event.
#[derive(Clone, PartialEq, Debug)]
pub struct EventProgram {
    /// The program. Its only function has the number 0. `forward` is [`Fate::Output`], `reset` is
    /// [`Fate::Drop`], and `bypass` is [`Fate::Consume`].
    pub residual: Residual,
    /// Its inputs behind the [`common`] ones, in order.
    pub inputs: Vec<Input>,
}

/// An input of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// A number of the stream, of the alert or of the HTTP message.
    Number(StreamField),
    /// Whether a pattern of a parameter has a match in the bytes or in a string (bool).
    Found(ParamId, Option<StreamText>),
    /// The lowest number of the patterns with such a match, or 0.
    Which(ParamId, Option<StreamText>),
    /// The value of a scalar parameter.
    Param(ParamId),
}

/// The inputs that every program has: the flow's source, destination and ports, the same for both
/// directions, and the bytes that have come with the place of the first one.
#[must_use]
pub fn common(flow: FlowKey, len: u64, offset: u64) -> [Word; COMMON] {
    let both = flow.bidirectional();
    [
        flow.src,
        flow.dst,
        flow.sport.into(),
        flow.dport.into(),
        both.src,
        both.dst,
        both.sport.into(),
        both.dport.into(),
        len.into(),
        offset.into(),
    ]
}

/// Makes the residual program of a model's program for an event, for flows with the IP version and
/// protocol of `flow`. `None` if the model has no such program, or if it does what only an
/// interpreter does.
#[must_use]
pub fn program(model: &Model, event: StreamEvent, flow: FlowKey) -> Option<EventProgram> {
    let program = model.stream(event)?;
    let mut lowering = Lowering {
        model,
        program,
        flow,
        values: Vec::new(),
        env: vec![None; program.values.len()],
        inputs: Vec::new(),
        blocks: Vec::new(),
        starts: Vec::new(),
        reached: BTreeSet::from([BlockId(0)]),
        counters: vec![Vec::new()],
    };
    for (number, block) in (0..).map(BlockId).zip(&program.blocks) {
        lowering.starts.push(lowering.next());
        if lowering.reached.contains(&number) {
            lowering.block(block)?;
        }
    }
    Some(lowering.done())
}

/// A program under construction.
struct Lowering<'a> {
    model: &'a Model,
    program: &'a Program,
    /// A flow of the version and protocol.
    flow: FlowKey,
    /// The types of the new program's values.
    values: Vec<Ty>,
    /// By value of the model's program: the value of the new one.
    env: Vec<Option<ValueId>>,
    inputs: Vec<Input>,
    /// The finished blocks, and whether their ends name blocks of the model's program.
    blocks: Vec<(Block, bool)>,
    /// By block of the model's program: the first block of the new one.
    starts: Vec<u32>,
    /// The blocks of the model's program to which the new one leads. After a sure fault, it does
    /// not lead to all of them.
    reached: BTreeSet<BlockId>,
    counters: Vec<Vec<ListedCounter>>,
}

/// An operation that ends the program with a fault.
struct Faulty(Fault);

/// The steps of the current block, and its parameters.
#[derive(Default)]
struct Open {
    params: Vec<ValueId>,
    steps: Vec<Step>,
}

impl Open {
    fn push(&mut self, what: What) {
        let site = Site { node: 0, block: 0, op: 0 };
        self.steps.push(Step { site, what, fault: Some(NOTHING) });
    }
}

impl Lowering<'_> {
    /// Adds a block of the model's program. `None` if it has an operation for interpreters only.
    fn block(&mut self, block: &braid_ir::model::Block) -> Option<()> {
        let params = block.params.iter().map(|param| self.define(*param)).collect();
        let mut open = Open { params, ..Open::default() };
        for op in &block.ops {
            match self.op(&mut open, op)? {
                Ok(()) => {}
                Err(Faulty(fault)) => {
                    self.close(open, exit(Fate::Fault { node: 0, fault }), false);
                    return Some(());
                }
            }
        }
        let (end, names_model) = self.end(&block.term)?;
        if names_model {
            end.visit_targets(&mut |to| {
                self.reached.insert(to.block);
            });
        }
        self.close(open, end, names_model);
        Some(())
    }

    /// The number of the block that [`Self::close`] adds next.
    fn next(&self) -> u32 {
        u32::try_from(self.blocks.len()).unwrap_or(u32::MAX)
    }

    fn close(&mut self, open: Open, end: End, names_model: bool) {
        let Open { params, steps } = open;
        self.blocks.push((Block { params, steps, end }, names_model));
    }

    fn end(&self, term: &Term) -> Option<(End, bool)> {
        let target = |Target { block, args }: &Target| {
            Some(Target { block: *block, args: args.iter().map(|arg| self.of(*arg)).collect() })
        };
        let fate = match term {
            Term::Jump(to) => return Some((End::Jump(target(to)?), true)),
            Term::Branch { cond, yes, no } => {
                let (yes, no) = (target(yes)?, target(no)?);
                return Some((End::Branch { cond: self.of(*cond), yes, no }, true));
            }
            Term::Return => Fate::Output { node: 0, ports: vec![Dest::Onward] },
            Term::Reset { reason, row } => Fate::Drop { node: 0, row: *row, reason: *reason },
            Term::Bypass { .. } => Fate::Consume { node: 0 },
            Term::Output { .. }
            | Term::Drop { .. }
            | Term::Consume { .. }
            | Term::Hold { .. }
            | Term::Resubmit { .. }
            | Term::Resume { .. } => return None,
        };
        Some((exit(fate), false))
    }

    /// The value of the new program for one of the model's.
    fn of(&self, value: ValueId) -> ValueId {
        self.env[value.index()].unwrap_or(value)
    }

    fn fresh(&mut self, ty: Ty) -> ValueId {
        let value = ValueId(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
        self.values.push(ty);
        value
    }

    /// The type of one of the model's values.
    fn ty(&self, value: ValueId) -> Ty {
        self.program.values[value.index()]
    }

    /// The new value for one that the model's program defines.
    fn define(&mut self, value: ValueId) -> ValueId {
        let new = self.fresh(self.ty(value));
        self.bind(value, new);
        new
    }

    /// A value of the new program stands for one that the model's program defines.
    fn bind(&mut self, value: ValueId, new: ValueId) {
        self.env[value.index()] = Some(new);
    }

    fn constant(&mut self, open: &mut Open, ty: Ty, value: Word) -> ValueId {
        let out = self.fresh(ty);
        open.push(What::Op(Op::Const { out, value }));
        out
    }

    /// An input as one of the model's values.
    fn input(&mut self, open: &mut Open, out: ValueId, input: Input) {
        let number = self.number(input);
        let out = self.define(out);
        open.push(What::Op(Op::LoadEvent { out, field: number }));
    }

    /// The number of an input.
    fn number(&mut self, input: Input) -> u32 {
        let at = match input {
            Input::Number(StreamField::Len) => return LEN,
            Input::Number(StreamField::Offset) => return OFFSET,
            input => self.inputs.iter().position(|one| *one == input).unwrap_or_else(|| {
                self.inputs.push(input);
                self.inputs.len() - 1
            }),
        };
        u32::try_from(COMMON + at).unwrap_or(u32::MAX)
    }

    /// The finished program.
    fn done(self) -> EventProgram {
        let Self { values, inputs, blocks, starts, counters, .. } = self;
        let block = |(mut block, names_model): (Block, bool)| {
            if names_model {
                let start = |to: &mut Target| to.block = BlockId(starts[to.block.index()]);
                block.end.visit_targets_mut(&mut |to| start(to));
            }
            block
        };
        let residual = Residual {
            point: Point { node: 0, backward: false, held: false },
            shape: HeaderMask { care: 0, present: 0 },
            visits: 1,
            values,
            blocks: blocks.into_iter().map(block).collect(),
            counter_lists: counters,
        };
        EventProgram { residual, inputs }
    }
}

fn exit(fate: Fate) -> End {
    End::Exit(Exit { counters: NOTHING, fate })
}
