//! Lowers assignments to fields, tags and state.

use braid_ir::model::{Op, Ty, ValueId};
use braid_packet::Access;

use super::lower::{Binding, Lower, Mode, Value};
use super::names::Named;
use super::state::StatePlace;
use super::types;
use crate::ast::{BinOp, Expr, ExprKind, Span, Stmt};
use crate::diag::{Diagnostic, codes};

impl<'a> Lower<'a> {
    /// Lowers `PLACE = VALUE else STMT;`, or with `op` the statement `PLACE op= VALUE`.
    pub fn assign(
        &mut self,
        place: &Expr,
        op: Option<BinOp>,
        value: &Expr,
        otherwise: Option<&'a Stmt>,
        span: Span,
    ) -> Option<()> {
        if let Some(found) = self.state_place(place) {
            return self.assign_state(&found, place, op, value, otherwise, span);
        }
        if let Some(otherwise) = otherwise {
            let message = "only the assignment of state can be refused";
            self.say(Diagnostic::new(
                codes::UNREACHABLE_STATEMENT,
                message,
                otherwise.span,
                "this `else` is never reached",
            ));
        }
        let ExprKind::Path(path) = &place.kind else {
            return self.not_assignable("this cannot be assigned", place.span);
        };
        match self.resolve(path)? {
            Named::Field(field) => {
                let info = field.info();
                if info.access == Access::Ro {
                    let message = format!("`{}` cannot be assigned", info.name);
                    return self.fail(
                        Diagnostic::new(codes::READ_ONLY_FIELD, message, place.span, "read-only")
                            .note(info.doc)
                            .help_if(read_only_help(info.name)),
                    );
                }
                if !self.needs_packet(place.span) {
                    return None;
                }
                let ty = types::of_field(field);
                let known =
                    self.need_header(info.header, false, place.span, &format!("`{}`", info.name));
                let a = self.new_value(place, op, value, ty, span);
                known?;
                let a = a?;
                self.b.op(Op::Store { field, a });
                self.b.facts.stored(field);
                Some(())
            }
            Named::Bound(Binding::Tag(tag)) if path.parts.len() == 1 => {
                let ty = self.model.tags.get(tag.0 as usize)?.ty;
                if !self.needs_packet(place.span) {
                    return None;
                }
                let a = self.new_value(place, op, value, ty, span)?;
                self.b.op(Op::StoreTag { tag, a });
                Some(())
            }
            Named::Local(Value::Wrong) => None,
            Named::Local(_) => self.not_assignable("locals keep their value", place.span),
            Named::Bound(Binding::Param(_)) => {
                self.not_assignable("parameters are set by the chain", place.span)
            }
            _ => self.not_assignable("this cannot be assigned", place.span),
        }
    }

    fn not_assignable<T>(&mut self, message: &str, span: Span) -> Option<T> {
        self.fail(
            Diagnostic::new(codes::NOT_ASSIGNABLE, message, span, "not assignable")
                .help("give the new value a name of its own: `let x = …;`"),
        )
    }

    /// The new value of a place: `value`, or `place op value`.
    fn new_value(
        &mut self,
        place: &Expr,
        op: Option<BinOp>,
        value: &Expr,
        ty: Ty,
        span: Span,
    ) -> Option<ValueId> {
        let Some(op) = op else { return self.typed(value, ty) };
        let (old, by) = (self.value(place, None), self.value(value, Some(ty)));
        let combined = self.combine(op, (old?, place.span), (by?, value.span), span)?;
        self.coerce(combined, ty, span)
    }

    fn assign_state(
        &mut self,
        found: &StatePlace<'_>,
        place: &Expr,
        op: Option<BinOp>,
        value: &Expr,
        otherwise: Option<&'a Stmt>,
        span: Span,
    ) -> Option<()> {
        let decl = self.model.state.get(found.state.0 as usize)?.clone();
        if self.mode == Mode::Expire(found.state) && found.key.is_none() {
            let message = format!("this entry of `{}` is ending", decl.name);
            return self.fail(Diagnostic::new(codes::NOT_ASSIGNABLE, message, place.span, ""));
        }
        let slot = match found.slot_of(&decl) {
            Some(Err(diagnostic)) => return self.fail(diagnostic),
            Some(Ok(slot)) => Some(slot),
            None => None,
        };
        let scalar = matches!(decl.slots.as_slice(), [(name, _)] if name.is_empty());
        match (slot, scalar) {
            (Some((at, ty)), _) => {
                let new = self.new_value(place, op, value, ty, span)?;
                let entry = self.entry(found.state, found.key, place.span)?;
                self.assign_slot(&entry, at, new, otherwise, span)
            }
            (None, true) => {
                let ty = decl.slots.first()?.1;
                let new = self.new_value(place, op, value, ty, span)?;
                let entry = self.entry(found.state, found.key, place.span)?;
                self.assign_entry(&entry, vec![new], otherwise, span);
                Some(())
            }
            (None, false) if op.is_some() => {
                let message = "a record is assigned part by part here";
                self.fail(
                    Diagnostic::new(codes::BAD_OPERANDS, message, place.span, "a record")
                        .help(format!("name a part: `{}.{}`", decl.name, decl.slots.first()?.0)),
                )
            }
            (None, false) => {
                let record = self.record(&decl.slots, value)?;
                let entry = self.entry(found.state, found.key, place.span)?;
                let values = record.into_iter().map(|(_, id, _)| id).collect();
                self.assign_entry(&entry, values, otherwise, span);
                Some(())
            }
        }
    }
}

fn read_only_help(name: &str) -> Option<String> {
    let text = match name {
        "ip.checksum" | "l4.checksum" => "checksums follow by themselves",
        "inet.src" => "assign `ip.src` or `ip6.src`",
        "inet.dst" => "assign `ip.dst` or `ip6.dst`",
        "inet.sport" => "assign `l4.sport` or `icmp.id`",
        "inet.dport" => "assign `l4.dport` or `icmp.id`",
        _ => return None,
    };
    Some(text.into())
}
