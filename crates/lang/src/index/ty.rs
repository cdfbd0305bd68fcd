//! Types that are known without lowering.

use braid_packet::Field;

use super::names::Kind;
use super::scope::Walk;
use crate::ast::{
    BinOp, Chunk, Expr, ExprKind, Ident, Path, Type, TypeKind, is_comparison, joined,
};
use crate::sema::types;

/// The type of a name: as it is written, or by its name.
pub(super) enum Known {
    Written(Type),
    Named(String),
}

/// Gives a local name the type of its value.
pub(super) fn infer(walk: &mut Walk<'_>, at: usize, value: &Expr) {
    match type_of(walk, value) {
        Some(Known::Written(ty)) => walk.typed(at, &ty),
        Some(Known::Named(name)) => {
            if let Some(found) = walk.index.definitions.get_mut(at) {
                found.ty = Some(name);
            }
        }
        None => {}
    }
}

fn type_of(walk: &Walk<'_>, expr: &Expr) -> Option<Known> {
    let named = |name: &str| Some(Known::Named(name.to_owned()));
    match &expr.kind {
        ExprKind::Bool(_)
        | ExprKind::Not(_)
        | ExprKind::In(..)
        | ExprKind::Matches(..)
        | ExprKind::Exists(_)
        | ExprKind::Has(_)
        | ExprKind::From(_) => named("bool"),
        ExprKind::Binary(BinOp::And | BinOp::Or, ..) => named("bool"),
        ExprKind::Binary(op, ..) if is_comparison(*op) => named("bool"),
        ExprKind::Binary(_, a, b) => type_of(walk, a).or_else(|| type_of(walk, b)),
        ExprKind::If(_, a, b) => type_of(walk, a).or_else(|| type_of(walk, b)),
        ExprKind::Complement(a) => type_of(walk, a),
        ExprKind::Ip4(_) => named("ip4"),
        ExprKind::Ip6(_) => named("ip6"),
        ExprKind::Mac(_) => named("mac"),
        ExprKind::At(at) => match &at.what {
            Chunk::Number(ty) => named(&ty.text),
            Chunk::Text(_) => named("bool"),
            Chunk::Bytes(..) => None,
        },
        ExprKind::Path(path) => type_of_path(walk, path),
        ExprKind::Index(base, _) => type_of(walk, base),
        ExprKind::Member(base, part) => match type_of(walk, base)? {
            Known::Written(ty) => part_of(&ty, part),
            Known::Named(_) => None,
        },
        ExprKind::Call(name, args) => type_of_call(walk, name, args.first().map(|arg| &arg.value)),
        _ => None,
    }
}

fn type_of_path(walk: &Walk<'_>, path: &Path) -> Option<Known> {
    if let Some(field) = Field::by_name(&joined(path)) {
        return Some(Known::Named(types::name(types::of_field(field))));
    }
    let [first, parts @ ..] = path.parts.as_slice() else { return None };
    let at = walk.value(&first.text)?;
    let Some(ty) = walk.types.get(&at) else {
        let known = walk.index.definitions.get(at)?.ty.clone()?;
        return parts.is_empty().then_some(Known::Named(known));
    };
    let mut known = Known::Written(ty.clone());
    for part in parts {
        let Known::Written(ty) = &known else { return None };
        known = part_of(ty, part)?;
    }
    Some(known)
}

fn type_of_call(walk: &Walk<'_>, name: &Ident, first: Option<&Expr>) -> Option<Known> {
    if let Some(at) = walk.value(&name.text) {
        let is_fn = walk.index.definitions.get(at)?.kind == Kind::Fn;
        return walk.types.get(&at).filter(|_| is_fn).map(|ty| Known::Written(ty.clone()));
    }
    if types::scalar(&name.text).is_some() {
        return Some(Known::Named(name.text.clone()));
    }
    match name.text.as_str() {
        "min" | "max" | "wrapping" => type_of(walk, first?),
        // The members of a pool.
        "take" => match type_of(walk, first?)? {
            Known::Written(Type { kind: TypeKind::Named { args, .. }, .. }) => {
                args.first().cloned().map(Known::Written)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The type of a part of a record.
fn part_of(ty: &Type, part: &Ident) -> Option<Known> {
    let TypeKind::Record(parts) = &ty.kind else { return None };
    let found = parts.iter().find(|(name, _)| name.text == part.text);
    found.map(|(_, ty)| Known::Written(ty.clone()))
}
