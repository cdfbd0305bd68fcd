//! Lowers new packets and events.

use braid_ir::model::{
    Dest, EventArg, EventDecl, EventId, EventTy, LEFT, NewPacket, NewPayload, Op, ParamTy, RIGHT,
    Shape, Ty, ValueId,
};
use braid_packet::field::FIELDS;
use braid_packet::{Access, Field, Header};

use super::lower::{Lower, Mode};
use super::scope::{Binding, Value};
use super::types::{self, BOOL, uint};
use super::{ends, names, needs, push, say, sides};
use crate::ast::{Contents, Expr, ExprKind, Ident, Part, Path, Push, Span, joined};
use crate::diag::{Diagnostic, codes};

/// The shapes by name.
const SHAPES: &[(&str, Shape)] = &[
    ("icmp", Shape::Icmp),
    ("icmp6", Shape::Icmp6),
    ("tcp", Shape::Tcp4),
    ("tcp6", Shape::Tcp6),
    ("udp", Shape::Udp4),
    ("udp6", Shape::Udp6),
    ("arp", Shape::Arp),
];

/// The most conditions of a new packet. There is an operation for each combination of them.
const MAX_CONDITIONS: usize = 4;

/// Lowers `send SHAPE { … } [to PORT];`.
pub fn send(
    lower: &mut Lower<'_>,
    shape: &Ident,
    contents: &Contents,
    port: Option<&Ident>,
    span: Span,
) -> Option<()> {
    if !needs::packet(lower, span) {
        return None;
    }
    let found = SHAPES.iter().find(|(name, _)| *name == shape.text).map(|(_, shape)| *shape);
    let Some(found) = found else {
        let known = SHAPES.iter().map(|(name, _)| *name);
        let message = format!("there is no shape `{}`", shape.text);
        let diagnostic = Diagnostic::new(codes::SHAPE_FIELD, message, shape.span, "unknown");
        return lower.fail(
            diagnostic
                .help("the shapes are icmp, icmp6, tcp, tcp6, udp, udp6 and arp")
                .help_if(lower.suggest(&shape.text, known)),
        );
    };
    let conditions = contents.parts.iter().filter_map(|part| part.when.as_ref());
    if let Some(many) = conditions.clone().nth(MAX_CONDITIONS) {
        let message = format!("a new packet has at most {MAX_CONDITIONS} conditions");
        return lower.fail(Diagnostic::new(codes::TOO_LARGE, message, many.span, "one too many"));
    }
    options_once(lower, contents);
    let parts: Vec<_> = contents.parts.iter().map(|part| new_part(lower, found, part)).collect();
    let payload = match &contents.payload {
        Some((what, length)) => new_payload(lower, what, length.as_ref()),
        None => Some(NewPayload::Empty),
    };
    let port = match port {
        Some(port) => ends::dest(lower, port),
        None => Some(Dest::Back),
    };
    if found == Shape::Arp {
        needs::header(lower, Header::Eth, false, span, "`send arp`")?;
    } else {
        // Unless both addresses are assigned, the new packet takes addresses from the current
        // packet.
        let (header, ends) = ip_part(found);
        let always = parts.iter().flatten().filter(|part| part.when.is_none());
        let assigned: Vec<Field> =
            always.flat_map(|part| &part.fields).map(|(field, _)| *field).collect();
        let given = |end: &Field| assigned.contains(end);
        if !ends.iter().all(given) {
            needs::header(lower, header, false, span, &format!("`send {}`", shape.text))?;
        }
    }
    let (parts, payload) = (parts.into_iter().collect::<Option<Vec<_>>>()?, payload?);
    let (fields, options) = (Vec::new(), Vec::new());
    let new = NewPacket { shape: found, exchanged: false, fields, options, payload };
    with_parts(lower, new, &parts, port?);
    Some(())
}

/// Fields and options of a new packet, always or if a value is true.
struct NewPart {
    when: Option<ValueId>,
    fields: Vec<(Field, ValueId)>,
    options: Vec<(Header, Vec<ValueId>)>,
}

impl NewPart {
    fn values_mut(&mut self) -> impl Iterator<Item = &mut ValueId> {
        let fields = self.fields.iter_mut().map(|(_, id)| id);
        fields.chain(self.options.iter_mut().flat_map(|(_, ids)| ids))
    }
}

