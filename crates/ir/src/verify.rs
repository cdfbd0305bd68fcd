//! The verifier: whether engines can run a model without further checks.
//!
//! `model` checks the declarations, and `program` checks the structure of values and blocks.
//! `types`, `bytes` and `events` check each operation alone. `facts` checks that headers are known
//! to be present where they are used.

mod bytes;
mod events;
mod facts;
mod model;
mod place;
mod program;
mod strings;
mod types;

pub use place::{Part, Place, Problem, VerifyError, Which};

use crate::model::Model;

/// Verifies a model.
///
/// # Errors
/// All problems, in the order of the text form.
pub fn verify(model: &Model) -> Result<(), Vec<VerifyError>> {
    let mut errors = Vec::new();
    model::check(model, &mut errors);
    // Programs refer to declarations. With wrong declarations, further errors would only repeat the
    // first.
    if errors.is_empty() {
        program::check_all(model, &mut errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
