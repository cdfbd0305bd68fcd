//! Finds names that are declared but never used. It works on the syntax tree, so errors elsewhere
//! do not make names look unused. Names that start with an underscore are ignored.

use std::collections::BTreeMap;

use braid_packet::Field;
use rustc_hash::FxHashMap;

use super::bucket;
use super::walk::{self, Visitor};
use crate::ast::joined;
use crate::ast::{
    Expr, ExprKind, FnBody, Ident, Nf, NfItem, Path, Span, StateDef, StateOption, Stmt, StmtKind,
    TypeKind,
};
use crate::diag::{Code, Diagnostic, Diagnostics, MAX_DIAGNOSTICS, codes, did_you_mean};
use crate::source::SourceMap;

/// The kind of a declared name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Param,
    State,
    /// A port, tag, queue, constant or function.
    Other(&'static str),
}

struct Declared {
    what: What,
    span: Span,
    read: bool,
    written: bool,
    touched: bool,
}

struct Local<'a> {
    name: &'a Ident,
    used: bool,
    counted: bool,
    /// Whether it may be assigned, and whether it is.
    mutable: bool,
    assigned: bool,
}

struct Uses<'a> {
    names: BTreeMap<&'a str, Declared>,
    ports: BTreeMap<&'a str, (Span, bool)>,
    locals: Vec<Local<'a>>,
    /// For each name, the numbers of its locals in scope, with the innermost last.
    by_name: FxHashMap<&'a str, Vec<usize>>,
    /// Number of locals in scope at the start of each open block.
    scopes: Vec<usize>,
    unused: Vec<&'a Ident>,
    /// The name of the `let mut` that comes next.
    mutable: Option<&'a Ident>,
    /// Locals that may be assigned, but never are.
    constant: Vec<&'a Ident>,
    /// Written names that are unknown or declared twice.
    troubled: Vec<&'a str>,
}

fn troubled<'s>(sources: &'s SourceMap, diags: &Diagnostics) -> Vec<&'s str> {
    let names = [
        codes::UNKNOWN_NAME,
        codes::UNKNOWN_FIELD,
        codes::NOT_A_STATE,
        codes::UNKNOWN_PORT,
        codes::UNKNOWN_FUNCTION,
        codes::UNKNOWN_QUEUE,
        codes::DUPLICATE_NAME,
    ];
    let written = diags.iter().filter(|d| names.contains(&d.code)).map(|d| sources.slice(d.span()));
    written.map(|text| text.split('.').next().unwrap_or(text)).collect()
}

/// Reports declared names that a function never uses. `diags` holds the earlier messages. A name
/// that a reported misspelt name may mean is not reported.
pub fn check<'a>(nf: &'a Nf, sources: &'a SourceMap, diags: &mut Diagnostics) {
    let mut uses = Uses {
        names: BTreeMap::new(),
        ports: BTreeMap::new(),
        locals: Vec::new(),
        by_name: FxHashMap::default(),
        scopes: Vec::new(),
        unused: Vec::new(),
        mutable: None,
        constant: Vec::new(),
        troubled: troubled(sources, diags),
    };
    uses.declare(nf);
    uses.enter();
    for param in &nf.params {
        if let Some(default) = &param.default {
            walk::expr(default, &mut uses);
        }
    }
    for item in &nf.items {
        uses.item(item);
    }
    uses.leave();
    uses.report(diags);
}

impl<'a> Uses<'a> {
    fn declare(&mut self, nf: &'a Nf) {
        for param in &nf.params {
            self.name(&param.name, What::Param);
        }
        // Alerts come from all signatures.
        let is_alert =
            |item: &NfItem| matches!(item, NfItem::OnStream { what, .. } if what.text == "alert");
        if nf.items.iter().any(is_alert) {
            for param in &nf.params {
                let is_signatures = matches!(&param.ty.kind, TypeKind::Named { name, .. } if name.text == "signatures");
                let declared = self.names.get_mut(param.name.text.as_str());
                declared.into_iter().for_each(|declared| declared.read |= is_signatures);
            }
        }
        for item in &nf.items {
            match item {
                NfItem::Const(def) => self.name(&def.name, What::Other("constant")),
                NfItem::Fn(def) => self.name(&def.name, What::Other("function")),
                NfItem::Tag(name, _) => self.name(name, What::Other("tag")),
                NfItem::Queue { name, .. } => self.name(name, What::Other("queue")),
                NfItem::State(def) => self.name(&def.name, What::State),
                NfItem::Port(ports, _) => {
                    for port in ports {
                        self.ports.entry(&port.text).or_insert((port.span, false));
                    }
                }
                _ => {}
            }
        }
    }

