//! The state of a function while its code is written, and the operations that all kinds of steps
//! use.

use super::main_path::MainPath;
use super::outcomes::Outcomes;
use crate::abi::{Count, Resources};
use crate::error::Error;
use crate::facts::Facts;
use crate::regions::Regions;
use crate::sys::{self, Frame};
use braid_ir::engine::Fault;
use braid_ir::model::{Op, Target, ValueId};
use braid_ir::residual::{CounterListId, Residual, What};
use braid_packet::Field;
use cranelift_codegen::ir::{
    AliasRegion, AliasRegionData, BlockArg, InstBuilder, StackSlot, StackSlotData, StackSlotKind,
    Value, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::FunctionBuilder;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::mem::offset_of;

pub(super) type ClBlock = cranelift_codegen::ir::Block;
/// The target of a jump: a block and the arguments for its parameters.
pub(super) type Edge = (ClBlock, Vec<BlockArg>);

/// Offsets in the frame and in the table of calls, in bytes.
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
    pub(crate) const INPUTS: usize = offset_of!(Frame, inputs);
    pub(crate) const STEP: usize = offset_of!(Calls, step);
    pub(crate) const RESHAPE: usize = offset_of!(Calls, reshape);
    pub(crate) const FIND: usize = offset_of!(Calls, find);
    pub(crate) const FIND_1: usize = offset_of!(Calls, find_1);
    pub(crate) const FIND_2: usize = offset_of!(Calls, find_2);
    pub(crate) const FIND_5: usize = offset_of!(Calls, find_5);
    pub(crate) const READ: usize = offset_of!(Calls, read);
    pub(crate) const SET: usize = offset_of!(Calls, set);
    pub(crate) const SET_1: usize = offset_of!(Calls, set_1);
    pub(crate) const SET_NEW_1: usize = offset_of!(Calls, set_new_1);
    pub(crate) const PUT: usize = offset_of!(Calls, put);
    pub(crate) const CLASSIFY: usize = offset_of!(Calls, classify);
    pub(crate) const CLASSIFY4: usize = offset_of!(Calls, classify4);
    pub(crate) const COUNT_RULE: usize = offset_of!(Calls, count_rule);
    pub(crate) const ROUTE: usize = offset_of!(Calls, route);
    pub(crate) const ADDRESS_GROUP: usize = offset_of!(Calls, address_group);
    pub(crate) const MEMBER: usize = offset_of!(Calls, member);
    pub(crate) const TAKE: usize = offset_of!(Calls, take);
    pub(crate) const HAS_ROOM: usize = offset_of!(Calls, has_room);
    pub(crate) const PREFETCH_CLASSIFY: usize = offset_of!(Calls, prefetch_classify);
    pub(crate) const ANNOUNCE: usize = offset_of!(Calls, announce);
    pub(crate) const ANNOUNCE_1: usize = offset_of!(Calls, announce_1);
    pub(crate) const PREFETCH: usize = offset_of!(Calls, prefetch);
    pub(crate) const WIDE: usize = offset_of!(Calls, wide);
}

/// An entry whose slots the code has the address of. The address is valid until the next host call.
#[derive(Clone, Copy)]
pub(super) struct Fresh {
    pub(super) entry: ValueId,
    pub(super) slots: Value,
}

/// Columns of lists, by function, parameter and column, as words for machine code. The columns do
/// not move, because the code contains their addresses.
#[derive(Debug, Default)]
pub(crate) struct Lists(pub(super) HashMap<(u16, u32, u32), Box<[u64]>>);

/// The step that is being compiled.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) block: u32,
    pub(super) step: u32,
    pub(super) fault: Option<CounterListId>,
}

/// Kinds of memory that do not overlap. Cranelift's alias analysis uses them.
#[derive(Clone, Copy)]
pub(super) struct Memories {
    pub(super) frame: AliasRegion,
    pub(super) packet: AliasRegion,
    pub(super) counts: AliasRegion,
}

/// Writes the code of one function.
pub(crate) struct Emitter<'a, 'f> {
    pub(super) residual: &'a Residual,
    pub(super) facts: &'a Facts,
    pub(super) resources: &'a mut dyn Resources,
    pub(super) lists: &'a mut Lists,
    pub(super) outcomes: Outcomes<'a>,
    pub(super) build: FunctionBuilder<'f>,
    pub(super) frame: Value,
    pub(super) values: Vec<Option<Value>>,
    pub(super) blocks: Vec<ClBlock>,
    /// By block: the entry whose slots have a valid address when the block begins.
    pub(super) fresh_at: Vec<Option<Fresh>>,
    pub(super) fresh: Option<Fresh>,
    /// Jumps from the current block out of regions: the number of the jump's target in the block's
    /// end, the block that writes the outcome, the target, and its arguments.
    pub(super) left: Vec<(usize, ClBlock, ClBlock, Vec<BlockArg>)>,
    /// The main path, if the function contains only that.
    pub(super) main_path: Option<&'a MainPath>,
    /// Whether the current steps are left out, because the main path does not contain them.
    pub(super) skips: bool,
    /// The block that returns, so that the whole program runs on the packet.
    pub(super) fallback: Option<ClBlock>,
    /// Whether the code calls any function.
    pub(super) calls: bool,
    /// The operations that define booleans.
    pub(super) tests: HashMap<ValueId, &'a Op>,
    /// By value: the number of its uses.
    pub(super) uses: Vec<u32>,
    /// Values that hold loaded fields. A value is removed when the packet's bytes may have changed.
    pub(super) loaded: HashMap<ValueId, Field>,
    /// Whether the packet still has the headers with which it entered the program.
    pub(super) entered: bool,
    /// By block: the functions that an earlier block may have entered, as far as their state lives
    /// with other state.
    pub(super) begun: Vec<BTreeSet<u16>>,
    /// The lookups that were announced: the block, and the number of the step there.
    pub(super) announced: HashSet<(usize, usize)>,
    /// The stack slot for arguments and results of host calls, and its size in bytes.
    pub(super) scratch: Option<StackSlot>,
    pub(super) scratch_bytes: u32,
    pub(super) memories: Memories,
}

