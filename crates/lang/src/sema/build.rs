//! Builds an IR program block by block, with the facts that hold at the start of each block.
//!
//! A block is started after all jumps to it are made, so its facts are the facts that all jumps
//! share. `finish` removes unreachable blocks, joins chains of blocks, and puts the others in
//! topological order.

use braid_ir::model::{
    BinOp, Block, BlockId, Op, ParamId, Program, Target, Term, Ty, ValueId, Word,
};
use braid_packet::{Field, Header};

use std::collections::BTreeMap;

use super::facts::{Facts, KeyPart};
use super::{order, types};

/// The most operations that a function's programs have together.
pub const MAX_OPS: usize = 65_536;

/// A local whose value changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Var(usize);

/// The values of locals at a point of a program.
type Vars = BTreeMap<Var, ValueId>;

/// A way to a block that has not started yet: the block it comes from, the number of the target at
/// that block's end, and the values of locals there.
struct Edge {
    from: BlockId,
    target: usize,
    vars: Vars,
}

#[derive(Default)]
pub(super) struct Draft {
    pub params: Vec<ValueId>,
    pub ops: Vec<Op>,
    pub term: Option<Term>,
}

/// A block that has no end yet.
pub struct Paused {
    block: BlockId,
    facts: Facts,
    vars: Vars,
}

/// Builds one program.
pub struct Builder {
    blocks: Vec<Draft>,
    incoming: Vec<Option<Facts>>,
    /// By block, the ways to it.
    edges: Vec<Vec<Edge>>,
    /// The type of each local whose value changes.
    types: Vec<Ty>,
    /// The values of these locals at the current position.
    vars: Vars,
    values: Vec<Ty>,
    origin: Vec<Option<KeyPart>>,
    current: BlockId,
    ops: usize,
    /// The facts that hold at the current position.
    pub facts: Facts,
}

impl Builder {
    /// A program whose first block starts with these facts.
    pub fn new(facts: Facts) -> Self {
        Self {
            blocks: vec![Draft::default()],
            incoming: vec![Some(facts.clone())],
            edges: vec![Vec::new()],
            types: Vec::new(),
            vars: Vars::new(),
            values: Vec::new(),
            origin: Vec::new(),
            current: BlockId(0),
            ops: 0,
            facts,
        }
    }

    /// Number of operations and blocks so far.
    pub fn size(&self) -> usize {
        self.ops + self.blocks.len()
    }

