//! Names in statements and in the parts of network functions.

use super::expr::{in_expr, in_header, in_key, in_path, in_type};
use super::names::Kind;
use super::scope::{Names, Walk};
use super::ty::infer;
use crate::ast::{
    Block, Contents, Expr, FnBody, FnDef, Ident, KeyDef, Nf, NfItem, Push, Row, Span, StateDef,
    StateOption, Stmt, StmtKind,
};

impl Walk<'_> {
    /// A network function whose name is declared already.
    pub fn nf(&mut self, nf: &Nf, at: usize) {
        self.nf = Some(at);
        self.own = Names::new();
        self.locals = vec![(Names::new(), nf.span)];
        for param in &nf.params {
            let found = self.define(
                Kind::Param,
                &param.name,
                param.name.span.to(param.ty.span),
                Some(nf.span),
            );
            self.typed(found, &param.ty);
            self.part_of(at, found);
            self.own.insert(param.name.text.clone(), found);
        }
        for item in &nf.items {
            self.declare(item, nf, at);
        }
        for param in &nf.params {
            in_type(self, &param.ty);
            param.default.iter().for_each(|value| in_expr(self, value));
        }
        for item in &nf.items {
            self.nf_item(item);
        }
        self.locals.clear();
        self.own.clear();
    }

    /// Declares the names of a part of a network function.
    fn declare(&mut self, item: &NfItem, nf: &Nf, of: usize) {
        let scope = Some(nf.span);
        let (kind, name, whole) = match item {
            NfItem::Const(one) => (Kind::Const, &one.name, one.span),
            NfItem::Fn(def) => {
                let at = self.function(def, scope);
                self.own.insert(def.name.text.clone(), at);
                return;
            }
            NfItem::Port(names, _) => {
                for name in names {
                    let at = self.define(Kind::Port, name, name.span, scope);
                    self.part_of(of, at);
                }
                return;
            }
            NfItem::Tag(name, ty) => (Kind::Tag, name, name.span.to(ty.span)),
            NfItem::State(state) => (Kind::State, &state.name, state.span),
            NfItem::Queue { name, span, .. } => (Kind::Queue, name, *span),
            NfItem::Every { .. }
            | NfItem::OnExpire { .. }
            | NfItem::OnStream { .. }
            | NfItem::OnEvent { .. }
            | NfItem::Stmt(_) => return,
        };
        let at = self.define(kind, name, whole, scope);
        match item {
            NfItem::Tag(_, ty) => self.typed(at, ty),
            NfItem::State(state) => self.typed(at, &state.ty),
            _ => {}
        }
        self.own.insert(name.text.clone(), at);
    }

    /// Declares a function or action of the program, and returns its number.
    pub fn function(&mut self, def: &FnDef, scope: Option<Span>) -> usize {
        let kind = match &def.body {
            FnBody::Pure(..) | FnBody::Library(..) => Kind::Fn,
            FnBody::Action(_) => Kind::Action,
        };
        let at = self.define(kind, &def.name, def.span, scope);
        if let FnBody::Pure(ty, _) | FnBody::Library(ty, _) = &def.body {
            self.typed(at, ty);
        }
        for (name, ty) in &def.params {
            let param = self.define(Kind::Param, name, name.span.to(ty.span), Some(def.span));
            self.typed(param, ty);
            self.part_of(at, param);
        }
        at
    }

    /// The inside of a function or action. One of the files sees no names of a network function.
    pub fn function_body(&mut self, def: &FnDef, at: Option<usize>) {
        let mut names = Names::new();
        for (name, ty) in &def.params {
            in_type(self, ty);
            let param = at.and_then(|at| self.parts.get(&(at, name.text.clone())).copied());
            names.extend(param.map(|param| (name.text.clone(), param)));
        }
        let outside = std::mem::replace(&mut self.locals, vec![(names, def.span)]);
        match &def.body {
            FnBody::Pure(ty, value) => {
                in_type(self, ty);
                in_expr(self, value);
            }
            FnBody::Library(ty, _) => in_type(self, ty),
            FnBody::Action(body) => self.block(body),
        }
        self.locals = outside;
    }

    fn nf_item(&mut self, item: &NfItem) {
        match item {
            NfItem::Const(one) => in_expr(self, &one.value),
            NfItem::Fn(def) => self.function_body(def, self.own(&def.name.text)),
            NfItem::Port(..) => {}
            NfItem::Tag(_, ty) => in_type(self, ty),
            NfItem::State(state) => self.state(state),
            NfItem::Queue { capacity, .. } => in_expr(self, capacity),
            NfItem::Every { period, body, .. } => {
                in_expr(self, period);
                self.block(body);
            }
            NfItem::OnExpire { state, body, .. } => {
                self.used(state, self.own(&state.text));
                self.block(body);
            }
            NfItem::OnStream { body, .. } => self.block(body),
            NfItem::OnEvent { event, body, .. } => {
                self.taken = self.events.get(&event.text).copied();
                self.used(event, self.taken);
                self.block(body);
                self.taken = None;
            }
            NfItem::Stmt(stmt) => self.stmt(stmt),
        }
    }

    fn state(&mut self, state: &StateDef) {
        in_type(self, &state.ty);
        if let KeyDef::List(parts, _) = &state.key {
            parts.iter().for_each(|part| in_key(self, part));
        }
        state.default.iter().for_each(|value| in_expr(self, value));
        for option in &state.options {
            match option {
                StateOption::Idle(value)
                | StateOption::Hard(value)
                | StateOption::Tick(value)
                | StateOption::Capacity(value) => in_expr(self, value),
                StateOption::LivesWith(name) => self.used(name, self.own(&name.text)),
                StateOption::Portions(names, _) => {
                    names.iter().for_each(|name| self.used(name, self.own(&name.text)));
                }
                StateOption::Full(_) | StateOption::Sharded(_) => {}
            }
        }
    }

    fn block(&mut self, block: &Block) {
        self.locals.push((Names::new(), block.span));
        block.stmts.iter().for_each(|stmt| self.stmt(stmt));
        self.locals.pop();
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Match(rows) => rows.iter().for_each(|row| self.row(row)),
            StmtKind::If { cond, then, otherwise } => {
                in_expr(self, cond);
                self.block(then);
                otherwise.iter().for_each(|block| self.block(block));
            }
            StmtKind::For { var, from, to, cond, body } => {
                in_expr(self, from);
                in_expr(self, to);
                self.locals.push((Names::new(), body.span));
                self.local(Kind::Local, var, var.span);
                cond.iter().for_each(|cond| in_expr(self, cond));
                self.block(body);
                self.locals.pop();
            }
            StmtKind::Let { name, value, otherwise, .. } => {
                in_expr(self, value);
                self.otherwise(otherwise.as_deref());
                let at = self.local(Kind::Local, name, stmt.span);
                infer(self, at, value);
            }
            StmtKind::Assign { place, value, otherwise, .. } => {
                in_expr(self, place);
                in_expr(self, value);
                self.otherwise(otherwise.as_deref());
            }
            StmtKind::Delete(place) => in_expr(self, place),
            StmtKind::Call { call, otherwise } => {
                in_expr(self, call);
                self.otherwise(otherwise.as_deref());
            }
            StmtKind::Output(ports) => ports.iter().for_each(|port| self.used_port(self.nf, port)),
            StmtKind::Mirror(port) => self.used_port(self.nf, port),
            StmtKind::Hold { queue, delay, otherwise } => {
                self.used(queue, self.own(&queue.text));
                in_expr(self, delay);
                self.otherwise(otherwise.as_deref());
            }
            StmtKind::Send { contents: Contents { parts, payload }, port, .. } => {
                for part in parts {
                    part.when.iter().for_each(|cond| in_expr(self, cond));
                    for (field, value) in &part.fields {
                        in_path(self, field);
                        in_expr(self, value);
                    }
                    part.options.iter().for_each(|push| self.push(push));
                }
                let offset = payload.iter().filter_map(|(_, offset)| offset.as_ref());
                offset.for_each(|offset| in_expr(self, offset));
                port.iter().for_each(|port| self.used_port(self.nf, port));
            }
            StmtKind::Emit { event, args } => self.emit(event, args),
            StmtKind::Push { pushes, otherwise } | StmtKind::Pop { pops: pushes, otherwise } => {
                pushes.iter().for_each(|push| self.push(push));
                self.otherwise(otherwise.as_deref());
            }
            StmtKind::Block(block) => self.block(block),
            StmtKind::Drop(_)
            | StmtKind::Reset(_)
            | StmtKind::Consume
            | StmtKind::Resubmit
            | StmtKind::Error => {}
        }
    }

    fn push(&mut self, push: &Push) {
        let header = in_header(self, &push.header);
        push.fields.iter().for_each(|(field, _)| self.used_part(header, field));
        push.values().for_each(|value| in_expr(self, value));
    }

    fn otherwise(&mut self, stmt: Option<&Stmt>) {
        if let Some(stmt) = stmt {
            self.stmt(stmt);
        }
    }

    fn row(&mut self, row: &Row) {
        row.pred.iter().for_each(|pred| in_expr(self, pred));
        self.block(&row.body);
    }

    fn emit(&mut self, event: &Ident, args: &[(Ident, Expr)]) {
        let found = self.events.get(&event.text).copied();
        self.used(event, found);
        for (name, value) in args {
            let part = found.and_then(|found| self.event_field(found, &name.text));
            self.used(name, part);
            in_expr(self, value);
        }
    }

    /// The field of an event or of the events that it extends.
    pub fn event_field(&self, event: usize, name: &str) -> Option<usize> {
        let mut at = Some(event);
        // Events that extend each other in a circle are an error, which others report.
        for _ in 0..self.events.len() + 1 {
            let part = self.parts.get(&(at?, name.to_owned()));
            if part.is_some() {
                return part.copied();
            }
            at = self.parents.get(&at?).and_then(|parent| self.events.get(parent)).copied();
        }
        None
    }
}
