//! Evaluates the arguments of an instance: one value for each parameter of its model.

use std::collections::BTreeSet;

use braid_externs::Backend as _;
use braid_ir::model::{Model, ParamDecl, ParamId, ParamTy, Setting};
use braid_ir::value::ParamValue;

use super::draft::Scope;
use crate::ast::{Arg, Ident, Span};
use crate::diag::{Diagnostic, Diagnostics, codes, did_you_mean_help};
use crate::sema::types::MIN_PERIOD_NS;

/// The values in the order of the parameters. A missing or wrong value is reported, and the list is
/// then shorter than the model's.
pub(super) fn values(
    model: &Model,
    function: &Ident,
    args: &[Arg],
    scope: &mut Scope<'_>,
    diags: &mut Diagnostics,
) -> Vec<ParamValue> {
    let reported = diags.len();
    let given = assign(model, function, args, diags);
    // A misspelt argument explains why its parameter has no value.
    let misspelt = diags.len() > reported;
    let mut values = Vec::with_capacity(model.params.len());
    let mut missing = Vec::new();
    for (param, arg) in model.params.iter().zip(given) {
        match (arg, &param.default) {
            (Some(arg), _) => {
                let value = scope.value(&arg.value, &param.ty, diags);
                let span = arg.value.span;
                match value.as_ref().and_then(|value| unfit(model, &param.name, value, span)) {
                    Some(wrong) => diags.push(wrong),
                    None => {
                        let warning =
                            value.as_ref().and_then(|value| same_name(param, value, span));
                        warning.into_iter().for_each(|warning| diags.push(warning));
                        values.extend(value);
                    }
                }
            }
            (None, Some(default)) => match unfit(model, &param.name, default, function.span) {
                Some(wrong) => diags.push(wrong),
                None => values.push(default.clone()),
            },
            (None, None) => missing.push(format!("`{}`", param.name)),
        }
    }
    if !missing.is_empty() && !misspelt {
        let message = format!("`{}` lacks {}", function.text, missing.join(", "));
        let help = format!("write `{}({}: …)`", function.text, missing[0].trim_matches('`'));
        diags.push(
            Diagnostic::new(
                codes::CHAIN_MISSING_ARGUMENT,
                message,
                function.span,
                "needs a value for each parameter without a default",
            )
            .help(help),
        );
    }
    values
}

/// The argument for each parameter.
fn assign<'a>(
    model: &Model,
    function: &Ident,
    args: &'a [Arg],
    diags: &mut Diagnostics,
) -> Vec<Option<&'a Arg>> {
    let mut given: Vec<Option<&Arg>> = vec![None; model.params.len()];
    let mut named = false;
    for (place, arg) in args.iter().enumerate() {
        let at = match &arg.name {
            Some(name) => {
                named = true;
                let at = model.params.iter().position(|param| param.name == name.text);
                if at.is_none() {
                    diags.push(unknown(model, function, name));
                }
                at
            }
            None => {
                let at = Some(place).filter(|at| !named && *at < model.own_params().count());
                if at.is_none() {
                    diags.push(out_of_place(model, function, arg, named));
                }
                at
            }
        };
        let Some(at) = at else { continue };
        match given[at] {
            None => given[at] = Some(arg),
            Some(before) => {
                let message = format!("`{}` is given twice", model.params[at].name);
                diags.push(
                    Diagnostic::new(
                        codes::CHAIN_DUPLICATE_ARGUMENT,
                        message,
                        arg.value.span,
                        "again",
                    )
                    .label(before.value.span, "first here")
                    .help("keep one of them"),
                );
            }
        }
    }
    given
}

fn unknown(model: &Model, function: &Ident, name: &Ident) -> Diagnostic {
    let names: Vec<&str> = model.own_params().map(|param| param.name.as_str()).collect();
    let message = format!("`{}` has no parameter `{}`", function.text, name.text);
    let note = match names.as_slice() {
        [] => "it has no parameters".to_owned(),
        names => format!("its parameters are {}", names.join(", ")),
    };
    let help = did_you_mean_help(&name.text, names.iter().copied());
    Diagnostic::new(codes::CHAIN_UNKNOWN_ARGUMENT, message, name.span, "unknown")
        .note(note)
        .help_if(help)
}

