//! Prints operations and terminators.

use super::names::{BIN_OPS, CMP_OPS, INNERS, SHAPES, name_of};
use super::value::{list, set};
use crate::model::{
    Area, Association, Dest, EventArg, Haystack, Key, KeyRef, Model, NewPacket, NewPayload, Op,
    ParamId, Program, ReasonId, SetRef, StateId, StreamText, StringParts, Target, Term, Ty,
    ValueId,
};
use braid_packet::{Header, tunnel};
use std::fmt::Write as _;

/// The type of a value. A value that the program does not have counts as a one-bit integer.
fn ty(program: &Program, value: ValueId) -> Ty {
    let index = usize::try_from(value.0).unwrap_or(usize::MAX);
    program.values.get(index).copied().unwrap_or(Ty::uint(1))
}

/// `v3:ip4`
pub(crate) fn typed(program: &Program, value: ValueId) -> String {
    format!("{value}:{}", ty(program, value))
}

fn values(all: &[ValueId]) -> String {
    list(all, ValueId::to_string)
}

/// An operation in one line.
pub(crate) fn print_op(model: &Model, program: &Program, op: &Op) -> String {
    let outs = op.outs();
    if outs.is_empty() && !matches!(op, Op::Extern { .. } | Op::StateGet { .. }) {
        return effect(model, op);
    }
    let left = list(outs, |out| typed(program, out));
    let equals = if left.is_empty() { "" } else { " = " };
    format!("{left}{equals}{}", right(model, program, op))
}

/// The right side of an operation on outer headers, or one that encrypts or decrypts.
fn outer(model: &Model, op: &Op) -> String {
    let key = |key: &KeyRef| format!("key {}[{}]", model.param_word(key.keys), key.number);
    let known = |of: &Association| {
        let high = of.high.map(|high| format!(" high {high}")).unwrap_or_default();
        format!(", {}{high}", key(&of.key))
    };
    match op {
        Op::Encapsulate { inner, parts, len, words, seal, .. } => {
            let (inner, parts) = (name_of(INNERS, inner), tunnel::names(parts));
            let seal = seal.as_ref().map(|(of, number)| format!("{}, {number}", known(of)));
            let seal = seal.unwrap_or_default();
            format!("encapsulate {inner} ({parts}), {len}, ({}){seal}", values(words))
        }
        Op::Decapsulate { inner, last, offset, association, .. } => {
            let of = association.as_ref().map(known).unwrap_or_default();
            format!("decapsulate {} {}, {offset}{of}", name_of(INNERS, inner), last.name())
        }
        Op::Translate { to, own, quoted, .. } => {
            let all: Vec<_> = own.iter().chain(quoted.iter().flatten()).copied().collect();
            format!("translate {} ({})", to.header().name(), values(&all))
        }
        Op::Encrypt { key: of, number, offset, .. } => {
            format!("encrypt {offset}, {}, {number}", key(of))
        }
        Op::Decrypt { key: of, offset, .. } => format!("decrypt {offset}, {}", key(of)),
        _ => String::new(),
    }
}

/// A TCP option of any kind that is added or removed.
fn set_option(kind: u8, value: Option<&StringParts>) -> String {
    match value {
        Some((len, words)) => format!("set_option {kind}, {len}, ({})", values(words)),
        None => format!("set_option {kind}"),
    }
}

/// The search of the payload, a part of it or a string for the patterns of a parameter.
fn find_patterns(param: String, of: &Haystack) -> String {
    match of {
        Haystack::Payload => format!("find_patterns {param}"),
        Haystack::Part(first, last) => format!("find_patterns {param}, part {first}, {last}"),
        Haystack::Text(len, words) => {
            format!("find_patterns {param}, text {len}, ({})", values(words))
        }
    }
}

/// The search of a stream, or of a string of its request, for the patterns of a parameter.
fn stream_match(param: String, text: Option<StreamText>) -> String {
    match text {
        Some(text) => format!("stream_match {param}, {}", text.word()),
        None => format!("stream_match {param}"),
    }
}

