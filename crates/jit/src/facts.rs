//! Checks a program before it is compiled, and collects facts: the significant bits of its values,
//! and where the packet still has the headers with which it entered.

use crate::abi::reshapes;
use crate::error::Error;
use crate::headers::Headers;
use braid_ir::model::{BinOp, Op, Target, ValueId, Word};
use braid_ir::residual::{Block, CounterListId, End, Residual, What};
use braid_ir::show::max_of;
use braid_packet::{Field, Spot};
use std::collections::HashSet;

/// The largest number of blocks, of steps in a block, of values, of inputs and of counter lists.
/// The code needs at most 16 bytes of stack for each value, and as much for its largest host call.
const MOST: usize = 1 << 16;

/// Facts about a program.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The headers of packets that enter the program.
    pub(crate) headers: Headers,
    /// By value: the number of significant bits. All bits above are 0.
    pub(crate) bits: Vec<u16>,
    /// By value: the constant, if it is one.
    pub(crate) consts: Vec<Option<Word>>,
    /// By block: the number of edges from reachable blocks. The first block has one, for the entry.
    pub(crate) in_edges: Vec<u32>,
    /// By block: whether packets still have the headers with which they entered the program.
    pub(crate) entered_at: Vec<bool>,
    /// The number of inputs that the program may read: one more than the largest number.
    pub(crate) inputs: usize,
    /// By block: whether a lookup has found nothing on each way to the block.
    pub(crate) begins: Vec<bool>,
    /// By entry value: the largest number of words that a `Read` takes from the entry.
    pub(crate) words: Vec<u32>,
    defined: Vec<bool>,
    /// As `entered_at`, at the current step.
    entered: bool,
}

#[expect(
    clippy::indexing_slicing,
    reason = "each value and block has an element, and larger numbers are refused before their use"
)]
impl Facts {
    /// Checks a program and collects facts.
    pub(crate) fn of(residual: &Residual) -> Result<Facts, Error> {
        let (values, blocks) = (residual.values.len(), residual.blocks.len());
        let steps = residual.blocks.iter().map(|block| block.steps.len()).max().unwrap_or(0);
        let counter_lists = residual.counter_lists.len();
        if values.max(blocks).max(steps).max(counter_lists) > MOST || blocks == 0 {
            return Err(Error::Size);
        }
        for (value, ty) in (0..).map(ValueId).zip(&residual.values) {
            if !(1..=128).contains(&ty.width) {
                return Err(Error::Width(value));
            }
        }
        let mut facts = Facts {
            headers: Headers::of(residual.shape),
            bits: vec![0; values],
            consts: vec![None; values],
            in_edges: vec![0; blocks],
            entered_at: vec![true; blocks],
            entered: true,
            words: vec![0; values],
            inputs: 0,
            begins: Vec::new(),
            defined: vec![false; values],
        };
        facts.in_edges[0] = 1;
        for (number, block) in residual.blocks.iter().enumerate() {
            if facts.in_edges[number] > 0 {
                facts.block(residual, number, block)?;
            }
        }
        facts.begins = begins(residual, &facts);
        Ok(facts)
    }

