//! Checks the items of a file that no network function uses: constants, functions, actions.
//!
//! Nobody expands such a function, so it is expanded here once, with arguments of its types. What
//! depends on the network function that calls it is not judged.

use std::collections::BTreeMap;

use braid_ir::model::{Model, ParamDecl, ParamTy, Term};
use rustc_hash::FxHashMap;

use super::constant::Eval;
use super::expand::expand_bound;
use super::lower::Lower;
use super::module::{Module, unique};
use super::scope::Value;
use super::types::Type;
use super::{headers, library, names};
use crate::ast::{self, FnBody, FnDef, TypeKind};
use crate::diag::{Code, Diagnostic, Diagnostics, codes};
use crate::source::SourceMap;

/// Findings that depend on the caller: its ports, and what it knows about the packet.
const OF_CALLER: [Code; 4] =
    [codes::HEADER_MAY_BE_ABSENT, codes::HEADER_CHANGED, codes::MIXED_STREAM, codes::UNKNOWN_PORT];

/// Checks all constants of the program's files, and the functions that were not expanded.
pub fn check(module: &Module<'_>, sources: &SourceMap, diags: &mut Diagnostics) {
    let mut found = Diagnostics::new();
    let mut eval = Eval::new(&module.consts, &mut found);
    for value in module.consts.values() {
        let _ = eval.check(value);
    }
    for def in module.fns.values() {
        // One function that grows too large is enough: others may call it.
        if !module.is_expanded(def) && !function(module, def, sources, &mut found) {
            break;
        }
    }
    for header in (0..module.headers.len()).filter(|header| !module.is_tested(*header)) {
        own_header(module, header, sources, &mut found);
    }
    let known = found.into_iter().filter(|d| d.is_error() && !OF_CALLER.contains(&d.code));
    known.filter(|d| !module.is_damaged(d.span())).for_each(|d| diags.push(d));
}

/// Checks a function. Returns whether it stays within the limits.
fn function<'a>(
    module: &'a Module<'a>,
    def: &'a FnDef,
    sources: &'a SourceMap,
    diags: &mut Diagnostics,
) -> bool {
    let mut lower = Lower::new(module, sources, diags, Model::new(&def.name.text));
    let lists = module.fns.values().flat_map(|def| types(def)).flat_map(lists).collect();
    lower.model.params = lists;
    let mut seen = BTreeMap::new();
    let mut bound = FxHashMap::default();
    for (name, written) in &def.params {
        unique(&mut seen, name, lower.diags);
        bound.insert(name.text.clone(), argument(&mut lower, written));
    }
    let _ = expand_bound(&mut lower, def, bound, def.name.span, |lower| {
        match &def.body {
            FnBody::Pure(ty, body) => {
                let ty = names::scalar_type(lower, ty)?;
                lower.typed(body, ty)?;
            }
            FnBody::Library(ty, code) => {
                library::call(lower, def, ty, code)?;
            }
            FnBody::Action(body) => lower.block(body),
        }
        lower.b.end(Term::Return);
        Some(())
    });
    !lower.too_large
}

/// Checks the condition and the length of a declared header.
fn own_header<'a>(
    module: &'a Module<'a>,
    header: usize,
    sources: &'a SourceMap,
    diags: &mut Diagnostics,
) {
    let def = module.headers[header].def;
    let mut lower = Lower::new(module, sources, diags, Model::new(&def.name.text));
    let (yes, no) = (lower.b.block(), lower.b.block());
    let _ = headers::has(&mut lower, header, def.name.span, yes, no);
}

/// An unknown value of a written type.
fn argument(lower: &mut Lower<'_>, written: &ast::Type) -> Value {
    match names::resolve_type(lower, written) {
        Some(Type::Scalar(ty)) => Value::Scalar(lower.b.value(ty), ty),
        Some(Type::Record(parts)) => {
            let parts = parts.into_iter().map(|(name, ty)| (name, lower.b.value(ty), ty));
            Value::Record(parts.collect())
        }
        Some(Type::Param(_)) => {
            let message = "arguments are scalars or records";
            lower.say(Diagnostic::new(codes::BAD_TYPE, message, written.span, "neither"));
            Value::Wrong
        }
        None => Value::Wrong,
    }
}

/// The types that a function writes.
fn types(def: &FnDef) -> impl Iterator<Item = &ast::Type> {
    let result = match &def.body {
        FnBody::Pure(ty, _) | FnBody::Library(ty, _) => Some(ty),
        FnBody::Action(_) => None,
    };
    def.params.iter().map(|(_, ty)| ty).chain(result)
}

/// The lists of the caller that `index(LIST)` names in a type.
fn lists(written: &ast::Type) -> Vec<ParamDecl> {
    match &written.kind {
        TypeKind::Named { of, .. } => {
            let list =
                |name: String| ParamDecl { name, ty: ParamTy::List(Vec::new()), default: None };
            of.iter().map(|of| list(of.text.clone())).collect()
        }
        TypeKind::Bytes(_) => Vec::new(),
        TypeKind::Record(parts) => parts.iter().flat_map(|(_, ty)| lists(ty)).collect(),
    }
}