/// Lowers a part of a new packet. Where its condition is false, its values are 0.
fn new_part(lower: &mut Lower<'_>, shape: Shape, part: &Part) -> Option<NewPart> {
    let Some(cond) = &part.when else { return part_values(lower, shape, part) };
    let (yes, no) = (lower.b.block(), lower.b.block());
    lower.predicate(cond, yes, no);
    lower.b.start(yes);
    let Some(mut found) = part_values(lower, shape, part) else {
        // The code behind it is still checked.
        let behind = lower.b.block();
        lower.b.jump(behind, Vec::new());
        lower.b.start(no);
        lower.b.jump(behind, Vec::new());
        lower.b.start(behind);
        return None;
    };
    let mut values: Vec<ValueId> = found.values_mut().map(|id| *id).collect();
    let mut types: Vec<Ty> = values.iter().map(|id| lower.b.ty(*id)).collect();
    types.push(BOOL);
    values.push(lower.b.constant(BOOL, 1));
    let (join, joined) = lower.b.block_with(&types);
    lower.b.jump(join, values);
    lower.b.start(no);
    let none = types.iter().map(|ty| lower.b.constant(*ty, 0)).collect();
    lower.b.jump(join, none);
    lower.b.start(join);
    found.values_mut().zip(&joined).for_each(|(id, value)| *id = *value);
    found.when = joined.last().copied();
    Some(found)
}

fn part_values(lower: &mut Lower<'_>, shape: Shape, part: &Part) -> Option<NewPart> {
    let mut fields = Vec::new();
    let mut whole = true;
    for (path, value) in &part.fields {
        let found = new_field(lower, shape, path);
        let found =
            found.and_then(|field| Some((field, lower.typed(value, types::of_field(field))?)));
        whole &= found.is_some();
        fields.extend(found);
    }
    let options = new_options(lower, shape, &part.options)?;
    whole.then_some(NewPart { when: None, fields, options })
}

/// Sends a new packet with these parts: tests one condition after the other.
fn with_parts(lower: &mut Lower<'_>, new: NewPacket, parts: &[NewPart], port: Dest) {
    let Some((part, rest)) = parts.split_first() else { return create(lower, new, port) };
    let mut whole = new.clone();
    whole.fields.extend_from_slice(&part.fields);
    whole.options.extend_from_slice(&part.options);
    let Some(when) = part.when else { return with_parts(lower, whole, rest, port) };
    let [yes, no, done] = [(); 3].map(|()| lower.b.block());
    lower.b.branch(when, yes, no);
    for (block, new) in [(yes, whole), (no, new)] {
        lower.b.start(block);
        with_parts(lower, new, rest, port);
        lower.b.jump(done, Vec::new());
    }
    lower.b.start(done);
}

/// Sends a new packet. A packet that goes to the side from which the current packet has come goes
/// back, also if the program names this side.
fn create(lower: &mut Lower<'_>, new: NewPacket, port: Dest) {
    sides::by_origin(lower, |lower, origin| match (origin, port) {
        (None, Dest::Port(LEFT)) => by_direction(lower, &new, (Dest::Back, Dest::Onward)),
        (None, Dest::Port(RIGHT)) => by_direction(lower, &new, (Dest::Onward, Dest::Back)),
        _ => {
            let port = sides::back_to(port, origin);
            let exchanged = origin.is_some_and(|side| port == Dest::Port(side));
            let new = Box::new(NewPacket { exchanged, ..new.clone() });
            lower.b.op(Op::Create { new, port });
        }
    });
}

/// Sends a new packet to one place if the current packet goes forward, and to another one if it
/// goes backward.
fn by_direction(lower: &mut Lower<'_>, new: &NewPacket, (forward, backward): (Dest, Dest)) {
    let cond = lower.b.load(Field::PktBackward);
    let [yes, no, done] = [(); 3].map(|()| lower.b.block());
    lower.b.branch(cond, yes, no);
    for (block, port) in [(yes, backward), (no, forward)] {
        lower.b.start(block);
        lower.b.op(Op::Create { new: Box::new(new.clone()), port });
        lower.b.jump(done, Vec::new());
    }
    lower.b.start(done);
}

