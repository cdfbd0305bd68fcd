//! Lowers calls of functions whose code lies in a library: operators of the program's own. Has the
//! paths of libraries, too, and the messages about libraries that cannot be used.

use braid_ir::model::{Op, ValueId};
use braid_native::{LoadError, MAX_ARGS, is_path};

use super::lower::Lower;
use super::scope::Value;
use super::types::U128;
use super::{names, needs, operators};
use crate::ast::{FnDef, NativeCode, Span, Type};
use crate::diag::{Diagnostic, codes};
use crate::source::beside;

/// The value of a call. The function's parameters are bound to the arguments.
pub fn call(lower: &mut Lower<'_>, def: &FnDef, ty: &Type, code: &NativeCode) -> Option<Value> {
    let ty = names::scalar_type(lower, ty)?;
    let args = arguments(lower, def)?;
    let symbol = code.function.as_ref().unwrap_or(&def.name);
    let from = lower.sources.get(code.span.file).map_or("", |file| file.name());
    let loaded = lower.module.loader?.operator(&path(&code.library, from), &symbol.text);
    let operator = match loaded {
        Ok(operator) => operator,
        Err(why) => return lower.fail(unavailable(code, &symbol.text, symbol.span, &why)),
    };
    if operator.signature.reads_payload() && !needs::packet(lower, def.name.span) {
        return None;
    }
    let name = operator.signature.name.to_owned();
    let result = lower.b.value(U128);
    lower.b.op(Op::Extern { outs: vec![result], name, param: None, args });
    Some(Value::Scalar(lower.b.clamp(result, U128, ty), ty))
}

/// The arguments, which are scalars.
fn arguments(lower: &mut Lower<'_>, def: &FnDef) -> Option<Vec<ValueId>> {
    if def.params.is_empty() || def.params.len() > MAX_ARGS {
        let found = def.params.len();
        let message = format!("an operator takes 1 to {MAX_ARGS} arguments, found {found}");
        return lower.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, def.name.span, ""));
    }
    let mut args = Vec::with_capacity(def.params.len());
    for (param, written) in &def.params {
        let ty = names::scalar_type(lower, written)?;
        let value = lower.scope.local(&param.text)?.clone();
        args.push(operators::coerce(lower, value, ty, param.span)?);
    }
    Some(args)
}

/// The path of a library, relative to the source file. A name without `/` is then a file in the
/// source file's folder, not a library that the system finds.
pub fn path(library: &str, from: &str) -> String {
    if !is_path(library) {
        return library.to_owned();
    }
    let path = beside(from, library);
    if path.contains('/') { path } else { format!("./{path}") }
}

/// The message for native code that cannot be used.
pub fn unavailable(code: &NativeCode, name: &str, name_span: Span, why: &LoadError) -> Diagnostic {
    let message = format!("`{name}` is not available: {why}");
    match why {
        LoadError::Library { .. } => {
            Diagnostic::new(codes::NATIVE_LIBRARY, message, code.span, "this library")
                .help("paths are relative to the file that names them")
        }
        LoadError::Symbol { .. } => {
            Diagnostic::new(codes::NATIVE_FUNCTION, message, name_span, "this function")
                .help("add `function NAME` after the library to give its name there")
        }
        _ => Diagnostic::new(codes::NATIVE_UNFIT, message, code.span, "this library")
            .help("build it again, against the braid_nf.h of this version"),
    }
}
