//! Writes whole functions: the program, and its main path.
#![expect(clippy::indexing_slicing, reason = "the vectors have an element for each block")]

use super::emitter::{Edge, Emitter, Place, at};
use super::main_path::MainPath;
use super::{announce, branch, region, resource, step};
use crate::error::Error;
use crate::sys;
use braid_ir::model::Target;
use braid_ir::residual::End;
use cranelift_codegen::ir::{InstBuilder, types};
use cranelift_codegen::isa::TargetFrontendConfig;

/// Writes the whole program.
pub(crate) fn whole_program(
    mut emitter: Emitter<'_, '_>,
    config: TargetFrontendConfig,
) -> Result<(), Error> {
    write_blocks(&mut emitter)?;
    emitter.finish(config);
    Ok(())
}

/// Writes the main path of a program. Returns false if the code calls a function. The code must
/// then not be used.
pub(crate) fn main_path<'a>(
    mut emitter: Emitter<'a, '_>,
    path: &'a MainPath,
    config: TargetFrontendConfig,
) -> Result<bool, Error> {
    emitter.main_path = Some(path);
    write_blocks(&mut emitter)?;
    if let Some(over) = emitter.fallback {
        emitter.build.switch_to_block(over);
        emitter.return_result(sys::WHOLE);
    }
    let useful = !emitter.calls;
    emitter.finish(config);
    Ok(useful)
}

fn write_blocks(e: &mut Emitter<'_, '_>) -> Result<(), Error> {
    region::declare_variables(e);
    branch::record_definitions(e);
    let residual = e.residual;
    for (number, block) in (0..).zip(&residual.blocks) {
        let index = number as usize;
        if e.facts.in_edges[index] == 0 {
            emit_unreached(e, index);
            continue;
        }
        e.skips = e.main_path.is_some_and(|path| !path.entered[index]);
        if !e.skips {
            begin_block(e, index);
        }
        // Block parameters do not affect headers. A fact that holds on all edges to a block holds
        // in the block.
        e.entered = e.facts.entered_at[index];
        e.fresh = e.fresh_at[index].filter(|_| e.facts.in_edges[index] == 1);
        e.loaded.clear();
        for (step, what) in (0..).zip(&block.steps) {
            region::at_step(e, index, step as usize)?;
            if !e.skips {
                let place = Place { block: number, step, fault: what.fault };
                announce::before(e, place, what)?;
                step::emit_step(e, place, what)?;
            }
        }
        region::at_step(e, index, block.steps.len())?;
        if !e.skips {
            emit_end(e, number, &block.end)?;
            region::leave_regions(e, index, &block.end)?;
        }
    }
    Ok(())
}

/// Begins a block and defines its parameters.
fn begin_block(e: &mut Emitter<'_, '_>, index: usize) {
    if index == 0 {
        return;
    }
    let start = e.blocks[index];
    e.build.switch_to_block(start);
    if e.main_path.is_none() && e.outcomes.regions.first_only[index] {
        e.build.set_cold_block(start);
    }
    let params = e.residual.blocks[index].params.iter().map(|param| {
        let ty = if e.is_wide(*param) { types::I128 } else { types::I64 };
        (*param, e.build.append_block_param(start, ty))
    });
    for (param, value) in params.collect::<Vec<_>>() {
        e.set(param, value);
    }
}

/// Writes a block that the program never reaches. Cranelift removes it.
fn emit_unreached(e: &mut Emitter<'_, '_>, index: usize) {
    if e.main_path.is_some() {
        return;
    }
    e.build.switch_to_block(e.blocks[index]);
    let result = e.imm(0);
    e.build.ins().return_(&[result]);
}

fn emit_end(e: &mut Emitter<'_, '_>, block: u32, end: &End) -> Result<(), Error> {
    match end {
        End::Jump(target) => {
            let (to, args) = edge(e, block as usize, 0, target)?;
            e.build.ins().jump(to, &args);
        }
        End::Branch { cond, yes, no } => {
            let yes = edge(e, block as usize, 0, yes)?;
            let no = edge(e, block as usize, 1, no)?;
            branch::branch(e, *cond, &yes, &no)?;
        }
        End::Exit(exit) => {
            e.count(exit.counters);
            e.return_result(u64::from(block));
        }
        End::Hold { node, queue, delay, counters, full } => {
            let room = resource::has_room(e, block, (*node, *queue), *delay)?;
            let waits = e.build.create_block();
            let (full, full_args) = e.target(full)?;
            e.build.ins().brif(room, waits, &[], full, &full_args);
            e.build.switch_to_block(waits);
            let delay = e.low(*delay)?;
            e.store(e.memories.frame, delay, e.frame, at::DELAY);
            e.count(*counters);
            e.return_result(sys::HOLD << 56 | u64::from(block));
        }
    }
    Ok(())
}

/// The target of a jump: the fallback block, the exit of a region, or a block of the program.
fn edge(
    e: &mut Emitter<'_, '_>,
    block: usize,
    which: usize,
    target: &Target,
) -> Result<Edge, Error> {
    if e.main_path.is_some_and(|path| path.falls_back(block, which)) {
        return Ok((e.fallback_block(), Vec::new()));
    }
    let target = e.target(target)?;
    Ok(region::leave_region(e, block, which, target))
}