fn new_field(lower: &mut Lower<'_>, shape: Shape, path: &Path) -> Option<Field> {
    let name = joined(path);
    let fits = |field: &Field| shape.takes(field.info().header);
    match Field::by_name(&name) {
        Some(field) if fits(&field) && field.info().access == Access::Rw => Some(field),
        Some(field) if fits(&field) => {
            let message = format!("`{name}` cannot be assigned");
            lower.fail(
                Diagnostic::new(codes::READ_ONLY_FIELD, message, path.span, "read-only")
                    .note(field.info().doc),
            )
        }
        _ => {
            let known = FIELDS.iter().filter(|info| fits(&info.field)).map(|info| info.name);
            let message = format!("`{name}` is not a field of the new packet");
            lower.fail(
                Diagnostic::new(codes::SHAPE_FIELD, message, path.span, "not in this shape")
                    .help_if(lower.suggest(&name, known)),
            )
        }
    }
}

/// The TCP options of a new packet, each with its values.
fn new_options(
    lower: &mut Lower<'_>,
    shape: Shape,
    options: &[Push],
) -> Option<Vec<(Header, Vec<ValueId>)>> {
    let mut found: Vec<(Header, Vec<ValueId>)> = Vec::new();
    for push in options {
        let (option, values) = push::option(lower, push)?;
        if !shape.headers().contains(&Header::Tcp) {
            let message = "only a new TCP packet has TCP options";
            let wrong = Diagnostic::new(codes::SHAPE_FIELD, message, push.span, "");
            return lower.fail(wrong.help("write `send tcp` or `send tcp6`"));
        }
        found.push((option, values));
    }
    Some(found)
}

/// Reports an option that a new packet may get twice.
fn options_once(lower: &mut Lower<'_>, contents: &Contents) {
    let options: Vec<&Push> = contents.parts.iter().flat_map(|part| &part.options).collect();
    for (at, push) in options.iter().enumerate() {
        let name = joined(&push.header);
        if options[..at].iter().any(|before| joined(&before.header) == name) {
            let message = format!("the option `{name}` is given twice");
            lower.say(Diagnostic::new(codes::SHAPE_FIELD, message, push.span, "again"));
        }
    }
}

fn new_payload(lower: &mut Lower<'_>, what: &Ident, length: Option<&Expr>) -> Option<NewPayload> {
    match (what.text.as_str(), length) {
        ("same", None) => Some(NewPayload::Same),
        ("quote", Some(length)) => {
            let bytes = lower.eval().number(length, uint(16))?;
            Some(NewPayload::Quote(u16::try_from(bytes).unwrap_or(u16::MAX)))
        }
        _ => {
            let message = "the payload of a new packet is `quote(N)` or `same`";
            lower.fail(Diagnostic::new(codes::SHAPE_FIELD, message, what.span, "neither"))
        }
    }
}

/// Lowers `emit EVENT { … };`.
pub fn emit_event(
    lower: &mut Lower<'_>,
    name: &Ident,
    args: &[(Ident, Expr)],
    span: Span,
) -> Option<()> {
    let decl = lower.module.event(name, lower.diags)?.clone();
    if args.len() > types::MAX_PARTS {
        let message = format!("an event has at most {} fields", types::MAX_PARTS);
        return lower.fail(Diagnostic::new(codes::EVENT_FIELDS, message, span, "too many"));
    }
    let args = &with_flow(lower, &decl, args, span);
    let mut whole = check_event_args(lower, &decl, name, args, span);
    let mut values = Vec::new();
    for (field, ty) in &decl.fields {
        let Some((_, value)) = args.iter().find(|(arg, _)| arg.text == *field) else {
            continue;
        };
        match event_arg(lower, *ty, value) {
            Some(value) => values.push(value),
            None => whole = false,
        }
    }
    if !whole {
        return None;
    }
    let event = event_id(lower, decl);
    lower.b.op(Op::Emit { event, args: values });
    Some(())
}

