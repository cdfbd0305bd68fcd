//! Lowers state: keys, reads, assignments, deletions.

use braid_ir::model::{Granularity, Key, Kind, Model, Op, StateDecl, StateId, Ty, ValueId};
use braid_packet::{Field, FlowKey, Header};

use super::build::Builder;
use super::eval::record_parts;
use super::facts::KeyFact;
use super::lower::{Lower, Mode};
use super::names::{self, is_word, unknown_member};
use super::scope::{Binding, Scope, Value};
use super::types::{self, BOOL};
use super::{bytes, flow, needs, say};
use crate::ast::{Expr, ExprKind, Ident, Span};
use crate::diag::{Diagnostic, codes};

/// An entry of a table.
#[derive(Clone)]
pub struct Entry {
    /// The table.
    pub state: StateId,
    /// Its key.
    pub key: Key,
    /// Its key in a form for comparison.
    pub fact: KeyFact,
}

/// The declaration of a table.
pub fn table(model: &Model, state: StateId) -> Option<&StateDecl> {
    model.state.get(state.0 as usize)
}

/// The entry of a state with these key parts, or with its implicit key.
pub fn entry(
    lower: &mut Lower<'_>,
    state: StateId,
    key: Option<&[Expr]>,
    span: Span,
) -> Option<Entry> {
    let decl = table(&lower.model, state)?;
    let (name, granularity) = (decl.name.clone(), decl.granularity.clone());
    let (key, fact) = match key {
        None => implicit_key(lower, &name, &granularity, span)?,
        Some(parts) => match special_key(parts) {
            Some((quoted, reverse)) => {
                special_entry(lower, &name, &granularity, quoted, reverse, span)?
            }
            None => explicit_key(lower, &name, &granularity, parts, span)?,
        },
    };
    Some(Entry { state, key, fact })
}

fn implicit_key(
    lower: &mut Lower<'_>,
    name: &str,
    granularity: &Granularity,
    span: Span,
) -> Option<(Key, KeyFact)> {
    let headers: Vec<Header> = match granularity {
        Granularity::Global => return Some((Key::Entry, KeyFact::Entry)),
        Granularity::Flow | Granularity::Biflow => vec![Header::Inet],
        Granularity::Fields(fields) => fields.iter().map(|f| f.info().header).collect(),
        Granularity::Key(parts) => {
            let list: Vec<String> = key_groups(parts).map(group_name).collect();
            let message = format!("`{name}` is per ({}) and needs a key", list.join(", "));
            return lower.fail(
                Diagnostic::new(codes::KEY_PARTS, message, span, "which entry?")
                    .help(format!("write `{name}[…]`")),
            );
        }
    };
    let is_of_flow = match granularity {
        Granularity::Fields(fields) => fields.iter().all(|field| flow::is_of_flow(lower, *field)),
        _ => lower.mode.is_stream(),
    };
    if !is_of_flow && !needs::packet(lower, span) {
        return None;
    }
    let what = format!("the key of `{name}`");
    for header in headers {
        needs::header(lower, header, true, span, &what)?;
    }
    Some((Key::Entry, KeyFact::Entry))
}

fn special_entry(
    lower: &mut Lower<'_>,
    name: &str,
    granularity: &Granularity,
    quoted: bool,
    reverse: bool,
    span: Span,
) -> Option<(Key, KeyFact)> {
    let fits = match granularity {
        Granularity::Flow => true,
        Granularity::Biflow => !reverse,
        _ => false,
    };
    if !fits {
        let word = if reverse { "reverse" } else { "quoted" };
        let needs = if reverse { "per flow" } else { "per flow or per biflow" };
        let message = format!("`[{word}]` needs a state {needs}, which `{name}` is not");
        return lower.fail(Diagnostic::new(codes::SPECIAL_KEY, message, span, ""));
    }
    if !needs::packet(lower, span) {
        return None;
    }
    let header = if quoted { Header::Quoted } else { Header::Inet };
    needs::header(lower, header, true, span, &format!("the key of `{name}`"))?;
    Some(match (quoted, reverse) {
        (_, true) => (Key::Reversed(quoted), KeyFact::Reversed(quoted)),
        (true, false) => (Key::Quoted, KeyFact::Quoted),
        (false, false) => (Key::Entry, KeyFact::Entry),
    })
}

