//! Lowers match tables. The rows are tested in order, and the first row that matches wins.

use std::rc::Rc;

use braid_ir::model::{Op, RowDecl, RowId, Term};
use braid_packet::Header;

use super::cover::{self, Cover, Dead, Rows, normalised};
use super::lower::Lower;
use super::{guard, needs};
use crate::ast::{Expr, Row, Span};
use crate::diag::{Diagnostic, codes};
use crate::source::SourceMap;

const NARROWED: &str = "a row whose body begins with an entry under an implicit key matches only \
                        packets that have this key";

/// Lowers `match { … }`.
pub fn match_rows<'a>(lower: &mut Lower<'a>, rows: &'a [Row], span: Span) {
    let known = rows_of(lower, rows, span);
    let Rows { guards, cover } = &*known;
    let entered = lower.b.live();
    let done = lower.b.block();
    let mut exits = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let (body, next) = (lower.b.block(), lower.b.block());
        let matched = lower.b.block();
        match &row.pred {
            Some(pred) if cover.covered != Some(at) => lower.predicate(pred, matched, next),
            _ => lower.b.jump(matched, Vec::new()),
        }
        lower.b.start(matched);
        lower.with_absent(Some(next), |this| test_guards(this, &guards[at], row_head(row)));
        lower.b.jump(body, Vec::new());
        let known_dead = cover.dead.iter().any(|(dead, _)| *dead == at);
        if entered && !lower.b.reached(body) && !expanded(lower) && !known_dead {
            lower.say(
                Diagnostic::new(
                    codes::UNREACHABLE_ROW,
                    "no packet gets to this row, or its predicate contradicts itself",
                    row_head(row),
                    "never matches",
                )
                .help("remove it, or change the rows before it"),
            );
        }
        lower.b.start(body);
        let before = lower.row;
        if lower.mode.counts() {
            let number = row_number(lower, row);
            lower.b.op(Op::Count { row: number });
            lower.row = Some(number);
        }
        lower.exits = vec![(row.span, "goes on here")];
        lower.block(&row.body);
        lower.row = before;
        if lower.b.live() {
            exits.extend(lower.exits.drain(..).map(|(span, _)| (span, "this row goes on")));
        }
        lower.b.jump(done, Vec::new());
        lower.b.start(next);
    }
    // This block is reachable only without an `else`, which is reported.
    lower.b.end(Term::Return);
    lower.b.start(done);
    lower.exits = exits;
}

/// The headers that a row tests besides its predicate. An `else` tests none.
fn row_guards(lower: &Lower<'_>, row: &Row) -> Vec<Header> {
    if row.pred.is_none() || !lower.mode.counts() {
        return Vec::new();
    }
    guard::guards(lower, &row.body)
}

fn test_guards(lower: &mut Lower<'_>, headers: &[Header], span: Span) {
    for header in headers {
        if !lower.b.facts.is_touched(*header) {
            let _ = needs::header(lower, *header, true, span, header.name());
        }
    }
}

/// Whether this is an expansion or a round of a loop, where a dead row is not a mistake.
fn expanded(lower: &Lower<'_>) -> bool {
    lower.loops > 0 || !lower.calls.is_empty()
}

/// The findings about a match. They are computed and reported once, however often the match is
/// expanded.
fn rows_of(lower: &mut Lower<'_>, rows: &[Row], span: Span) -> Rc<Rows> {
    let place = (span.file, span.start);
    if let Some(known) = lower.covers.get(&place) {
        return Rc::clone(known);
    }
    let guards: Vec<Vec<Header>> = rows.iter().map(|row| row_guards(lower, row)).collect();
    let cover = check_rows(lower, rows, &guards, span);
    let known = Rc::new(Rows { guards, cover });
    lower.covers.insert(place, Rc::clone(&known));
    known
}

/// Reports rows that cannot match and a missing `else`.
fn check_rows(lower: &mut Lower<'_>, rows: &[Row], guards: &[Vec<Header>], span: Span) -> Cover {
    let found = cover::check(rows, guards, &lower.scope.consts, lower.sources);
    for (at, dead) in &found.dead {
        let head = row_head(&rows[*at]);
        let diagnostic = match dead {
            Dead::Before(earlier) => Diagnostic::new(
                codes::UNREACHABLE_ROW,
                "rows before this one take all packets that it would match",
                head,
                "never matches",
            )
            .label(row_head(&rows[*earlier]), "this row takes them")
            .help("remove it, or put the more special row first"),
            Dead::Contradiction => Diagnostic::new(
                codes::UNREACHABLE_ROW,
                "no packet matches this predicate",
                head,
                "contradicts itself",
            ),
        };
        lower.say(diagnostic);
    }
    if !found.total && !lower.module.is_damaged(span) {
        let head = Span { end: span.start + 5, ..span };
        let last = rows.last().map_or(head, row_head);
        let missing =
            Diagnostic::new(codes::MISSING_ELSE, "a match needs an `else`", head, "no `else`")
                .label(last, "the last row")
                .help("add `else => drop;` or `else => output;`");
        let narrowed = guards.iter().any(|guards| !guards.is_empty());
        lower.say(if narrowed { missing.note(NARROWED) } else { missing });
    }
    found
}

/// The number of a row. A row that is unrolled or expanded again keeps its number.
fn row_number(lower: &mut Lower<'_>, row: &Row) -> RowId {
    let place = (row.span.file, row.span.start, lower.row);
    if let Some(known) = lower.rows.get(&place) {
        return *known;
    }
    let count = lower.row_counts.entry(lower.row).or_default();
    *count += 1;
    let number = *count;
    let label = match lower.row.and_then(|parent| lower.model.rows.get(parent.0 as usize)) {
        Some(parent) => format!("{}.{number}", parent.label),
        None => number.to_string(),
    };
    let text =
        row.pred.as_ref().map_or_else(|| "else".to_owned(), |pred| text(lower.sources, pred));
    let file = lower.sources.get(row.span.file);
    let line = file.map_or(0, |file| file.line_column(row.span.start).0);
    lower.model.rows.push(RowDecl { label, text, line });
    let number = RowId(u32::try_from(lower.model.rows.len() - 1).unwrap_or(u32::MAX));
    lower.rows.insert(place, number);
    number
}

fn text(sources: &SourceMap, expr: &Expr) -> String {
    normalised(sources.slice(expr.span))
}

fn row_head(row: &Row) -> Span {
    match &row.pred {
        Some(pred) => pred.span,
        None => Span { end: row.span.start + 4, ..row.span },
    }
}
