//! Walks the syntax tree of statements and expressions.

use crate::ast::{Block, Expr, ExprKind, Ident, Path, Push, Stmt, StmtKind};

/// Visits the nodes of a walk, outermost first.
pub trait Visitor<'a> {
    /// Visits a statement. Returns whether its parts are walked too.
    fn stmt(&mut self, stmt: &'a Stmt) -> bool;
    /// Visits an expression. Returns whether its parts are walked too.
    fn expr(&mut self, expr: &'a Expr) -> bool;
    /// Visits the header that `has` names.
    fn header(&mut self, path: &'a Path);
    /// Visits a call of this name.
    fn call(&mut self, name: &'a Ident);
    /// Enters a block.
    fn enter(&mut self) {}
    /// Leaves a block.
    fn leave(&mut self) {}
    /// Binds a local that is in scope from here to the end of the block.
    fn bind(&mut self, _name: &'a Ident, _counted: bool) {}
}

/// Walks a block.
pub fn block<'a>(block: &'a Block, v: &mut dyn Visitor<'a>) {
    v.enter();
    for inner in &block.stmts {
        stmt(inner, v);
    }
    v.leave();
}

/// Walks a statement.
pub fn stmt<'a>(stmt: &'a Stmt, v: &mut dyn Visitor<'a>) {
    if !v.stmt(stmt) {
        return;
    }
    match &stmt.kind {
        StmtKind::Match(rows) => {
            for row in rows {
                if let Some(pred) = &row.pred {
                    expr(pred, v);
                }
                block(&row.body, v);
            }
        }
        StmtKind::If { cond, then, otherwise } => {
            expr(cond, v);
            block(then, v);
            if let Some(otherwise) = otherwise {
                block(otherwise, v);
            }
        }
        StmtKind::For { var, from, to, cond, body } => {
            expr(from, v);
            expr(to, v);
            v.enter();
            v.bind(var, false);
            cond.iter().for_each(|cond| expr(cond, v));
            block(body, v);
            v.leave();
        }
        StmtKind::Let { name, value, otherwise, .. } => {
            expr(value, v);
            nested(otherwise.as_deref(), v);
            v.bind(name, true);
        }
        StmtKind::Assign { place, value, otherwise, .. } => {
            expr(place, v);
            expr(value, v);
            nested(otherwise.as_deref(), v);
        }
        StmtKind::Hold { delay, otherwise, .. } => {
            expr(delay, v);
            nested(otherwise.as_deref(), v);
        }
        StmtKind::Delete(value) => expr(value, v),
        StmtKind::Call { call, otherwise } => {
            expr(call, v);
            nested(otherwise.as_deref(), v);
        }
        StmtKind::Send { contents, .. } => contents.values().for_each(|value| expr(value, v)),
        StmtKind::Emit { args, .. } => args.iter().for_each(|(_, value)| expr(value, v)),
        StmtKind::Push { pushes, otherwise } | StmtKind::Pop { pops: pushes, otherwise } => {
            pushes.iter().flat_map(Push::values).for_each(|value| expr(value, v));
            nested(otherwise.as_deref(), v);
        }
        StmtKind::Block(inner) => block(inner, v),
        StmtKind::Output(_)
        | StmtKind::Drop(_)
        | StmtKind::Reset(_)
        | StmtKind::Consume
        | StmtKind::Mirror(_)
        | StmtKind::Resubmit
        | StmtKind::Error => {}
    }
}

fn nested<'a>(inner: Option<&'a Stmt>, v: &mut dyn Visitor<'a>) {
    if let Some(inner) = inner {
        v.enter();
        stmt(inner, v);
        v.leave();
    }
}

/// Walks an expression.
pub fn expr<'a>(value: &'a Expr, v: &mut dyn Visitor<'a>) {
    if !v.expr(value) {
        return;
    }
    match &value.kind {
        ExprKind::Set(members) | ExprKind::List(members) => {
            members.iter().for_each(|member| expr(member, v));
        }
        ExprKind::Record(parts) => parts.iter().for_each(|(_, part)| expr(part, v)),
        ExprKind::Index(base, key) => {
            expr(base, v);
            key.iter().for_each(|part| expr(part, v));
        }
        ExprKind::Call(name, args) => {
            v.call(name);
            args.iter().for_each(|arg| expr(&arg.value, v));
        }
        ExprKind::At(at) => at.parts().for_each(|part| expr(part, v)),
        ExprKind::Has(path) => v.header(path),
        ExprKind::Member(inner, _)
        | ExprKind::Not(inner)
        | ExprKind::Complement(inner)
        | ExprKind::Exists(inner) => expr(inner, v),
        ExprKind::Range(a, b)
        | ExprKind::Binary(_, a, b)
        | ExprKind::In(a, b)
        | ExprKind::Matches(a, b) => {
            expr(a, v);
            expr(b, v);
        }
        ExprKind::If(cond, a, b) => {
            expr(cond, v);
            expr(a, v);
            expr(b, v);
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
        | ExprKind::Path(_)
        | ExprKind::From(_)
        | ExprKind::Error => {}
    }
}
