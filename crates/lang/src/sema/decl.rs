//! Lowers the declarations of a function: parameters, ports, tags, queues, state.

use std::collections::BTreeMap;

use braid_ir::model::{
    Granularity, Kind, ParamDecl, ParamId, ParamTy, QueueDecl, QueueId, Setting, StateDecl,
    StateId, TagDecl, TagId, Ty, WhenFull,
};
use braid_packet::Field;
use braid_packet::field::FIELDS;

use super::env::{Env, Loader};
use super::eval::{param_value, record_parts};
use super::lower::{Binding, Lower, MAX_DECLARATIONS};
use super::module::unique;
use super::say;
use super::types::{self, DURATION, Type, U64};
use crate::ast::joined;
use crate::ast::{
    self, Expr, ExprKind, FnDef, Ident, KeyDef, KeyPart, Nf, NfItem, ParamDef, Path, Span,
    StateDef, StateOption, TypeKind,
};
use crate::diag::{Diagnostic, codes, did_you_mean_help, foreign_field};

const DEFAULT_CAPACITY: u128 = 64 << 10;
/// The most entries that a table or queue may be declared to hold.
const MAX_CAPACITY: u128 = u32::MAX as u128;
const DEFAULT_TICK_NS: u128 = 100_000_000;

impl<'a> Lower<'a> {
    /// Declares everything in a function that has a name.
    pub fn declare(&mut self, nf: &'a Nf, loader: &dyn Loader) {
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        if nf.params.len() + nf.items.len() > MAX_DECLARATIONS {
            let declared = nf.items.iter().filter(|item| !matches!(item, NfItem::Stmt(_))).count();
            if nf.params.len() + declared > MAX_DECLARATIONS {
                let message = format!("more than {MAX_DECLARATIONS} declarations");
                self.too_large = true;
                self.say(Diagnostic::new(codes::TOO_LARGE, message, nf.head, "too many"));
                return;
            }
        }
        for item in &nf.items {
            if let NfItem::Const(def) = item
                && unique(&mut seen, &def.name, self.diags)
            {
                self.consts.own.insert(def.name.text.clone(), &def.value);
                self.names.insert(&def.name.text, Binding::Const(&def.value));
            }
        }
        for param in &nf.params {
            if unique(&mut seen, &param.name, self.diags) {
                self.param(param, &nf.params, loader);
            }
        }
        let mut ports: BTreeMap<&str, Span> = BTreeMap::new();
        for item in &nf.items {
            match item {
                NfItem::Port(names) => {
                    for name in names {
                        self.port(name, &mut ports);
                    }
                }
                NfItem::Tag(name, ty) if unique(&mut seen, name, self.diags) => {
                    self.tag(name, ty);
                }
                NfItem::Queue { name, capacity, .. } if unique(&mut seen, name, self.diags) => {
                    self.declare_queue(name, capacity);
                }
                NfItem::State(def) if unique(&mut seen, &def.name, self.diags) => {
                    self.declare_state(def);
                }
                NfItem::Fn(def) if unique(&mut seen, &def.name, self.diags) => {
                    self.names.insert(&def.name.text, Binding::Fn(def));
                }
                _ => {}
            }
        }
        self.check_fn_params(nf, &seen);
        self.declared = seen;
        self.lives_with(nf);
        self.roots = self.roots_of_state();
    }

    /// For each table, the table at the end of its `lives with` chain. The chains have no circles.
    fn roots_of_state(&self) -> Vec<StateId> {
        let states = (0..self.model.state.len()).map(|at| StateId(number(at)));
        let mut roots: Vec<StateId> = states.collect();
        let with = |state: StateId| self.model.state.get(state.0 as usize)?.lives_with;
        for root in &mut roots {
            while let Some(next) = with(*root) {
                *root = next;
            }
        }
        roots
    }

    /// Checks the parameters of the program's own functions. They are locals, so their names must
    /// be new.
    fn check_fn_params(&mut self, nf: &'a Nf, seen: &BTreeMap<&str, Span>) {
        for item in &nf.items {
            let NfItem::Fn(FnDef { params, .. }) = item else { continue };
            let mut own: BTreeMap<&str, Span> = BTreeMap::new();
            for (name, _) in params {
                if let Some(outer) = seen.get(name.text.as_str()) {
                    own.insert(&name.text, *outer);
                }
                unique(&mut own, name, self.diags);
            }
        }
    }

