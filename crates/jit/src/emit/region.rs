//! Code for regions (see [`crate::regions`]): finds the address group of a packet, and takes or
//! writes the outcome of the group.
//!
//! The outcome of a group holds the exit by which the group's packets leave the region, and the
//! values that are used after the region. Its first word is 0 until the first packet of the group
//! has run through the region step by step.
#![expect(
    clippy::indexing_slicing,
    reason = "regions name blocks, exits and jumps of this program"
)]

use super::emitter::{ClBlock, Edge, Emitter, at};
use crate::abi::Search;
use crate::error::Error;
use crate::index::FIRST_NODE;
use braid_ir::model::{Target, ValueId};
use braid_ir::residual::End;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, StackSlotData, StackSlotKind, Value, types};
use cranelift_frontend::Switch;

/// Declares variables for the values that have a definition at each exit of their region.
pub(super) fn declare_variables(e: &mut Emitter<'_, '_>) {
    let regions = e.outcomes.regions;
    for _ in &regions.lookups {
        let group = e.build.declare_var(types::I64);
        e.outcomes.groups.push(group);
    }
    for value in &regions.outs {
        let ty = if e.is_wide(*value) { types::I128 } else { types::I64 };
        let build = &mut e.build;
        e.outcomes.variables.entry(*value).or_insert_with(|| build.declare_var(ty));
    }
}

/// Begins or ends a region before a step. The number of steps of the block stands for its end.
pub(super) fn at_step(e: &mut Emitter<'_, '_>, block: usize, step: usize) -> Result<(), Error> {
    let regions = e.outcomes.regions;
    if let Some((region, exit)) = regions.cuts.get(&(block, step)).copied() {
        let behind = block_behind(e, region, exit);
        match e.main_path {
            None => {
                write_outcome(e, region, exit)?;
                e.build.ins().jump(behind, &[]);
            }
            Some(path) => e.skips = !path.behind.contains(&(block, step)),
        }
        if !e.skips {
            e.build.switch_to_block(behind);
            e.fresh = None;
        }
    }
    match regions.starts.get(&(block, step)) {
        Some(region) if !e.skips => enter_region(e, *region),
        _ => Ok(()),
    }
}

/// The block that follows an exit inside a block.
fn block_behind(e: &mut Emitter<'_, '_>, region: usize, exit: usize) -> ClBlock {
    let build = &mut e.build;
    *e.outcomes.behind.entry((region, exit)).or_insert_with(|| build.create_block())
}

/// Begins a region: takes the outcome of the packet's group, if there is one. Otherwise the packet
/// is the first of its group, and the steps of the region run for it.
#[expect(clippy::cast_possible_truncation, reason = "a region has at most `LONGEST` words")]
fn enter_region(e: &mut Emitter<'_, '_>, number: usize) -> Result<(), Error> {
    let region = &e.outcomes.regions.all[number];
    let lookups = &e.outcomes.regions.lookups[region.lookups];
    // The host may move entries, so the addresses of loaded slots become invalid.
    e.fresh = None;
    let group_is = e.outcomes.groups[region.lookups];
    let group = if region.is_group_known {
        e.build.use_var(group_is)
    } else {
        let group = match &lookups.groups.search {
            Search::Index(index) => search_index(e, index.address(), lookups.addr)?,
            Search::Host(search) => {
                let (low, high) = e.halves(lookups.addr)?;
                let [group] = e.host_call(at::ADDRESS_GROUP, *search, &[low, high]);
                group
            }
        };
        e.build.def_var(group_is, group);
        group
    };
    if e.main_path.is_some() {
        let outcome = outcome_of(e, number, group);
        e.skips = true;
        return dispatch(e, number, outcome, None);
    }
    let slow = e.build.create_block();
    e.build.set_cold_block(slow);
    let open = e.build.append_block_param(slow, types::I64);
    if let Search::Host(_) = lookups.groups.search {
        // For an address without a group, the outcome is written to a place that nobody reads.
        let words = region.stride as u32 * 8;
        let nowhere = StackSlotData::new(StackSlotKind::ExplicitSlot, words, 3);
        let nowhere = e.build.create_sized_stack_slot(nowhere);
        let nowhere = e.build.ins().stack_addr(types::I64, nowhere, 0);
        let count = e.imm(lookups.groups.count.into());
        let is_one = e.build.ins().icmp(IntCC::UnsignedLessThan, group, count);
        let inside = e.build.create_block();
        e.build.ins().brif(is_one, inside, &[], slow, &[BlockArg::Value(nowhere)]);
        e.build.switch_to_block(inside);
    }
    let outcome = outcome_of(e, number, group);
    dispatch(e, number, outcome, Some(slow))?;
    e.build.switch_to_block(slow);
    e.outcomes.open[number] = Some(open);
    Ok(())
}