impl<'a, 'f> Emitter<'a, 'f> {
    /// Starts a function. Its only argument is the frame.
    #[expect(
        clippy::indexing_slicing,
        reason = "every generated function has one parameter, the frame"
    )]
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
            outcomes: Outcomes::new(regions, start),
            left: Vec::new(),
            main_path: None,
            skips: false,
            fallback: None,
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
            begun: begun(residual),
            announced: HashSet::new(),
            scratch: None,
            scratch_bytes: 0,
            memories: aliases,
            build,
        }
    }

    #[expect(clippy::indexing_slicing, reason = "`scratch` is a stack slot of this function")]
    pub(super) fn finish(mut self, config: TargetFrontendConfig) {
        if let Some(scratch) = self.scratch {
            self.build.func.sized_stack_slots[scratch].size = self.scratch_bytes;
        }
        self.build.seal_all_blocks();
        self.build.finalize(config);
    }

    /// The block that returns, so that the whole program runs on the packet.
    pub(super) fn fallback_block(&mut self) -> ClBlock {
        let build = &mut self.build;
        *self.fallback.get_or_insert_with(|| {
            let over = build.create_block();
            build.set_cold_block(over);
            over
        })
    }

    /// The target of a jump in Cranelift's IR. Also records which slots have a valid address there.
    #[expect(
        clippy::indexing_slicing,
        reason = "`Facts` has checked the values and jumps of blocks that the program reaches"
    )]
    pub(super) fn target(&mut self, target: &Target) -> Result<Edge, Error> {
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

    /// Returns a constant.
    pub(super) fn return_result(&mut self, result: u64) {
        let result = self.imm(result);
        self.build.ins().return_(&[result]);
    }

    /// Counts the packet at a counter list.
    pub(super) fn count(&mut self, counters: CounterListId) {
        let counts = self.load(self.memories.frame, types::I64, self.frame, at::COUNTS);
        let bytes = self.wire_len();
        let one = self.imm(1);
        let start = counters.0 as usize * size_of::<Count>();
        for (part, more) in [(offset_of!(Count, packets), one), (offset_of!(Count, bytes), bytes)] {
            let old = self.load(self.memories.counts, types::I64, counts, start + part);
            let new = self.build.ins().iadd(old, more);
            self.store(self.memories.counts, new, counts, start + part);
        }
    }

    /// Ends with the fault `code` if `code` is not 0, in a cold block. A step without a counter
    /// list for faults never faults. If it did, the fault would not be counted.
    pub(super) fn fault_if(&mut self, place: Place, code: Value) {
        let (bad, good) = (self.build.create_block(), self.build.create_block());
        self.build.set_cold_block(bad);
        let kind = self.build.append_block_param(bad, types::I64);
        self.build.ins().brif(code, bad, &[BlockArg::Value(code)], good, &[]);
        self.build.switch_to_block(bad);
        if let Some(counters) = place.fault {
            self.count(counters);
        }
        let kind = self.shift_left(kind, 56);
        let result = self.imm(u64::from(place.step) << 32 | u64::from(place.block));
        let result = self.build.ins().bor(kind, result);
        self.build.ins().return_(&[result]);
        self.build.switch_to_block(good);
    }

    /// Ends with a fault if a condition holds, in a cold block.
    pub(super) fn fault_when(&mut self, place: Place, cond: Value, fault: Fault) {
        let (code, zero) = (self.imm(sys::code(fault)), self.imm(0));
        let code = self.build.ins().select(cond, code, zero);
        self.fault_if(place, code);
    }

    /// The address of at least `bytes` bytes on the stack, for the next host call.
    pub(super) fn scratch(&mut self, bytes: usize) -> Value {
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

/// By block: the functions whose `Enter` may have run before the block.
#[expect(clippy::indexing_slicing, reason = "`begun` has a set for each block")]
fn begun(residual: &Residual) -> Vec<BTreeSet<u16>> {
    let mut begun = vec![BTreeSet::new(); residual.blocks.len()];
    for (number, block) in residual.blocks.iter().enumerate() {
        let mut here = begun[number].clone();
        let enters = block.steps.iter().filter(|step| step.what == What::Enter);
        here.extend(enters.map(|step| step.site.node));
        // Jumps lead only to later blocks, so one pass is enough.
        block.end.visit_targets(&mut |target| {
            if let Some(next) = begun.get_mut(target.block.index()) {
                next.extend(&here);
            }
        });
    }
    begun
}
