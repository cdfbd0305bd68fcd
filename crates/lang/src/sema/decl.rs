//! Lowers the declarations of a function: parameters, ports, tags, queues, state.

use std::collections::BTreeMap;

use braid_ir::model::{
    Granularity, Kind, Model, ParamDecl, ParamId, ParamTy, PortId, QueueDecl, QueueId, Setting,
    StateDecl, StateId, TagDecl, TagId, Ty, WhenFull,
};
use braid_packet::Field;
use braid_packet::field::FIELDS;

use super::env::{Env, Loader};
use super::eval::{param_value, record_parts};
use super::lower::{Lower, MAX_DECLARATIONS};
use super::module::unique;
use super::names::{self, Named};
use super::scope::{Binding, Value};
use super::types::{self, DURATION, MIN_PERIOD_NS, Type, U64};
use super::{built_in, say, sides};
use crate::ast::{
    self, Expr, ExprKind, FnDef, Ident, KeyDef, KeyPart, Nf, NfItem, ParamDef, Path, Span,
    StateDef, StateOption, TypeKind, joined,
};
use crate::diag::{Diagnostic, codes, did_you_mean_help, foreign_field};

const DEFAULT_CAPACITY: u128 = 64 << 10;
/// The most entries that a table or queue may be declared to hold.
const MAX_CAPACITY: u128 = u32::MAX as u128;
const DEFAULT_TICK_NS: u128 = 100_000_000;

/// Declares everything in a function that has a name.
pub fn declare<'a>(lower: &mut Lower<'a>, nf: &'a Nf, loader: &dyn Loader) {
    let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
    if nf.params.len() + nf.items.len() > MAX_DECLARATIONS {
        let declared = nf.items.iter().filter(|item| !matches!(item, NfItem::Stmt(_))).count();
        if nf.params.len() + declared > MAX_DECLARATIONS {
            let message = format!("more than {MAX_DECLARATIONS} declarations");
            lower.too_large = true;
            lower.say(Diagnostic::new(codes::TOO_LARGE, message, nf.head, "too many"));
            return;
        }
    }
    for item in &nf.items {
        if let NfItem::Const(def) = item
            && unique(&mut seen, &def.name, lower.diags)
        {
            lower.scope.declare(&def.name.text, Binding::Const(&def.value));
        }
    }
    for param in &nf.params {
        if unique(&mut seen, &param.name, lower.diags) {
            declare_param(lower, param, &nf.params, loader);
        }
    }
    let mut ports: BTreeMap<&str, Span> = BTreeMap::new();
    for item in &nf.items {
        match item {
            NfItem::Port(names, is_side) => {
                for name in names {
                    let is_new = declare_port(lower, name, &mut ports);
                    if is_new && *is_side {
                        sides::declare(lower, PortId(number(lower.model.ports.len() - 1)));
                    }
                }
            }
            NfItem::Tag(name, ty) if unique(&mut seen, name, lower.diags) => {
                declare_tag(lower, name, ty);
            }
            NfItem::Queue { name, capacity, .. } if unique(&mut seen, name, lower.diags) => {
                declare_queue(lower, name, capacity);
            }
            NfItem::State(def) if unique(&mut seen, &def.name, lower.diags) => {
                declare_state(lower, def);
            }
            NfItem::Fn(def) if unique(&mut seen, &def.name, lower.diags) => {
                lower.scope.declare(&def.name.text, Binding::Fn(def));
            }
            _ => {}
        }
    }
    check_fns(lower, nf, &seen);
    lower.scope.set_places(seen);
    lives_with(lower, nf);
    lower.roots = roots_of_state(&lower.model);
}

/// For each table, the table at the end of its `lives with` chain. The chains have no circles.
fn roots_of_state(model: &Model) -> Vec<StateId> {
    let states = (0..model.state.len()).map(|at| StateId(number(at)));
    let mut roots: Vec<StateId> = states.collect();
    let with = |state: StateId| model.state.get(state.0 as usize)?.lives_with;
    for root in &mut roots {
        while let Some(next) = with(*root) {
            *root = next;
        }
    }
    roots
}

