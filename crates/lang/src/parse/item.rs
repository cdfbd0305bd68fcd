//! Parses files: their declarations.

use std::collections::BTreeSet;

use super::marks::LINE;
use super::state::{Parsed, Parser};
use super::words::FILE_ITEMS;
use crate::ast::{EventDef, File, Item, Span};
use crate::diag::{Diagnostic, codes, did_you_mean_help};
use crate::lexer::{Tok, string_value};

impl Parser<'_> {
    pub(super) fn file(&mut self) -> File {
        let mut items = Vec::new();
        let mut extents = Vec::new();
        while !self.at(Tok::Eof) {
            let start = self.pos;
            self.open_braces = 0;
            self.depth = 0;
            if self.at(Tok::Semi) && start > 0 {
                self.extra_semicolon();
                continue;
            }
            self.mark(LINE);
            let declares = FILE_ITEMS.contains(&self.word());
            let parsed = self.item();
            if declares {
                extents.push(self.span_from(start));
            }
            match parsed {
                Ok(item) => items.push(item),
                Err(_) => self.next_item(start),
            }
        }
        File { items, doubtful: self.doubtful(&extents) }
    }

    /// The items with errors, by their order. An error behind an item may belong to it, as for an
    /// extra `}`.
    fn doubtful(&self, extents: &[Span]) -> Vec<Span> {
        if self.diags.left_out() > 0 {
            let whole = self.span_from(0);
            return vec![Span { start: 0, end: u32::MAX, ..whole }];
        }
        let errors = self.diags.iter().filter(|found| found.is_error());
        let item_of = |start| extents.partition_point(|item| item.start <= start).checked_sub(1);
        let found: BTreeSet<usize> =
            errors.filter_map(|error| item_of(error.span().start)).collect();
        found.into_iter().filter_map(|at| extents.get(at).copied()).collect()
    }

    fn item(&mut self) -> Parsed<Item> {
        match self.word() {
            "use" => self.use_item(),
            "const" => Ok(Item::Const(self.constant()?)),
            "event" => Ok(Item::Event(self.event()?)),
            "fn" | "action" => Ok(Item::Fn(self.fn_def()?)),
            "nf" | "stream" | "native" => Ok(Item::Nf(self.nf()?)),
            "chain" => Ok(Item::Chain(self.chain()?)),
            _ => Err(self.unknown_item("a declaration", FILE_ITEMS)),
        }
    }

    /// Reports that no declaration starts here.
    pub(super) fn unknown_item(&mut self, what: &str, words: &[&str]) -> super::state::Bail {
        if self.at(Tok::Error) {
            return super::state::Bail;
        }
        let message = format!("expected {what}, found {}", self.found());
        let found = Diagnostic::new(codes::UNKNOWN_ITEM, message, self.here(), "");
        let list: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        let note = format!("allowed here: {}", list.join(", "));
        let help = did_you_mean_help(self.word(), words.iter().copied());
        self.report(found.note(note).help_if(help))
    }

    /// Skips to the place where the next declaration seems to start.
    fn next_item(&mut self, start: usize) {
        if self.pos == start {
            self.bump();
        }
        while !self.at(Tok::Eof) && !self.at_item_start() {
            self.bump();
        }
    }

    fn at_item_start(&self) -> bool {
        let named = match self.token(1).kind {
            Tok::Ident => true,
            Tok::Str => self.at_word("use"),
            _ => false,
        };
        let starts = self.on_new_line() && named && FILE_ITEMS.contains(&self.word());
        // These words belong to a function if they are indented.
        starts && (self.column_of_token() == 0 || self.at_nf_or_chain())
    }

    fn column_of_token(&self) -> usize {
        let start = self.token(0).start as usize;
        let before = self.text.get(..start).unwrap_or("");
        start - before.rfind('\n').map_or(0, |at| at + 1)
    }

    fn use_item(&mut self) -> Parsed<Item> {
        let start = self.pos;
        self.bump();
        let token = self.expect(Tok::Str, "the path of a file in double quotes")?;
        let literal = self.text.get(token.start as usize..token.end as usize).unwrap_or("");
        self.semicolon()?;
        let path = string_value(literal).unwrap_or_default();
        Ok(Item::Use { path, span: self.span_from(start) })
    }

    /// `event NAME [extends PARENT] { field: type, … }`, or `;` instead of the fields
    fn event(&mut self) -> Parsed<EventDef> {
        let start = self.pos;
        self.bump();
        let name = self.name("the name of the event")?;
        let parent =
            if self.eat_word("extends") { Some(self.name("the name of an event")?) } else { None };
        let fields = if self.at(Tok::LBrace) { self.record_type()? } else { Vec::new() };
        if fields.is_empty() && !self.closed_brace() {
            self.semicolon()?;
        }
        Ok(EventDef { name, parent, fields, span: self.span_from(start) })
    }

    /// Whether the last consumed token was a `}`.
    fn closed_brace(&self) -> bool {
        self.pos > 0 && self.tokens[self.pos - 1].kind == Tok::RBrace
    }
}