    fn name(&mut self, name: &'a Ident, what: What) {
        let declared =
            Declared { what, span: name.span, read: false, written: false, touched: false };
        self.names.entry(&name.text).or_insert(declared);
    }

    fn item(&mut self, item: &'a NfItem) {
        match item {
            NfItem::Const(def) => walk::expr(&def.value, self),
            NfItem::Fn(def) => {
                // A library uses its parameters.
                let in_library = matches!(def.body, FnBody::Library(..));
                self.enter();
                for (name, _) in &def.params {
                    self.bind(name, !in_library);
                }
                match &def.body {
                    FnBody::Pure(_, body) => walk::expr(body, self),
                    FnBody::Library(..) => {}
                    FnBody::Action(body) => walk::block(body, self),
                }
                self.leave();
            }
            NfItem::State(def) => self.state(def),
            NfItem::Queue { capacity, .. } => walk::expr(capacity, self),
            NfItem::Every { period, body, .. } => {
                walk::expr(period, self);
                walk::block(body, self);
            }
            NfItem::OnExpire { body, .. }
            | NfItem::OnStream { body, .. }
            | NfItem::OnEvent { body, .. } => {
                walk::block(body, self);
            }
            NfItem::Stmt(stmt) => walk::stmt(stmt, self),
            NfItem::Port(..) | NfItem::Tag(..) => {}
        }
    }

    fn state(&mut self, def: &'a StateDef) {
        if let Some(default) = &def.default {
            walk::expr(default, self);
        }
        for option in &def.options {
            match option {
                StateOption::Idle(expr)
                | StateOption::Hard(expr)
                | StateOption::Tick(expr)
                | StateOption::Capacity(expr) => walk::expr(expr, self),
                StateOption::Full(_)
                | StateOption::LivesWith(_)
                | StateOption::Sharded(_)
                | StateOption::Portions(..) => {}
            }
        }
    }

    /// Marks a name as used. `how` marks the kind of use.
    fn mark(&mut self, name: &str, how: impl FnOnce(&mut Declared)) {
        if let Some(&at) = self.by_name.get(name).and_then(|all| all.last()) {
            self.locals[at].used = true;
            return;
        }
        if let Some(declared) = self.names.get_mut(name) {
            how(declared);
        }
    }

    fn port(&mut self, name: &str) {
        if let Some((_, used)) = self.ports.get_mut(name) {
            *used = true;
        }
    }

    /// Visits the place of an assignment or deletion. `how` marks the name, and the keys count as
    /// read.
    fn place(&mut self, place: &'a Expr, how: impl FnOnce(&mut Declared)) {
        match &place.kind {
            ExprKind::Path(path) if !is_field(path) => {
                if let Some(first) = path.parts.first() {
                    self.mark(&first.text, how);
                    let local = self.by_name.get(first.text.as_str()).and_then(|all| all.last());
                    if let Some(local) = local.and_then(|at| self.locals.get_mut(*at)) {
                        local.assigned = true;
                    }
                }
            }
            ExprKind::Index(base, key) => {
                key.iter().for_each(|part| walk::expr(part, self));
                self.place(base, how);
            }
            ExprKind::Member(base, _) => self.place(base, how),
            ExprKind::At(at) => at.parts().for_each(|part| walk::expr(part, self)),
            _ => {}
        }
    }

    /// Whether a reported name may mean this name.
    fn meant(&self, name: &str) -> bool {
        let mut troubled = self.troubled.iter();
        troubled.any(|wrong| *wrong == name || did_you_mean(wrong, [name]).is_some())
    }

