//! Prints the declarations of a model.

use super::value::{columns, event_ty, list, name, print_param, setting};
use crate::model::{
    Ancestor, EventDecl, Granularity, Kind, Model, StateDecl, Sum, Timer, WhenFull,
};
use crate::native::{FieldSet, Keeps, Native, OnFailure, Profile, Reference};
use std::fmt::Write;

pub(super) fn print(model: &Model, out: &mut String) {
    if model.ports != ["left", "right"] {
        let _ = writeln!(out, "  ports {}", list(&model.ports, |port| name(port)));
    }
    if let Some(native) = &model.native {
        let _ = writeln!(out, "  {}", native_decl(native));
    }
    for param in &model.params {
        let _ = writeln!(out, "  param {}", print_param(param));
    }
    for state in &model.state {
        let _ = writeln!(out, "  {}", state_decl(model, state));
    }
    for queue in &model.queues {
        let capacity = setting(model, queue.capacity, Kind::Uint);
        let _ = writeln!(out, "  queue {} capacity {capacity}", name(&queue.name));
    }
    for event in &model.events {
        let _ = writeln!(out, "  {}", event_decl(event));
    }
    for tag in &model.tags {
        let _ = writeln!(out, "  tag {}: {}", name(&tag.name), tag.ty);
    }
    for row in &model.rows {
        let _ = write!(out, "  row {:?}", row.label);
        if row.line != 0 {
            let _ = write!(out, " line {}", row.line);
        }
        if !row.text.is_empty() {
            let _ = write!(out, " text {:?}", row.text);
        }
        out.push('\n');
    }
    for reason in &model.reasons {
        let _ = writeln!(out, "  reason {reason:?}");
    }
}

/// `native "LIBRARY" "FUNCTION" checks (…) isolated WORD profile (…) sends N keeps WORD`
fn native_decl(native: &Native) -> String {
    let Reference { library, function, checks, isolated } = &native.reference;
    let mut out = format!("native {library:?} {function:?}");
    let checks = [("records", checks.records), ("observe", checks.observe)];
    let checks = checks.iter().filter(|(_, on)| *on).map(|(word, _)| *word);
    let checks: Vec<_> = checks.collect();
    if !checks.is_empty() {
        let _ = write!(out, " checks ({})", checks.join(", "));
    }
    match isolated {
        Some(OnFailure::Drop) => out.push_str(" isolated drop"),
        Some(OnFailure::Bypass) => out.push_str(" isolated bypass"),
        None => {}
    }
    if let Some(profile) = &native.profile {
        let _ = write!(out, " profile ({})", profile_words(profile).join(", "));
    }
    if native.sends > 0 {
        let _ = write!(out, " sends {}", native.sends);
    }
    if let Some((_, word)) = Keeps::NAMES.iter().skip(1).find(|(keeps, _)| *keeps == native.keeps) {
        let _ = write!(out, " keeps {word}");
    }
    out
}

/// The parts of a profile, in words.
pub(super) fn profile_words(profile: &Profile) -> Vec<String> {
    let mut words = Vec::new();
    let all = [("read", &profile.reads), ("write", &profile.writes)];
    for (word, fields) in all {
        match *fields == FieldSet::ALL {
            true => words.push(format!("{word} fields")),
            false => words.extend(fields.iter().map(|f| format!("{word} {}", f.info().name))),
        }
    }
    let flags = PROFILE_FLAGS.iter().filter(|(_, get)| *get(&mut profile.clone()));
    words.extend(flags.map(|(word, _)| (*word).to_owned()));
    words
}

/// Selects a part of a profile that is present or absent.
type Flag = fn(&mut Profile) -> &mut bool;