/// Checks the names of the program's own functions, and their parameters. These are locals, so
/// their names must be new.
fn check_fns<'a>(lower: &mut Lower<'a>, nf: &'a Nf, seen: &BTreeMap<&str, Span>) {
    for item in &nf.items {
        let NfItem::Fn(FnDef { name, params, .. }) = item else { continue };
        built_in::warn_if_hides(name, lower.diags);
        let mut own: BTreeMap<&str, Span> = BTreeMap::new();
        for (name, _) in params {
            if let Some(outer) = seen.get(name.text.as_str()) {
                own.insert(&name.text, *outer);
            }
            unique(&mut own, name, lower.diags);
        }
    }
}

fn declare_param<'a>(
    lower: &mut Lower<'a>,
    def: &'a ParamDef,
    all: &[ParamDef],
    loader: &dyn Loader,
) {
    let is_list = |name: &str| all.iter().any(|p| p.name.text == name && is_list_type(p));
    let ty = match types::resolve(&def.ty, &is_list, lower.diags) {
        Some(Type::Scalar(ty)) => ParamTy::Scalar(ty),
        Some(Type::Param(ty)) => ty,
        Some(Type::Record(_)) => {
            let message = "a parameter is a scalar, a list of records, but no record";
            lower.say(Diagnostic::new(codes::BAD_TYPE, message, def.ty.span, ""));
            return broken(lower, &def.name);
        }
        None => return broken(lower, &def.name),
    };
    let env = Env { constants: &lower.scope.consts, loader, sources: lower.sources };
    let default = def.default.as_ref().and_then(|expr| param_value(&ty, expr, &env, lower.diags));
    let id = ParamId(number(lower.model.params.len()));
    lower.model.params.push(ParamDecl { name: def.name.text.clone(), ty, default });
    lower.scope.declare(&def.name.text, Binding::Param(id));
}

/// Binds a name whose declaration has an error. Its uses are not reported again.
fn broken(lower: &mut Lower<'_>, name: &Ident) {
    lower.scope.bind(&name.text, Value::Wrong);
}

/// Declares a port, unless the function has one of this name.
fn declare_port<'a>(
    lower: &mut Lower<'a>,
    name: &'a Ident,
    ports: &mut BTreeMap<&'a str, Span>,
) -> bool {
    if matches!(name.text.as_str(), "left" | "right" | "back") {
        let message = format!("every function has `{}`", name.text);
        lower.say(
            Diagnostic::new(codes::DUPLICATE_NAME, message, name.span, "declared again")
                .help("leave it out"),
        );
        return false;
    }
    let is_new = unique(ports, name, lower.diags);
    if is_new {
        lower.model.ports.push(name.text.clone());
    }
    is_new
}

fn declare_tag<'a>(lower: &mut Lower<'a>, name: &'a Ident, written: &crate::ast::Type) {
    let Some(ty) = names::scalar_type(lower, written) else { return broken(lower, name) };
    let id = TagId(number(lower.model.tags.len()));
    lower.model.tags.push(TagDecl { name: name.text.clone(), ty });
    lower.scope.declare(&name.text, Binding::Tag(id));
}

fn declare_queue<'a>(lower: &mut Lower<'a>, name: &'a Ident, capacity: &Expr) {
    let capacity = limit(lower, capacity).unwrap_or(Setting::Const(1));
    let id = QueueId(number(lower.model.queues.len()));
    lower.model.queues.push(QueueDecl { name: name.text.clone(), capacity });
    lower.scope.declare(&name.text, Binding::Queue(id));
}

