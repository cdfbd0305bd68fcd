//! Resolves dotted names.

use braid_ir::model::{EventArg, ParamTy, Ty};
use braid_packet::Field;
use braid_packet::field::FIELDS;

use super::constant;
use super::lower::{Binding, Lower, Mode, Value};
use super::types::{self, BOOL, SIZE};
use crate::ast::joined;
use crate::ast::{ExprKind, Ident, Path};
use crate::diag::{Diagnostic, codes, did_you_mean_help, foreign_field};

/// Words for the packet or its keys. They are allowed where a call or predicate takes them.
const WORDS: &[&str] = &["packet", "payload", "flow", "biflow"];

/// A dotted name, resolved.
pub enum Named<'a> {
    /// A header field.
    Field(Field),
    /// A local. Its parts follow the name.
    Local(Value),
    /// A name of the function. Its parts follow the name.
    Bound(Binding<'a>),
    /// `forward` (true) or `backward`.
    Direction(bool),
    /// A number that is known everywhere.
    BuiltIn(super::arith::Const),
    /// `stream.len` or `stream.offset`.
    Stream,
}

impl<'a> Lower<'a> {
    /// Resolves a name. The caller resolves the parts behind a local or a name of the function.
    /// `None` for an unknown name, which is then reported.
    pub fn resolve(&mut self, path: &Path) -> Option<Named<'a>> {
        let first = path.parts.first()?;
        if path.parts.len() > 1
            && let Some(field) = Field::by_name(&joined(path))
        {
            return Some(Named::Field(field));
        }
        if let Some(value) = self.local(&first.text) {
            return Some(Named::Local(value.clone()));
        }
        if let Some(binding) = self.binding(&first.text) {
            return Some(Named::Bound(binding));
        }
        if self.mode == Mode::Stream && first.text == "stream" {
            return self.stream(path);
        }
        if path.parts.len() == 1 {
            match first.text.as_str() {
                "forward" => return Some(Named::Direction(true)),
                "backward" => return Some(Named::Direction(false)),
                name => {
                    if let Some(known) = constant::built_in(name) {
                        return Some(Named::BuiltIn(known));
                    }
                }
            }
        }
        let diagnostic = self.unknown(path, first);
        self.fail(diagnostic)
    }

    /// Resolves `stream.len` and `stream.offset` in a stream function.
    fn stream(&mut self, path: &Path) -> Option<Named<'a>> {
        let name = joined(path);
        match name.as_str() {
            "stream.len" | "stream.offset" => Some(Named::Stream),
            "stream.data" => self.fail(
                Diagnostic::new(
                    codes::NOT_A_VALUE,
                    "`stream.data` is bytes, not a value",
                    path.span,
                    "",
                )
                .help("write `stream.data matches PATTERNS`"),
            ),
            _ => {
                let known = ["stream.data", "stream.len", "stream.offset"];
                let label = "expected stream.data, stream.len or stream.offset";
                let message = format!("there is no `{name}`");
                let wrong = Diagnostic::new(codes::UNKNOWN_FIELD, message, path.span, label);
                self.fail(wrong.help_if(self.suggest(&name, known)))
            }
        }
    }

    fn unknown(&self, path: &Path, first: &Ident) -> Diagnostic {
        let name = joined(path);
        if name.starts_with("stream.") {
            return Diagnostic::new(
                codes::MIXED_STREAM,
                format!("`{name}` belongs to a TCP stream, which only a `stream nf` sees"),
                path.span,
                "not in a packet function",
            );
        }
        if path.parts.len() > 1 {
            let fields = FIELDS.iter().map(|info| info.name);
            let own = self.names_in_sight();
            let known: Vec<&str> = fields.chain(own.iter().map(String::as_str)).collect();
            return Diagnostic::new(
                codes::UNKNOWN_FIELD,
                format!("there is no field `{name}`"),
                path.span,
                "expected a header field or a part of a record",
            )
            .help_if(foreign_field(&name).or_else(|| self.suggest(&name, known)));
        }
        if WORDS.contains(&name.as_str()) {
            let message = format!("`{name}` is not a value");
            return Diagnostic::new(codes::NOT_A_VALUE, message, path.span, "")
                .help("write `packet in RULES`, `payload matches PATTERNS`, `hash(flow)`");
        }
        let own = self.names_in_sight();
        let fields = FIELDS.iter().map(|info| info.name);
        let known = own.iter().map(String::as_str).chain(fields).chain(["forward", "backward"]);
        Diagnostic::new(
            codes::UNKNOWN_NAME,
            format!("there is no `{name}`"),
            first.span,
            "unknown here",
        )
        .help_if(self.suggest(&name, known))
    }

    /// The value of a dotted name.
    pub fn path_value(&mut self, path: &Path) -> Option<Value> {
        match self.resolve(path)? {
            Named::Field(field) => {
                self.read_field(field, path.span).map(|(id, ty)| Value::Scalar(id, ty))
            }
            Named::Local(Value::Wrong) => None,
            Named::Local(value) => self.members(value, &path.parts[1..]),
            Named::BuiltIn(known) => Some(Value::Const(known)),
            Named::Stream => Some(Value::Scalar(self.b.value(SIZE), SIZE)),
            Named::Direction(forward) => {
                if !self.needs_packet(path.span) {
                    return None;
                }
                let (backward, _) = self.read_field(Field::PktBackward, path.span)?;
                if !forward {
                    return Some(Value::Scalar(backward, BOOL));
                }
                Some(Value::Scalar(self.complement(backward, BOOL), BOOL))
            }
            Named::Bound(binding) => self.bound_value(binding, path),
        }
    }

    fn bound_value(&mut self, binding: Binding<'a>, path: &Path) -> Option<Value> {
        let rest = &path.parts[1..];
        let value = match binding {
            Binding::Param(param) => {
                let ty = self.model.params.get(param.0 as usize)?.ty.clone();
                match ty {
                    ParamTy::Scalar(ty) => Value::Scalar(self.b.param(ty, param), ty),
                    ParamTy::Str => Value::Text(EventArg::Param(param)),
                    other => {
                        let found = types::param_name(&other);
                        return self.not_single(&path.parts[0], &format!("a {found}"));
                    }
                }
            }
            Binding::State(state) => return self.read_state(state, None, rest, path.span),
            Binding::Const(expr) => match &expr.kind {
                ExprKind::Str(text) => Value::Text(EventArg::Str(text.clone())),
                _ => Value::Const(self.eval().scalar(&name_expr(path))?),
            },
            Binding::Tag(tag) => {
                let ty = self.model.tags.get(tag.0 as usize)?.ty;
                if !self.needs_packet(path.span) {
                    return None;
                }
                let id = self.b.emit(ty, |out| braid_ir::model::Op::LoadTag { out, tag });
                Value::Scalar(id, ty)
            }
            Binding::Queue(_) => return self.not_single(&path.parts[0], "a queue"),
            Binding::Fn(_) => return self.not_single(&path.parts[0], "a function"),
        };
        self.members(value, rest)
    }

    fn not_single<T>(&mut self, name: &Ident, found: &str) -> Option<T> {
        let message = format!("expected a value, but `{}` is {found}", name.text);
        self.fail(Diagnostic::new(codes::WRONG_NAME, message, name.span, "not a value"))
    }

    /// The parts of a record, such as `.addr`.
    pub fn members(&mut self, value: Value, parts: &[Ident]) -> Option<Value> {
        let [part, rest @ ..] = parts else { return Some(value) };
        let Value::Record(slots) = &value else {
            let message = format!("this has no parts, so no `{}`", part.text);
            return self.fail(Diagnostic::new(
                codes::UNKNOWN_MEMBER,
                message,
                part.span,
                "not a record",
            ));
        };
        match slots.iter().find(|(name, _, _)| *name == part.text) {
            Some((_, id, ty)) => self.members(Value::Scalar(*id, *ty), rest),
            None => {
                let known: Vec<String> = slots.iter().map(|(name, _, _)| name.clone()).collect();
                let diagnostic = unknown_member(part, known.iter().map(String::as_str));
                self.fail(diagnostic)
            }
        }
    }

    /// Reads a field as it is now. Its header must be known to be present. In an atom, the header
    /// is tested.
    pub fn read_field(
        &mut self,
        field: Field,
        span: crate::ast::Span,
    ) -> Option<(braid_ir::model::ValueId, Ty)> {
        // Timers and ending entries have no packet, but they have a time.
        if field != Field::PktTime {
            if let Mode::Expire(state) = self.mode {
                return self.expired_key_field(state, field, span);
            }
            if !self.needs_packet(span) {
                return None;
            }
        }
        let info = field.info();
        self.need_header(info.header, false, span, &format!("`{}`", info.name))?;
        let ty = types::of_field(field);
        let loaded = match self.b.facts.loaded(field, false) {
            Some(known) => known,
            None => {
                let narrow = if info.width == ty.width { ty } else { types::uint(info.width) };
                let id = self.b.emit(narrow, |out| braid_ir::model::Op::Load { out, field });
                self.b.facts.remember(field, false, id);
                id
            }
        };
        if info.width == ty.width {
            return Some((loaded, ty));
        }
        let wide = self.b.emit(ty, |out| braid_ir::model::Op::Resize { out, a: loaded });
        Some((wide, ty))
    }
}

/// The message for a part that a record lacks.
pub fn unknown_member<'s>(
    part: &Ident,
    known: impl Iterator<Item = &'s str> + Clone,
) -> Diagnostic {
    let list: Vec<String> = known.clone().map(|name| format!("`{name}`")).collect();
    Diagnostic::new(
        codes::UNKNOWN_MEMBER,
        format!("there is no part `{}`", part.text),
        part.span,
        "unknown part",
    )
    .note(format!("its parts are {}", list.join(", ")))
    .help_if(did_you_mean_help(&part.text, known))
}

fn name_expr(path: &Path) -> crate::ast::Expr {
    let first = path.parts[..1].to_vec();
    let span = path.span;
    crate::ast::Expr { kind: ExprKind::Path(Path { parts: first, span }), span }
}
