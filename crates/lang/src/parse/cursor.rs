//! Moves over tokens: looks ahead, consumes, reports expectations, recovers from errors.

use super::marks::{BLOCK, GLUE, LIST};
use super::state::{Bail, MAX_DEPTH, Parsed, Parser};
use super::words::{is_keyword, starts_statement};
use crate::ast::{Ident, Span};
use crate::diag::{Diagnostic, codes, did_you_mean_help};
use crate::lexer::{Tok, Token};

impl<'t> Parser<'t> {
    /// The token `ahead` of the current one. Beyond the end it is the last one (`Eof`).
    pub(super) fn token(&self, ahead: usize) -> Token {
        let last = self.tokens.len().saturating_sub(1);
        let end = Token { kind: Tok::Eof, start: 0, end: 0 };
        self.tokens.get((self.pos + ahead).min(last)).copied().unwrap_or(end)
    }

    pub(super) fn kind(&self) -> Tok {
        self.token(0).kind
    }

    pub(super) fn at(&self, kind: Tok) -> bool {
        self.kind() == kind
    }

    /// The text of the token `ahead`.
    pub(super) fn text(&self, ahead: usize) -> &'t str {
        let token = self.token(ahead);
        self.text.get(token.start as usize..token.end as usize).unwrap_or("")
    }

    /// The current word. Empty if the current token is not a word.
    pub(super) fn word(&self) -> &'t str {
        self.word_ahead(0)
    }

    /// The word `ahead`. Empty if that token is not a word.
    pub(super) fn word_ahead(&self, ahead: usize) -> &'t str {
        if self.token(ahead).kind == Tok::Ident { self.text(ahead) } else { "" }
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        self.word() == word
    }

    /// Whether the token `ahead` follows its predecessor without a space.
    pub(super) fn joined(&self, ahead: usize) -> bool {
        ahead > 0 && self.token(ahead - 1).end == self.token(ahead).start
    }

    /// Whether a line ends between the current token and its predecessor.
    pub(super) fn on_new_line(&self) -> bool {
        let Some(before) = self.pos.checked_sub(1).and_then(|at| self.tokens.get(at)) else {
            return true;
        };
        let between = before.end as usize..self.token(0).start as usize;
        self.text.get(between).is_some_and(|between| between.contains('\n'))
    }

    pub(super) fn bump(&mut self) -> Token {
        let token = self.token(0);
        match token.kind {
            Tok::LBrace => self.open_braces += 1,
            Tok::RBrace => self.open_braces = self.open_braces.saturating_sub(1),
            _ => {}
        }
        if token.kind != Tok::Eof {
            self.pos += 1;
        }
        token
    }

    pub(super) fn eat(&mut self, kind: Tok) -> bool {
        let here = self.at(kind);
        if here {
            self.bump();
        }
        here
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let here = self.at_word(word);
        if here {
            self.bump();
        }
        here
    }

    pub(super) fn span_of(&self, token: Token) -> Span {
        let at = |byte: u32| self.base.saturating_add(byte);
        Span { file: self.file, start: at(token.start), end: at(token.end) }
    }

    pub(super) fn here(&self) -> Span {
        self.span_of(self.token(0))
    }

    /// The span from token number `start` to the last consumed token.
    pub(super) fn span_from(&self, start: usize) -> Span {
        let last = self.tokens.len().saturating_sub(1);
        let first = self.tokens.get(start.min(last)).map(|t| self.span_of(*t)).unwrap_or_default();
        let end = self.pos.saturating_sub(1).max(start).min(last);
        first.to(self.tokens.get(end).map_or(first, |t| self.span_of(*t)))
    }

    /// The place directly behind the last consumed token.
    pub(super) fn after_last(&self) -> Span {
        let last = self.span_from(self.pos.saturating_sub(1));
        Span { start: last.end, ..last }
    }

    /// Marks the current token for the formatter.
    pub(super) fn mark(&mut self, mark: u8) {
        self.marks.set(self.pos, mark);
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) -> Bail {
        if !self.aborted {
            self.diags.push(diagnostic);
        }
        Bail
    }

    /// The name of the current token in a message.
    pub(super) fn found(&self) -> String {
        match self.kind() {
            Tok::Eof => "the end of the file".into(),
            Tok::Ident if is_keyword(self.word()) => format!("the keyword `{}`", self.word()),
            _ => format!("`{}`", shortened(self.text(0))),
        }
    }

    /// Reports that something else was expected here.
    pub(super) fn expected(&mut self, what: &str) -> Bail {
        self.expected_with(what, None)
    }

    pub(super) fn expected_with(&mut self, what: &str, help: Option<String>) -> Bail {
        if self.at(Tok::Error) {
            return Bail;
        }
        let message = format!("expected {what}, found {}", self.found());
        let label = format!("expected {what}");
        let found = Diagnostic::new(codes::UNEXPECTED_TOKEN, message, self.here(), label);
        self.report(found.help_if(help))
    }

    /// Reports an unknown word and suggests the nearest of `words`.
    pub(super) fn expected_one_of(&mut self, what: &str, words: &[&str]) -> Bail {
        let help = did_you_mean_help(self.word(), words.iter().copied());
        self.expected_with(what, help)
    }

    /// Reports that no declaration starts here.
    pub(super) fn unknown_item(&mut self, what: &str, words: &[&str]) -> Bail {
        if self.at(Tok::Error) {
            return Bail;
        }
        let message = format!("expected {what}, found {}", self.found());
        let found = Diagnostic::new(codes::UNKNOWN_ITEM, message, self.here(), "");
        let list: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        let note = format!("allowed here: {}", list.join(", "));
        let help = did_you_mean_help(self.word(), words.iter().copied());
        self.report(found.note(note).help_if(help))
    }

    pub(super) fn expect(&mut self, kind: Tok, what: &str) -> Parsed<Token> {
        if self.at(kind) { Ok(self.bump()) } else { Err(self.expected(what)) }
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    /// Consumes the bracket that closes `open`.
    pub(super) fn close(&mut self, open: Token, kind: Tok, or: &str) -> Parsed<()> {
        if self.eat(kind) {
            return Ok(());
        }
        let (close, opened) = match kind {
            Tok::RBrace => ("}", "{"),
            Tok::RParen => (")", "("),
            Tok::RBracket => ("]", "["),
            _ => (">", "<"),
        };
        if !matches!(self.kind(), Tok::Eof | Tok::RBrace | Tok::Semi) && !self.at_nf_or_chain() {
            return Err(self.expected(&format!("{or}`{close}`")));
        }
        Err(self.unclosed(open, opened, close))
    }

    fn unclosed(&mut self, open: Token, opened: &str, close: &str) -> Bail {
        // If several brackets miss their end at the same place, only the innermost one is reported.
        if self.unclosed_at.replace(self.pos) == Some(self.pos) {
            return Bail;
        }
        let message =
            format!("this `{opened}` is not closed: expected `{close}`, found {}", self.found());
        let found =
            Diagnostic::new(codes::UNCLOSED_BRACKET, message, self.span_of(open), "opened here");
        let here = self.here();
        self.report(found.label(here, format!("expected `{close}` at the latest here")))
    }

    /// Consumes a `;`. If it is missing at the end of a line, that is reported and parsing
    /// continues.
    pub(super) fn semicolon(&mut self) -> Parsed<()> {
        if self.eat(Tok::Semi) {
            return Ok(());
        }
        if self.at(Tok::Error) {
            return Err(Bail);
        }
        if self.on_new_line() || matches!(self.kind(), Tok::RBrace | Tok::Eof) {
            let message = format!("expected `;`, found {}", self.found());
            let after = self.after_last();
            let found = Diagnostic::new(codes::MISSING_SEMICOLON, message, after, "missing `;`");
            self.report(found);
            return Ok(());
        }
        Err(self.expected("`;`"))
    }

    /// A name that is not a keyword.
    pub(super) fn name(&mut self, what: &str) -> Parsed<Ident> {
        if is_keyword(self.word()) {
            let word = self.word();
            let message = format!("expected {what}, found the keyword `{word}`");
            let found =
                Diagnostic::new(codes::KEYWORD_AS_NAME, message, self.here(), "cannot be a name");
            return Err(self.report(found.help(format!("choose another name, such as `{word}_`"))));
        }
        self.any_word(what)
    }

    /// A word, which may be a keyword where only a name is possible.
    pub(super) fn any_word(&mut self, what: &str) -> Parsed<Ident> {
        if !self.at(Tok::Ident) {
            return Err(self.expected(what));
        }
        let text = self.word().to_owned();
        let span = self.here();
        self.bump();
        Ok(Ident { text, span })
    }

    /// Parses a block: `{`, parts (each starts with `mark` for the formatter), `}`. A part with an
    /// error is omitted, and parsing continues at the next part. A missing `}` is reported, and no
    /// part is lost.
    pub(super) fn body(
        &mut self,
        mark: u8,
        mut part: impl FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<()> {
        self.mark(BLOCK);
        let open = self.expect(Tok::LBrace, "`{`")?;
        let level = self.open_braces;
        while !self.at_block_end() {
            let start = self.pos;
            if self.at(Tok::Semi) {
                self.extra_semicolon();
                continue;
            }
            self.mark(mark);
            if part(self).is_err() || self.pos == start {
                self.recover(level, start);
            }
        }
        if !self.eat(Tok::RBrace) {
            self.unclosed(open, "{", "}");
        }
        Ok(())
    }

    pub(super) fn extra_semicolon(&mut self) {
        let message = "this `;` ends nothing";
        let found = Diagnostic::new(codes::EXTRA_SEMICOLON, message, self.here(), "");
        self.report(found.help("remove it; what ends in `}` takes no `;`"));
        self.bump();
    }

    /// Parses a part one level deeper. Beyond [`MAX_DEPTH`], the rest of the file is skipped.
    pub(super) fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let depth = self.depth;
        let result = self.descend().and_then(|()| part(self));
        self.depth = depth;
        result
    }

    /// Enters a level of nesting. The caller restores `depth`.
    pub(super) fn descend(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        let message =
            format!("nested more than {MAX_DEPTH} deep; the rest of the file is not read");
        let found = Diagnostic::new(codes::TOO_DEEP, message, self.here(), "too deep");
        self.report(found.help("give parts names with `let`, `const` or `fn`, or use a set"));
        self.aborted = true;
        self.pos = self.tokens.len().saturating_sub(1);
        Err(Bail)
    }

    /// Parses items between commas, after `open` and up to `close`. A comma may follow the last
    /// item.
    pub(super) fn list<T>(
        &mut self,
        open: Token,
        close: Tok,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        self.marks.set(self.pos.saturating_sub(1), LIST);
        let mut items = Vec::new();
        while !self.at(close) {
            items.push(item(self)?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.close(open, close, "`,` or ")?;
        Ok(items)
    }

    /// Parses a list in brackets, including the opening bracket. `glue` removes the space before
    /// it.
    pub(super) fn bracketed<T>(
        &mut self,
        (open, close): (Tok, Tok),
        glue: bool,
        item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        if glue {
            self.mark(GLUE);
        }
        let what = match open {
            Tok::LParen => "`(`",
            Tok::LBracket => "`[`",
            _ => "`{`",
        };
        let open = self.expect(open, what)?;
        self.list(open, close, item)
    }

    /// Whether a function, chain or event starts here. These cannot be nested, so an earlier brace
    /// was not closed.
    pub(super) fn at_nf_or_chain(&self) -> bool {
        if !self.on_new_line() || self.token(1).kind != Tok::Ident {
            return false;
        }
        match self.word() {
            "nf" => self.token(2).kind == Tok::LParen,
            "chain" => self.token(2).kind == Tok::LBrace,
            "event" => matches!(self.word_ahead(2), "extends") || self.token(2).kind == Tok::LBrace,
            "stream" | "native" => self.word_ahead(1) == "nf",
            _ => false,
        }
    }

    /// Whether a block ends here, or its end is evidently missing.
    pub(super) fn at_block_end(&self) -> bool {
        matches!(self.kind(), Tok::RBrace | Tok::Eof) || self.at_nf_or_chain()
    }

    /// Recovers from an error inside a block whose brace is number `level`: skips to the next
    /// statement, row or declaration of that block, or to its end.
    pub(super) fn recover(&mut self, level: u32, start: usize) {
        if self.pos == start && !self.at_block_end() {
            self.bump();
        }
        while !self.at(Tok::Eof) && !self.at_nf_or_chain() {
            let outside = self.open_braces <= level;
            match self.kind() {
                Tok::RBrace if outside => break,
                Tok::RBrace => {
                    self.bump();
                    if self.open_braces <= level && !self.goes_on() {
                        break;
                    }
                }
                Tok::Semi if outside => {
                    self.bump();
                    break;
                }
                Tok::Ident if outside && self.on_new_line() && starts_statement(self.word()) => {
                    break;
                }
                _ => {
                    self.bump();
                }
            }
        }
        self.open_braces = self.open_braces.min(level);
    }

    /// Whether the tokens here continue the part that a `}` ended.
    fn goes_on(&self) -> bool {
        matches!(self.kind(), Tok::Semi | Tok::Comma | Tok::RParen | Tok::RBracket | Tok::FatArrow)
            || self.at_word("else")
    }
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}