/// A setting that is a number of entries.
fn limit(lower: &mut Lower<'_>, expr: &Expr) -> Option<Setting> {
    let setting = setting(lower, expr, U64)?;
    if matches!(setting, Setting::Const(number) if number > MAX_CAPACITY) {
        let message = format!("a capacity is at most {MAX_CAPACITY}");
        return lower.fail(Diagnostic::new(
            codes::NUMBER_TOO_LARGE,
            message,
            expr.span,
            "too large",
        ));
    }
    not_zero(lower, setting, expr.span, "a capacity")
}

/// A setting that is a length of time.
pub fn time_setting(lower: &mut Lower<'_>, expr: &Expr, what: &str) -> Option<Setting> {
    let setting = setting(lower, expr, DURATION)?;
    not_zero(lower, setting, expr.span, what)
}

/// The period of a timer.
pub fn period(lower: &mut Lower<'_>, expr: &Expr) -> Option<Setting> {
    let period = time_setting(lower, expr, "a period")?;
    if !matches!(period, Setting::Const(ns) if ns < MIN_PERIOD_NS) {
        return Some(period);
    }
    let message = format!("a period must be at least {MIN_PERIOD_NS} ns");
    lower.fail(Diagnostic::new(codes::ZERO_SETTING, message, expr.span, "too short"))
}

fn not_zero(lower: &mut Lower<'_>, setting: Setting, span: Span, what: &str) -> Option<Setting> {
    if setting != Setting::Const(0) {
        return Some(setting);
    }
    let message = format!("{what} must be more than 0");
    lower.fail(Diagnostic::new(codes::ZERO_SETTING, message, span, "is 0"))
}

/// A setting: a constant or a scalar parameter. Plain numbers may be of any width.
fn setting(lower: &mut Lower<'_>, expr: &Expr, ty: Ty) -> Option<Setting> {
    if let Some(Binding::Param(param)) = names::bare(&lower.scope, expr) {
        let decl = lower.model.params.get(param.0 as usize)?;
        if let ParamTy::Scalar(found) = decl.ty {
            let number = ty.kind == Kind::Uint && found.kind == Kind::Uint;
            if number || types::compatible(ty, found) {
                return Some(Setting::Param(param));
            }
            return lower.fail(say::mismatch(ty, found, expr.span));
        }
    }
    if let ExprKind::Path(path) = &expr.kind {
        // Reports an unknown name, or a name that has an error of its own.
        known(lower, path)?;
    }
    lower.eval().number(expr, ty).map(Setting::Const)
}

fn known(lower: &mut Lower<'_>, path: &Path) -> Option<()> {
    match names::resolve(lower, path)? {
        Named::Local(Value::Wrong) => None,
        _ => Some(()),
    }
}

fn declare_state<'a>(lower: &mut Lower<'a>, def: &'a StateDef) {
    let slots = match names::resolve_type(lower, &def.ty) {
        Some(Type::Scalar(ty)) => Some(vec![(String::new(), ty)]),
        Some(Type::Record(parts)) => Some(parts),
        Some(Type::Param(_)) => {
            let message = "state holds scalars or records of scalars";
            lower.say(Diagnostic::new(codes::BAD_TYPE, message, def.ty.span, "neither"));
            None
        }
        None => None,
    };
    let granularity = granularity(lower, &def.key);
    let (Some(slots), Some(granularity)) = (slots, granularity) else {
        return broken(lower, &def.name);
    };
    let mut default = def.default.as_ref().and_then(|expr| default(lower, &slots, expr));
    let global = granularity == Granularity::Global;
    if def.default.is_some() && default.is_none() {
        default = Some(vec![Setting::Const(0); slots.len()]);
    }
    if global && def.default.is_none() {
        let message = format!("`{}` is global and has no default", def.name.text);
        let wrong = Diagnostic::new(codes::NEEDS_DEFAULT, message, def.name.span, "starts as?");
        lower.say(wrong.help("write `= VALUE` behind `global`"));
        default = Some(vec![Setting::Const(0); slots.len()]);
    }
    let capacity = if global { 1 } else { DEFAULT_CAPACITY };
    let mut decl = StateDecl {
        default,
        capacity: Setting::Const(capacity),
        tick: Setting::Const(DEFAULT_TICK_NS),
        ..StateDecl::new(&def.name.text, granularity, slots)
    };
    options(lower, def, &mut decl, global);
    let id = StateId(number(lower.model.state.len()));
    lower.model.state.push(decl);
    lower.scope.declare(&def.name.text, Binding::State(id));
}