fn explicit_key(
    lower: &mut Lower<'_>,
    name: &str,
    granularity: &Granularity,
    parts: &[Expr],
    span: Span,
) -> Option<(Key, KeyFact)> {
    let tys = match granularity {
        Granularity::Global => {
            let message = format!("`{name}` is global and has no key");
            return lower.fail(Diagnostic::new(codes::KEY_PARTS, message, span, ""));
        }
        // A biflow has two notations, so a written key would be ambiguous.
        Granularity::Biflow => {
            let message = format!("`{name}` is per biflow; its key cannot be written out");
            return lower.fail(
                Diagnostic::new(codes::KEY_PARTS, message, span, "")
                    .help("use the implicit key or `[quoted]`"),
            );
        }
        other => key_types(other),
    };
    let groups: Vec<&[Ty]> = key_groups(&tys).collect();
    if groups.len() != parts.len() {
        let list: Vec<String> = groups.iter().map(|group| group_name(group)).collect();
        let message = format!(
            "the key of `{name}` is ({}), found {}",
            list.join(", "),
            say::count(parts.len(), "part")
        );
        return lower.fail(Diagnostic::new(codes::KEY_PARTS, message, span, ""));
    }
    let values: Vec<Option<Vec<ValueId>>> =
        parts.iter().zip(groups).map(|(part, group)| key_part(lower, part, group)).collect();
    let values: Vec<ValueId> = values.into_iter().collect::<Option<Vec<_>>>()?.concat();
    let fact = values.iter().map(|value| lower.b.key_part(*value)).collect();
    Some((Key::Explicit(values), KeyFact::Explicit(fact)))
}

/// The types of a key, by written part: a string is its length and its words.
fn key_groups(tys: &[Ty]) -> impl Iterator<Item = &[Ty]> {
    tys.chunk_by(|_, next| next.kind == Kind::Bytes)
}

fn group_name(group: &[Ty]) -> String {
    match group {
        [ty] => types::name(*ty),
        [_, words @ ..] => format!("bytes<{}>", types::WORD * words.len()),
        [] => String::new(),
    }
}

/// The values of a written part of a key.
fn key_part(lower: &mut Lower<'_>, part: &Expr, group: &[Ty]) -> Option<Vec<ValueId>> {
    match group {
        [ty] => Some(vec![lower.typed(part, *ty)?]),
        _ => bytes::value(lower, part, group.len() - 1),
    }
}

/// Splits `S`, `S[key]`, `S.slot`, `S[key].slot` into table, key and slot.
pub fn state_place<'e>(scope: &Scope<'_>, expr: &'e Expr) -> Option<StatePlace<'e>> {
    let (base, key, slot) = match &expr.kind {
        ExprKind::Member(inner, part) => match &inner.kind {
            ExprKind::Index(base, key) => (&**base, Some(key.as_slice()), Some(part)),
            _ => (&**inner, None, Some(part)),
        },
        ExprKind::Index(base, key) => (&**base, Some(key.as_slice()), None),
        _ => (expr, None, None),
    };
    let ExprKind::Path(path) = &base.kind else { return None };
    let (name, rest) = path.parts.split_first()?;
    if scope.local(&name.text).is_some() {
        return None;
    }
    let Some(Binding::State(state)) = scope.binding(&name.text) else { return None };
    let slot = match (slot, rest) {
        (slot, []) => slot,
        (None, [part]) => Some(part),
        _ => return None,
    };
    Some(StatePlace { state, key, slot })
}

/// Lowers `exists S` and `exists S[key]`. Continues in `yes` or `no`.
pub fn exists(
    lower: &mut Lower<'_>,
    place: &Expr,
    yes: braid_ir::model::BlockId,
    no: braid_ir::model::BlockId,
) -> Option<()> {
    let found = state_place(&lower.scope, place).filter(|found| found.slot.is_none());
    let Some(found) = found else {
        if let ExprKind::Path(path) = &place.kind
            && let [name] = path.parts.as_slice()
        {
            names::state_named(lower, name)?;
        }
        let message = "`exists` needs a state";
        return lower.fail(Diagnostic::new(codes::NOT_A_STATE, message, place.span, ""));
    };
    let entry = entry(lower, found.state, found.key, place.span)?;
    let Entry { state, key, fact } = entry;
    if lower.b.facts.exists(state, &fact) {
        lower.b.jump(yes, Vec::new());
        return Some(());
    }
    let cond = lower.b.emit(BOOL, |out| Op::StateExists { out, state, key });
    lower.b.branch_learning(cond, yes, no, |facts, there| {
        if there {
            facts.learn_entry(state, fact.clone());
        }
    });
    Some(())
}