/// Words for the parts that are present or absent.
pub(super) const PROFILE_FLAGS: &[(&str, Flag)] = &[
    ("read payload", |profile| &mut profile.reads_payload),
    ("write payload", |profile| &mut profile.writes_payload),
    ("read bytes", |profile| &mut profile.reads_bytes),
    ("write bytes", |profile| &mut profile.writes_bytes),
    ("add", |profile| &mut profile.adds),
    ("remove", |profile| &mut profile.removes),
    ("drop", |profile| &mut profile.drops),
    ("redirect", |profile| &mut profile.redirects),
];

fn event_decl(event: &EventDecl) -> String {
    let mut out = format!("event {}", name(&event.name));
    if !event.ancestors.is_empty() {
        let _ = write!(out, " extends {}", list(&event.ancestors, ancestor));
    }
    let fields = list(&event.fields, |(field, ty)| format!("{}: {}", name(field), event_ty(*ty)));
    out + &format!(" {{ {fields} }}")
}

/// `SCAN(2)`: the name, and the number of fields if there are any.
fn ancestor(Ancestor { name: of, fields }: &Ancestor) -> String {
    if *fields == 0 { name(of) } else { format!("{}({fields})", name(of)) }
}

fn state_decl(model: &Model, state: &StateDecl) -> String {
    let mut out = format!("state {}: {}", name(&state.name), contents(state));
    let kind = |slot: usize| state.slots.get(slot).map_or(Kind::Uint, |(_, ty)| ty.kind);
    if let Some(default) = &state.default {
        let values = list(default.iter().enumerate(), |(i, s)| setting(model, *s, kind(i)));
        let _ = write!(out, " default ({values})");
    }
    let options = [("idle", state.idle), ("hard", state.hard), ("capacity", Some(state.capacity))];
    for (word, value) in options {
        if let Some(value) = value {
            let _ = write!(out, " {word} {}", setting(model, value, Kind::Uint));
        }
    }
    out.push_str(match state.when_full {
        WhenFull::Refuse => " full refuse",
        WhenFull::EvictOldest => " full evict_oldest",
    });
    let _ = write!(out, " tick {}", setting(model, state.tick, Kind::Uint));
    if let Some(other) = state.lives_with {
        let _ = write!(out, " lives with {}", model.state_word(other));
    }
    if state.sharded {
        out.push_str(" sharded");
    }
    if !state.portions.is_empty() {
        let _ = write!(out, " portions ({})", list(&state.portions, |p| model.param_word(*p)));
    }
    if !state.sums.is_empty() {
        let _ = write!(out, " sums ({})", list(&state.sums, |sum| sum_word(*sum).to_owned()));
    }
    out
}

/// The word for a way in which listings unite values.
pub(super) fn sum_word(sum: Sum) -> &'static str {
    match sum {
        Sum::Add => "add",
        Sum::First => "first",
        Sum::Last => "last",
    }
}

/// The slots and the keys of a table.
fn contents(state: &StateDecl) -> String {
    format!("{} {}", columns(&state.slots), granularity(&state.granularity))
}

/// What the entries of a table are: slots, keys, partner, and whether workers share the table.
/// Capacity, time-outs and defaults are no part of it.
#[must_use]
pub fn state_schema(model: &Model, state: &StateDecl) -> String {
    let mut out = contents(state);
    if let Some(other) = state.lives_with {
        let _ = write!(out, " lives with {}", model.state_word(other));
    }
    if state.sharded {
        out.push_str(" sharded");
    }
    out
}

/// The period of a timer.
#[must_use]
pub fn period(model: &Model, timer: &Timer) -> String {
    setting(model, timer.period, Kind::Duration)
}

fn granularity(granularity: &Granularity) -> String {
    match granularity {
        Granularity::Global => "global".to_owned(),
        Granularity::Flow => "per flow".to_owned(),
        Granularity::Biflow => "per biflow".to_owned(),
        Granularity::Fields(fields) => {
            format!("per ({})", list(fields, |field| field.info().name.to_owned()))
        }
        Granularity::Key(types) => format!("per [{}]", list(types, |ty| ty.to_string())),
    }
}