/// The address of a group's outcome in memory.
fn outcome_of(e: &mut Emitter<'_, '_>, number: usize, group: Value) -> Value {
    let region = &e.outcomes.regions.all[number];
    let first = e.imm(e.outcomes.start + region.first as u64 * 8);
    let bytes = region.stride as u64 * 8;
    let offset = if bytes.is_power_of_two() {
        e.shift_left(group, bytes.trailing_zeros().into())
    } else {
        let bytes = e.imm(bytes);
        e.build.ins().imul(group, bytes)
    };
    e.build.ins().iadd(first, offset)
}

/// Jumps to the exit that an outcome names. If the outcome is empty, jumps to `slow`. Without
/// `slow`, falls back to the whole program.
fn dispatch(
    e: &mut Emitter<'_, '_>,
    number: usize,
    outcome: Value,
    slow: Option<ClBlock>,
) -> Result<(), Error> {
    let region = &e.outcomes.regions.all[number];
    let which = e.load_word(outcome, 0);
    let gives_up = |this: &Emitter<'_, '_>, exit: usize| {
        this.main_path.is_some_and(|path| path.fallback_exits.contains(&(number, exit)))
    };
    let mut blocks = Vec::new();
    for exit in 0..region.exits.len() {
        let up = gives_up(e, exit);
        blocks.push(if up { e.fallback_block() } else { e.build.create_block() });
    }
    let others = e.build.create_block();
    e.build.set_cold_block(others);
    let likely = e.build.ins().icmp_imm_u(IntCC::Equal, which, region.likely as i64 + 1);
    e.build.ins().brif(likely, blocks[region.likely], &[], others, &[]);
    e.build.switch_to_block(others);
    let none = e.build.create_block();
    e.build.set_cold_block(none);
    let mut switch = Switch::new();
    for (exit, block) in blocks.iter().enumerate() {
        if exit != region.likely && !gives_up(e, exit) {
            switch.set_entry(exit as u128 + 1, *block);
        }
    }
    switch.emit(&mut e.build, which, none);
    e.build.switch_to_block(none);
    match slow {
        Some(slow) => e.build.ins().jump(slow, &[BlockArg::Value(outcome)]),
        None => {
            let over = e.fallback_block();
            e.build.ins().jump(over, &[])
        }
    };
    for (exit, block) in blocks.into_iter().enumerate() {
        if !gives_up(e, exit) {
            e.build.switch_to_block(block);
            leave_by_outcome(e, number, exit, outcome)?;
        }
    }
    Ok(())
}

