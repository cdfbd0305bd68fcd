//! From a residual program to Cranelift's IR.
//!
//! A value is an `i64`, or an `i128` if it can have more than 64 bits; the bits above those that it can
//! have are 0. Each block of the program begins one of Cranelift's; some steps add more.

mod arith;
mod branch;
mod call;
mod enter;
mod hot;
mod key;
mod load;
mod prefetch;
mod region;
mod rules;
mod set;
mod state;
mod step;
mod value;
mod write;

pub(crate) use hot::Hot;
pub(crate) use prefetch::Hint;

use crate::abi::{Count, Resources};
use crate::error::Error;
use crate::facts::Facts;
use crate::regions::Regions;
use crate::sys::{self, Frame};
use braid_ir::engine::Fault;
use braid_ir::model::{Op, Target, ValueId};
use braid_ir::residual::{End, Residual, TallyId};
use braid_packet::Field;
use cranelift_codegen::ir::{
    AliasRegion, AliasRegionData, BlockArg, InstBuilder, StackSlot, StackSlotData, StackSlotKind,
    Value, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::FunctionBuilder;
use region::Records;
use std::collections::{BTreeSet, HashMap};
use std::mem::offset_of;

type ClBlock = cranelift_codegen::ir::Block;
/// A block and the values that it gets.
type Way = (ClBlock, Vec<BlockArg>);

/// Where in the frame something is.
pub(crate) mod at {
    use super::{Frame, offset_of};
    use crate::sys::Calls;

    pub(crate) const DATA: usize = offset_of!(Frame, data);
    pub(crate) const CAPTURED: usize = offset_of!(Frame, captured);
    pub(crate) const LAYOUT: usize = offset_of!(Frame, layout);
    pub(crate) const COUNTS: usize = offset_of!(Frame, counts);
    pub(crate) const CALLS: usize = offset_of!(Frame, calls);
    pub(crate) const PACKET: usize = offset_of!(Frame, packet);
    pub(crate) const NOW: usize = offset_of!(Frame, now);
    pub(crate) const DELAY: usize = offset_of!(Frame, delay);
    pub(crate) const STEP: usize = offset_of!(Calls, step);
    pub(crate) const RESHAPE: usize = offset_of!(Calls, reshape);
    pub(crate) const FIND: usize = offset_of!(Calls, find);
    pub(crate) const FIND_1: usize = offset_of!(Calls, find_1);
    pub(crate) const FIND_2: usize = offset_of!(Calls, find_2);
    pub(crate) const FIND_5: usize = offset_of!(Calls, find_5);
    pub(crate) const READ: usize = offset_of!(Calls, read);
    pub(crate) const SET: usize = offset_of!(Calls, set);
    pub(crate) const PUT: usize = offset_of!(Calls, put);
    pub(crate) const CLASSIFY: usize = offset_of!(Calls, classify);
    pub(crate) const CLASSIFY4: usize = offset_of!(Calls, classify4);
    pub(crate) const COUNT_RULE: usize = offset_of!(Calls, count_rule);
    pub(crate) const ROUTE: usize = offset_of!(Calls, route);
    pub(crate) const CLASS: usize = offset_of!(Calls, class);
    pub(crate) const MEMBER: usize = offset_of!(Calls, member);
    pub(crate) const HAS_ROOM: usize = offset_of!(Calls, has_room);
    pub(crate) const ASK: usize = offset_of!(Calls, ask);
    pub(crate) const PREFETCH: usize = offset_of!(Calls, prefetch);
    pub(crate) const WIDE: usize = offset_of!(Calls, wide);
}

/// An entry whose slots are at hand, until the next host call.
#[derive(Clone, Copy)]
struct Fresh {
    entry: ValueId,
    slots: Value,
}

/// Columns of lists, by function, parameter and column, in words as machine code reads them. They stay
/// where they are.
#[derive(Debug, Default)]
pub(crate) struct Lists(HashMap<(u16, u32, u32), Box<[u64]>>);

/// A step in work.
#[derive(Clone, Copy)]
struct Place {
    block: u32,
    step: u32,
    fault: Option<TallyId>,
}

/// Kinds of memory that do not overlap.
#[derive(Clone, Copy)]
struct Memories {
    frame: AliasRegion,
    packet: AliasRegion,
    counts: AliasRegion,
}

/// Writes a function.
pub(crate) struct Emitter<'a, 'f> {
    residual: &'a Residual,
    facts: &'a Facts,
    resources: &'a mut dyn Resources,
    lists: &'a mut Lists,
    records: Records<'a>,
    build: FunctionBuilder<'f>,
    frame: Value,
    values: Vec<Option<Value>>,
    blocks: Vec<ClBlock>,
    /// By block: the entry at hand when it begins.
    fresh_at: Vec<Option<Fresh>>,
    fresh: Option<Fresh>,
    /// Ways out of regions from the block in work: the number of the target, a block in between, and where
    /// that leads to.
    left: Vec<(usize, ClBlock, ClBlock, Vec<BlockArg>)>,
    /// The part of the program that is written, if it is not all of it.
    hot: Option<&'a Hot>,
    /// Whether the steps in work are not written.
    skips: bool,
    /// Where the whole program takes over.
    over: Option<ClBlock>,
    /// Whether anything else is called.
    calls: bool,
    /// How true-or-false values are defined.
    tests: HashMap<ValueId, &'a Op>,
    /// By value: how often it is used.
    uses: Vec<u32>,
    /// Fields that were loaded since bytes last changed, or might have.
    loaded: HashMap<ValueId, Field>,
    /// Whether the packet still has the headers that it was entered with.
    entered: bool,
    /// By block: functions that its ways may have entered, of those in which state lives with other state.
    begun: Vec<BTreeSet<u16>>,
    /// Arguments and results of host calls, and how many bytes they need.
    scratch: Option<StackSlot>,
    scratch_bytes: u32,
    regions: Memories,
}

impl<'a, 'f> Emitter<'a, 'f> {
    /// A writer of a function that gets the frame.
    pub(crate) fn new(
        residual: &'a Residual,
        facts: &'a Facts,
        resources: &'a mut dyn Resources,
        lists: &'a mut Lists,
        (regions, start): (&'a Regions, u64),
        mut build: FunctionBuilder<'f>,
    ) -> Self {
        let first = build.create_block();
        build.append_block_params_for_function_params(first);
        build.switch_to_block(first);
        let frame = build.block_params(first)[0];
        let mut blocks = vec![first];
        blocks.extend(residual.blocks.iter().skip(1).map(|_| build.create_block()));
        let mut region = |user_id: u32, description: &'static str| {
            let data = AliasRegionData { user_id, description: description.into() };
            build.func.dfg.alias_regions.insert(data)
        };
        let aliases = Memories {
            frame: region(0, "frame and layout"),
            packet: region(1, "packet"),
            counts: region(2, "counts"),
        };
        Emitter {
            residual,
            facts,
            resources,
            lists,
            records: Records::new(regions, start),
            left: Vec::new(),
            hot: None,
            skips: false,
            over: None,
            calls: false,
            tests: HashMap::new(),
            uses: vec![0; residual.values.len()],
            loaded: HashMap::new(),
            frame,
            values: vec![None; residual.values.len()],
            fresh_at: vec![None; blocks.len()],
            blocks,
            fresh: None,
            entered: true,
            begun: enter::begun(residual),
            scratch: None,
            scratch_bytes: 0,
            regions: aliases,
            build,
        }
    }

    /// Writes the program.
    pub(crate) fn program(mut self, config: TargetFrontendConfig) -> Result<(), Error> {
        self.all()?;
        self.finish(config);
        Ok(())
    }

    /// Writes the part of the program that most packets run through. False if it is of no use.
    pub(crate) fn main_way(
        mut self,
        hot: &'a Hot,
        config: TargetFrontendConfig,
    ) -> Result<bool, Error> {
        self.hot = Some(hot);
        self.all()?;
        if let Some(over) = self.over {
            self.build.switch_to_block(over);
            self.leave(sys::WHOLE);
        }
        let useful = !self.calls;
        self.finish(config);
        Ok(useful)
    }

    fn all(&mut self) -> Result<(), Error> {
        self.declare();
        self.note_tests();
        let residual = self.residual;
        for (number, block) in (0..).zip(&residual.blocks) {
            let index = number as usize;
            if self.facts.ways[index] == 0 {
                self.unreached(index);
                continue;
            }
            self.skips = self.hot.is_some_and(|hot| !hot.entered[index]);
            if !self.skips {
                self.begin(index);
            }
            // Block parameters change nothing about headers: what all ways know holds here.
            self.entered = self.facts.entered_at[index];
            self.fresh = self.fresh_at[index].filter(|_| self.facts.ways[index] == 1);
            self.loaded.clear();
            for (step, what) in (0..).zip(&block.steps) {
                self.at_step(index, step as usize)?;
                if !self.skips {
                    self.step(Place { block: number, step, fault: what.fault }, what)?;
                }
            }
            self.at_step(index, block.steps.len())?;
            if !self.skips {
                self.end(number, &block.end)?;
                self.leave_regions(index, &block.end)?;
            }
        }
        Ok(())
    }

    /// Begins a block, with its parameters.
    fn begin(&mut self, index: usize) {
        if index == 0 {
            return;
        }
        let start = self.blocks[index];
        self.build.switch_to_block(start);
        if self.hot.is_none() && self.records.regions.first_only[index] {
            self.build.set_cold_block(start);
        }
        let params = self.residual.blocks[index].params.iter().map(|param| {
            let ty = if self.is_wide(*param) { types::I128 } else { types::I64 };
            (*param, self.build.append_block_param(start, ty))
        });
        for (param, value) in params.collect::<Vec<_>>() {
            self.set(param, value);
        }
    }

    fn finish(mut self, config: TargetFrontendConfig) {
        if let Some(scratch) = self.scratch {
            self.build.func.sized_stack_slots[scratch].size = self.scratch_bytes;
        }
        self.build.seal_all_blocks();
        self.build.finalize(config);
    }

    /// A block to which nothing leads; Cranelift leaves it out.
    fn unreached(&mut self, index: usize) {
        if self.hot.is_some() {
            return;
        }
        self.build.switch_to_block(self.blocks[index]);
        let result = self.imm(0);
        self.build.ins().return_(&[result]);
    }

    fn end(&mut self, block: u32, end: &End) -> Result<(), Error> {
        match end {
            End::Jump(target) => {
                let (to, args) = self.way(block as usize, 0, target)?;
                self.build.ins().jump(to, &args);
            }
            End::Branch { cond, yes, no } => {
                let yes = self.way(block as usize, 0, yes)?;
                let no = self.way(block as usize, 1, no)?;
                self.branch(*cond, &yes, &no)?;
            }
            End::Exit(exit) => {
                self.count(exit.tally);
                self.leave(u64::from(block));
            }
            End::Hold { node, queue, delay, tally, full } => {
                let room = self.has_room(block, (*node, *queue), *delay)?;
                let waits = self.build.create_block();
                let (full, full_args) = self.target(full)?;
                self.build.ins().brif(room, waits, &[], full, &full_args);
                self.build.switch_to_block(waits);
                let delay = self.low(*delay)?;
                self.store(self.regions.frame, delay, self.frame, at::DELAY);
                self.count(*tally);
                self.leave(sys::HOLD << 56 | u64::from(block));
            }
        }
        Ok(())
    }

    /// Where a jump leads to: out of the part that is written, or of a region, or on.
    fn way(&mut self, block: usize, which: usize, target: &Target) -> Result<Way, Error> {
        if self.hot.is_some_and(|hot| hot.gives_up(block, which)) {
            return Ok((self.give_up(), Vec::new()));
        }
        let target = self.target(target)?;
        Ok(self.leaving(block, which, target))
    }

    /// Where the whole program takes over.
    fn give_up(&mut self) -> ClBlock {
        let build = &mut self.build;
        *self.over.get_or_insert_with(|| {
            let over = build.create_block();
            build.set_cold_block(over);
            over
        })
    }

    /// A block of Cranelift with the values for its parameters, and what is at hand there.
    fn target(&mut self, target: &Target) -> Result<Way, Error> {
        let to = target.block.index();
        self.fresh_at[to] = self.fresh;
        let params = &self.residual.blocks[to].params;
        let mut args = Vec::with_capacity(params.len());
        for (param, arg) in params.iter().zip(&target.args) {
            let wide = self.is_wide(*param);
            let value = if wide { self.wide(*arg)? } else { self.low(*arg)? };
            args.push(BlockArg::Value(value));
        }
        Ok((self.blocks[to], args))
    }

    /// Returns a result.
    fn leave(&mut self, result: u64) {
        let result = self.imm(result);
        self.build.ins().return_(&[result]);
    }

    /// Adds the packet to a tally.
    fn count(&mut self, tally: TallyId) {
        let counts = self.load(self.regions.frame, types::I64, self.frame, at::COUNTS);
        let bytes = self.wire_len();
        let one = self.imm(1);
        let start = tally.0 as usize * size_of::<Count>();
        for (part, more) in [(offset_of!(Count, packets), one), (offset_of!(Count, bytes), bytes)] {
            let old = self.load(self.regions.counts, types::I64, counts, start + part);
            let new = self.build.ins().iadd(old, more);
            self.store(self.regions.counts, new, counts, start + part);
        }
    }

    /// Ends by a fault if `code` is not 0, off the way. Steps without a tally are known not to fault;
    /// should one of them, it is not counted.
    fn fault_if(&mut self, place: Place, code: Value) {
        let (bad, good) = (self.build.create_block(), self.build.create_block());
        self.build.set_cold_block(bad);
        let kind = self.build.append_block_param(bad, types::I64);
        self.build.ins().brif(code, bad, &[BlockArg::Value(code)], good, &[]);
        self.build.switch_to_block(bad);
        if let Some(tally) = place.fault {
            self.count(tally);
        }
        let kind = self.up(kind, 56);
        let result = self.imm(u64::from(place.step) << 32 | u64::from(place.block));
        let result = self.build.ins().bor(kind, result);
        self.build.ins().return_(&[result]);
        self.build.switch_to_block(good);
    }

    /// Ends by a fault where a condition holds, off the way.
    fn fault_when(&mut self, place: Place, cond: Value, fault: Fault) {
        let (code, zero) = (self.imm(sys::code(fault)), self.imm(0));
        let code = self.build.ins().select(cond, code, zero);
        self.fault_if(place, code);
    }

    /// Room of so many bytes on the stack for the next host call.
    fn scratch(&mut self, bytes: usize) -> Value {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.scratch_bytes = self.scratch_bytes.max(bytes);
        let build = &mut self.build;
        let scratch = *self.scratch.get_or_insert_with(|| {
            let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 4);
            build.create_sized_stack_slot(slot)
        });
        self.build.ins().stack_addr(types::I64, scratch, 0)
    }
}
