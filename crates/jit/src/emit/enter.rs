//! Functions that a program enters.

use super::{Emitter, Place};
use crate::error::Error;
use braid_ir::residual::{Residual, What};
use std::collections::BTreeSet;

/// By block: the functions whose `Enter` its ways may have come by.
pub(super) fn begun(residual: &Residual) -> Vec<BTreeSet<u16>> {
    let mut begun = vec![BTreeSet::new(); residual.blocks.len()];
    for (number, block) in residual.blocks.iter().enumerate() {
        let mut here = begun[number].clone();
        let enters = block.steps.iter().filter(|step| step.what == What::Enter);
        here.extend(enters.map(|step| step.site.node));
        // Blocks lead to later ones.
        block.end.visit_targets(&mut |target| {
            if let Some(next) = begun.get_mut(target.block.index()) {
                next.extend(&here);
            }
        });
    }
    begun
}

impl Emitter<'_, '_> {
    /// A function starts on the packet. When the run has not come to it before, nothing is to be forgotten.
    pub(super) fn enter(&mut self, place: Place, node: u16) -> Result<(), Error> {
        let known = &mut self.begun[place.block as usize];
        if known.insert(node) { Ok(()) } else { self.step_call(place, &What::Enter) }
    }
}