    fn param(&mut self, def: &'a ParamDef, all: &[ParamDef], loader: &dyn Loader) {
        let is_list = |name: &str| all.iter().any(|p| p.name.text == name && is_list_type(p));
        let ty = match types::resolve(&def.ty, &is_list, self.diags) {
            Some(Type::Scalar(ty)) => ParamTy::Scalar(ty),
            Some(Type::Param(ty)) => ty,
            Some(Type::Record(_)) => {
                let message = "a parameter is a scalar, a list of records, but no record";
                self.say(Diagnostic::new(codes::BAD_TYPE, message, def.ty.span, ""));
                return self.broken(&def.name);
            }
            None => return self.broken(&def.name),
        };
        let env = Env { constants: &self.consts, loader, sources: self.sources };
        let default =
            def.default.as_ref().and_then(|expr| param_value(&ty, expr, &env, self.diags));
        let id = ParamId(number(self.model.params.len()));
        self.model.params.push(ParamDecl { name: def.name.text.clone(), ty, default });
        self.names.insert(&def.name.text, Binding::Param(id));
    }

    /// Binds a name whose declaration has an error. Its uses are not reported again.
    fn broken(&mut self, name: &Ident) {
        self.bind(&name.text, super::lower::Value::Wrong);
    }

    fn port(&mut self, name: &'a Ident, ports: &mut BTreeMap<&'a str, Span>) {
        if matches!(name.text.as_str(), "left" | "right" | "back") {
            let message = format!("every function has `{}`", name.text);
            self.say(
                Diagnostic::new(codes::DUPLICATE_NAME, message, name.span, "declared again")
                    .help("leave it out"),
            );
        } else if unique(ports, name, self.diags) {
            self.model.ports.push(name.text.clone());
        }
    }

    fn tag(&mut self, name: &'a Ident, written: &crate::ast::Type) {
        let Some(ty) = self.scalar_type(written) else { return self.broken(name) };
        let id = TagId(number(self.model.tags.len()));
        self.model.tags.push(TagDecl { name: name.text.clone(), ty });
        self.names.insert(&name.text, Binding::Tag(id));
    }

    fn declare_queue(&mut self, name: &'a Ident, capacity: &Expr) {
        let capacity = self.limit(capacity).unwrap_or(Setting::Const(1));
        let id = QueueId(number(self.model.queues.len()));
        self.model.queues.push(QueueDecl { name: name.text.clone(), capacity });
        self.names.insert(&name.text, Binding::Queue(id));
    }

    /// A setting that is a number of entries.
    fn limit(&mut self, expr: &Expr) -> Option<Setting> {
        let setting = self.setting(expr, U64)?;
        if matches!(setting, Setting::Const(number) if number > MAX_CAPACITY) {
            let message = format!("a capacity is at most {MAX_CAPACITY}");
            return self.fail(Diagnostic::new(
                codes::NUMBER_TOO_LARGE,
                message,
                expr.span,
                "too large",
            ));
        }
        self.not_zero(setting, expr.span, "a capacity")
    }

    /// A setting that is a length of time.
    pub fn time_setting(&mut self, expr: &Expr, what: &str) -> Option<Setting> {
        let setting = self.setting(expr, DURATION)?;
        self.not_zero(setting, expr.span, what)
    }

    fn not_zero(&mut self, setting: Setting, span: Span, what: &str) -> Option<Setting> {
        if setting != Setting::Const(0) {
            return Some(setting);
        }
        let message = format!("{what} must be more than 0");
        self.fail(Diagnostic::new(codes::ZERO_SETTING, message, span, "is 0"))
    }

    /// A setting: a constant or a scalar parameter. Plain numbers may be of any width.
    fn setting(&mut self, expr: &Expr, ty: Ty) -> Option<Setting> {
        if let Some(Binding::Param(param)) = self.bare(expr) {
            let decl = self.model.params.get(param.0 as usize)?;
            if let ParamTy::Scalar(found) = decl.ty {
                let number = ty.kind == Kind::Uint && found.kind == Kind::Uint;
                if number || types::compatible(ty, found) {
                    return Some(Setting::Param(param));
                }
                return self.fail(say::mismatch(ty, found, expr.span));
            }
        }
        if let ExprKind::Path(path) = &expr.kind {
            // Reports an unknown name, or a name that has an error of its own.
            self.known(path)?;
        }
        self.eval().number(expr, ty).map(Setting::Const)
    }