fn default(lower: &mut Lower<'_>, slots: &[(String, Ty)], expr: &Expr) -> Option<Vec<Setting>> {
    if let [(name, ty)] = slots
        && name.is_empty()
    {
        return Some(vec![setting_exact(lower, expr, *ty)?]);
    }
    let parts = record_parts(slots, expr, lower.diags)?;
    let settings: Vec<Option<Setting>> =
        slots.iter().zip(parts).map(|((_, ty), part)| setting_exact(lower, part, *ty)).collect();
    settings.into_iter().collect()
}

/// Like `setting`, but a parameter must have exactly this width.
fn setting_exact(lower: &mut Lower<'_>, expr: &Expr, ty: Ty) -> Option<Setting> {
    let setting = setting(lower, expr, ty)?;
    if let Setting::Param(param) = setting
        && let Some(ParamTy::Scalar(found)) =
            lower.model.params.get(param.0 as usize).map(|decl| decl.ty.clone())
        && !types::compatible(ty, found)
    {
        return lower.fail(say::mismatch(ty, found, expr.span));
    }
    Some(setting)
}

fn granularity(lower: &mut Lower<'_>, key: &KeyDef) -> Option<Granularity> {
    let (parts, span) = match key {
        KeyDef::Global(_) => return Some(Granularity::Global),
        KeyDef::Flow(_) => return Some(Granularity::Flow),
        KeyDef::Biflow(_) => return Some(Granularity::Biflow),
        KeyDef::List(parts, span) => (parts, *span),
    };
    let mut fields = Vec::new();
    let mut tys = Vec::new();
    let mut whole = true;
    for part in parts {
        match part {
            KeyPart::Field(path) => match key_field(lower, path) {
                Some(field) => fields.push(field),
                None => whole = false,
            },
            KeyPart::Type(ty) if let TypeKind::Bytes(count) = ty.kind => {
                match types::bytes(count, ty.span, lower.diags) {
                    Some(parts) => tys.extend(parts.into_iter().map(|(_, ty)| ty)),
                    None => whole = false,
                }
            }
            KeyPart::Type(ty) => match key_type(lower, ty) {
                Some(ty) => tys.push(ty),
                None => whole = false,
            },
        }
    }
    if !whole {
        return None;
    }
    match (fields.is_empty(), tys.is_empty()) {
        (false, true) => Some(Granularity::Fields(fields)),
        (true, false) => Some(Granularity::Key(tys)),
        _ => {
            let message = "a key is made of fields, or of types, not of both";
            lower.fail(Diagnostic::new(codes::KEY_PARTS, message, span, "mixed or empty"))
        }
    }
}

/// The type of a part of a key. A word that is not a type may be a misspelt implicit key.
fn key_type(lower: &mut Lower<'_>, ty: &ast::Type) -> Option<Ty> {
    let TypeKind::Named { name, .. } = &ty.kind else { return names::scalar_type(lower, ty) };
    let meant = did_you_mean_help(&name.text, ["flow", "biflow"]);
    if meant.is_none() || types::is_known(&name.text) {
        return names::scalar_type(lower, ty);
    }
    let message = format!("there is no type `{}`", name.text);
    let label = "expected a key";
    lower.fail(Diagnostic::new(codes::UNKNOWN_TYPE, message, name.span, label).help_if(meant))
}

