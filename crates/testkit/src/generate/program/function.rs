//! Generates one random function: chooses its declarations, and makes a row that uses each of them.

pub(super) mod declare;
mod draft;

use super::pieces::{Event, Scope};
use super::pred::{Anchors, row};
use super::stmt::Stmts;
use super::text::Text;
use crate::generate::Rng;
use braid_packet::Header;
use draft::{Draft, Use};
use std::collections::BTreeMap;

/// A generated function and the facts that a chain needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Function {
    /// Its name.
    pub(super) name: String,
    /// Its source.
    pub(super) source: String,
    /// Written arguments for its parameters. The flag marks an argument that may be omitted.
    pub(super) args: Vec<(String, bool)>,
    /// Its ports besides `left` and `right`.
    pub(super) ports: Vec<String>,
    /// Whether packets come in at these ports, too.
    pub(super) has_sides: bool,
    /// Whether it sends packets back, or to the left or right by name.
    pub(super) both_sides: bool,
    /// Whether it holds packets.
    pub(super) holds: bool,
    /// Whether it publishes events for others, or takes events.
    pub(super) shares_events: bool,
    /// The files that its arguments name.
    pub(super) files: BTreeMap<String, String>,
}

impl Function {
    /// Adds the source to a program, with the event types that functions share.
    pub(super) fn add_to(&self, program: &mut String) {
        let types = declare::events::types();
        if self.shares_events && !program.contains(&types) {
            program.push_str(&types);
        }
        if self.source.contains("parcel") && !program.contains(declare::bytes::PARCEL) {
            program.insert_str(0, declare::bytes::PARCEL);
        }
        program.push_str(&self.source);
        program.push('\n');
    }
}

/// Generates the function with this number in its program. Functions that share events are more or
/// less frequent.
pub(super) fn generate(rng: &mut Rng, number: usize, often_shares: bool) -> Function {
    let mut draft = Draft::default();
    // These draws change no others.
    let mut own = Rng::new(rng.clone().bits() ^ 0x706f_7274_696f_6e73);
    if own.one_in(4) {
        declare::limit(&mut own, &mut draft);
    }
    declare::bytes::row(&mut Rng::new(rng.clone().bits() ^ 0x0062_7974_6573), &mut draft);
    draft.pieces.has_sides = Rng::new(rng.clone().bits() ^ 0x0073_6964_6573).one_in(2);
    let mut own = Rng::new(rng.clone().bits() ^ 0x6861_6e64_6c65_7273);
    let shares_events = if often_shares { !own.one_in(5) } else { own.one_in(5) };
    if shares_events {
        declare::events::between(&mut own, &mut draft);
    }
    for _ in 0..1 + rng.below(5) {
        declare::something(rng, &mut draft, number);
    }
    let uses = draft.uses.split_off(0);
    let name = format!("f{number}");
    let mut text = Text::default();
    for event in &draft.pieces.events {
        text.line(&event_text(event));
    }
    let params: Vec<_> = draft.pieces.params.iter().map(param_text).collect();
    text.line(&format!("nf {name}({}) {{", params.join(", ")));
    declarations(&mut text, &draft);
    let mut stmts =
        Stmts { rng, pieces: &draft.pieces, names: 0, both_sides: false, queue: draft.queue };
    rows(&mut text, &mut stmts, uses);
    for period in &draft.timers {
        text.line(&format!("every {period} {{"));
        stmts.without_packet(&mut text);
        text.line("}");
    }
    for (period, line) in &draft.every {
        text.line(&format!("every {period} {{"));
        text.line(line);
        text.line("}");
    }
    for (state, lines) in &draft.expire {
        text.line(&format!("on expire {state} {{"));
        lines.iter().for_each(|line| text.line(line));
        stmts.without_packet(&mut text);
        text.line("}");
    }
    for (event, lines) in &draft.handlers {
        text.line(&format!("on {event} {{"));
        lines.iter().for_each(|line| text.line(line));
        text.line("}");
    }
    text.line("}");
    let both_sides = stmts.both_sides;
    Function {
        name,
        source: text.finish(),
        args: draft
            .pieces
            .params
            .iter()
            .map(|param| (format!("{}: {}", param.name, param.value), param.default))
            .collect(),
        ports: draft.pieces.ports.clone(),
        has_sides: draft.pieces.has_sides,
        both_sides,
        holds: draft.queue,
        shares_events,
        files: draft.files,
    }
}