/// Loads the values of an exit from an outcome, and jumps to the exit.
fn leave_by_outcome(
    e: &mut Emitter<'_, '_>,
    region: usize,
    number: usize,
    outcome: Value,
) -> Result<(), Error> {
    let exit = &e.outcomes.regions.all[region].exits[number];
    for (value, word) in &exit.used {
        let mut is = e.load_word(outcome, word * 8);
        if e.is_wide(*value) {
            let high = e.load_word(outcome, word * 8 + 8);
            is = e.build.ins().iconcat(is, high);
        }
        let variable = e.outcomes.variables[value];
        e.build.def_var(variable, is);
    }
    let (to, args) = match exit.target {
        None => (block_behind(e, region, number), Vec::new()),
        Some(which) => {
            let end = &e.residual.blocks[exit.block].end;
            let target: &Target = end.targets()[which];
            e.target(target)?
        }
    };
    e.build.ins().jump(to, &args);
    Ok(())
}

/// Writes the outcome of the packet's group.
fn write_outcome(e: &mut Emitter<'_, '_>, region: usize, number: usize) -> Result<(), Error> {
    let Some(outcome) = e.outcomes.open[region] else { return Ok(()) };
    let exit = &e.outcomes.regions.all[region].exits[number];
    for (value, word) in &exit.used {
        let (low, high) = e.halves(*value)?;
        e.store_word(low, outcome, word * 8);
        if e.is_wide(*value) {
            e.store_word(high, outcome, word * 8 + 8);
        }
    }
    let which = e.imm(number as u64 + 1);
    e.store_word(which, outcome, 0);
    Ok(())
}

/// Redirects a jump that leaves a region to a block of its own. [`leave_regions`] writes that
/// block.
pub(super) fn leave_region(
    e: &mut Emitter<'_, '_>,
    block: usize,
    which: usize,
    (to, args): Edge,
) -> Edge {
    if !e.outcomes.regions.jumps.contains_key(&(block, which)) {
        return (to, args);
    }
    let between = e.build.create_block();
    e.left.push((which, between, to, args));
    (between, Vec::new())
}

/// Writes the blocks of [`leave_region`], after the block's own end. They write the outcome.
pub(super) fn leave_regions(e: &mut Emitter<'_, '_>, block: usize, end: &End) -> Result<(), Error> {
    debug_assert!(matches!(end, End::Jump(_) | End::Branch { .. }) || e.left.is_empty());
    for (which, between, to, args) in std::mem::take(&mut e.left) {
        e.build.switch_to_block(between);
        let (region, exit) = e.outcomes.regions.jumps[&(block, which)];
        write_outcome(e, region, exit)?;
        e.build.ins().jump(to, &args);
    }
    Ok(())
}

/// Finds the group of an IPv4 address in an index.
fn search_index(e: &mut Emitter<'_, '_>, index: u64, addr: ValueId) -> Result<Value, Error> {
    let addr = e.low(addr)?;
    let addr = e.masked(addr, 32);
    let index = e.imm(index);
    let done = e.build.create_block();
    let group = e.build.append_block_param(done, types::I64);
    let place = e.shift_right(addr, 16);
    let mut entry = load_index_entry(e, index, place, 0);
    for rest in [8, 0] {
        let more = e.build.create_block();
        let leads_on = e.build.ins().icmp_imm_u(
            IntCC::UnsignedGreaterThanOrEqual,
            entry,
            i64::from(FIRST_NODE),
        );
        e.build.ins().brif(leads_on, more, &[], done, &[BlockArg::Value(entry)]);
        e.build.switch_to_block(more);
        let byte = e.shift_right(addr, rest);
        let byte = e.masked(byte, 8);
        let place = e.build.ins().iadd(entry, byte);
        entry = load_index_entry(e, index, place, -(FIRST_NODE as i32) * 4);
    }
    e.build.ins().jump(done, &[BlockArg::Value(entry)]);
    e.build.switch_to_block(done);
    Ok(group)
}

/// Loads an entry of an index by its number.
fn load_index_entry(e: &mut Emitter<'_, '_>, index: Value, place: Value, offset: i32) -> Value {
    let place = e.shift_left(place, 2);
    let at = e.build.ins().iadd(index, place);
    let flags = cranelift_codegen::ir::MemFlagsData::trusted().with_readonly();
    e.build.ins().uload32(flags, at, offset)
}
