//! Resolves dotted names.

use braid_ir::model::{
    EventId, EventTy, ParamId, ParamTy, StateId, StreamEvent, StreamField, StreamText, Ty,
};
use braid_packet::Field;
use braid_packet::field::FIELDS;

use super::lower::{Lower, Mode};
use super::scope::{Binding, Scope, Value};
use super::types::{self, Type};
use super::{constant, flow, messages};
use crate::ast::{self, Expr, ExprKind, Ident, Path, joined};
use crate::diag::{Diagnostic, codes, did_you_mean_help, foreign_field};

/// Words for the packet or its keys. They are allowed where a call or predicate takes them.
const WORDS: &[&str] = &["packet", "payload", "flow", "biflow"];

/// A dotted name, resolved.
pub enum Named<'a> {
    /// A header field.
    Field(Field),
    /// A field of a declared header: the numbers of the header and the field.
    Declared((usize, usize)),
    /// A local. Its parts follow the name.
    Local(Value),
    /// A name of the function. Its parts follow the name.
    Bound(Binding<'a>),
    /// `forward` (true) or `backward`.
    Direction(bool),
    /// A number that is known everywhere.
    BuiltIn(super::arith::Const),
    /// A number of the stream, of an alert or of an HTTP message, and its type.
    Stream(StreamField, Ty),
    /// A string of an alert or of an HTTP message.
    Text(StreamText),
    /// A field of the event that a handler takes: its number and its type.
    Event(u32, Ty),
}

/// Resolves a name. The caller resolves the parts behind a local or a name of the function. `None`
/// for an unknown name, which is then reported.
pub fn resolve<'a>(lower: &mut Lower<'a>, path: &Path) -> Option<Named<'a>> {
    let first = path.parts.first()?;
    if path.parts.len() > 1
        && let Some(field) = Field::by_name(&joined(path))
    {
        return Some(Named::Field(field));
    }
    if let Some(value) = lower.scope.local(&first.text) {
        return Some(Named::Local(value.clone()));
    }
    if let Some(binding) = lower.scope.binding(&first.text) {
        return Some(Named::Bound(binding));
    }
    if lower.mode.is_stream() && first.text == "stream" {
        return of_stream(lower, path);
    }
    if let Mode::Handler(event) = lower.mode
        && first.text == "event"
    {
        return of_event(lower, event, path);
    }
    if lower.mode == Mode::Stream(StreamEvent::Alert) && first.text == "alert" {
        return of_alert(lower, path);
    }
    if let Mode::Stream(event @ (StreamEvent::Request | StreamEvent::Response)) = lower.mode
        && messages::is_of_message(path)
    {
        return messages::resolve(lower, event, path).map(|part| match part {
            messages::Part::Text(text) => Named::Text(text),
            messages::Part::Number(field, ty) | messages::Part::OfRequest(field, ty) => {
                Named::Stream(field, ty)
            }
        });
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
    if let Some(header) = lower.module.header_of(path) {
        return match lower.module.headers[header].field(path) {
            Ok(field) => Some(Named::Declared((header, field))),
            Err(wrong) => lower.fail(wrong),
        };
    }
    let diagnostic = unknown_name(lower, path, first);
    lower.fail(diagnostic)
}

/// Resolves `stream.len` and `stream.offset` in a stream function.
fn of_stream<'a>(lower: &mut Lower<'a>, path: &Path) -> Option<Named<'a>> {
    let name = joined(path);
    match name.as_str() {
        "stream.len" | "stream.offset" if !flow::has_bytes(lower, path.span) => None,
        "stream.len" => Some(Named::Stream(StreamField::Len, types::SIZE)),
        "stream.offset" => Some(Named::Stream(StreamField::Offset, types::SIZE)),
        "stream.data" => lower.fail(
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
            lower.fail(wrong.help_if(lower.suggest(&name, known)))
        }
    }
}

