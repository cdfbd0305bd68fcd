//! Parses expressions.

use super::marks::GLUE;
use super::ops::{Infix, level};
use super::state::{Parsed, Parser};
use super::words::{RATES, UNITS, is_keyword};
use crate::ast::{Arg, Expr, ExprKind, Ident, Path};
use crate::diag::{Diagnostic, codes, did_you_mean, did_you_mean_help, foreign_unit};
use crate::lexer::{Address, Tok, address, int_value, string_value};

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.binary(level::OR)
    }

    /// Parses operators that bind at least as tightly as `min`.
    pub(super) fn binary(&mut self, min: u8) -> Parsed<Expr> {
        self.deeper(|p| p.binary_inner(min))
    }

    fn binary_inner(&mut self, min: u8) -> Parsed<Expr> {
        let start = self.pos;
        let mut left = if self.at_word("not") { self.not(min)? } else { self.unary()? };
        while let Some((op, tokens)) = self.infix() {
            if op.level() < min {
                break;
            }
            // A sequence of operators makes a deep tree. It takes no recursion here, but later
            // walks recurse.
            self.descend()?;
            self.bump_operator(tokens);
            let right = self.binary(op.level() + 1)?;
            let follows = self.check_row(op);
            let kind = if follows { ExprKind::Error } else { infix_kind(op, left, right) };
            left = Expr { kind, span: self.span_from(start) };
        }
        Ok(left)
    }

    /// Reports comparisons and ranges in sequence, which are not allowed. The rest of the sequence
    /// is still parsed.
    fn check_row(&mut self, op: Infix) -> bool {
        if self.infix().is_none_or(|(next, _)| next.level() != op.level()) {
            return false;
        }
        let found = match op.level() {
            level::COMPARE => {
                let message = "comparisons cannot follow one another";
                Diagnostic::new(
                    codes::CHAINED_COMPARISON,
                    message,
                    self.here(),
                    "second comparison",
                )
                .help("join two with `and`, or use a range: `x in 1..5`")
            }
            level::RANGE => {
                let message = "a range has two ends";
                Diagnostic::new(codes::NEEDS_PARENTHESES, message, self.here(), "third end")
            }
            _ => return false,
        };
        self.report(found);
        true
    }

    fn not(&mut self, min: u8) -> Parsed<Expr> {
        let start = self.pos;
        let misplaced = min > level::NOT;
        if misplaced {
            let message = "`not` on the right of this operator needs parentheses";
            let found = Diagnostic::new(codes::NEEDS_PARENTHESES, message, self.here(), "");
            self.report(found.help("write `(not …)`, or `!` before a single operand"));
        }
        self.bump();
        let operand = Box::new(self.binary(level::NOT)?);
        let kind = if misplaced { ExprKind::Error } else { ExprKind::Not(operand) };
        Ok(Expr { kind, span: self.span_from(start) })
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.pos;
        match self.kind() {
            Tok::Bang | Tok::Tilde => {
                let complement = self.bump().kind == Tok::Tilde;
                self.mark(GLUE);
                let operand = Box::new(self.deeper(Self::unary)?);
                let kind = if complement { ExprKind::Complement } else { ExprKind::Not };
                Ok(Expr { kind: kind(operand), span: self.span_from(start) })
            }
            Tok::Minus => {
                let message = "numbers are unsigned; there is no negation";
                let found = Diagnostic::new(codes::NEGATIVE_NUMBER, message, self.here(), "");
                self.report(found.help("write a difference: `a - b`"));
                self.bump();
                self.deeper(Self::unary)?;
                Ok(Expr { kind: ExprKind::Error, span: self.span_from(start) })
            }
            _ => self.postfix(),
        }
    }

    /// Parses a primary expression with the `[…]` and `.name` behind it.
    pub(super) fn postfix(&mut self) -> Parsed<Expr> {
        let depth = self.depth;
        let expr = self.postfix_inner();
        self.depth = depth;
        expr
    }

    fn postfix_inner(&mut self) -> Parsed<Expr> {
        let start = self.pos;
        let mut base = self.primary()?;
        loop {
            let kind = match self.kind() {
                Tok::LBracket => {
                    self.descend()?;
                    ExprKind::Index(Box::new(base), self.key()?)
                }
                Tok::Dot => {
                    self.descend()?;
                    self.bump();
                    let member = self.any_word("a name after the `.`")?;
                    ExprKind::Member(Box::new(base), member)
                }
                _ => return Ok(base),
            };
            base = Expr { kind, span: self.span_from(start) };
        }
    }

    /// Parses `[a, b]`, or `[quoted reverse]`, which holds the two words.
    fn key(&mut self) -> Parsed<Vec<Expr>> {
        self.mark(GLUE);
        let open = self.bump();
        if self.word() == "quoted" && self.word_ahead(1) == "reverse" {
            let words = vec![self.path_expr()?, self.path_expr()?];
            self.close(open, Tok::RBracket, "")?;
            return Ok(words);
        }
        self.list(open, Tok::RBracket, Self::expr)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.pos;
        let kind = match self.kind() {
            Tok::Int => self.number(),
            Tok::Str => ExprKind::Str(string_value(self.take_text()).unwrap_or_default()),
            Tok::Ip4 | Tok::Ip6 | Tok::Mac | Tok::Prefix4 | Tok::Prefix6 => {
                address_kind(self.take_text())
            }
            Tok::Ident => return self.word_expr(),
            Tok::LParen => {
                let open = self.bump();
                let inner = self.expr()?;
                let inner = self.not_assignment(inner)?;
                self.close(open, Tok::RParen, "")?;
                return Ok(Expr { span: self.span_from(start), ..inner });
            }
            Tok::LBracket => {
                ExprKind::List(self.bracketed((Tok::LBracket, Tok::RBracket), false, Self::expr)?)
            }
            Tok::LBrace => self.braces()?,
            Tok::Error => {
                let number = self.take_text().starts_with(|c: char| c.is_ascii_digit());
                if number && !self.on_new_line() {
                    self.skip_unit();
                }
                ExprKind::Error
            }
            _ => return Err(self.expected("an expression")),
        };
        Ok(Expr { kind, span: self.span_from(start) })
    }

    fn take_text(&mut self) -> &str {
        let text = self.text(0);
        self.bump();
        text
    }

    /// Parses a number with its unit, if there is one.
    fn number(&mut self) -> ExprKind {
        let value = int_value(self.text(0)).unwrap_or_default();
        self.bump();
        let unit = self.word();
        if unit.is_empty() || self.on_new_line() || (is_keyword(unit) && !self.joined_to_last()) {
            return ExprKind::Int(value);
        }
        if RATES.contains(&unit) && self.rate_follows() {
            self.bump();
            self.mark(GLUE);
            self.bump();
            self.mark(GLUE);
            self.bump();
            return ExprKind::Quantity(value, format!("{unit}/s"));
        }
        if UNITS.contains(&unit) {
            self.bump();
            return ExprKind::Quantity(value, unit.to_owned());
        }
        self.unknown_unit(unit)
    }

    /// Consumes the unit of a number that is malformed.
    fn skip_unit(&mut self) {
        let rate = RATES.contains(&self.word()) && self.rate_follows();
        if rate || UNITS.contains(&self.word()) {
            for _ in 0..if rate { 3 } else { 1 } {
                self.bump();
            }
        }
    }

    fn joined_to_last(&self) -> bool {
        self.pos > 0 && self.tokens[self.pos - 1].end == self.token(0).start
    }

    /// Whether `/s` follows the current word without a space.
    fn rate_follows(&self) -> bool {
        self.token(1).kind == Tok::Slash
            && self.joined(1)
            && self.joined(2)
            && self.word_ahead(2) == "s"
    }

    fn unknown_unit(&mut self, unit: &str) -> ExprKind {
        let rate = did_you_mean(unit, RATES.iter().copied())
            .filter(|_| self.token(1).kind == Tok::Slash)
            .map(|near| format!("did you mean `{near}/s`?"));
        let help = match unit {
            "K" => Some("`k` is a thousand, `Ki` is 1,024".into()),
            _ => rate
                .or_else(|| foreign_unit(unit))
                .or_else(|| did_you_mean_help(unit, UNITS.iter().copied())),
        };
        let message = format!("`{unit}` is not a unit of a number");
        let found = Diagnostic::new(codes::UNKNOWN_UNIT, message, self.here(), "unknown unit");
        self.report(found.help_if(help));
        self.bump();
        if self.at(Tok::Slash) && self.word_ahead(1) == "s" && self.joined(1) {
            self.bump();
            self.bump();
        }
        ExprKind::Error
    }

    /// Parses an expression that starts with a word.
    fn word_expr(&mut self) -> Parsed<Expr> {
        let start = self.pos;
        let kind = match self.word() {
            word @ ("true" | "false") => {
                self.bump();
                ExprKind::Bool(word == "true")
            }
            "exists" => {
                self.bump();
                ExprKind::Exists(Box::new(self.deeper(Self::postfix)?))
            }
            "has" => {
                self.bump();
                ExprKind::Has(self.path("a header")?)
            }
            "if" => self.if_expr()?,
            word if is_keyword(word) => {
                return Err(self.expected_with("an expression", keyword_help(word)));
            }
            _ if self.token(1).kind == Tok::LParen => {
                let name = self.name("a name")?;
                ExprKind::Call(name, self.args()?)
            }
            _ => return self.path_expr(),
        };
        Ok(Expr { kind, span: self.span_from(start) })
    }

    fn path_expr(&mut self) -> Parsed<Expr> {
        let path = self.path("a name")?;
        let span = path.span;
        if self.at(Tok::LParen) && self.joined_to_last() {
            let help = "only plain names can be called, such as `hash(ip.src)`";
            return Err(self.expected_with("an operator", Some(help.into())));
        }
        Ok(Expr { kind: ExprKind::Path(path), span })
    }

    /// `(VALUE, name: VALUE, …)`
    pub(super) fn args(&mut self) -> Parsed<Vec<Arg>> {
        self.bracketed((Tok::LParen, Tok::RParen), true, |p| {
            let named = p.at(Tok::Ident) && p.token(1).kind == Tok::Colon;
            let name = if named { Some(p.any_word("a name")?) } else { None };
            if named {
                p.bump();
            }
            let value = p.arg_value()?;
            Ok(Arg { name, value })
        })
    }

    /// Parses a value. A lone keyword is a name here, as in `default: drop`.
    fn arg_value(&mut self) -> Parsed<Expr> {
        let word = self.word();
        let alone = matches!(self.token(1).kind, Tok::Comma | Tok::RParen);
        if alone && is_keyword(word) && !matches!(word, "true" | "false") {
            let name = self.any_word("a name")?;
            let span = name.span;
            return Ok(Expr { kind: ExprKind::Path(Path { parts: vec![name], span }), span });
        }
        let value = self.expr()?;
        self.not_assignment(value)
    }

    /// Parses a set, or a record if a name and a `:` come first.
    fn braces(&mut self) -> Parsed<ExprKind> {
        if self.token(1).kind == Tok::Ident && self.token(2).kind == Tok::Colon {
            return Ok(ExprKind::Record(self.record()?));
        }
        let pair = (Tok::LBrace, Tok::RBrace);
        Ok(ExprKind::Set(self.bracketed(pair, false, Self::expr)?))
    }

    /// `{ name: EXPR, … }`
    pub(super) fn record(&mut self) -> Parsed<Vec<(Ident, Expr)>> {
        self.bracketed((Tok::LBrace, Tok::RBrace), false, |p| {
            let name = p.any_word("a name and `:`")?;
            p.expect(Tok::Colon, "`:` and a value")?;
            Ok((name, p.expr()?))
        })
    }

    fn if_expr(&mut self) -> Parsed<ExprKind> {
        self.bump();
        let cond = self.condition()?;
        let then = self.braced_expr()?;
        if !self.at_word("else") {
            let help = "an `if` that is a value needs both branches";
            return Err(self.expected_with("`else`", Some(help.into())));
        }
        self.bump();
        let otherwise = if self.at_word("if") {
            let start = self.pos;
            let kind = self.deeper(Self::if_expr)?;
            Expr { kind, span: self.span_from(start) }
        } else {
            self.braced_expr()?
        };
        Ok(ExprKind::If(Box::new(cond), Box::new(then), Box::new(otherwise)))
    }

    fn braced_expr(&mut self) -> Parsed<Expr> {
        let open = self.expect(Tok::LBrace, "`{`")?;
        let value = self.expr()?;
        self.close(open, Tok::RBrace, "")?;
        Ok(value)
    }

    /// Parses the condition of an `if`, or a row's predicate.
    pub(super) fn condition(&mut self) -> Parsed<Expr> {
        if self.at(Tok::LBrace) {
            return Err(self.expected("a condition"));
        }
        let cond = self.expr()?;
        self.not_assignment(cond)
    }

    /// Reports a `=` behind a value, where only `==` is possible.
    fn not_assignment(&mut self, value: Expr) -> Parsed<Expr> {
        if !self.at(Tok::Assign) {
            return Ok(value);
        }
        let message = "`=` assigns and cannot stand in an expression";
        let found = Diagnostic::new(codes::ASSIGN_IN_CONDITION, message, self.here(), "");
        self.report(found.help("compare with `==`"));
        self.bump();
        let right = self.expr()?;
        Ok(Expr { kind: ExprKind::Error, span: value.span.to(right.span) })
    }
}

