//! Lowers outer headers that a packet gets or loses: `push ip { … }, gre { … } else …` and
//! `pop ip, gre else …`.
//!
//! Headers that begin with `eth` hold the whole frame. Others hold the packet behind the link
//! header and its VLAN tags.

use braid_ir::model::{Area, Association, BlockId, Inner, MAX_STRING_WORDS, Op, ValueId};
use braid_packet::field::{self, Parse};
use braid_packet::{Access, Field, FieldInfo, HEADERS, Header, tunnel};

use super::contents::{self, Placed};
use super::crypt;
use super::declared::Parent;
use super::facts::Amount;
use super::headers;
use super::lower::Lower;
use super::needs;
use super::types::{self, BOOL, U32, uint};
use crate::ast::{Expr, Ident, Path, Push, Span, Stmt, joined};
use crate::diag::{Diagnostic, codes, did_you_mean_help};

/// An outer header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outer {
    /// A header of the table.
    Known(Header),
    /// A header of the program, by its number.
    Declared(usize),
}

/// The headers that outer headers may begin with.
const FIRST: [Header; 5] = [Header::Eth, Header::Ip4, Header::Ip6, Header::Mpls, Header::Pppoe];

/// Whether outer headers may begin with this header.
#[must_use]
pub fn begins(path: &Path) -> bool {
    let name = joined(path);
    FIRST.iter().any(|header| header.name() == name)
}

/// Lowers `push HEADER { field: EXPR, … }, … else STMT;`.
pub fn push<'a>(
    lower: &mut Lower<'a>,
    pushes: &[Push],
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    let paths: Vec<&Path> = pushes.iter().map(|push| &push.header).collect();
    let (inner, outer) = stack(lower, &paths)?;
    if !needs::packet(lower, span) {
        return None;
    }
    let mut contents = Contents::default();
    let mut seal = None;
    for (at, (push, header)) in pushes.iter().zip(&outer).enumerate() {
        if !push.args.is_empty() {
            let message = format!("`{}` takes values with names", joined(&push.header));
            let wrong = Diagnostic::new(codes::WRONG_ARGUMENTS, message, push.span, "");
            return lower.fail(wrong.help("write `{ field: value }`"));
        }
        match header {
            Outer::Known(header) => match tunnel::key_number(*header) {
                Some(spi) => {
                    let (fields, sealed) = crypt::seal(lower, *header, push)?;
                    let (first, _) = place(spi)?;
                    let spi = 8 * contents.bytes + first;
                    known(lower, (*header, &fields), None, &mut contents)?;
                    let number = contents.values.iter().find(|((first, _), _)| *first == spi);
                    seal = number.map(|(_, number)| (sealed.0.with(*number), sealed.1));
                }
                None => known(lower, (*header, push), outer.get(at + 1), &mut contents)?,
            },
            Outer::Declared(number) => {
                let module = lower.module;
                let own = &module.headers[*number];
                let values = contents::of(lower, own, &push.fields)?;
                contents.add(own.least, values);
            }
        }
    }
    let most = u32::try_from(16 * MAX_STRING_WORDS).unwrap_or(u32::MAX);
    if contents.bytes > most {
        let message = format!("these headers have {} bytes, more than {most}", contents.bytes);
        return lower.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, ""));
    }
    let Some(otherwise) = otherwise else { return needs_else(lower, "push", span) };
    let words = contents::words(lower, contents.bytes, &contents.values);
    let ok = lower.b.value(BOOL);
    let (parts, len) = (contents.parts, contents.bytes);
    lower.b.op(Op::Encapsulate { ok, inner, parts, len, words, seal });
    lower.b.facts.changed_outer();
    lower.or_else(ok, otherwise);
    Some(())
}