/// Reads an entry, or a part of an entry.
pub fn read_state(
    lower: &mut Lower<'_>,
    state: StateId,
    key: Option<&[Expr]>,
    parts: &[Ident],
    span: Span,
) -> Option<Value> {
    let slots = table(&lower.model, state)?.slots.clone();
    if lower.mode == Mode::Expire(state) && key.is_none() {
        let outs: Vec<ValueId> = slots.iter().map(|(_, ty)| lower.b.value(*ty)).collect();
        lower.b.op(Op::Expiring { outs: outs.clone() });
        return names::members(lower, slots_value(&slots, &outs), parts);
    }
    let entry = entry(lower, state, key, span)?;
    need_entry(lower, &entry, span)?;
    let outs = get(lower, &entry)?;
    names::members(lower, slots_value(&slots, &outs), parts)
}

fn get(lower: &mut Lower<'_>, entry: &Entry) -> Option<Vec<ValueId>> {
    let slots = table(&lower.model, entry.state)?.slots.clone();
    let outs: Vec<ValueId> = slots.iter().map(|(_, ty)| lower.b.value(*ty)).collect();
    lower.b.op(Op::StateGet { outs: outs.clone(), state: entry.state, key: entry.key.clone() });
    Some(outs)
}

/// Makes sure that a read of an entry has a result: the entry has a default, or is known to exist,
/// or an atom tests it.
pub fn need_entry(lower: &mut Lower<'_>, entry: &Entry, span: Span) -> Option<()> {
    let decl = table(&lower.model, entry.state)?;
    let name = decl.name.clone();
    if decl.default.is_some() || lower.b.facts.exists(entry.state, &entry.fact) {
        return Some(());
    }
    let Some(absent) = lower.absent else {
        lower.b.facts.learn_entry(entry.state, entry.fact.clone());
        return lower.fail(
            Diagnostic::new(
                codes::STATE_MAY_BE_ABSENT,
                format!("`{name}` may have no entry here, and has no default"),
                span,
                "no test on the way here",
            )
            .help(format!("test `exists {name}` first, or declare it with `= DEFAULT`")),
        );
    };
    let next = lower.b.block();
    let Entry { state, key, fact } = entry.clone();
    let cond = lower.b.emit(BOOL, |out| Op::StateExists { out, state, key });
    lower.b.branch_learning(cond, next, absent, |facts, there| {
        if there {
            facts.learn_entry(state, fact.clone());
        }
    });
    lower.b.start(next);
    Some(())
}

/// The values that an expression gives to all slots. The expression is a scalar, a record with its
/// parts, or the value of another record.
pub fn record(
    lower: &mut Lower<'_>,
    parts: &[(String, Ty)],
    expr: &Expr,
) -> Option<Vec<(String, ValueId, Ty)>> {
    if matches!(expr.kind, ExprKind::Record(_) | ExprKind::Set(_)) {
        let given = record_parts(parts, expr, lower.diags)?;
        let values: Vec<Option<(String, ValueId, Ty)>> = parts
            .iter()
            .zip(given)
            .map(|((name, ty), part)| Some((name.clone(), lower.typed(part, *ty)?, *ty)))
            .collect();
        return values.into_iter().collect();
    }
    if let [(name, ty)] = parts
        && name.is_empty()
    {
        return Some(vec![(String::new(), lower.typed(expr, *ty)?, *ty)]);
    }
    if let [(_, types::LENGTH), words @ ..] = parts {
        let found = bytes::value(lower, expr, words.len())?;
        let named = parts.iter().zip(found);
        return Some(named.map(|((name, ty), id)| (name.clone(), id, *ty)).collect());
    }
    let value = lower.value(expr, None)?;
    if let Value::Record(found) = value {
        let same = found.len() == parts.len()
            && parts.iter().zip(&found).all(|((name, ty), (other, _, found))| {
                name == other && types::compatible(*ty, *found)
            });
        if same {
            return Some(found);
        }
    }
    let record = types::record_name(parts);
    lower.fail(say::expected_type(&record, "something else", expr.span))
}

