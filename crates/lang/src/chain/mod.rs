//! Chains: from the syntax tree to `ir::chain::Chain`, with all checks that need no packets.
//!
//! `nodes` declares instances, and `interfaces` interfaces; `args` gives them their parameters, and
//! `links` reads paths and links. `graph` checks the graph of the links, with the help of `reach`,
//! which finds where a model may send packets. `policy` checks NFP's rules, and `subscriptions` who
//! takes whose events. All findings of a chain are reported at once. Later checks skip broken
//! parts.

pub(crate) mod args;
mod circle;
mod draft;
mod graph;
mod interfaces;
mod links;
mod nodes;
mod policy;
mod reach;
mod sides;
mod starved;
mod subscriptions;

use braid_ir::chain as ir;
use braid_ir::model::{ParamTy, Ty};
use braid_ir::value::ParamValue;
use rustc_hash::FxHashMap;

use crate::ast::{self, ChainItem, Expr, Ident, Span};
use crate::diag::{Diagnostic, Diagnostics, codes};
pub(crate) use draft::by_rules;
use draft::{Draft, MAX_WORKERS};
pub use draft::{Found, Functions, Scope};

/// Resolves a chain. `None` when it has errors, which `diags` then holds.
pub fn resolve(
    chain: &ast::Chain,
    scope: &mut Scope<'_>,
    diags: &mut Diagnostics,
) -> Option<ir::Chain> {
    let mut found = Diagnostics::new();
    let mut draft = Draft::new(chain, scope.doubt);
    nodes::declare(&mut draft, scope, &mut found);
    links::link(&mut draft, scope, &mut found);
    let mut has_order = true;
    if let Some(span) = draft.by_rules {
        match policy::order::order(&draft, &mut found) {
            Some(order) => links::link_in_order(&mut draft, &order, span, &mut found),
            None => has_order = false,
        }
    }
    let is_whole = graph::check(&draft, &mut found);
    subscriptions::check(&draft, &mut found);
    let (mut policy, priorities) = match has_order {
        true => policy::check(&draft, is_whole, &mut found),
        false => Default::default(),
    };
    settings(&mut draft, scope, &mut found);
    let failed = found.has_errors() || draft.doubt || draft.broken();
    diags.extend(found);
    if failed {
        return None;
    }
    let gates = sides::add_gates(&mut draft);
    if draft.by_rules.is_some() {
        policy.extend(gates);
    }
    Some(draft.finish(policy, priorities))
}

/// Reads `malformed`, `seed` and `workers`.
fn settings(draft: &mut Draft<'_>, scope: &mut Scope<'_>, diags: &mut Diagnostics) {
    let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
    for item in &draft.ast.items {
        let (name, span) = match item {
            ChainItem::Malformed(what) => ("malformed", what.span),
            ChainItem::Setting { name, .. } => (name.text.as_str(), name.span),
            _ => continue,
        };
        if let Some(before) = seen.insert(name, span) {
            let message = format!("`{name}` is set twice");
            diags.push(
                Diagnostic::new(codes::BAD_SETTING, message, span, "again")
                    .label(before, "first here")
                    .help("keep one of them"),
            );
        }
        match item {
            ChainItem::Malformed(what) => malformed(&mut draft.malformed, what, diags),
            ChainItem::Setting { name, value } => {
                if let Some(number) = number(name, value, scope, diags) {
                    match name.text.as_str() {
                        "seed" => draft.seed = number,
                        _ => draft.workers = u16::try_from(number).unwrap_or(1),
                    }
                }
            }
            _ => {}
        }
    }
}

fn malformed(setting: &mut ir::Malformed, what: &Ident, diags: &mut Diagnostics) {
    match what.text.as_str() {
        "drop" => *setting = ir::Malformed::Drop,
        "pass" => *setting = ir::Malformed::Pass,
        other => {
            let message = format!("expected `drop` or `pass`, found `{other}`");
            diags.push(
                Diagnostic::new(codes::BAD_SETTING, message, what.span, "")
                    .note("malformed packets are dropped where they enter, or pass on"),
            );
        }
    }
}

fn number(
    name: &Ident,
    value: &Expr,
    scope: &mut Scope<'_>,
    diags: &mut Diagnostics,
) -> Option<u64> {
    let least: u64 = match name.text.as_str() {
        "seed" => 0,
        "workers" => 1,
        other => {
            let message = format!("chains have no setting `{other}`");
            let help = crate::diag::did_you_mean_help(other, ["malformed", "seed", "workers"]);
            diags.push(
                Diagnostic::new(codes::BAD_SETTING, message, name.span, "unknown").help_if(help),
            );
            return None;
        }
    };
    let most = if least == 0 { u64::MAX } else { u64::from(MAX_WORKERS) };
    let ty = ParamTy::Scalar(Ty::uint(64));
    let ParamValue::Scalar(word) = scope.value(value, &ty, diags)? else { return None };
    let number = u64::try_from(word).ok().filter(|number| (least..=most).contains(number));
    if number.is_none() {
        let message = format!("`{}` is {word}, which is not in {least} to {most}", name.text);
        diags.push(Diagnostic::new(codes::BAD_SETTING, message, value.span, "out of range"));
    }
    number
}
