//! Finds the headers that a row tests implicitly. If a row's body begins with an entry under an
//! implicit key, the row matches only packets that have this key.
//!
//! The beginning of a body is everything before the first `if`, `match`, loop, call or end. Other
//! uses of fields need an explicit test.

use braid_ir::model::StateId;
use braid_packet::Header;

use super::bucket;
use super::lower::Lower;
use super::scope::{Binding, Scope};
use super::state::key_fields;
use super::walk::{self, Visitor};
use crate::ast::{Block, Expr, ExprKind, Ident, Path, Stmt, StmtKind};

/// The headers that the implicit keys at the beginning of a row's body need.
pub fn guards(lower: &Lower<'_>, body: &Block) -> Vec<Header> {
    let mut keys = Keys { scope: &lower.scope, states: Vec::new() };
    for stmt in &body.stmts {
        match &stmt.kind {
            StmtKind::Assign { place, op, value, .. } => {
                if op.is_some() {
                    walk::expr(place, &mut keys);
                } else {
                    keys.place(place);
                }
                walk::expr(value, &mut keys);
            }
            StmtKind::Let { value, .. } => walk::expr(value, &mut keys),
            StmtKind::Delete(place) => keys.place(place),
            StmtKind::Emit { args, .. } => {
                args.iter().for_each(|(_, value)| walk::expr(value, &mut keys));
            }
            StmtKind::Mirror(_) | StmtKind::Error => {}
            StmtKind::Call { call, .. } if is_spend(&lower.scope, call) => {
                walk::expr(call, &mut keys);
                break;
            }
            _ => break,
        }
    }
    let mut headers: Vec<Header> = Vec::new();
    for state in keys.states {
        let Some(decl) = lower.model.state.get(state.0 as usize) else { continue };
        for field in key_fields(&decl.granularity) {
            let header = field.info().header;
            if !headers.contains(&header) {
                headers.push(header);
            }
        }
    }
    headers
}

fn is_spend(scope: &Scope<'_>, call: &Expr) -> bool {
    matches!(&call.kind, ExprKind::Call(name, _) if bucket::is_spend(scope, &name.text))
}

/// Collects the states whose implicit key is used.
struct Keys<'l, 'a> {
    scope: &'l Scope<'a>,
    states: Vec<StateId>,
}

impl Keys<'_, '_> {
    fn name(&mut self, path: &Path) {
        let Some(first) = path.parts.first() else { return };
        if braid_packet::Field::by_name(&crate::ast::joined(path)).is_some()
            || self.scope.local(&first.text).is_some()
        {
            return;
        }
        if let Some(Binding::State(state)) = self.scope.binding(&first.text) {
            self.states.push(state);
        }
    }

    /// Visits the place of an assignment.
    fn place(&mut self, place: &Expr) {
        match &place.kind {
            ExprKind::Path(path) => self.name(path),
            ExprKind::Index(_, key) => key.iter().for_each(|part| walk::expr(part, self)),
            ExprKind::Member(base, _) => self.place(base),
            ExprKind::At(at) => at.parts().for_each(|part| walk::expr(part, self)),
            _ => {}
        }
    }
}

impl<'e> Visitor<'e> for Keys<'_, '_> {
    fn stmt(&mut self, _stmt: &'e Stmt) -> bool {
        false
    }

    fn expr(&mut self, expr: &'e Expr) -> bool {
        match &expr.kind {
            ExprKind::Path(path) => self.name(path),
            ExprKind::Index(_, key) => {
                key.iter().for_each(|part| walk::expr(part, self));
                return false;
            }
            // An absent header or entry makes a predicate false, so a predicate requires none.
            ExprKind::If(..) => return false,
            ExprKind::Call(name, _) if name.text == "len" => return false,
            _ => return !super::pred::is_predicate(expr),
        }
        true
    }

    fn header(&mut self, _path: &'e Path) {}

    fn call(&mut self, _name: &'e Ident) {}
}
