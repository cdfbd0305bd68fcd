//! Names in expressions and types.

use braid_packet::Field;

use super::scope::Walk;
use crate::ast::{Arg, Expr, ExprKind, KeyPart, Path, Type, TypeKind, Within, joined};

pub(super) fn in_expr(walk: &mut Walk<'_>, expr: &Expr) {
    match &expr.kind {
        ExprKind::Path(path) => in_path(walk, path),
        ExprKind::Set(all) | ExprKind::List(all) => all.iter().for_each(|one| in_expr(walk, one)),
        ExprKind::Record(parts) => parts.iter().for_each(|(_, value)| in_expr(walk, value)),
        ExprKind::Index(base, keys) => {
            in_expr(walk, base);
            keys.iter().for_each(|key| in_expr(walk, key));
        }
        ExprKind::Member(one, _)
        | ExprKind::Not(one)
        | ExprKind::Complement(one)
        | ExprKind::Exists(one) => in_expr(walk, one),
        ExprKind::Range(a, b)
        | ExprKind::Binary(_, a, b)
        | ExprKind::In(a, b)
        | ExprKind::Matches(a, b) => {
            in_expr(walk, a);
            in_expr(walk, b);
        }
        ExprKind::If(cond, a, b) => [cond, a, b].into_iter().for_each(|one| in_expr(walk, one)),
        ExprKind::At(at) => {
            if let Within::Header(name) = &at.within {
                walk.used(name, walk.headers.get(&name.text).copied());
            }
            at.parts().for_each(|part| in_expr(walk, part));
        }
        ExprKind::Has(path) => drop(in_header(walk, path)),
        ExprKind::From(side) => walk.used_port(walk.nf, side),
        ExprKind::Call(name, args) => {
            let of = walk.value(&name.text);
            walk.used(name, of);
            if of.is_none() {
                walk.index.calls.push((name.span, name.text.clone()));
            }
            in_args(walk, of, args);
        }
        ExprKind::Int(_)
        | ExprKind::Quantity(..)
        | ExprKind::Bool(_)
        | ExprKind::Str(_)
        | ExprKind::Ip4(_)
        | ExprKind::Ip6(_)
        | ExprKind::Mac(_)
        | ExprKind::Prefix4(..)
        | ExprKind::Prefix6(..)
        | ExprKind::Error => {}
    }
}

/// The arguments of a call of something.
pub(super) fn in_args(walk: &mut Walk<'_>, of: Option<usize>, args: &[Arg]) {
    for arg in args {
        if let Some(name) = &arg.name {
            walk.used_part(of, name);
        }
        in_expr(walk, &arg.value);
    }
}

/// A dotted name: a field, or a name with parts of its record.
pub(super) fn in_path(walk: &mut Walk<'_>, path: &Path) {
    let name = joined(path);
    if path.parts.len() > 1 && Field::by_name(&name).is_some() {
        walk.index.fields.push((path.span, name));
    } else if let Some(first) = path.parts.first() {
        if let Some(found) = walk.value(&first.text) {
            walk.used(first, Some(found));
        } else if let Some(header) = walk.headers.get(&first.text).copied() {
            walk.used(first, Some(header));
            path.parts.get(1).iter().for_each(|field| walk.used_part(Some(header), field));
        } else if let ("event", Some(event), [_, field]) =
            (first.text.as_str(), walk.taken, path.parts.as_slice())
        {
            walk.used(field, walk.event_field(event, &field.text));
        }
    }
}

/// The name of a header: the declaration's number, if the program declares the header. Other names
/// of the program, such as parameters, do not count.
pub(super) fn in_header(walk: &mut Walk<'_>, path: &Path) -> Option<usize> {
    let [name] = path.parts.as_slice() else { return None };
    let found = walk.headers.get(&name.text).copied();
    walk.used(name, found);
    found
}

pub(super) fn in_type(walk: &mut Walk<'_>, ty: &Type) {
    match &ty.kind {
        TypeKind::Named { args, of, .. } => {
            args.iter().for_each(|arg| in_type(walk, arg));
            if let Some(of) = of {
                let found = walk.own(&of.text);
                walk.used(of, found);
            }
        }
        TypeKind::Bytes(_) => {}
        TypeKind::Record(parts) => parts.iter().for_each(|(_, ty)| in_type(walk, ty)),
    }
}

pub(super) fn in_key(walk: &mut Walk<'_>, part: &KeyPart) {
    match part {
        KeyPart::Field(path) => in_path(walk, path),
        KeyPart::Type(ty) => in_type(walk, ty),
    }
}
