//! Warns of values with which a rate times a time is less than a byte, and so always 0 B: a token
//! bucket that such a size fills stays empty.

use braid_ir::model::{BinOp, Model, Op, Program, ValueId, Word};
use braid_ir::value::ParamValue;
use std::collections::HashMap;

use crate::ast::Ident;
use crate::diag::{Diagnostic, Diagnostics, codes};
use crate::sema::{BIT_NANOS, WHOLE_BYTES};

/// Warns of each rate of a function with these parameters.
pub(super) fn check(
    function: &Ident,
    model: &Model,
    params: &[ParamValue],
    diags: &mut Diagnostics,
) {
    if model.programs().any(|program| has_rounded_product(program, params)) {
        let message = format!(
            "with these values, `{}` multiplies a rate and a time, and gets less than a byte: 0 B",
            function.text
        );
        let wrong = Diagnostic::new(codes::ROUNDED_SUM, message, function.span, "rounded down");
        diags.push(wrong.help(format!("give a larger rate or time, or {WHOLE_BYTES}")));
    }
}

/// Whether a product of values that are known is not 0, but less than a byte.
fn has_rounded_product(program: &Program, params: &[ParamValue]) -> bool {
    let mut known: HashMap<ValueId, Word> = HashMap::new();
    let ops = program.blocks.iter().flat_map(|block| &block.ops);
    ops.into_iter().any(|op| {
        let value = match op {
            Op::Const { out, value } => Some((*out, *value)),
            Op::Param { out, param } => match params.get(param.index()) {
                Some(ParamValue::Scalar(value)) => Some((*out, *value)),
                _ => None,
            },
            Op::Resize { out, a } | Op::Clamp { out, a } => {
                known.get(a).map(|value| (*out, *value))
            }
            Op::Bin { out, op: BinOp::MulSat, a, b } => {
                let product = known.get(a).zip(known.get(b)).map(|(a, b)| a.saturating_mul(*b));
                product.map(|product| (*out, product))
            }
            Op::Bin { op: BinOp::Div, a, b, .. } if known.get(b) == Some(&BIT_NANOS) => {
                return known.get(a).is_some_and(|product| (1..BIT_NANOS).contains(product));
            }
            _ => None,
        };
        known.extend(value);
        false
    })
}