/// Resolves `event.NAME` in a handler.
fn of_event<'a>(lower: &mut Lower<'a>, event: EventId, path: &Path) -> Option<Named<'a>> {
    let [_, field] = path.parts.as_slice() else {
        let message = format!("`{}` is no field of the event", joined(path));
        let wrong =
            Diagnostic::new(codes::UNKNOWN_FIELD, message, path.span, "expected `event.NAME`");
        return lower.fail(wrong);
    };
    let decl = lower.model.events.get(event.index())?;
    let fields = (0..).zip(&decl.fields);
    let found = fields.clone().find(|(_, (name, _))| *name == field.text);
    match found {
        Some((number, (_, EventTy::Scalar(ty)))) => Some(Named::Event(number, *ty)),
        Some((_, (_, EventTy::Str))) => {
            let message = format!("`{}` is text, which handlers cannot read", field.text);
            lower.fail(Diagnostic::new(codes::NOT_A_VALUE, message, field.span, "text"))
        }
        None => {
            let message = format!("`{}` has no field `{}`", decl.name, field.text);
            let known: Vec<&str> = fields.map(|(_, (name, _))| name.as_str()).collect();
            let help = lower.suggest(&field.text, known);
            let wrong = Diagnostic::new(codes::EVENT_FIELDS, message, field.span, "unknown");
            lower.fail(wrong.help_if(help))
        }
    }
}

/// Resolves a part of the alert for which an `on alert` runs.
fn of_alert<'a>(lower: &mut Lower<'a>, path: &Path) -> Option<Named<'a>> {
    let name = joined(path);
    let (field, ty) = match name.as_str() {
        "alert.sid" => (StreamField::Sid, types::U32),
        "alert.rev" => (StreamField::Rev, types::U32),
        "alert.priority" => (StreamField::Priority, types::uint(8)),
        "alert.from_client" => (StreamField::FromClient, types::BOOL),
        "alert.drop" => (StreamField::Drop, types::BOOL),
        "alert.message" => return Some(Named::Text(StreamText::Message)),
        _ => {
            let known = ["sid", "rev", "priority", "from_client", "drop", "message"];
            let known = known.map(|part| format!("alert.{part}"));
            let message = format!("there is no `{name}`");
            let label = format!("expected {}", known.join(", "));
            let wrong = Diagnostic::new(codes::UNKNOWN_FIELD, message, path.span, label);
            let help = lower.suggest(&name, known.iter().map(String::as_str));
            return lower.fail(wrong.help_if(help));
        }
    };
    Some(Named::Stream(field, ty))
}

fn unknown_name(lower: &Lower<'_>, path: &Path, first: &Ident) -> Diagnostic {
    let name = joined(path);
    if name.starts_with("stream.") {
        return Diagnostic::new(
            codes::MIXED_STREAM,
            format!("`{name}` belongs to a TCP stream, which only a `stream nf` sees"),
            path.span,
            "not in a packet function",
        );
    }
    if messages::is_of_message(path) {
        return messages::absent(path);
    }
    if name.starts_with("event.") {
        let message = format!("`{name}` belongs to an event, and there is none here");
        return Diagnostic::new(codes::UNKNOWN_FIELD, message, path.span, "outside of a handler")
            .help("`on EVENT { … }` reads the fields of the events that it takes");
    }
    if path.parts.len() > 1 {
        let fields = FIELDS.iter().map(|info| info.name);
        let own = lower.scope.names_in_sight();
        let known: Vec<&str> = fields.chain(own.iter().map(String::as_str)).collect();
        return Diagnostic::new(
            codes::UNKNOWN_FIELD,
            format!("there is no field `{name}`"),
            path.span,
            "expected a header field or a part of a record",
        )
        .help_if(foreign_field(&name).or_else(|| lower.suggest(&name, known)));
    }
    if WORDS.contains(&name.as_str()) {
        let message = format!("`{name}` is not a value");
        return Diagnostic::new(codes::NOT_A_VALUE, message, path.span, "")
            .help("write `packet in RULES`, `payload matches PATTERNS`, `hash(flow)`");
    }
    let own = lower.scope.names_in_sight();
    let fields = FIELDS.iter().map(|info| info.name);
    let known = own.iter().map(String::as_str).chain(fields).chain(["forward", "backward"]);
    Diagnostic::new(
        codes::UNKNOWN_NAME,
        format!("there is no `{name}`"),
        first.span,
        "unknown here",
    )
    .help_if(lower.suggest(&name, known))
}