    fn report(self, diags: &mut Diagnostics) {
        let mut found: Vec<(Code, String, Span)> = Vec::new();
        for (name, declared) in &self.names {
            if name.starts_with('_') || self.meant(name) {
                continue;
            }
            let used = declared.read || declared.written || declared.touched;
            let (code, message) = match declared.what {
                What::Param if !used => {
                    (codes::UNUSED_PARAMETER, format!("the parameter `{name}` is never used"))
                }
                What::State if !used => {
                    (codes::UNUSED_STATE, format!("the state `{name}` is never used"))
                }
                What::State if !declared.read => {
                    (codes::STATE_NEVER_READ, format!("the state `{name}` is never read"))
                }
                What::State if !declared.written => {
                    (codes::STATE_NEVER_WRITTEN, format!("the state `{name}` is never written"))
                }
                What::Other(kind) if !used => {
                    (codes::UNUSED_DECLARATION, format!("the {kind} `{name}` is never used"))
                }
                _ => continue,
            };
            found.push((code, message, declared.span));
        }
        for (name, (span, used)) in &self.ports {
            if !used && !name.starts_with('_') && !self.meant(name) {
                let message = format!("the port `{name}` is never used");
                found.push((codes::UNUSED_DECLARATION, message, *span));
            }
        }
        for name in self.unused.iter().take(MAX_DIAGNOSTICS) {
            if !name.text.starts_with('_') && !self.meant(&name.text) {
                let message = format!("`{}` is never used", name.text);
                found.push((codes::UNUSED_LOCAL, message, name.span));
            }
        }
        let constant = self.constant.iter().filter(|name| !name.text.starts_with('_'));
        for name in constant.take(MAX_DIAGNOSTICS) {
            let message = format!("`{}` is never assigned", name.text);
            let found = Diagnostic::new(codes::UNUSED_LOCAL, message, name.span, "declared here");
            diags.push(found.help("leave `mut` out"));
        }
        for (code, message, span) in found {
            let help = match code {
                codes::STATE_NEVER_READ => {
                    "read it, or start its name with `_` if it is there to be looked at"
                }
                codes::STATE_NEVER_WRITTEN => "assign it, or make it a parameter or a constant",
                _ => "remove it, or start its name with `_`",
            };
            diags.push(Diagnostic::new(code, message, span, "declared here").help(help));
        }
    }
}

fn is_field(path: &Path) -> bool {
    path.parts.len() > 1 && Field::by_name(&joined(path)).is_some()
}

impl<'a> Visitor<'a> for Uses<'a> {
    fn stmt(&mut self, stmt: &'a Stmt) -> bool {
        match &stmt.kind {
            StmtKind::Assign { place, op, value, otherwise } => {
                let reads = op.is_some();
                self.place(place, |declared| {
                    declared.written = true;
                    declared.read |= reads;
                });
                walk::expr(value, self);
                if let Some(otherwise) = otherwise {
                    self.enter();
                    walk::stmt(otherwise, self);
                    self.leave();
                }
                return false;
            }
            StmtKind::Let { name, mutable: true, .. } => self.mutable = Some(name),
            StmtKind::Delete(place) => {
                self.place(place, |declared| declared.touched = true);
                return false;
            }
            StmtKind::Output(ports) => ports.iter().for_each(|port| self.port(&port.text)),
            StmtKind::Mirror(port) | StmtKind::Send { port: Some(port), .. } => {
                self.port(&port.text);
            }
            StmtKind::Hold { queue, .. } => self.mark(&queue.text, |queue| queue.read = true),
            StmtKind::Call { call: Expr { kind: ExprKind::Call(name, args), .. }, .. }
                if name.text == bucket::SPEND && !self.names.contains_key(bucket::SPEND) =>
            {
                let bucket = args.first().map(|arg| &arg.value);
                bucket.iter().for_each(|place| self.place(place, |found| found.written = true));
            }
            StmtKind::Call { call: Expr { kind: ExprKind::Path(path), .. }, .. } => {
                if let Some(name) = path.parts.first() {
                    self.mark(&name.text, |function| function.read = true);
                }
            }
            _ => {}
        }
        true
    }

    fn expr(&mut self, expr: &'a Expr) -> bool {
        if let ExprKind::Path(path) = &expr.kind
            && !is_field(path)
            && let Some(first) = path.parts.first()
        {
            self.mark(&first.text, |declared| declared.read = true);
        }
        if let ExprKind::From(side) = &expr.kind {
            self.port(&side.text);
        }
        true
    }

    fn header(&mut self, _path: &'a Path) {}

    fn call(&mut self, name: &'a Ident) {
        if let Some(declared) = self.names.get_mut(name.text.as_str()) {
            declared.read = true;
        }
    }

    fn enter(&mut self) {
        self.scopes.push(self.locals.len());
    }

    fn leave(&mut self) {
        let first = self.scopes.pop().unwrap_or(0);
        for local in self.locals.drain(first..) {
            if let Some(all) = self.by_name.get_mut(local.name.text.as_str()) {
                all.pop();
            }
            if local.counted && !local.used {
                self.unused.push(local.name);
            } else if local.mutable && !local.assigned {
                self.constant.push(local.name);
            }
        }
    }

    fn bind(&mut self, name: &'a Ident, counted: bool) {
        self.by_name.entry(&name.text).or_default().push(self.locals.len());
        let mutable = self.mutable.take_if(|next| std::ptr::eq(*next, name)).is_some();
        self.locals.push(Local { name, used: false, counted, mutable, assigned: false });
    }
}