fn key_field(lower: &mut Lower<'_>, path: &Path) -> Option<Field> {
    let name = joined(path);
    match Field::by_name(&name) {
        Some(Field::PktLen | Field::PktPayloadLen | Field::PktTime) => {
            let message = format!("`{name}` differs with each packet and is not a key");
            lower.fail(Diagnostic::new(codes::BAD_TYPE, message, path.span, ""))
        }
        Some(field) => Some(field),
        None if lower.module.header_of(path).is_some() => {
            let message = "fields of declared headers are no part of an implicit key";
            let wrong = Diagnostic::new(codes::BAD_TYPE, message, path.span, "");
            lower.fail(wrong.help("write its type here, and the key where the state is used"))
        }
        None => {
            let known = FIELDS.iter().map(|info| info.name);
            let message = format!("there is no field `{name}`");
            lower.fail(
                Diagnostic::new(codes::UNKNOWN_FIELD, message, path.span, "expected a field")
                    .help_if(foreign_field(&name).or_else(|| lower.suggest(&name, known))),
            )
        }
    }
}

fn options<'a>(lower: &mut Lower<'a>, def: &'a StateDef, decl: &mut StateDecl, global: bool) {
    let mut seen: Vec<&str> = Vec::new();
    for option in &def.options {
        let (name, span) = option_name(option);
        if seen.contains(&name) {
            let message = format!("`{name}` is given twice");
            lower.say(Diagnostic::new(codes::BAD_OPTION, message, span, "again"));
            continue;
        }
        seen.push(name);
        if global && !matches!(name, "sharded" | "portions") {
            let message = format!("a global state takes no `{name}`");
            lower.say(
                Diagnostic::new(codes::BAD_OPTION, message, span, "")
                    .note("it has one entry, which stays"),
            );
            continue;
        }
        match option {
            StateOption::Idle(expr) => decl.idle = time_setting(lower, expr, "a time-out"),
            StateOption::Hard(expr) => decl.hard = time_setting(lower, expr, "a time-out"),
            StateOption::Tick(expr) => {
                if let Some(tick) = time_setting(lower, expr, "a tick") {
                    decl.tick = tick;
                }
            }
            StateOption::Capacity(expr) => {
                if let Some(capacity) = limit(lower, expr) {
                    decl.capacity = capacity;
                }
            }
            StateOption::Full(word) => match word.text.as_str() {
                "refuse" => decl.when_full = WhenFull::Refuse,
                "evict_oldest" => decl.when_full = WhenFull::EvictOldest,
                other => {
                    let known = ["refuse", "evict_oldest"];
                    let message = format!("`full {other}` is not an option");
                    lower.say(
                        Diagnostic::new(codes::BAD_OPTION, message, word.span, "")
                            .help("write `full refuse` or `full evict_oldest`")
                            .help_if(lower.suggest(other, known)),
                    );
                }
            },
            // This option is resolved when all states are known.
            StateOption::LivesWith(_) => {}
            StateOption::Sharded(_) => decl.sharded = true,
            StateOption::Portions(names, span) if names.is_empty() => {
                let message = "`portions` names no parameter";
                lower.say(Diagnostic::new(codes::BAD_OPTION, message, *span, "empty"));
            }
            StateOption::Portions(names, _) => portions(lower, names, decl),
        }
    }
}

/// The parameters that workers divide.
fn portions(lower: &mut Lower<'_>, names: &[Ident], decl: &mut StateDecl) {
    for name in names {
        match limit_param(lower, name) {
            Ok(param) if decl.portions.contains(&param) => {
                let message = format!("`{}` is given twice", name.text);
                lower.say(Diagnostic::new(codes::BAD_OPTION, message, name.span, "again"));
            }
            Ok(param)
                if decl.default.iter().flatten().any(|one| *one == Setting::Param(param))
                    && decl.granularity != Granularity::Global =>
            {
                let message = format!("`{}` is divided and is the default of entries", name.text);
                lower.say(Diagnostic::new(codes::BAD_OPTION, message, name.span, "").note(
                    "only the default of a global state can be divided: entries begin with a \
                     value that a control file may change",
                ));
            }
            Ok(param) => decl.portions.push(param),
            Err(message) => {
                let wrong = Diagnostic::new(codes::BAD_OPTION, message, name.span, "no limit");
                let known = lower.model.params.iter().map(|param| param.name.as_str());
                let help = lower.suggest(&name.text, known);
                lower.say(wrong.help_if(help));
            }
        }
    }
}