/// The right side of an operation that defines values.
fn right(model: &Model, program: &Program, op: &Op) -> String {
    let param = |id: &ParamId| model.param_word(*id);
    match op {
        Op::Const { out, value } => format!("const {}", ty(program, *out).kind.literal(*value)),
        Op::Param { param: p, .. } => format!("param {}", param(p)),
        Op::ListLen { param: p, .. } => format!("len {}", param(p)),
        Op::ListGet { param: p, index, column, .. } => {
            format!("member {}, {index}, {column}", param(p))
        }
        Op::BackendUp { param: p, index, .. } => format!("up {}, {index}", param(p)),
        Op::Bin { op, a, b, .. } => format!("{} {a}, {b}", name_of(BIN_OPS, op)),
        Op::Cmp { op, a, b, .. } => format!("{} {a}, {b}", name_of(CMP_OPS, op)),
        Op::Not { a, .. } => format!("not {a}"),
        Op::Resize { a, .. } => format!("resize {a}"),
        Op::Clamp { a, .. } => format!("clamp {a}"),
        Op::Select { cond, a, b, .. } => format!("select {cond}, {a}, {b}"),
        Op::InSet { a, set: of, .. } => format!("in {a}, {}", set_ref(model, program, *a, of)),
        Op::Has { header, .. } => format!("has {}", header.name()),
        Op::HasRoom { option, .. } => format!("has_room {}", option.name()),
        Op::Load { field, .. } => format!("load {}", field.info().name),
        Op::LoadEntry { field, .. } => format!("load_entry {}", field.info().name),
        Op::LoadTag { tag, .. } => format!("load_tag {}", model.tag_word(*tag)),
        Op::Native { .. } => "native".to_owned(),
        Op::Stream { .. } => "stream".to_owned(),
        Op::LoadEvent { field, .. } => format!("load_event {field}"),
        Op::LoadStream { field, .. } => format!("load_stream {}", field.word()),
        Op::StreamMatch { param: p, text, .. } => stream_match(param(p), *text),
        Op::Rules { param: p, .. } => format!("rules {}", param(p)),
        Op::Route { param: p, addr, .. } => format!("route {}, {addr}", param(p)),
        Op::Patterns { param: p, .. } => format!("patterns {}", param(p)),
        Op::FindPatterns { param: p, of, .. } => find_patterns(param(p), of),
        Op::InStrings { param: p, len, words, .. } => {
            format!("in_strings {}, {len}, ({})", param(p), values(words))
        }
        Op::LoadBytes { area, offset, .. } => format!("load_{} {offset}", self::area(*area)),
        Op::LoadString { area, offset, len, .. } => {
            format!("string_{} {offset}, {len}", self::area(*area))
        }
        Op::StoreBytes { area, offset, a, .. } => {
            format!("store_{} {offset}, {a}", self::area(*area))
        }
        Op::ReplaceBytes { offset, old, new, words, .. } => {
            format!("replace_payload {offset}, {old}, {new}, ({})", values(words))
        }
        Op::SetOption { kind, value, .. } => set_option(*kind, value.as_ref()),
        Op::Encapsulate { .. }
        | Op::Decapsulate { .. }
        | Op::Translate { .. }
        | Op::Encrypt { .. }
        | Op::Decrypt { .. } => outer(model, op),
        Op::Extern { name, param: p, args, .. } => {
            let on = p.as_ref().map_or(String::new(), |p| format!("[{}]", param(p)));
            format!("extern {}{on}({})", super::value::name(name), values(args))
        }
        Op::StateExists { state, key, .. } => format!("exists {}", entry(model, *state, key)),
        Op::StateGet { state, key, .. } => format!("get {}", entry(model, *state, key)),
        Op::StateSet { state, key, values: all, .. } => {
            format!("set {}, ({})", entry(model, *state, key), values(all))
        }
        Op::StatePut { state, key, slot, value, .. } => {
            format!("put {}, {slot}, {value}", entry(model, *state, key))
        }
        Op::StateLen { state, .. } => format!("entries {}", model.state_word(*state)),
        Op::Expiring { .. } => "expiring".to_owned(),
        Op::ExpiringKey { .. } => "expiring_key".to_owned(),
        Op::Take { pool, .. } => format!("take {}", param(pool)),
        Op::TakeThis { pool, a, .. } => format!("take_this {}, {a}", param(pool)),
        _ => effect(model, op),
    }
}

/// An operation that defines no value.
fn effect(model: &Model, op: &Op) -> String {
    match op {
        Op::Store { field, a } => format!("store {}, {a}", field.info().name),
        Op::StoreTag { tag, a } => format!("store_tag {}, {a}", model.tag_word(*tag)),
        Op::PushVlan { id } => format!("push_vlan {id}"),
        Op::PopVlan => "pop_vlan".to_owned(),
        Op::PushOption { option, values } => push_option(*option, values),
        Op::PopOption { option } => format!("pop_option {}", option.name()),
        Op::StateDelete { state, key } => format!("delete {}", entry(model, *state, key)),
        Op::Release { pool, a } => format!("release {}, {a}", model.param_word(*pool)),
        Op::Emit { event, args } => {
            let args = list(args, |arg| event_arg(model, arg));
            format!("emit {}({args})", model.event_word(*event))
        }
        Op::Count { row } => format!("count {row}"),
        Op::Mirror { port } => format!("mirror {}", dest(model, *port)),
        Op::Create { new, port } => create(model, new, *port),
        Op::Expiring { .. } => "expiring".to_owned(),
        Op::ExpiringKey { .. } => "expiring_key".to_owned(),
        _ => String::new(),
    }
}