fn infix_kind(op: Infix, left: Expr, right: Expr) -> ExprKind {
    let span = left.span.to(right.span);
    let (left, right) = (Box::new(left), Box::new(right));
    match op {
        Infix::Binary(op) => ExprKind::Binary(op, left, right),
        Infix::In => ExprKind::In(left, right),
        Infix::NotIn => {
            let inside = Expr { kind: ExprKind::In(left, right), span };
            ExprKind::Not(Box::new(inside))
        }
        Infix::Matches => ExprKind::Matches(left, right),
        Infix::Range => ExprKind::Range(left, right),
    }
}

fn address_kind(text: &str) -> ExprKind {
    match address(text) {
        Some(Address::Ip4(addr)) => ExprKind::Ip4(addr),
        Some(Address::Ip6(addr)) => ExprKind::Ip6(addr),
        Some(Address::Mac(addr)) => ExprKind::Mac(addr),
        Some(Address::Prefix4(addr, len)) => ExprKind::Prefix4(addr, len),
        Some(Address::Prefix6(addr, len)) => ExprKind::Prefix6(addr, len),
        None => ExprKind::Error,
    }
}

fn keyword_help(word: &str) -> Option<String> {
    match word {
        "match" => {
            Some("`match` is a statement and has no value; use `if … { A } else { B }`".into())
        }
        _ => None,
    }
}
