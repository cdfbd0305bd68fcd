//! The verifier: whether a model is one that engines can run without further checks.
//!
//! `model` checks the declarations, `program` how values and blocks hang together, `types` each
//! operation on its own, `facts` that headers are known to be present where they are used.

mod facts;
mod model;
mod place;
mod program;
mod types;

pub use place::{Part, Place, Problem, VerifyError, Which};

use crate::model::Model;

/// Verifies a model.
///
/// # Errors
/// All that is wrong, in the order of the text form.
pub fn verify(model: &Model) -> Result<(), Vec<VerifyError>> {
    let mut errors = Vec::new();
    model::check(model, &mut errors);
    // Programs refer to declarations: with wrong ones, more errors would only repeat themselves.
    if errors.is_empty() {
        program::check_all(model, &mut errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