/// Lowers `pop HEADER, … else STMT;`.
pub fn pop<'a>(
    lower: &mut Lower<'a>,
    pops: &[Push],
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    let paths: Vec<&Path> = pops.iter().map(|pop| &pop.header).collect();
    let (inner, outer) = stack(lower, &paths)?;
    if !needs::packet(lower, span) {
        return None;
    }
    let label = |(_, header): &(&&Path, &Outer)| **header == Outer::Known(Header::Mpls);
    if let Some((path, _)) = paths.iter().zip(&outer).filter(label).nth(1) {
        let message = "`pop` removes one label at a time";
        let wrong = Diagnostic::new(codes::UNKNOWN_HEADER, message, path.span, "a second one");
        return lower.fail(wrong.help("remove the outer label first: `pop mpls else …;`"));
    }
    let Some(otherwise) = otherwise else { return needs_else(lower, "pop", span) };
    let (refused, done) = (lower.b.block(), lower.b.block());
    let (mut end, mut association) = ((Header::Pkt, Amount::Const(0)), None);
    for (pop, header) in pops.iter().zip(&outer) {
        let path = &pop.header;
        match header {
            Outer::Known(Header::Esp) if end.0 == Header::Udp => {
                association = Some(in_udp(lower, pop, refused)?);
            }
            Outer::Known(header) => {
                let number = tunnel::key_number(*header);
                let known = match number {
                    Some(_) => Some(crypt::open(lower, *header, pop)?),
                    None => no_values(lower, pop).map(|()| None)?,
                };
                lower.with_absent(Some(refused), |lower| {
                    needs::header(lower, *header, false, path.span, "")
                })?;
                association = known.zip(number).map(|(known, field)| {
                    known.with(lower.b.emit(uint(32), |out| Op::Load { out, field }))
                });
                end = (*header, Amount::Const(0));
            }
            Outer::Declared(number) => {
                no_values(lower, pop)?;
                let own = headers::test(lower, *number, path.span, refused)?;
                end = (Header::Pkt, headers::add(lower, own.start, own.len));
            }
        }
    }
    let (last, behind) = end;
    let offset = headers::value(lower, behind);
    let ok = lower.b.value(BOOL);
    lower.b.op(Op::Decapsulate { ok, inner, last, offset, association });
    lower.b.facts.changed_outer();
    lower.b.branch(ok, done, refused);
    lower.refused(refused, done, otherwise);
    Some(())
}

/// What `pop … udp, esp { … }` knows of the packet. The payload of UDP begins with the header of
/// ESP (RFC 3948 §2.1), and so with the number of its key. Where it is too short, the program goes
/// on in the block `refused`.
fn in_udp(lower: &mut Lower<'_>, pop: &Push, refused: BlockId) -> Option<Association> {
    let known = crypt::open(lower, Header::Esp, pop)?;
    let offset = lower.b.constant(U32, 0);
    let (found, number) = (lower.b.value(BOOL), lower.b.value(U32));
    lower.b.op(Op::LoadBytes { found, out: number, area: Area::Payload, offset });
    let next = lower.b.block();
    lower.b.branch(found, next, refused);
    lower.b.start(next);
    Some(known.with(number))
}

/// Reports values of a header that is removed without one.
pub fn no_values(lower: &mut Lower<'_>, pop: &Push) -> Option<()> {
    if pop.args.is_empty() && pop.fields.is_empty() {
        return Some(());
    }
    let message = format!("`pop {}` takes no values", joined(&pop.header));
    lower.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, pop.span, ""))
}

fn needs_else(lower: &mut Lower<'_>, word: &str, span: Span) -> Option<()> {
    let message = match word {
        "push" => "the packet may be too long, or not one that these headers can hold",
        _ => "the packet may lack these headers, be a fragment, or hold nothing behind them",
    };
    let wrong = Diagnostic::new(codes::NEEDS_ELSE, message, span, "and then nothing changes");
    lower.fail(wrong.help(format!("write `{word} … else drop;`")))
}

/// The outer headers with these names, if each may follow the one in front, and what they hold.
fn stack(lower: &mut Lower<'_>, paths: &[&Path]) -> Option<(Inner, Vec<Outer>)> {
    let mut outer: Vec<Outer> = Vec::new();
    for path in paths {
        let header = named(lower, path)?;
        if !may_follow(lower, outer.last().copied(), header) {
            let message = match outer.last() {
                None => format!("outer headers cannot begin with `{}`", joined(path)),
                Some(front) => {
                    format!("`{}` cannot follow `{}` here", joined(path), name(lower, *front))
                }
            };
            let wrong = Diagnostic::new(codes::UNKNOWN_HEADER, message, path.span, "");
            return lower.fail(wrong.help(
                "the outermost header comes first: `eth` for a whole frame, `ip`, `ip6`, `mpls` or \
                 `pppoe`; then for example `udp`, `vxlan`",
            ));
        }
        outer.push(header);
    }
    let is_frame = outer.first() == Some(&Outer::Known(Header::Eth));
    let inner = if is_frame { Inner::Frame } else { Inner::Packet };
    if let (Some(last), Some(path)) = (outer.last(), paths.last())
        && let Some(help) = cannot_hold(*last, inner)
    {
        let what = match inner {
            _ if outer.len() == 1 && is_frame => "be the only outer header",
            _ if *last == Outer::Known(Header::Pppoe) => "be the last outer header",
            Inner::Frame => "hold a frame",
            Inner::Packet => "hold a packet without its frame",
        };
        let message = format!("`{}` cannot {what}", joined(path));
        let wrong = Diagnostic::new(codes::UNKNOWN_HEADER, message, path.span, "");
        return lower.fail(wrong.help(help));
    }
    Some((inner, outer))
}

