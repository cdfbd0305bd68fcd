//! Lowers match tables. The rows are tested in order, and the first row that matches wins.

use std::rc::Rc;

use braid_ir::model::{Op, RowDecl, RowId, Term};
use braid_packet::Header;

use super::cover::{self, Cover, Dead, Rows, normalised};
use super::lower::{Lower, Mode};
use crate::ast::{Expr, Row, Span};
use crate::diag::{Diagnostic, codes};

const NARROWED: &str = "a row whose body begins with an entry under an implicit key matches only \
                        packets that have this key";

impl<'a> Lower<'a> {
    /// Lowers `match { … }`.
    pub fn match_rows(&mut self, rows: &'a [Row], span: Span) {
        let known = self.rows_of(rows, span);
        let Rows { guards, cover } = &*known;
        let entered = self.b.live();
        let done = self.b.block();
        let mut exits = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let (body, next) = (self.b.block(), self.b.block());
            let matched = self.b.block();
            match &row.pred {
                Some(pred) if cover.covered != Some(at) => self.predicate(pred, matched, next),
                _ => self.b.jump(matched, Vec::new()),
            }
            self.b.start(matched);
            self.with_absent(Some(next), |this| this.guard(&guards[at], row_head(row)));
            self.b.jump(body, Vec::new());
            let known_dead = cover.dead.iter().any(|(dead, _)| *dead == at);
            if entered && !self.b.reached(body) && !self.expanded() && !known_dead {
                self.say(
                    Diagnostic::new(
                        codes::UNREACHABLE_ROW,
                        "no packet gets to this row, or its predicate contradicts itself",
                        row_head(row),
                        "never matches",
                    )
                    .help("remove it, or change the rows before it"),
                );
            }
            self.b.start(body);
            let before = self.row;
            if self.mode == Mode::Packet {
                let number = self.row_number(row);
                self.b.op(Op::Count { row: number });
                self.row = Some(number);
            }
            self.exits = vec![(row.span, "goes on here")];
            self.block(&row.body);
            self.row = before;
            if self.b.live() {
                exits.extend(self.exits.drain(..).map(|(span, _)| (span, "this row goes on")));
            }
            self.b.jump(done, Vec::new());
            self.b.start(next);
        }
        // This block is reachable only without an `else`, which is reported.
        self.b.end(Term::Return);
        self.b.start(done);
        self.exits = exits;
    }

    /// The headers that a row tests besides its predicate. An `else` tests none.
    fn row_guards(&self, row: &Row) -> Vec<Header> {
        if row.pred.is_none() || self.mode != Mode::Packet {
            return Vec::new();
        }
        self.guards(&row.body)
    }

    fn guard(&mut self, headers: &[Header], span: Span) {
        for header in headers {
            if !self.b.facts.is_touched(*header) {
                let _ = self.need_header(*header, true, span, header.name());
            }
        }
    }

    /// Whether this is an expansion or a round of a loop, where a dead row is not a mistake.
    fn expanded(&self) -> bool {
        self.loops > 0 || !self.calls.is_empty()
    }

    /// The findings about a match. They are computed and reported once, however often the match is
    /// expanded.
    fn rows_of(&mut self, rows: &[Row], span: Span) -> Rc<Rows> {
        let place = (span.file, span.start);
        if let Some(known) = self.covers.get(&place) {
            return Rc::clone(known);
        }
        let guards: Vec<Vec<Header>> = rows.iter().map(|row| self.row_guards(row)).collect();
        let cover = self.check_rows(rows, &guards, span);
        let known = Rc::new(Rows { guards, cover });
        self.covers.insert(place, Rc::clone(&known));
        known
    }

    /// Reports rows that cannot match and a missing `else`.
    fn check_rows(&mut self, rows: &[Row], guards: &[Vec<Header>], span: Span) -> Cover {
        let found = cover::check(rows, guards, &self.consts, self.sources);
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
            self.say(diagnostic);
        }
        if !found.total && !self.module.is_damaged(span) {
            let head = Span { end: span.start + 5, ..span };
            let last = rows.last().map_or(head, row_head);
            let missing =
                Diagnostic::new(codes::MISSING_ELSE, "a match needs an `else`", head, "no `else`")
                    .label(last, "the last row")
                    .help("add `else => drop;` or `else => output;`");
            let narrowed = guards.iter().any(|guards| !guards.is_empty());
            self.say(if narrowed { missing.note(NARROWED) } else { missing });
        }
        found
    }

    /// The number of a row. A row that is unrolled or expanded again keeps its number.
    fn row_number(&mut self, row: &Row) -> RowId {
        let place = (row.span.file, row.span.start, self.row);
        if let Some(known) = self.rows.get(&place) {
            return *known;
        }
        let count = self.row_counts.entry(self.row).or_default();
        *count += 1;
        let number = *count;
        let label = match self.row.and_then(|parent| self.model.rows.get(parent.0 as usize)) {
            Some(parent) => format!("{}.{number}", parent.label),
            None => number.to_string(),
        };
        let text = row.pred.as_ref().map_or_else(|| "else".to_owned(), |pred| self.text(pred));
        let file = self.sources.get(row.span.file);
        let line = file.map_or(0, |file| file.line_column(row.span.start).0);
        self.model.rows.push(RowDecl { label, text, line });
        let number = RowId(u32::try_from(self.model.rows.len() - 1).unwrap_or(u32::MAX));
        self.rows.insert(place, number);
        number
    }

    fn text(&self, expr: &Expr) -> String {
        normalised(self.sources.slice(expr.span))
    }
}

fn row_head(row: &Row) -> Span {
    match &row.pred {
        Some(pred) => pred.span,
        None => Span { end: row.span.start + 4, ..row.span },
    }
}
