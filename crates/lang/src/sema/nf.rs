//! Lowers a function's syntax to its model.

use braid_ir::model::{Model, Op, Program, RowDecl, RowId, StateId, Term, Timer};

use super::build::Builder;
use super::env::Loader;
use super::facts::Facts;
use super::lower::{BODY, Lower, Mode};
use super::module::Module;
use super::scope::Binding;
use super::{decl, names, send, sides, unused};
use crate::ast::{Block, Ident, Nf, NfItem, Stmt};
use crate::diag::{Diagnostic, Diagnostics, codes};
use crate::source::SourceMap;

/// Lowers a function. `None` after an error, which is then reported.
pub fn lower(
    nf: &Nf,
    module: &Module<'_>,
    sources: &SourceMap,
    loader: &dyn Loader,
    diags: &mut Diagnostics,
) -> Option<Model> {
    let mut found = Diagnostics::new();
    let model = Model::new(&nf.name.text);
    let mut lower = Lower::new(module, sources, &mut found, model);
    let damaged = module.is_damaged(nf.span);
    lower.doubt = damaged;
    decl::declare(&mut lower, nf, loader);
    packet_program(&mut lower, nf);
    for item in &nf.items {
        match item {
            NfItem::Every { period, body, .. } => {
                let period = decl::period(&mut lower, period);
                let body = program(&mut lower, Mode::Timer, body);
                if let Some(period) = period {
                    lower.model.timers.push(Timer { period, body });
                }
            }
            NfItem::OnExpire { state, body, .. } => on_expire(&mut lower, state, body),
            NfItem::OnEvent { event, body, .. } => on_event(&mut lower, event, body),
            NfItem::OnStream { what, .. } => {
                let message = format!("`on {}` belongs to stream functions", what.text);
                lower.say(
                    Diagnostic::new(codes::MIXED_STREAM, message, what.span, "")
                        .help("write `stream nf`, or remove it"),
                );
            }
            _ => {}
        }
    }
    let model = finish(lower.model);
    if !damaged {
        unused::check(nf, sources, &mut found);
    }
    let failed = damaged || found.has_errors();
    diags.extend(found);
    if failed {
        return None;
    }
    debug_assert_eq!(braid_ir::verify::verify(&model), Ok(()), "{}", braid_ir::text::print(&model));
    Some(model)
}

fn packet_program<'a>(lower: &mut Lower<'a>, nf: &'a Nf) {
    begin(lower, Mode::Packet, Facts::start());
    sides::enter(lower);
    let stmts: Vec<&'a Stmt> = nf
        .items
        .iter()
        .filter_map(|item| match item {
            NfItem::Stmt(stmt) => Some(stmt),
            _ => None,
        })
        .collect();
    lower.scoped(|this| this.statements(stmts.into_iter(), nf.head));
    if lower.b.live() && !lower.too_large && !lower.doubt {
        for (span, label) in std::mem::take(&mut lower.exits) {
            let message = "a packet may get here, and no statement decides where it goes";
            lower.say(
                Diagnostic::new(codes::NO_END, message, span, label)
                    .help("end the path with `output`, `drop`, `consume`, `hold` or `resubmit`"),
            );
        }
    }
    lower.b.end(Term::Return);
    lower.model.packet = end_program(lower);
}

pub fn begin(lower: &mut Lower<'_>, mode: Mode, facts: Facts) {
    lower.mode = mode;
    lower.b = Builder::new(facts);
    lower.row = None;
    lower.absent = None;
    lower.rounded = None;
    lower.exits.clear();
}

pub fn end_program(lower: &mut Lower<'_>) -> Program {
    lower.spent += lower.b.size();
    let built = std::mem::replace(&mut lower.b, Builder::new(Facts::start()));
    built.finish()
}

/// The program of a block that runs without a packet.
pub fn program<'a>(lower: &mut Lower<'a>, mode: Mode, body: &'a Block) -> Program {
    begin(lower, mode, Facts::start());
    lower.block(body);
    lower.b.end(Term::Return);
    end_program(lower)
}

/// Adds the program for ending entries of a table.
pub fn on_expire<'a>(lower: &mut Lower<'a>, name: &'a Ident, body: &'a Block) {
    let Some(Binding::State(state)) = lower.scope.binding(&name.text) else {
        if lower.scope.local(&name.text).is_none() {
            let _: Option<StateId> = names::state_named(lower, name);
        }
        return;
    };
    if lower.model.expire.iter().any(|(known, _)| *known == state) {
        let message = format!("`on expire {}` is there already", name.text);
        lower.say(Diagnostic::new(codes::DUPLICATE_NAME, message, name.span, "again"));
    }
    let global = lower
        .model
        .state
        .get(state.0 as usize)
        .is_some_and(|decl| decl.granularity == braid_ir::model::Granularity::Global);
    if global {
        let message = format!("`{}` is global, so its entry never ends", name.text);
        lower.say(Diagnostic::new(codes::BAD_OPTION, message, name.span, ""));
    }
    let program = program(lower, Mode::Expire(state), body);
    lower.model.expire.push((state, program));
}

/// Adds the handler of an event type.
pub fn on_event<'a>(lower: &mut Lower<'a>, name: &'a Ident, body: &'a Block) {
    let Some(decl) = lower.module.taken(name, lower.diags) else { return };
    let event = send::event_id(lower, decl);
    if lower.model.handlers.iter().any(|(known, _)| *known == event) {
        let message = format!("`on {}` is there already", name.text);
        lower.say(Diagnostic::new(codes::DUPLICATE_NAME, message, name.span, "again"));
    }
    let program = program(lower, Mode::Handler(event), body);
    lower.model.handlers.push((event, program));
}

/// Gives the row `body` a number if anything counts there, and adds the row `fault`.
pub fn finish(mut model: Model) -> Model {
    let place = |label: &str| RowDecl { label: label.into(), text: String::new(), line: 0 };
    let body = RowId(u32::try_from(model.rows.len()).unwrap_or(u32::MAX));
    let mut used = false;
    let streams = model.streams.iter_mut().flat_map(|(_, program)| &mut program.blocks);
    for block in model.packet.blocks.iter_mut().chain(streams) {
        let mut renumber = |row: &mut RowId| {
            if *row == BODY {
                *row = body;
                used = true;
            }
        };
        for op in &mut block.ops {
            if let Op::Count { row } = op {
                renumber(row);
            }
        }
        match &mut block.term {
            Term::Output { row, .. }
            | Term::Drop { row, .. }
            | Term::Consume { row }
            | Term::Hold { row, .. }
            | Term::Resubmit { row }
            | Term::Reset { row, .. }
            | Term::Bypass { row } => renumber(row),
            // Those of handlers have their row already.
            Term::Resume { .. } | Term::Jump(_) | Term::Branch { .. } | Term::Return => {}
        }
    }
    if used {
        model.rows.push(place("body"));
    }
    model.rows.push(place("fault"));
    model.expire.sort_by_key(|(state, _)| *state);
    model
}
