//! Removes lists of counters that no step or end adds to: a part of the pass `remove-dead`.

use braid_ir::residual::{CounterListId, End, Residual, What};
use std::collections::HashMap;

/// Removes lists of counters that no step or end adds to. Numbers the others in the order of their
/// first use.
pub(super) fn drop_unused(program: &mut Residual) {
    let mut new = HashMap::new();
    let mut counter_lists = Vec::new();
    let old = std::mem::take(&mut program.counter_lists);
    let mut keep = |id: &mut CounterListId| {
        *id = *new.entry(*id).or_insert_with(|| {
            let at = usize::try_from(id.0).unwrap_or(usize::MAX);
            counter_lists.push(old[at].clone());
            CounterListId(u32::try_from(counter_lists.len() - 1).unwrap_or(u32::MAX))
        });
    };
    for block in &mut program.blocks {
        for step in &mut block.steps {
            if let Some(id) = &mut step.fault {
                keep(id);
            }
            if let What::Count(id) = &mut step.what {
                keep(id);
            }
        }
        match &mut block.end {
            End::Exit(exit) => keep(&mut exit.counters),
            End::Hold { counters, .. } => keep(counters),
            _ => {}
        }
    }
    program.counter_lists = counter_lists;
}