    fn known(&mut self, path: &Path) -> Option<()> {
        match self.resolve(path)? {
            super::names::Named::Local(super::lower::Value::Wrong) => None,
            _ => Some(()),
        }
    }

    fn declare_state(&mut self, def: &'a StateDef) {
        let slots = match self.resolve_type(&def.ty) {
            Some(Type::Scalar(ty)) => Some(vec![(String::new(), ty)]),
            Some(Type::Record(parts)) => Some(parts),
            Some(Type::Param(_)) => {
                let message = "state holds scalars or records of scalars";
                self.say(Diagnostic::new(codes::BAD_TYPE, message, def.ty.span, "neither"));
                None
            }
            None => None,
        };
        let granularity = self.granularity(&def.key);
        let (Some(slots), Some(granularity)) = (slots, granularity) else {
            return self.broken(&def.name);
        };
        let mut default = def.default.as_ref().and_then(|expr| self.default(&slots, expr));
        let global = granularity == Granularity::Global;
        if def.default.is_some() && default.is_none() {
            default = Some(vec![Setting::Const(0); slots.len()]);
        }
        if global && def.default.is_none() {
            let message = format!("`{}` is global and has no default", def.name.text);
            let wrong = Diagnostic::new(codes::NEEDS_DEFAULT, message, def.name.span, "starts as?");
            self.say(wrong.help("write `= VALUE` behind `global`"));
            default = Some(vec![Setting::Const(0); slots.len()]);
        }
        let capacity = if global { 1 } else { DEFAULT_CAPACITY };
        let mut decl = StateDecl {
            name: def.name.text.clone(),
            granularity,
            slots,
            default,
            capacity: Setting::Const(capacity),
            when_full: WhenFull::Refuse,
            idle: None,
            hard: None,
            tick: Setting::Const(DEFAULT_TICK_NS),
            lives_with: None,
            sharded: false,
        };
        self.options(def, &mut decl, global);
        let id = StateId(number(self.model.state.len()));
        self.model.state.push(decl);
        self.names.insert(&def.name.text, Binding::State(id));
    }

    fn default(&mut self, slots: &[(String, Ty)], expr: &Expr) -> Option<Vec<Setting>> {
        if let [(name, ty)] = slots
            && name.is_empty()
        {
            return Some(vec![self.setting_exact(expr, *ty)?]);
        }
        let parts = record_parts(slots, expr, self.diags)?;
        let settings: Vec<Option<Setting>> =
            slots.iter().zip(parts).map(|((_, ty), part)| self.setting_exact(part, *ty)).collect();
        settings.into_iter().collect()
    }

    /// Like `setting`, but a parameter must have exactly this width.
    fn setting_exact(&mut self, expr: &Expr, ty: Ty) -> Option<Setting> {
        let setting = self.setting(expr, ty)?;
        if let Setting::Param(param) = setting
            && let Some(ParamTy::Scalar(found)) =
                self.model.params.get(param.0 as usize).map(|decl| decl.ty.clone())
            && !types::compatible(ty, found)
        {
            return self.fail(say::mismatch(ty, found, expr.span));
        }
        Some(setting)
    }

