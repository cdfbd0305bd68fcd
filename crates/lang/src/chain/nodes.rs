//! Declares interfaces and instances: their names and models.

use std::sync::Arc;

use braid_ir::chain as ir;
use braid_ir::model::Model;
use braid_ir::value::ParamValue;

use super::draft::{Draft, End, Found, Interface, MAX_FUNCTIONS, Node, Scope, name_it};
use super::{args, interfaces, starved};
use crate::ast::{Arg, ChainItem, Ident};
use crate::diag::{Diagnostic, Diagnostics, codes, did_you_mean_help};

/// Declares the interfaces and instances of the chain, in order.
pub(super) fn declare(draft: &mut Draft<'_>, scope: &mut Scope<'_>, diags: &mut Diagnostics) {
    let ast = draft.ast;
    for item in &ast.items {
        match item {
            ChainItem::Interface { name, parts, .. } => {
                interfaces::declare(draft, name, parts, diags);
            }
            ChainItem::Instance { name, function, args, .. } => {
                if let Some(at) = instance(draft, name, function, args, scope, diags) {
                    name_it(draft, name, End::Node(at), diags);
                }
            }
            _ => {}
        }
    }
    let declared = ast.items.iter().any(|item| matches!(item, ChainItem::Interface { .. }));
    if !declared {
        implicit(draft);
    }
    interfaces::compare(draft, diags);
}

/// Adds the interfaces `in` and `out` to a chain that declares none.
fn implicit(draft: &mut Draft<'_>) {
    for (at, name) in [(0, "in"), (1, "out")] {
        draft.interfaces.push(Interface {
            ir: ir::Interface { name: name.into(), ..ir::Interface::default() },
            span: None,
        });
        draft.names.entry(name).or_insert(End::Interface(at));
    }
}

/// Adds an instance of a function and returns its number.
pub(super) fn instance(
    draft: &mut Draft<'_>,
    name: &Ident,
    function: &Ident,
    args: &[Arg],
    scope: &mut Scope<'_>,
    diags: &mut Diagnostics,
) -> Option<u16> {
    if draft.nodes.len() >= MAX_FUNCTIONS {
        let message = format!("a chain has at most {MAX_FUNCTIONS} functions");
        diags.push(Diagnostic::new(codes::CHAIN_TOO_LARGE, message, name.span, "one too many"));
        return None;
    }
    let model = match scope.functions.find(&function.text, diags) {
        Found::Model(model) => Some(model),
        Found::Broken => None,
        Found::Unknown => {
            diags.push(unknown_function(function, scope));
            None
        }
    };
    let params = match &model {
        Some(model) => args::values(model, function, args, scope, diags),
        None => Vec::new(),
    };
    if let Some(model) = model.as_ref().filter(|model| params.len() == model.params.len()) {
        refused(name, function, model, &params, diags);
        starved::check(function, model, &params, diags);
    }
    let at = u16::try_from(draft.nodes.len()).ok()?;
    draft.nodes.push(Node { name: name.text.clone(), span: name.span, model, params });
    Some(at)
}

/// Reports a configuration that a native function refuses. The function is asked once, here.
fn refused(
    name: &Ident,
    function: &Ident,
    model: &Arc<Model>,
    params: &[ParamValue],
    diags: &mut Diagnostics,
) {
    let node = ir::Node { name: name.text.clone(), model: model.clone(), params: params.to_vec() };
    if let Err(why) = braid_native::bridge::instances(&node, 1, None) {
        let why = why.strip_prefix(&format!("{}: ", name.text)).unwrap_or(&why);
        let message = format!("`{}` refuses its configuration: {why}", function.text);
        diags.push(Diagnostic::new(codes::NATIVE_REFUSES, message, function.span, "says no"));
    }
}

fn unknown_function(function: &Ident, scope: &Scope<'_>) -> Diagnostic {
    let name = &function.text;
    let names = scope.functions.names();
    let help = did_you_mean_help(name, names.iter().map(String::as_str));
    Diagnostic::new(
        codes::CHAIN_UNKNOWN_FUNCTION,
        format!("there is no function `{name}`"),
        function.span,
        "neither in this program nor in the library",
    )
    .help("`braid nfs` lists the library")
    .help_if(help)
}