/// A parameter that can be divided: a number, a size or a rate.
fn limit_param(lower: &Lower<'_>, name: &Ident) -> Result<ParamId, String> {
    let Some(Binding::Param(param)) = lower.scope.binding(&name.text) else {
        return Err(format!("`{}` is not a parameter", name.text));
    };
    match lower.model.params.get(param.index()).map(|decl| &decl.ty) {
        Some(ParamTy::Scalar(Ty { kind: Kind::Uint | Kind::Size | Kind::Bitrate, .. })) => {
            Ok(param)
        }
        _ => Err(format!("`{}` is not a number, a size or a rate", name.text)),
    }
}

fn lives_with<'a>(lower: &mut Lower<'a>, nf: &'a Nf) {
    let mut ties: Vec<(StateId, &Ident)> = Vec::new();
    for item in &nf.items {
        let NfItem::State(def) = item else { continue };
        let Some(Binding::State(state)) = lower.scope.binding(&def.name.text) else {
            continue;
        };
        for option in &def.options {
            if let StateOption::LivesWith(with) = option {
                ties.push((state, with));
            }
        }
    }
    for (state, with) in &ties {
        let Some(other) = names::state_named(lower, with) else { continue };
        if let Some(message) = tie_problem(&lower.model, *state, other) {
            lower.say(Diagnostic::new(codes::LIVES_WITH, message, with.span, ""));
        } else if let Some(decl) = lower.model.state.get_mut(state.0 as usize) {
            decl.lives_with = Some(other);
        }
    }
}

fn tie_problem(model: &Model, state: StateId, other: StateId) -> Option<String> {
    let decl = model.state.get(state.0 as usize)?;
    let with = model.state.get(other.0 as usize)?;
    if with.granularity == Granularity::Global {
        return Some(format!("`{}` is global, so it has no entries that end", with.name));
    }
    if decl.idle.is_some() || decl.hard.is_some() {
        let names = (&decl.name, &with.name);
        return Some(format!(
            "`{}` ends with `{}` and has no time-outs of its own",
            names.0, names.1
        ));
    }
    if decl.sharded != with.sharded {
        return Some(format!(
            "`{}` and `{}` must both be sharded, or neither",
            decl.name, with.name
        ));
    }
    let mut at = Some(other);
    for _ in 0..=model.state.len() {
        match at {
            Some(id) if id == state => {
                return Some(format!("`{}` would live with itself", decl.name));
            }
            Some(id) => at = model.state.get(id.0 as usize)?.lives_with,
            None => break,
        }
    }
    None
}

fn option_name(option: &StateOption) -> (&'static str, Span) {
    match option {
        StateOption::Idle(expr) => ("idle", expr.span),
        StateOption::Hard(expr) => ("hard", expr.span),
        StateOption::Tick(expr) => ("tick", expr.span),
        StateOption::Capacity(expr) => ("capacity", expr.span),
        StateOption::Full(word) => ("full", word.span),
        StateOption::LivesWith(name) => ("lives with", name.span),
        StateOption::Sharded(span) => ("sharded", *span),
        StateOption::Portions(_, span) => ("portions", *span),
    }
}

fn is_list_type(param: &ParamDef) -> bool {
    matches!(&param.ty.kind, crate::ast::TypeKind::Named { name, .. }
        if matches!(name.text.as_str(), "list" | "backends"))
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