/// The fields of an event, with those of its flow that the program leaves out. They are those of
/// the packet or of the connection, or in a handler those of its event.
fn with_flow(
    lower: &Lower<'_>,
    decl: &EventDecl,
    args: &[(Ident, Expr)],
    span: Span,
) -> Vec<(Ident, Expr)> {
    let mut all = args.to_vec();
    let from = match lower.mode {
        Mode::Packet | Mode::Stream(_) => "inet",
        Mode::Handler(of)
            if lower.model.events.get(of.index()).is_some_and(EventDecl::names_flow) =>
        {
            "event"
        }
        _ => return all,
    };
    let ident = |text: &str| Ident { text: text.to_owned(), span };
    let of_flow = if decl.names_flow() { EventDecl::of_flow().fields } else { Vec::new() };
    for (field, _) in of_flow {
        if !args.iter().any(|(arg, _)| arg.text == field) {
            let path = Path { parts: vec![ident(from), ident(&field)], span };
            all.push((ident(&field), Expr { kind: ExprKind::Path(path), span }));
        }
    }
    all
}

fn check_event_args(
    lower: &mut Lower<'_>,
    decl: &EventDecl,
    name: &Ident,
    args: &[(Ident, Expr)],
    span: Span,
) -> bool {
    let mut whole = true;
    for (at, (arg, _)) in args.iter().enumerate() {
        if !decl.fields.iter().any(|(field, _)| *field == arg.text) {
            let known = decl.fields.iter().map(|(field, _)| field.as_str());
            let message = format!("`{}` has no field `{}`", name.text, arg.text);
            let help = lower.suggest(&arg.text, known);
            let wrong = Diagnostic::new(codes::EVENT_FIELDS, message, arg.span, "unknown");
            lower.say(wrong.help_if(help));
            whole = false;
        } else if args[..at].iter().any(|(before, _)| before.text == arg.text) {
            let message = format!("the field `{}` is given twice", arg.text);
            lower.say(Diagnostic::new(codes::EVENT_FIELDS, message, arg.span, "again"));
            whole = false;
        }
    }
    let missing: Vec<String> = decl
        .fields
        .iter()
        .filter(|(field, _)| !args.iter().any(|(arg, _)| arg.text == *field))
        .map(|(field, _)| format!("`{field}`"))
        .collect();
    if !missing.is_empty() {
        let message = format!("`{}` lacks {}", name.text, missing.join(", "));
        lower.say(Diagnostic::new(codes::EVENT_FIELDS, message, span, "give every field"));
        whole = false;
    }
    whole
}

fn event_arg(lower: &mut Lower<'_>, ty: EventTy, expr: &Expr) -> Option<EventArg> {
    match ty {
        EventTy::Scalar(ty) => lower.typed(expr, ty).map(EventArg::Value),
        EventTy::Str => match text_value(lower, expr)? {
            Value::Text(text) => Some(text),
            Value::Wrong => None,
            Value::Record(parts) if types::is_string(&parts) => {
                Some(EventArg::Bytes(parts.iter().map(|(_, id, _)| *id).collect()))
            }
            _ => lower.fail(say::expected_type("a text", "a number", expr.span)),
        },
    }
}

fn text_value(lower: &mut Lower<'_>, expr: &Expr) -> Option<Value> {
    if let Some(Binding::Param(param)) = names::bare(&lower.scope, expr)
        && let Some(decl) = lower.model.params.get(param.0 as usize)
        && decl.ty == ParamTy::Str
    {
        return Some(Value::Text(EventArg::Param(param)));
    }
    lower.value(expr, None)
}

/// The number of an event type in the model, which gets the type if it lacks it.
pub fn event_id(lower: &mut Lower<'_>, decl: EventDecl) -> EventId {
    if let Some(known) = lower.events.get(&decl.name) {
        return *known;
    }
    let id = EventId(u32::try_from(lower.model.events.len()).unwrap_or(u32::MAX));
    lower.events.insert(decl.name.clone(), id);
    lower.model.events.push(decl);
    id
}

/// The IP header of a shape, and its address fields.
fn ip_part(shape: Shape) -> (Header, [Field; 2]) {
    match shape {
        Shape::Icmp6 | Shape::Tcp6 | Shape::Udp6 => (Header::Ip6, [Field::Ip6Src, Field::Ip6Dst]),
        _ => (Header::Ip4, [Field::IpSrc, Field::IpDst]),
    }
}