/// Why a header cannot be the last outer one in front of a frame or a packet.
fn cannot_hold(last: Outer, inner: Inner) -> Option<&'static str> {
    match (last, inner) {
        (Outer::Known(Header::Pppoe), _) => Some("put `ppp` behind it"),
        (Outer::Known(Header::Eth), _) => Some("list the headers behind it, such as `ip`, `gre`"),
        (Outer::Known(Header::Ah | Header::Esp), Inner::Frame) => Some("begin with `ip` or `ip6`"),
        (Outer::Known(Header::Vxlan), Inner::Packet) => {
            Some("VXLAN holds frames: begin with `eth`")
        }
        (Outer::Known(Header::Ip4 | Header::Ip6 | Header::Udp), Inner::Frame) => {
            Some("put `gre` behind `ip`, or `udp` and `vxlan`")
        }
        _ => None,
    }
}

fn name(lower: &Lower<'_>, header: Outer) -> String {
    match header {
        Outer::Known(header) => header.name().to_owned(),
        Outer::Declared(number) => lower.module.headers[number].def.name.text.clone(),
    }
}

/// The outer header with this name.
fn named(lower: &mut Lower<'_>, path: &Path) -> Option<Outer> {
    let name = joined(path);
    if let Some(number) = lower.module.header(&name) {
        return Some(Outer::Declared(number));
    }
    let is_outer =
        |header: &Header| tunnel::added_len(*header).is_some() && *header != Header::GreKey;
    let outer: Vec<Header> = HEADERS.iter().map(|(header, _)| *header).filter(is_outer).collect();
    if let Some(header) = outer.iter().find(|header| header.name() == name) {
        return Some(Outer::Known(*header));
    }
    let message = format!("`{name}` cannot be an outer header");
    let wrong = Diagnostic::new(codes::UNKNOWN_HEADER, message, path.span, "");
    let known = tunnel::names(&outer);
    lower.fail(wrong.help(format!("the headers that can are {known}, and headers of the program")))
}

/// Whether an outer header may follow another one.
fn may_follow(lower: &Lower<'_>, front: Option<Outer>, header: Outer) -> bool {
    use Header::{Ah, Esp, Eth, Mpls, Ppp, Pppoe};
    match (front, header) {
        (None, Outer::Known(header)) => FIRST.contains(&header),
        (Some(Outer::Known(front)), Outer::Known(header)) => {
            header.info().outer.as_ref().is_some_and(|outer| outer.behind.contains(&front))
        }
        (Some(front), Outer::Declared(number)) => {
            lower.module.headers[number].parents.iter().any(|parent| match (*parent, front) {
                (Parent::Known(parent), Outer::Known(front)) => {
                    parent == front && !matches!(front, Ah | Eth | Mpls | Esp | Ppp | Pppoe)
                }
                (Parent::Declared(parent), Outer::Declared(front)) => parent == front,
                _ => false,
            })
        }
        _ => false,
    }
}

/// The contents of outer headers.
#[derive(Default)]
struct Contents {
    /// The headers of the table.
    parts: Vec<Header>,
    /// The values of fields, with their places in all of the headers.
    values: Placed,
    /// The headers' length.
    bytes: u32,
}

impl Contents {
    /// Adds a header of a number of bytes.
    fn add(&mut self, bytes: u32, values: Placed) {
        let start = 8 * self.bytes;
        let moved = values.into_iter().map(|((a, b), id)| ((start + a, start + b), id));
        self.values.extend(moved);
        self.bytes += bytes;
    }
}