fn event_arg(model: &Model, arg: &EventArg) -> String {
    match arg {
        EventArg::Value(value) => value.to_string(),
        EventArg::Str(text) => format!("{text:?}"),
        EventArg::Bytes(values) => format!("bytes({})", list(values, ValueId::to_string)),
        EventArg::Param(param) => format!("param {}", model.param_word(*param)),
    }
}

fn area(area: Area) -> String {
    match area {
        Area::Payload => "payload".to_owned(),
        Area::TcpOption(kind) => format!("option {kind},"),
        Area::IpOption(kind) => format!("ip_option {kind},"),
        Area::Ip6Extension(kind) => format!("extension {kind},"),
    }
}

fn push_option(option: Header, values: &[ValueId]) -> String {
    format!("push_option {}({})", option.name(), list(values, ValueId::to_string))
}

fn create(model: &Model, new: &NewPacket, port: Dest) -> String {
    let fields = list(&new.fields, |(field, value)| format!("{} = {value}", field.info().name));
    let mut options = String::new();
    for (option, values) in &new.options {
        let _ = write!(options, "{} ", push_option(*option, values));
    }
    let payload = match new.payload {
        NewPayload::Empty => "empty".to_owned(),
        NewPayload::Quote(most) => format!("quote {most}"),
        NewPayload::Same => "same".to_owned(),
    };
    let shape = name_of(SHAPES, &new.shape);
    let port = dest(model, port);
    let exchanged = if new.exchanged { " exchanged" } else { "" };
    format!("create {shape} {{ {fields} }} {options}payload {payload}{exchanged} to {port}")
}

pub(crate) fn dest(model: &Model, dest: Dest) -> String {
    match dest {
        Dest::Onward => "onward".to_owned(),
        Dest::Back => "back".to_owned(),
        Dest::Port(port) => format!("port {}", model.port_word(port)),
    }
}

/// `map[entry]`
fn entry(model: &Model, state: StateId, key: &Key) -> String {
    let key = match key {
        Key::Entry => "entry".to_owned(),
        Key::Quoted => "quoted".to_owned(),
        Key::Reversed(false) => "reverse".to_owned(),
        Key::Reversed(true) => "quoted reverse".to_owned(),
        Key::Explicit(all) => values(all),
    };
    format!("{}[{key}]", model.state_word(state))
}

fn set_ref(model: &Model, program: &Program, a: ValueId, of: &SetRef) -> String {
    match of {
        SetRef::Const(members) => set(members, ty(program, a).kind),
        SetRef::Param(param) => format!("set {}", model.param_word(*param)),
        SetRef::List(param, column) => format!("list {}, {column}", model.param_word(*param)),
    }
}

/// A terminator in one line.
pub(super) fn print_term(model: &Model, term: &Term) -> String {
    match term {
        Term::Jump(to) => format!("jump {}", target(to)),
        Term::Branch { cond, yes, no } => format!("branch {cond}, {}, {}", target(yes), target(no)),
        Term::Output { ports, row } => {
            format!("output {} at {row}", list(ports, |port| dest(model, *port)))
        }
        Term::Drop { reason: why, row } => format!("drop {} at {row}", reason(model, *why)),
        Term::Consume { row } => format!("consume at {row}"),
        Term::Hold { queue, delay, row, full } => {
            let queue = model.queue_word(*queue);
            format!("hold {queue} for {delay} at {row} else {}", target(full))
        }
        Term::Resubmit { row } => format!("resubmit at {row}"),
        Term::Reset { reason: why, row } => format!("reset {} at {row}", reason(model, *why)),
        Term::Bypass { row } => format!("bypass at {row}"),
        Term::Resume { row } => format!("resume at {row}"),
        Term::Return => "return".to_owned(),
    }
}

/// The reason in quotes if that is unambiguous, otherwise its number.
pub(crate) fn reason(model: &Model, id: ReasonId) -> String {
    let text = usize::try_from(id.0).ok().and_then(|index| model.reasons.get(index));
    match text {
        Some(text) if model.reasons.iter().filter(|other| *other == text).count() == 1 => {
            format!("{text:?}")
        }
        _ => id.to_string(),
    }
}

pub(crate) fn target(target: &Target) -> String {
    match target.args.as_slice() {
        [] => target.block.to_string(),
        args => format!("{}({})", target.block, values(args)),
    }
}