/// Whether `key[N]` means the key of the ending entry.
pub fn key_in_sight(lower: &Lower<'_>) -> bool {
    matches!(lower.mode, Mode::Expire(_)) && !lower.scope.knows("key")
}

/// Lowers `key[N]` in `on expire`.
pub fn expired_key(lower: &mut Lower<'_>, index: &[Expr], span: Span) -> Option<Value> {
    let Mode::Expire(state) = lower.mode else { return None };
    let tys = key_types(&table(&lower.model, state)?.granularity);
    let at = match index {
        [index] => lower.eval().number(index, types::U32)?,
        _ => u128::MAX,
    };
    match usize::try_from(at).ok().filter(|at| *at < tys.len()) {
        Some(at) => Some(ending_key(&mut lower.b, &tys, at)),
        None => {
            let message = format!("the key has {} parts, numbered from 0", tys.len());
            lower.fail(Diagnostic::new(codes::KEY_PARTS, message, span, ""))
        }
    }
}

/// Lowers a field in `on expire`, which is a part of the ending entry's key.
pub fn expired_key_field(
    lower: &mut Lower<'_>,
    state: StateId,
    field: Field,
    span: Span,
) -> Option<(ValueId, Ty)> {
    let granularity = table(&lower.model, state)?.granularity.clone();
    let fields = key_fields(&granularity);
    let Some(at) = fields.iter().position(|known| *known == field) else {
        needs::packet(lower, span);
        return None;
    };
    match ending_key(&mut lower.b, &key_types(&granularity), at) {
        Value::Scalar(id, ty) => Some((id, ty)),
        _ => None,
    }
}

fn ending_key(b: &mut Builder, tys: &[Ty], at: usize) -> Value {
    let outs: Vec<ValueId> = tys.iter().map(|ty| b.value(*ty)).collect();
    let value = Value::Scalar(outs[at], tys[at]);
    b.op(Op::ExpiringKey { outs });
    value
}

/// A written state: the table, its key, a slot.
pub struct StatePlace<'e> {
    /// The table.
    pub state: StateId,
    /// The key parts, if they are written.
    pub key: Option<&'e [Expr]>,
    /// The slot of `.slot`, if it is written.
    pub slot: Option<&'e Ident>,
}

impl StatePlace<'_> {
    /// The slot's number and type. `Err` holds the message for an unknown slot.
    pub fn slot_of(&self, decl: &StateDecl) -> Option<Result<(usize, Ty), Diagnostic>> {
        let part = self.slot?;
        let at = decl.slots.iter().position(|(name, _)| *name == part.text);
        Some(match at {
            Some(at) if !part.text.is_empty() => Ok((at, decl.slots[at].1)),
            _ => Err(unknown_member(part, decl.slots.iter().map(|(name, _)| name.as_str()))),
        })
    }
}

fn slots_value(slots: &[(String, Ty)], outs: &[ValueId]) -> Value {
    match (slots, outs) {
        ([(name, ty)], [out]) if name.is_empty() => Value::Scalar(*out, *ty),
        _ => Value::Record(
            slots.iter().zip(outs).map(|((name, ty), out)| (name.clone(), *out, *ty)).collect(),
        ),
    }
}

/// Parses `[quoted]`, `[reverse]` and `[quoted reverse]` as (quoted, reverse).
fn special_key(parts: &[Expr]) -> Option<(bool, bool)> {
    match parts {
        [one] if is_word(one, "quoted") => Some((true, false)),
        [one] if is_word(one, "reverse") => Some((false, true)),
        [one, two] if is_word(one, "quoted") && is_word(two, "reverse") => Some((true, true)),
        _ => None,
    }
}

/// The fields of an implicit key.
pub fn key_fields(granularity: &Granularity) -> Vec<Field> {
    match granularity {
        Granularity::Flow | Granularity::Biflow => FlowKey::FIELDS.to_vec(),
        Granularity::Fields(fields) => fields.clone(),
        Granularity::Global | Granularity::Key(_) => Vec::new(),
    }
}

/// The types of a key's parts.
pub fn key_types(granularity: &Granularity) -> Vec<Ty> {
    match granularity {
        Granularity::Key(tys) => tys.clone(),
        fields => key_fields(fields).into_iter().map(types::of_field).collect(),
    }
}
