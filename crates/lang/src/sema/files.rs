//! Parameter values that come from files: `rules("f")`, `routes("f")` and the like.

use braid_ir::model::ParamTy;
use braid_ir::value::ParamValue;

use super::{Env, types};
use crate::ast::{Arg, Ident, Span};
use crate::diag::{Diagnostic, Diagnostics, codes};

const NAMES: &[&str] = &["classbench", "rules", "routes", "prefixes", "patterns"];

/// Whether a call of this name makes a value from a file.
#[must_use]
pub fn is_file_value(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The value that such a call makes. `None` when it is wrong, which is then reported.
pub fn value(
    ty: &ParamTy,
    name: &Ident,
    _args: &[Arg],
    span: Span,
    _env: &Env<'_>,
    diags: &mut Diagnostics,
) -> Option<ParamValue> {
    let message = format!("expected {}, found `{}`", types::param_name(ty), name.text);
    diags.push(Diagnostic::new(codes::BAD_PARAMETER_VALUE, message, span, ""));
    None
}
