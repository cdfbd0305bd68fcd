//! Prints the declarations of a model.

use super::value::{columns, event_ty, list, name, param_ty, param_value, setting};
use crate::model::{EventDecl, Granularity, Kind, Model, StateDecl, WhenFull};
use std::fmt::Write;

pub(super) fn print(model: &Model, out: &mut String) {
    if model.ports != ["left", "right"] {
        let _ = writeln!(out, "  ports {}", list(&model.ports, |port| name(port)));
    }
    for param in &model.params {
        let _ = write!(out, "  param {}: {}", name(&param.name), param_ty(&param.ty));
        if let Some(default) = &param.default {
            let _ = write!(out, " = {}", param_value(default, &param.ty));
        }
        out.push('\n');
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

fn event_decl(event: &EventDecl) -> String {
    let mut out = format!("event {}", name(&event.name));
    if !event.ancestors.is_empty() {
        let _ = write!(out, " extends {}", list(&event.ancestors, |ancestor| name(ancestor)));
    }
    let fields = list(&event.fields, |(field, ty)| format!("{}: {}", name(field), event_ty(*ty)));
    out + &format!(" {{ {fields} }}")
}

fn state_decl(model: &Model, state: &StateDecl) -> String {
    let mut out = format!(
        "state {}: {} {}",
        name(&state.name),
        columns(&state.slots),
        granularity(&state.granularity)
    );
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
    out
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
