//! The verifier: whether a model is one that engines can run without further checks.

use crate::model::Model;

/// What is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {what}")]
pub struct VerifyError {
    /// Where.
    pub place: String,
    /// What.
    pub what: String,
}

/// Verifies a model.
///
/// # Errors
/// All that is wrong.
pub fn verify(_model: &Model) -> Result<(), Vec<VerifyError>> {
    Ok(())
}