fn event_text(event: &Event) -> String {
    let fields: Vec<_> = event
        .fields
        .iter()
        .map(|(name, ty)| format!("{name}: {}", ty.map_or("string".to_owned(), super::types::name)))
        .collect();
    format!("event {} extends EVENT {{ {} }}", event.name, fields.join(", "))
}

fn param_text(param: &super::pieces::Param) -> String {
    match param.default {
        true => format!("{}: {} = {}", param.name, param.ty, param.value),
        false => format!("{}: {}", param.name, param.ty),
    }
}

fn declarations(text: &mut Text, draft: &Draft) {
    if !draft.pieces.ports.is_empty() {
        let kind = if draft.pieces.has_sides { "side" } else { "port" };
        text.line(&format!("{kind} {};", draft.pieces.ports.join(", ")));
    }
    for (name, ty) in &draft.pieces.tags {
        text.line(&format!("tag {name}: {};", super::types::name(*ty)));
    }
    for state in &draft.pieces.states {
        text.line(&state.text);
    }
    for own in &draft.own {
        text.line(own);
    }
    if draft.queue {
        text.line("queue waiting capacity 4;");
    }
}

/// Writes the match: a row for each use in random order, further rows, and `else`.
fn rows(text: &mut Text, stmts: &mut Stmts<'_>, mut uses: Vec<Use>) {
    let mut anchors = Anchors::default();
    let start = Scope { headers: vec![Header::Pkt], ..Scope::default() };
    text.line("match {");
    shuffle(stmts.rng, &mut uses);
    uses.sort_by_key(|used| !used.first);
    for _ in 0..1 + stmts.rng.below(3) {
        let at =
            stmts.rng.below(uses.len() + 1).max(usize::from(uses.first().is_some_and(|u| u.first)));
        uses.insert(at, Use::default());
    }
    for used in uses {
        let wanted = (!used.test.is_empty() || !used.headers.is_empty())
            .then(|| (used.test.clone(), used.headers.clone()));
        let pred = row(stmts.rng, stmts.pieces, &start, &mut anchors, wanted);
        let Some(mut pred) = pred else { continue };
        pred.scope.exists.extend(used.exists);
        // An assignment to an existing entry is never refused.
        let tested = used.test.strip_prefix("exists s").and_then(|rest| rest.parse::<usize>().ok());
        let assigned = used.lines.iter().filter_map(|line| state_of(line));
        pred.scope.assigned.extend(assigned.chain(tested));
        text.line(&format!("{} => {{", pred.text));
        used.lines.iter().for_each(|line| text.line(line));
        for &state in &used.assigns {
            stmts.assign(text, &mut pred.scope, state);
        }
        if used.emits {
            stmts.emit(text, &pred.scope);
        }
        if used.first {
            text.line("output;");
        } else {
            inner(text, stmts, &mut pred.scope);
        }
        text.line("}");
    }
    let mut scope = start.clone();
    text.line("else => {");
    stmts.body(text, &mut scope);
    text.line("}");
    text.line("}");
}

/// The number of the state that a line assigns, if any.
fn state_of(line: &str) -> Option<usize> {
    let (place, _) = line.split_once(" = ").or_else(|| line.split_once(" += "))?;
    let (name, _) = place.split_once('.').unwrap_or((place, ""));
    name.strip_prefix('s')?.parse().ok()
}

/// Writes the rest of a row: statements and an end, or a nested match.
fn inner(text: &mut Text, stmts: &mut Stmts<'_>, scope: &mut Scope) {
    if !stmts.rng.one_in(6) {
        return stmts.body(text, scope);
    }
    let mut anchors = Anchors::default();
    text.line("match {");
    for _ in 0..1 + stmts.rng.below(2) {
        let Some(mut pred) = row(stmts.rng, stmts.pieces, scope, &mut anchors, None) else {
            continue;
        };
        pred.scope.depth += 1;
        text.line(&format!("{} => {{", pred.text));
        stmts.body(text, &mut pred.scope);
        text.line("}");
    }
    text.line("else => {");
    stmts.body(text, scope);
    text.line("}");
    text.line("}");
}

fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, rng.below(at + 1));
    }
}