    /// Makes a new value.
    pub fn value(&mut self, ty: Ty) -> ValueId {
        self.values.push(ty);
        self.origin.push(None);
        ValueId(u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX))
    }

    /// The type of a value.
    pub fn ty(&self, id: ValueId) -> Ty {
        self.values[id.0 as usize]
    }

    /// Adds an operation to the current block.
    pub fn op(&mut self, op: Op) {
        self.ops += 1;
        self.blocks[self.current.0 as usize].ops.push(op);
    }

    /// Adds an operation with one result.
    pub fn emit(&mut self, ty: Ty, op: impl FnOnce(ValueId) -> Op) -> ValueId {
        let out = self.value(ty);
        self.op(op(out));
        out
    }

    /// Adds a constant.
    pub fn constant(&mut self, ty: Ty, value: Word) -> ValueId {
        let out = self.emit(ty, |out| Op::Const { out, value });
        self.origin[out.0 as usize] = Some(KeyPart::Const(value));
        out
    }

    /// Adds the value of a scalar parameter.
    pub fn param(&mut self, ty: Ty, param: ParamId) -> ValueId {
        let out = self.emit(ty, |out| Op::Param { out, param });
        self.origin[out.0 as usize] = Some(KeyPart::Param(param));
        out
    }

    /// The form in which a value is compared as part of a key.
    pub fn key_part(&self, value: ValueId) -> KeyPart {
        self.origin.get(value.0 as usize).copied().flatten().unwrap_or(KeyPart::Value(value))
    }

    /// The current value of a field of a header that is present.
    pub fn load(&mut self, field: Field) -> ValueId {
        if let Some(known) = self.facts.loaded(field, false) {
            return known;
        }
        let (ty, width) = (types::of_field(field), field.info().width);
        let narrow = if width == ty.width { ty } else { types::uint(width) };
        let id = self.emit(narrow, |out| Op::Load { out, field });
        self.facts.remember(field, false, id);
        id
    }

    /// Makes a block to be started later.
    pub fn block(&mut self) -> BlockId {
        self.blocks.push(Draft::default());
        self.incoming.push(None);
        self.edges.push(Vec::new());
        BlockId(u32::try_from(self.blocks.len() - 1).unwrap_or(u32::MAX))
    }

    /// Makes a block with parameters. Jumps to the block pass their values.
    pub fn block_with(&mut self, types: &[Ty]) -> (BlockId, Vec<ValueId>) {
        let block = self.block();
        let values: Vec<ValueId> = types.iter().map(|ty| self.value(*ty)).collect();
        self.blocks[block.0 as usize].params.extend(&values);
        (block, values)
    }

    /// As [`Self::block_with`], with one parameter.
    pub fn block_with_one(&mut self, ty: Ty) -> (BlockId, ValueId) {
        let (block, values) = self.block_with(&[ty]);
        (block, values[0])
    }

    /// Whether any packet reaches a block that was not started yet.
    pub fn reached(&self, block: BlockId) -> bool {
        self.incoming[block.0 as usize].is_some()
    }

    /// Whether packets reach the current position.
    pub fn live(&self) -> bool {
        !self.facts.nowhere
    }

    /// Continues in a block.
    pub fn start(&mut self, block: BlockId) {
        self.current = block;
        self.facts = self.incoming[block.0 as usize].take().unwrap_or_else(Facts::nowhere);
        self.vars = self.meet(block);
    }

    /// The values of locals at the start of a block. A local that has several values on the ways to
    /// the block becomes a parameter of the block.
    fn meet(&mut self, block: BlockId) -> Vars {
        let edges = std::mem::take(&mut self.edges[block.0 as usize]);
        let Some((first, others)) = edges.split_first() else { return Vars::new() };
        let mut found = Vars::new();
        for (&var, &value) in &first.vars {
            let mut rest = others.iter().map(|edge| edge.vars.get(&var));
            if rest.clone().any(|other| other.is_none()) {
                continue;
            }
            if rest.all(|other| other == Some(&value)) {
                found.insert(var, value);
                continue;
            }
            let param = self.value(self.types[var.0]);
            self.blocks[block.0 as usize].params.push(param);
            for edge in &edges {
                let end = self.blocks[edge.from.0 as usize].term.as_mut();
                let mut targets = end.map(Term::targets_mut).unwrap_or_default();
                if let Some(target) = targets.get_mut(edge.target) {
                    target.args.push(edge.vars[&var]);
                }
            }
            found.insert(var, param);
        }
        found
    }

    /// Makes a local whose value changes.
    pub fn var(&mut self, ty: Ty, value: ValueId) -> Var {
        let var = Var(self.types.len());
        self.types.push(ty);
        self.vars.insert(var, value);
        var
    }

    /// The current value of such a local.
    pub fn get(&mut self, var: Var) -> ValueId {
        match self.vars.get(&var) {
            Some(value) => *value,
            // No packet reaches this point.
            None => self.constant(self.types[var.0], 0),
        }
    }

    /// Gives such a local another value.
    pub fn set(&mut self, var: Var, value: ValueId) {
        self.vars.insert(var, value);
    }

    /// Leaves the current block without an end. `resume` continues it.
    pub fn pause(&mut self) -> Paused {
        let vars = std::mem::take(&mut self.vars);
        let paused = Paused { block: self.current, facts: self.facts.clone(), vars };
        let nowhere = self.block();
        self.start(nowhere);
        paused
    }

    /// Continues the block that `pause` left.
    pub fn resume(&mut self, paused: Paused) {
        self.current = paused.block;
        self.facts = paused.facts;
        self.vars = paused.vars;
    }

    /// Adds a way to a block. `target` is its number at the end of the current block.
    fn flow(&mut self, to: BlockId, target: usize, facts: &Facts) {
        if facts.nowhere {
            return;
        }
        let edge = Edge { from: self.current, target, vars: self.vars.clone() };
        self.edges[to.0 as usize].push(edge);
        let slot = &mut self.incoming[to.0 as usize];
        *slot = Some(match slot.take() {
            None => facts.clone(),
            Some(known) => known.meet(facts),
        });
    }

    /// Ends the current block. Code that is built next is in a block that no packet reaches.
    pub fn end(&mut self, term: Term) {
        self.blocks[self.current.0 as usize].term = Some(term);
        let nowhere = self.block();
        self.start(nowhere);
    }

    /// Ends the current block with a jump.
    pub fn jump(&mut self, to: BlockId, args: Vec<ValueId>) {
        let facts = self.facts.clone();
        self.flow(to, 0, &facts);
        self.end(Term::Jump(Target { block: to, args }));
    }

    /// Ends the current block with a branch. `learn` adds the facts of each target: first those of
    /// `yes`, then those of `no`.
    pub fn branch_learning(
        &mut self,
        cond: ValueId,
        yes: BlockId,
        no: BlockId,
        learn: impl Fn(&mut Facts, bool),
    ) {
        for (target, (to, way)) in [(yes, true), (no, false)].into_iter().enumerate() {
            let mut facts = self.facts.clone();
            learn(&mut facts, way);
            self.flow(to, target, &facts);
        }
        let target = |block| Target { block, args: Vec::new() };
        self.end(Term::Branch { cond, yes: target(yes), no: target(no) });
    }

    /// Ends the current block with a branch.
    pub fn branch(&mut self, cond: ValueId, yes: BlockId, no: BlockId) {
        self.branch_learning(cond, yes, no, |_, _| {});
    }

    /// Adds a binary operation of the IR.
    pub fn bin(&mut self, ty: Ty, op: BinOp, a: ValueId, b: ValueId) -> ValueId {
        self.emit(ty, |out| Op::Bin { out, op, a, b })
    }

    /// Converts a value to a width that is not smaller.
    pub fn widen(&mut self, a: ValueId, from: Ty, to: Ty) -> ValueId {
        if from.width == to.width { a } else { self.emit(to, |out| Op::Resize { out, a }) }
    }

    /// Converts a value to another width. A larger value becomes the largest value of that width.
    pub fn clamp(&mut self, a: ValueId, from: Ty, to: Ty) -> ValueId {
        if from.width <= to.width {
            return self.widen(a, from, to);
        }
        self.emit(to, |out| Op::Clamp { out, a })
    }

    /// Inverts all bits of a value.
    pub fn complement(&mut self, a: ValueId, ty: Ty) -> ValueId {
        self.emit(ty, |out| Op::Not { out, a })
    }

    /// Branches on the presence of a header. Each target learns the result.
    pub fn branch_on_header(&mut self, cond: ValueId, header: Header, yes: BlockId, no: BlockId) {
        self.branch_learning(cond, yes, no, |facts, present| {
            if present {
                facts.learn(header);
            } else {
                facts.learn_absent(header);
            }
        });
    }

    /// Branches on whether the payload has the bytes before `end`, if `end` is known. Each target
    /// learns the result.
    pub fn branch_on_payload(
        &mut self,
        cond: ValueId,
        end: Option<u32>,
        yes: BlockId,
        no: BlockId,
    ) {
        self.branch_learning(cond, yes, no, |facts, present| {
            if let Some(end) = end.filter(|_| present) {
                facts.learn_payload(end);
            }
        });
    }

    /// Ends the current block with `Hold`.
    pub fn hold(&mut self, term: Term, full: BlockId) {
        let facts = self.facts.clone();
        self.flow(full, 0, &facts);
        self.end(term);
    }

    /// The finished program. Blocks without an end are unreachable, or the program has errors. They
    /// end with `Return`.
    pub fn finish(self) -> Program {
        let blocks = self
            .blocks
            .into_iter()
            .map(|draft| Block {
                params: draft.params,
                ops: draft.ops,
                term: draft.term.unwrap_or(Term::Return),
            })
            .collect();
        order::tidy(Program { blocks, values: self.values })
    }
}
