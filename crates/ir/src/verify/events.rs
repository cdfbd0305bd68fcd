//! Checks the operations on events.

use super::place::{Problem, Which};
use crate::model::{EventArg, EventDecl, EventId, EventTy, Model, ParamTy, Program, ValueId};

/// The arguments of an event: one for each field, of its type.
pub(super) fn emit(
    model: &Model,
    program: &Program,
    event: EventId,
    args: &[EventArg],
) -> Result<(), Problem> {
    let decl = decl(model, event)?;
    if args.len() != decl.fields.len() {
        let (found, wanted) = (args.len(), decl.fields.len());
        return Err(Problem::Count { what: "arguments", found, wanted });
    }
    for (number, (arg, (_, ty))) in args.iter().zip(&decl.fields).enumerate() {
        match (arg, ty) {
            (EventArg::Value(value), EventTy::Scalar(ty)) => width(program, *value, ty.width)?,
            (EventArg::Str(_), EventTy::Str) => {}
            (EventArg::Bytes(values), EventTy::Str) => {
                let [len, words @ ..] = values.as_slice() else {
                    return Err(Problem::EventArg(number));
                };
                width(program, *len, 8)?;
                words.iter().try_for_each(|word| width(program, *word, 128))?;
            }
            (EventArg::Param(param), EventTy::Str) => {
                let ty = model.params.get(param.index()).map(|decl| &decl.ty);
                match ty {
                    Some(ParamTy::Str) => {}
                    Some(_) => {
                        return Err(Problem::ParamKind { param: *param, wanted: "a string" });
                    }
                    None => return Err(Problem::Missing(param.to_string())),
                }
            }
            _ => return Err(Problem::EventArg(number)),
        }
    }
    Ok(())
}

/// A field of the event that a handler runs for: its value, and its number.
pub(super) fn field(
    model: &Model,
    program: &Program,
    which: Which,
    (out, field): (ValueId, u32),
) -> Result<(), Problem> {
    let Which::Handler(event) = which else {
        return Err(Problem::NotHere("a program that has no event"));
    };
    let fields = &decl(model, event)?.fields;
    match usize::try_from(field).ok().and_then(|field| fields.get(field)) {
        Some((_, EventTy::Scalar(ty))) => width(program, out, ty.width),
        _ => Err(Problem::EventField { event, field }),
    }
}

fn decl(model: &Model, event: EventId) -> Result<&EventDecl, Problem> {
    model.events.get(event.index()).ok_or_else(|| Problem::Missing(event.to_string()))
}

fn width(program: &Program, value: ValueId, wanted: u16) -> Result<(), Problem> {
    let found = program.values.get(value.index()).map_or(0, |ty| ty.width);
    if found == wanted { Ok(()) } else { Err(Problem::Width { value, found, wanted }) }
}