    /// The blocks that the program reaches, with their numbers. Only these were checked.
    pub(crate) fn reached<'a>(
        &self,
        residual: &'a Residual,
    ) -> impl DoubleEndedIterator<Item = (usize, &'a Block)> {
        let blocks = residual.blocks.iter().zip(&self.in_edges).enumerate();
        blocks.filter(|(_, (_, edges))| **edges > 0).map(|(number, (block, _))| (number, block))
    }

    fn block(&mut self, residual: &Residual, number: usize, block: &Block) -> Result<(), Error> {
        if let Some(param) = block.params.first().filter(|_| number == 0) {
            return Err(Error::Value(*param));
        }
        self.entered = self.entered_at[number];
        for param in &block.params {
            // The arguments of the edges to the block determine its significant bits.
            self.define(residual, *param)?;
        }
        for step in &block.steps {
            let used = step.what.uses();
            if used.len() > MOST {
                return Err(Error::Size);
            }
            for value in &used {
                self.is_defined(*value)?;
            }
            self.step(residual, &step.what)?;
            for out in step.what.outs() {
                self.define(residual, out)?;
            }
            if let What::Count(counters) = step.what {
                counter_exists(residual, counters)?;
            }
            step.fault.map_or(Ok(()), |counters| counter_exists(residual, counters))?;
            if reshapes(&step.what) {
                self.entered = false;
            }
        }
        self.end(residual, number, &block.end)
    }

    fn end(&mut self, residual: &Residual, number: usize, end: &End) -> Result<(), Error> {
        match end {
            End::Jump(target) => self.target(residual, number, target),
            End::Branch { cond, yes, no } => {
                self.is_defined(*cond)?;
                self.target(residual, number, yes)?;
                self.target(residual, number, no)
            }
            End::Exit(exit) => counter_exists(residual, exit.counters),
            End::Hold { delay, counters, full, .. } => {
                self.is_defined(*delay)?;
                if self.width(residual, *delay)? > 64 {
                    return Err(Error::Width(*delay));
                }
                counter_exists(residual, *counters)?;
                self.target(residual, number, full)
            }
        }
    }

    fn target(&mut self, residual: &Residual, from: usize, target: &Target) -> Result<(), Error> {
        let to = target.block.index();
        let bad = Error::Jump(target.block);
        let block = residual.blocks.get(to).filter(|_| to > from).ok_or(bad.clone())?;
        if block.params.len() != target.args.len() {
            return Err(bad);
        }
        for (param, arg) in block.params.iter().zip(&target.args) {
            self.is_defined(*arg)?;
            if self.width(residual, *param)? != self.width(residual, *arg)? {
                return Err(bad);
            }
            let bits = self.bits[arg.index()];
            let known = &mut self.bits[param.index()];
            *known = bits.max(*known);
        }
        self.in_edges[to] = self.in_edges[to].saturating_add(1);
        self.entered_at[to] &= self.entered;
        Ok(())
    }

    fn is_defined(&self, value: ValueId) -> Result<(), Error> {
        let known = self.defined.get(value.index()).copied().unwrap_or(false);
        if known { Ok(()) } else { Err(Error::Value(value)) }
    }

    fn define(&mut self, residual: &Residual, value: ValueId) -> Result<(), Error> {
        let width = self.width(residual, value)?;
        let index = value.index();
        if std::mem::replace(&mut self.defined[index], true) {
            return Err(Error::Value(value));
        }
        if self.bits[index] == 0 {
            self.bits[index] = width;
        }
        Ok(())
    }

    fn width(&self, residual: &Residual, value: ValueId) -> Result<u16, Error> {
        residual.values.get(value.index()).map(|ty| ty.width).ok_or(Error::Value(value))
    }

    /// Checks the widths of a step's values. Determines the significant bits of the values that the
    /// step defines, where these are fewer than the width.
    fn step(&mut self, residual: &Residual, what: &What) -> Result<(), Error> {
        let width = |value: ValueId| self.width(residual, value);
        let same =
            |out: ValueId, of: &[ValueId]| match of.iter().all(|value| width(*value) == width(out))
            {
                true => Ok(()),
                false => Err(Error::Width(out)),
            };
        let bits = |value: ValueId| self.bits[value.index()];
        let (out, known) = match what {
            What::Op(Op::Const { out, value }) => {
                if *value > max_of(width(*out)?) {
                    return Err(Error::Width(*out));
                }
                (*out, bits_of(*value).max(1))
            }
            What::Op(Op::Bin { out, op, a, b }) => {
                same(*out, &[*a, *b])?;
                let shift = self.consts[b.index()];
                (*out, binary_bits(*op, bits(*a), bits(*b), width(*out)?, shift))
            }
            What::Op(Op::Cmp { out, a, b, .. }) => {
                same(*a, &[*b])?;
                (*out, 1)
            }
            What::Op(Op::Not { out, a }) => {
                same(*out, &[*a])?;
                (*out, width(*out)?)
            }
            What::Op(Op::Resize { out, a } | Op::Clamp { out, a }) => (*out, bits(*a)),
            What::Op(Op::Select { out, a, b, .. }) => {
                same(*out, &[*a, *b])?;
                (*out, bits(*a).max(bits(*b)))
            }
            What::Op(Op::InSet { out, .. } | Op::Has { out, .. }) => (*out, 1),
            What::Op(Op::Load { out, field }) => {
                if width(*out)? != field.info().width {
                    return Err(Error::Width(*out));
                }
                (*out, if self.entered { self.field_bits(*field) } else { 128 })
            }
            What::Read { outs, entry, .. } => {
                self.read(residual, outs, *entry)?;
                return Ok(());
            }
            What::Op(Op::LoadEvent { field, .. }) => {
                let number = *field as usize;
                if number >= MOST {
                    return Err(Error::Size);
                }
                self.inputs = self.inputs.max(number + 1);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let known = known.min(self.width(residual, out)?);
        self.bits[out.index()] = known;
        if let What::Op(Op::Const { value, .. }) = what {
            self.consts[out.index()] = Some(*value);
        }
        Ok(())
    }

    /// Records the words that a `Read` takes: one for a slot, or two for a slot wider than 64 bits.
    fn read(&mut self, residual: &Residual, outs: &[ValueId], entry: ValueId) -> Result<(), Error> {
        let mut words = 0;
        for out in outs {
            words += if self.width(residual, *out)? > 64 { 2 } else { 1 };
        }
        let most = &mut self.words[entry.index()];
        *most = words.max(*most);
        Ok(())
    }

    /// The significant bits of a field in packets of the program's shape.
    fn field_bits(&self, field: Field) -> u16 {
        let spot = Spot::of(field, &|header| self.headers.has(header));
        spot.map_or(field.info().width, |spot| u16::from(spot.width))
    }
}

/// By block: whether a lookup has found nothing on each way to the block.
#[expect(clippy::indexing_slicing, reason = "`Facts` has checked the jumps")]
fn begins(residual: &Residual, facts: &Facts) -> Vec<bool> {
    let mut found = HashSet::new();
    let mut begins: Vec<Option<bool>> = vec![None; residual.blocks.len()];
    // Jumps lead only to later blocks, so one pass is enough.
    for (number, block) in facts.reached(residual) {
        found.extend(block.steps.iter().filter_map(|step| match &step.what {
            What::Find { found, .. } => Some(*found),
            _ => None,
        }));
        let is_begun = begins[number] == Some(true);
        let absent = match &block.end {
            End::Branch { cond, yes, no } if found.contains(cond) && yes.block != no.block => {
                Some(no.block)
            }
            _ => None,
        };
        for target in block.end.targets() {
            let to = &mut begins[target.block.index()];
            *to = Some(to.unwrap_or(true) && (is_begun || absent == Some(target.block)));
        }
    }
    begins.into_iter().map(|begins| begins == Some(true)).collect()
}

fn counter_exists(residual: &Residual, counters: CounterListId) -> Result<(), Error> {
    let index = usize::try_from(counters.0).unwrap_or(usize::MAX);
    if index < residual.counter_lists.len() { Ok(()) } else { Err(Error::Counter(counters.0)) }
}

/// The number of bits that a constant needs.
fn bits_of(value: Word) -> u16 {
    u16::try_from(Word::BITS - value.leading_zeros()).unwrap_or(128)
}

/// The number of bits that a result can need. It may exceed the width.
fn binary_bits(op: BinOp, a: u16, b: u16, width: u16, b_is: Option<Word>) -> u16 {
    match op {
        BinOp::AddSat | BinOp::AddWrap => a.max(b) + 1,
        BinOp::MulSat | BinOp::MulWrap => a + b,
        BinOp::SubSat | BinOp::Div => a,
        BinOp::Shr => {
            let shift = b_is.and_then(|shift| u16::try_from(shift).ok()).unwrap_or(0);
            a.saturating_sub(shift).max(1)
        }
        BinOp::Shl => {
            let shift = b_is.and_then(|shift| u16::try_from(shift).ok()).unwrap_or(width);
            a.saturating_add(shift)
        }
        BinOp::SubWrap => width,
        BinOp::Rem | BinOp::And | BinOp::Min => a.min(b),
        BinOp::Or | BinOp::Xor | BinOp::Max => a.max(b),
    }
}