fn out_of_place(model: &Model, function: &Ident, arg: &Arg, named: bool) -> Diagnostic {
    let span = arg.value.span;
    if named {
        let message = "an argument without a name comes after one with a name";
        return Diagnostic::new(codes::CHAIN_TOO_MANY_ARGUMENTS, message, span, "which parameter?")
            .help("give it its parameter's name: `name: value`");
    }
    let most = match model.own_params().count() {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        count => format!("{count} arguments"),
    };
    let message = format!("`{}` takes {most}", function.text);
    Diagnostic::new(codes::CHAIN_TOO_MANY_ARGUMENTS, message, span, "one too many")
}

/// Reports a value that cannot be that of a parameter, because of what the function does with it.
pub(crate) fn unfit(
    model: &Model,
    name: &str,
    value: &ParamValue,
    span: Span,
) -> Option<Diagnostic> {
    if let Some(why) = too_small(model, name, value) {
        let wrong = Diagnostic::new(codes::ZERO_SETTING, why, span, "too small");
        return Some(wrong.help("give it a larger value"));
    }
    let ParamValue::Patterns(set) = value else { return None };
    let is_it = |param: &ParamId| model.params.get(param.index()).is_some_and(|p| p.name == name);
    if !model.scanned().iter().any(is_it) {
        return None;
    }
    let errors = set.check_streams().err()?;
    let first = errors.first()?;
    let pattern = first.index().and_then(|index| set.patterns().get(index));
    let pattern = pattern.map_or(String::new(), |pattern| format!(": {pattern}"));
    let message = format!("`{name}` cannot be searched in streams{pattern}");
    let wrong = Diagnostic::new(codes::STREAM_PATTERN, message, span, "needs later bytes");
    Some(wrong.note(first.to_string()))
}

/// The warning of backends with one name: control lines could change only one of them.
fn same_name(param: &ParamDecl, value: &ParamValue, span: Span) -> Option<Diagnostic> {
    let (ParamTy::Backends(columns), ParamValue::Backends(all)) = (&param.ty, value) else {
        return None;
    };
    let mut names = BTreeSet::new();
    let twice = all.iter().find(|one| !one.is_removed() && !names.insert(one.name()))?;
    let shown = columns.first()?.1.kind.show(twice.name());
    let message = format!("`{}` has two backends `{shown}`", param.name);
    let wrong = Diagnostic::new(codes::DUPLICATE_BACKEND, message, span, "named twice");
    let note = "a backend is named by the value in its first column";
    let help =
        "give each backend a value of its own there, so that control lines reach each of them";
    Some(wrong.note(note).help(help))
}

/// Why a value cannot be that of a parameter, if it is too small for the setting that the parameter
/// controls.
fn too_small(model: &Model, name: &str, value: &ParamValue) -> Option<String> {
    let ParamValue::Scalar(value) = *value else { return None };
    if value >= MIN_PERIOD_NS {
        return None;
    }
    let is = |setting: Setting| match setting {
        Setting::Param(param) => model.params.get(param.index()).is_some_and(|p| p.name == name),
        Setting::Const(_) => false,
    };
    if model.timers.iter().any(|timer| is(timer.period)) {
        let least = format!("must be at least {MIN_PERIOD_NS} ns");
        return Some(format!("`{name}` is the period of a timer, which {least}"));
    }
    if value > 0 {
        return None;
    }
    let zero = |what: &str| Some(format!("`{name}` is the {what}, which cannot be 0"));
    if let Some(queue) = model.queues.iter().find(|queue| is(queue.capacity)) {
        return zero(&format!("capacity of `{}`", queue.name));
    }
    model.state.iter().find_map(|state| {
        let settings = [
            (Some(state.capacity), "capacity"),
            (Some(state.tick), "tick"),
            (state.idle, "idle time-out"),
            (state.hard, "hard time-out"),
        ];
        let (_, what) = settings.into_iter().find(|(setting, _)| setting.is_some_and(is))?;
        zero(&format!("{what} of `{}`", state.name))
    })
}
