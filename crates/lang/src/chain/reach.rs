//! Finds the ports where a model may send packets that enter in one direction.
//!
//! The search makes one pass over the blocks in order and folds constants, so a row for `forward`
//! packets does not count for backward ones. Parameters are not folded, because control changes
//! them at run time.

use std::collections::BTreeSet;

use braid_ir::graph::sends_to;
use braid_ir::model::{
    BinOp, CmpOp, Dest, LEFT, Model, Op, PortId, Program, RIGHT, Target, Term, ValueId, Word,
};
use braid_packet::Field;

/// The ports at which packets of this direction may leave.
pub(super) fn exits(model: &Model, backward: bool) -> BTreeSet<PortId> {
    let mut found = Walk::new(&model.packet, backward);
    found.run();
    found.dests.extend(sends_to(model));
    found.dests.into_iter().map(|dest| port_of(dest, backward)).collect()
}

/// The port of a destination for packets of this direction.
fn port_of(dest: Dest, backward: bool) -> PortId {
    match (dest, backward) {
        (Dest::Port(port), _) => port,
        (Dest::Onward, false) | (Dest::Back, true) => RIGHT,
        (Dest::Onward, true) | (Dest::Back, false) => LEFT,
    }
}

/// The facts about a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// No path to the value's definition was found yet.
    Nothing,
    Constant(Word),
    Varies,
}

struct Walk<'p> {
    program: &'p Program,
    backward: bool,
    values: Vec<Known>,
    runs: Vec<bool>,
    dests: Vec<Dest>,
}

impl<'p> Walk<'p> {
    fn new(program: &'p Program, backward: bool) -> Self {
        let mut runs = vec![false; program.blocks.len()];
        if let Some(entry) = runs.first_mut() {
            *entry = true;
        }
        let values = vec![Known::Nothing; program.values.len()];
        Self { program, backward, values, runs, dests: Vec::new() }
    }

    fn run(&mut self) {
        for (at, block) in self.program.blocks.iter().enumerate() {
            if !self.runs[at] {
                continue;
            }
            for op in &block.ops {
                self.op(op);
            }
            self.term(&block.term);
        }
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Mirror { port } | Op::Create { port, .. } => self.dests.push(*port),
            _ => {}
        }
        let result = match op {
            Op::Const { value, .. } => Known::Constant(*value),
            Op::Load { field: Field::PktBackward, .. }
            | Op::LoadEntry { field: Field::PktBackward, .. } => {
                Known::Constant(self.backward.into())
            }
            Op::Cmp { op, a, b, .. } => self.both(*a, *b, |a, b| Word::from(compare(*op, a, b))),
            Op::Bin { op: op @ (BinOp::And | BinOp::Or | BinOp::Xor), a, b, .. } => {
                self.logic(*op, *a, *b)
            }
            Op::Not { out, a } => match self.value(*a) {
                Known::Constant(a) => Known::Constant(!a & self.mask(*out)),
                other => other,
            },
            _ => Known::Varies,
        };
        for out in op.outs() {
            self.set(out, result);
        }
    }

    /// The result of a logic operator. `and` with a known 0 is 0.
    fn logic(&self, op: BinOp, a: ValueId, b: ValueId) -> Known {
        let zero = Known::Constant(0);
        if op == BinOp::And && (self.value(a) == zero || self.value(b) == zero) {
            return zero;
        }
        self.both(a, b, |a, b| match op {
            BinOp::And => a & b,
            BinOp::Or => a | b,
            _ => a ^ b,
        })
    }

    fn both(&self, a: ValueId, b: ValueId, f: impl Fn(Word, Word) -> Word) -> Known {
        match (self.value(a), self.value(b)) {
            (Known::Constant(a), Known::Constant(b)) => Known::Constant(f(a, b)),
            _ => Known::Varies,
        }
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Jump(target) | Term::Hold { full: target, .. } => self.enter(target),
            Term::Branch { cond, yes, no } => match self.value(*cond) {
                Known::Constant(0) => self.enter(no),
                Known::Constant(_) => self.enter(yes),
                Known::Nothing | Known::Varies => {
                    self.enter(yes);
                    self.enter(no);
                }
            },
            Term::Output { ports, .. } => self.dests.extend(ports),
            Term::Drop { .. }
            | Term::Consume { .. }
            | Term::Resubmit { .. }
            | Term::Reset { .. }
            | Term::Bypass { .. }
            | Term::Resume { .. }
            | Term::Return => {}
        }
    }

    /// Marks a block as reached. Its parameters merge the values of all jumps to it.
    fn enter(&mut self, target: &Target) {
        let at = target.block.index();
        let (Some(block), Some(runs)) = (self.program.blocks.get(at), self.runs.get_mut(at)) else {
            return;
        };
        *runs = true;
        for (param, arg) in block.params.iter().zip(&target.args) {
            let joined = match (self.value(*param), self.value(*arg)) {
                (Known::Nothing, new) => new,
                (old, new) if old == new => old,
                _ => Known::Varies,
            };
            self.set(*param, joined);
        }
    }

    fn value(&self, id: ValueId) -> Known {
        self.values.get(id.index()).copied().unwrap_or(Known::Varies)
    }

    fn set(&mut self, id: ValueId, known: Known) {
        if let Some(value) = self.values.get_mut(id.index()) {
            *value = known;
        }
    }

    fn mask(&self, id: ValueId) -> Word {
        self.program.values.get(id.index()).map_or(Word::MAX, |ty| ty.max())
    }
}

fn compare(op: CmpOp, a: Word, b: Word) -> bool {
    match op {
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Gt => a > b,
        CmpOp::Ge => a >= b,
    }
}