/// The parts of a record, such as `.addr`.
pub fn members(lower: &mut Lower<'_>, value: Value, parts: &[Ident]) -> Option<Value> {
    let [part, rest @ ..] = parts else { return Some(value) };
    let Value::Record(slots) = &value else {
        let message = format!("this has no parts, so no `{}`", part.text);
        return lower.fail(Diagnostic::new(
            codes::UNKNOWN_MEMBER,
            message,
            part.span,
            "not a record",
        ));
    };
    match slots.iter().find(|(name, _, _)| *name == part.text) {
        Some((_, id, ty)) => members(lower, Value::Scalar(*id, *ty), rest),
        None => {
            let known: Vec<String> = slots.iter().map(|(name, _, _)| name.clone()).collect();
            let diagnostic = unknown_member(part, known.iter().map(String::as_str));
            lower.fail(diagnostic)
        }
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

/// Whether an expression is only this word.
pub fn is_word(expr: &Expr, word: &str) -> bool {
    matches!(&expr.kind, ExprKind::Path(path)
        if path.parts.len() == 1 && path.parts[0].text == word)
}

/// The binding of an expression that is only a name.
pub fn bare<'a>(scope: &Scope<'a>, expr: &Expr) -> Option<Binding<'a>> {
    match &expr.kind {
        ExprKind::Path(path) if path.parts.len() == 1 => {
            let name = &path.parts[0].text;
            if scope.local(name).is_some() { None } else { scope.binding(name) }
        }
        _ => None,
    }
}

/// Resolves a written type.
pub fn resolve_type(lower: &mut Lower<'_>, written: &ast::Type) -> Option<Type> {
    let lists: Vec<String> = lower
        .model
        .params
        .iter()
        .filter(|decl| matches!(decl.ty, ParamTy::List(_) | ParamTy::Backends(_)))
        .map(|decl| decl.name.clone())
        .collect();
    types::resolve(written, &|name| lists.iter().any(|list| list == name), lower.diags)
}

/// Resolves a written type that must be scalar.
pub fn scalar_type(lower: &mut Lower<'_>, written: &ast::Type) -> Option<Ty> {
    match resolve_type(lower, written)? {
        Type::Scalar(ty) => Some(ty),
        _ => {
            let message = "expected a scalar type";
            lower.fail(Diagnostic::new(codes::BAD_TYPE, message, written.span, "not a scalar"))
        }
    }
}

/// The table with this name.
pub fn state_named(lower: &mut Lower<'_>, name: &Ident) -> Option<StateId> {
    if let Some(Binding::State(state)) = lower.scope.binding(&name.text) {
        return Some(state);
    }
    let states = lower.model.state.iter().map(|state| state.name.as_str());
    let help = lower.suggest(&name.text, states);
    let message = format!("`{}` is not a state", name.text);
    let diagnostic = Diagnostic::new(codes::NOT_A_STATE, message, name.span, "not a state");
    lower.fail(diagnostic.help_if(help))
}

/// A parameter of a special type, given by its name.
pub fn special(
    lower: &mut Lower<'_>,
    expr: &Expr,
    wanted: &str,
    fits: impl Fn(&ParamTy) -> bool,
) -> Option<ParamId> {
    if let Some(Binding::Param(param)) = bare(&lower.scope, expr)
        && lower.model.params.get(param.0 as usize).is_some_and(|decl| fits(&decl.ty))
    {
        return Some(param);
    }
    if let ExprKind::Path(path) = &expr.kind {
        let known = path.parts.first().is_some_and(|first| lower.scope.knows(&first.text));
        if !known {
            resolve(lower, path)?;
        }
    }
    let (found, label) = description(lower, expr);
    let message = format!("expected a parameter of type {wanted}, found {found}");
    lower.fail(Diagnostic::new(codes::WRONG_NAME, message, expr.span, label))
}

/// Describes an expression for a message: the description, and the label beside it.
fn description(lower: &Lower<'_>, expr: &Expr) -> (String, String) {
    let what = match bare(&lower.scope, expr) {
        Some(Binding::Param(param)) => {
            let ty = lower.model.params.get(param.0 as usize).map(|decl| &decl.ty);
            format!("one of type {}", ty.map_or_else(String::new, types::param_name))
        }
        Some(Binding::State(_)) => "a state".into(),
        Some(Binding::Const(_)) => "a constant".into(),
        Some(Binding::Tag(_)) => "a tag".into(),
        Some(Binding::Queue(_)) => "a queue".into(),
        Some(Binding::Fn(_)) => "a function".into(),
        None => "something else".into(),
    };
    let label = format!("this is {what}");
    (what, label)
}