    fn granularity(&mut self, key: &KeyDef) -> Option<Granularity> {
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
                KeyPart::Field(path) => match self.key_field(path) {
                    Some(field) => fields.push(field),
                    None => whole = false,
                },
                KeyPart::Type(ty) => match self.key_type(ty) {
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
                self.fail(Diagnostic::new(codes::KEY_PARTS, message, span, "mixed or empty"))
            }
        }
    }

    /// The type of a part of a key. A word that is not a type may be a misspelt implicit key.
    fn key_type(&mut self, ty: &ast::Type) -> Option<Ty> {
        let TypeKind::Named { name, .. } = &ty.kind else { return self.scalar_type(ty) };
        let meant = did_you_mean_help(&name.text, ["flow", "biflow"]);
        if meant.is_none() || types::is_known(&name.text) {
            return self.scalar_type(ty);
        }
        let message = format!("there is no type `{}`", name.text);
        let label = "expected a key";
        self.fail(Diagnostic::new(codes::UNKNOWN_TYPE, message, name.span, label).help_if(meant))
    }

    fn key_field(&mut self, path: &Path) -> Option<Field> {
        let name = joined(path);
        match Field::by_name(&name) {
            Some(Field::PktLen | Field::PktPayloadLen | Field::PktTime) => {
                let message = format!("`{name}` differs with each packet and is not a key");
                self.fail(Diagnostic::new(codes::BAD_TYPE, message, path.span, ""))
            }
            Some(field) => Some(field),
            None => {
                let known = FIELDS.iter().map(|info| info.name);
                let message = format!("there is no field `{name}`");
                self.fail(
                    Diagnostic::new(codes::UNKNOWN_FIELD, message, path.span, "expected a field")
                        .help_if(foreign_field(&name).or_else(|| self.suggest(&name, known))),
                )
            }
        }
    }

    fn options(&mut self, def: &'a StateDef, decl: &mut StateDecl, global: bool) {
        let mut seen: Vec<&str> = Vec::new();
        for option in &def.options {
            let (name, span) = option_name(option);
            if seen.contains(&name) {
                let message = format!("`{name}` is given twice");
                self.say(Diagnostic::new(codes::BAD_OPTION, message, span, "again"));
                continue;
            }
            seen.push(name);
            if global && name != "sharded" {
                let message = format!("a global state takes no `{name}`");
                self.say(
                    Diagnostic::new(codes::BAD_OPTION, message, span, "")
                        .note("it has one entry, which stays"),
                );
                continue;
            }
            match option {
                StateOption::Idle(expr) => decl.idle = self.time_setting(expr, "a time-out"),
                StateOption::Hard(expr) => decl.hard = self.time_setting(expr, "a time-out"),
                StateOption::Tick(expr) => {
                    if let Some(tick) = self.time_setting(expr, "a tick") {
                        decl.tick = tick;
                    }
                }
                StateOption::Capacity(expr) => {
                    if let Some(capacity) = self.limit(expr) {
                        decl.capacity = capacity;
                    }
                }
                StateOption::Full(word) => match word.text.as_str() {
                    "refuse" => decl.when_full = WhenFull::Refuse,
                    "evict_oldest" => decl.when_full = WhenFull::EvictOldest,
                    other => {
                        let known = ["refuse", "evict_oldest"];
                        let message = format!("`full {other}` is not an option");
                        self.say(
                            Diagnostic::new(codes::BAD_OPTION, message, word.span, "")
                                .help("write `full refuse` or `full evict_oldest`")
                                .help_if(self.suggest(other, known)),
                        );
                    }
                },
                // This option is resolved when all states are known.
                StateOption::LivesWith(_) => {}
                StateOption::Sharded(_) => decl.sharded = true,
            }
        }
    }

    fn lives_with(&mut self, nf: &'a Nf) {
        let mut ties: Vec<(StateId, &Ident)> = Vec::new();
        for item in &nf.items {
            let NfItem::State(def) = item else { continue };
            let Some(Binding::State(state)) = self.names.get(def.name.text.as_str()).copied()
            else {
                continue;
            };
            for option in &def.options {
                if let StateOption::LivesWith(with) = option {
                    ties.push((state, with));
                }
            }
        }
        for (state, with) in &ties {
            let Some(other) = self.state_named(with) else { continue };
            if let Some(message) = self.tie_problem(*state, other) {
                self.say(Diagnostic::new(codes::LIVES_WITH, message, with.span, ""));
            } else if let Some(decl) = self.model.state.get_mut(state.0 as usize) {
                decl.lives_with = Some(other);
            }
        }
    }

    fn tie_problem(&self, state: StateId, other: StateId) -> Option<String> {
        let decl = self.model.state.get(state.0 as usize)?;
        let with = self.model.state.get(other.0 as usize)?;
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
        for _ in 0..=self.model.state.len() {
            match at {
                Some(id) if id == state => {
                    return Some(format!("`{}` would live with itself", decl.name));
                }
                Some(id) => at = self.model.state.get(id.0 as usize)?.lives_with,
                None => break,
            }
        }
        None
    }
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
    }
}

fn is_list_type(param: &ParamDef) -> bool {
    matches!(&param.ty.kind, crate::ast::TypeKind::Named { name, .. }
        if matches!(name.text.as_str(), "list" | "backends"))
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
