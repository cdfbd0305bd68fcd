//! Random numbers, and a builder of programs.

use braid_ir::model::{BlockId, Kind, Op, ReasonId, RowId, Target, Ty, ValueId};
use braid_ir::residual::{
    Block, CounterListId, End, Exit, Fate, HeaderMask, Point, Residual, Site, Step, What,
};
use braid_ir::show::max_of;
use braid_testkit::generate::Rng;

/// A generator of numbers. The seed determines each number.
pub struct Random(Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(Rng::new(seed))
    }

    pub fn word(&mut self) -> u64 {
        self.0.bits()
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.word() % limit.max(1) as u64) as usize
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A value of `width` bits, often one at an edge.
    pub fn value(&mut self, width: u16) -> u128 {
        let max = max_of(width);
        let any = u128::from(self.word()) << 64 | u128::from(self.word());
        let value = match self.below(10) {
            0 => 0,
            1 => 1,
            2 => max,
            3 => max - 1,
            4 => 1 << self.below(usize::from(width)),
            5 => (1u128 << self.below(usize::from(width))).wrapping_sub(1),
            6 => u128::from(width) + u128::from(self.word() % 3),
            7 => any & max_of(width / 2 + 1),
            _ => any,
        };
        value & max
    }
}

/// Puts a program together.
pub struct Builder {
    pub residual: Residual,
    /// The current block.
    pub block: usize,
}

pub const FAULTS: CounterListId = CounterListId(1);

impl Builder {
    /// A builder for packets of a shape, with a number of blocks that all end the program at first.
    /// Counter 0 counts ends, counter 1 faults, counter 2 is for steps.
    pub fn new(shape: HeaderMask, blocks: usize) -> Self {
        let fate = Fate::Drop { node: 0, row: RowId(0), reason: ReasonId(0) };
        let end = End::Exit(Exit { counters: CounterListId(0), fate });
        let block = Block { params: Vec::new(), steps: Vec::new(), end };
        let residual = Residual {
            point: Point { node: 0, backward: false, held: false },
            shape,
            visits: 1,
            values: Vec::new(),
            blocks: vec![block; blocks],
            counter_lists: vec![Vec::new(); 3],
        };
        Builder { residual, block: 0 }
    }

    pub fn value(&mut self, width: u16) -> ValueId {
        self.residual.values.push(Ty { width, kind: Kind::Uint });
        ValueId(self.residual.values.len() as u32 - 1)
    }

    pub fn param(&mut self, block: usize, width: u16) -> ValueId {
        let value = self.value(width);
        self.residual.blocks[block].params.push(value);
        value
    }

    pub fn push(&mut self, what: What) {
        let site = Site { node: 0, block: 0, op: 0 };
        self.residual.blocks[self.block].steps.push(Step { site, what, fault: Some(FAULTS) });
    }

    pub fn op(&mut self, op: Op) {
        self.push(What::Op(op));
    }

    pub fn constant(&mut self, width: u16, value: u128) -> ValueId {
        let out = self.value(width);
        self.op(Op::Const { out, value });
        out
    }

    pub fn end(&mut self, end: End) {
        self.residual.blocks[self.block].end = end;
    }
}

pub fn to(block: usize, args: &[ValueId]) -> Target {
    Target { block: BlockId(block as u32), args: args.to_vec() }
}