/// Adds a header of the table.
fn known(
    lower: &mut Lower<'_>,
    (header, push): (Header, &Push),
    next: Option<&Outer>,
    contents: &mut Contents,
) -> Option<()> {
    let facts = header.info().outer.as_ref()?;
    let announces = facts.announces.filter(|_| matches!(next, Some(Outer::Declared(_))));
    let defaults = defaults(facts, next);
    let mut given: Vec<(&FieldInfo, Placed)> = Vec::new();
    let mut whole = true;
    for (name, expr) in &push.fields {
        match value(lower, header, announces, (name, expr)) {
            Some((info, placed)) => {
                if let Some((other, _)) = given.iter().find(|(_, other)| overlap(&placed, other)) {
                    let message = format!("`{}` is given, too, as `{}`", name.text, short(other));
                    lower.say(Diagnostic::new(codes::RECORD_PARTS, message, name.span, "again"));
                    whole = false;
                }
                given.push((info, placed));
            }
            None => whole = false,
        }
    }
    let required = facts.required.iter().copied().chain(announces);
    let missing: Vec<String> = required
        .filter(|field| !defaults.iter().any(|(other, _)| other == field))
        .filter(|field| !given.iter().any(|(info, _)| info.field == *field))
        .map(|field| format!("`{}`", short(field.info())))
        .collect();
    if whole && !missing.is_empty() {
        let message = format!("`{}` needs {}", header.name(), missing.join(" and "));
        lower.say(Diagnostic::new(codes::RECORD_PARTS, message, push.span, ""));
        whole = false;
    }
    if !whole {
        return None;
    }
    let mut values: Placed = given.iter().flat_map(|(_, placed)| placed.clone()).collect();
    let key = given.iter().any(|(info, _)| info.field == Field::GreKey);
    for (field, number) in defaults {
        if !given.iter().any(|(info, _)| info.field == field) {
            values.extend(placed(lower, field, number));
        }
    }
    if let Parse::Rules(rules) = header.info().parse {
        for (at, _, byte) in rules.fixed.iter().filter(|(_, _, byte)| *byte != 0) {
            let first = u32::try_from(8 * at).ok()?;
            let id = lower.b.constant(uint(8), u128::from(*byte));
            values.push(((first, first + 8), id));
        }
    }
    let len = |header| tunnel::added_len(header).and_then(|len| u32::try_from(len).ok());
    contents.parts.push(header);
    let mut bytes = len(header)?;
    if key {
        // The flag for a key.
        values.push(((0, 8), lower.b.constant(uint(8), 0x20)));
        contents.parts.push(Header::GreKey);
        bytes += len(Header::GreKey)?;
    }
    contents.add(bytes, values);
    Some(())
}

/// The values of fields that a program need not give. A field that announces the next header has
/// the first value that does so.
fn defaults(facts: &field::Outer, next: Option<&Outer>) -> Vec<(Field, u128)> {
    let own = facts.defaults.iter().map(|(field, value)| (*field, u128::from(*value)));
    let announcing = facts.required.iter().filter_map(|field| match next {
        Some(Outer::Known(next)) => Some((*field, u128::from(*next.announced_by(*field).first()?))),
        _ => None,
    });
    own.chain(announcing).collect()
}

/// The name of a field without that of its header.
fn short(info: &FieldInfo) -> &'static str {
    info.name.rsplit('.').next().unwrap_or(info.name)
}

/// A field with a constant value at its place.
fn placed(lower: &mut Lower<'_>, field: Field, number: u128) -> Option<((u32, u32), ValueId)> {
    let id = lower.b.constant(uint(field.info().width), number);
    Some((place(field)?, id))
}

/// A field's place in its header. A GRE key lies behind the GRE header.
fn place(field: Field) -> Option<(u32, u32)> {
    let info = field.info();
    let front = if info.header == Header::GreKey { tunnel::added_len(Header::Gre)? } else { 0 };
    let first = u32::try_from(8 * front + tunnel::first_bit(field)?).ok()?;
    Some((first, first + u32::from(info.width)))
}

fn overlap(a: &Placed, b: &Placed) -> bool {
    a.iter().any(|((start, end), _)| b.iter().any(|((from, to), _)| start < to && from < end))
}

/// The value that a program gives a field.
fn value(
    lower: &mut Lower<'_>,
    header: Header,
    announces: Option<Field>,
    (name, expr): (&Ident, &Expr),
) -> Option<(&'static FieldInfo, Placed)> {
    let key = (header == Header::Gre).then_some(Header::GreKey);
    let all = || {
        let headers = [Some(header), key].into_iter().flatten();
        headers.flat_map(|header| header.info().fields).filter(|info| {
            // These fields do not change in a packet, because a check value covers them.
            let is_free = info.access == Access::Rw || tunnel::key_number(header).is_some();
            let may = is_free || announces == Some(info.field);
            may && place(info.field).is_some()
        })
    };
    let Some(info) = all().find(|info| short(info) == name.text) else {
        let of_key = crypt::own_values(header).iter().copied();
        let known: Vec<&str> = all().map(short).chain(of_key).collect();
        let list: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let message = format!("`{}` takes no value for `{}`", header.name(), name.text);
        let wrong = Diagnostic::new(codes::UNKNOWN_FIELD, message, name.span, "unknown")
            .note(format!("the fields that it takes are {}", list.join(", ")))
            .help_if(did_you_mean_help(&name.text, known));
        return lower.fail(wrong);
    };
    let id = lower.typed(expr, types::of_field(info.field))?;
    Some((info, vec![(place(info.field)?, id)]))
}
