//! Parses statements and match tables.

use super::marks::{GLUE, LINE, STMT};
use super::ops::level;
use super::state::{Parsed, Parser};
use super::words::is_keyword;
use crate::ast::{BinOp, Block, Expr, ExprKind, Ident, Path, Row, Span, Stmt, StmtKind};
use crate::diag::{Diagnostic, codes};
use crate::lexer::{Tok, string_value};

impl Parser<'_> {
    /// `{ stmt … }`
    pub(super) fn block(&mut self) -> Parsed<Block> {
        let start = self.pos;
        let mut stmts = Vec::new();
        self.body(STMT, |p| p.stmt_into(&mut stmts))?;
        Ok(Block { stmts, span: self.span_from(start) })
    }

    /// Parses a statement and adds it to `stmts`. A statement with an error becomes an `Error`
    /// node.
    pub(super) fn stmt_into(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        let start = self.pos;
        let parsed = self.stmt();
        let span = self.span_from(start);
        let result = parsed.as_ref().map(|_| ()).map_err(|bail| *bail);
        stmts.push(parsed.unwrap_or(Stmt { kind: StmtKind::Error, span }));
        result
    }

    pub(super) fn stmt(&mut self) -> Parsed<Stmt> {
        self.deeper(|p| {
            let start = p.pos;
            let kind = p.stmt_kind()?;
            Ok(Stmt { kind, span: p.span_from(start) })
        })
    }

    fn stmt_kind(&mut self) -> Parsed<StmtKind> {
        if self.at(Tok::LBrace) {
            return Ok(StmtKind::Block(self.block()?));
        }
        match self.word() {
            "match" => self.match_stmt(),
            "if" => self.if_stmt(),
            "for" => self.for_stmt(),
            "let" => self.let_stmt(),
            "hold" => self.hold_stmt(),
            "send" => self.send_stmt(),
            "emit" => self.emit_stmt(),
            "delete" | "output" | "drop" | "consume" | "mirror" | "resubmit" | "push" | "pop" => {
                let kind = self.simple_stmt()?;
                self.semicolon()?;
                Ok(kind)
            }
            _ => self.assign_or_call(),
        }
    }

    fn simple_stmt(&mut self) -> Parsed<StmtKind> {
        let word = self.word();
        self.bump();
        Ok(match word {
            "delete" if !self.at(Tok::Ident) => return Err(self.expected("a state")),
            "delete" => StmtKind::Delete(self.postfix()?),
            "output" => StmtKind::Output(self.ports()?),
            "drop" => StmtKind::Drop(self.reason()),
            "consume" => StmtKind::Consume,
            "mirror" => StmtKind::Mirror(self.any_word("a port")?),
            "push" => self.push()?,
            "pop" => StmtKind::Pop(self.any_word("a header, such as `vlan`")?),
            _ => StmtKind::Resubmit,
        })
    }

    /// Parses ports between commas, or none.
    fn ports(&mut self) -> Parsed<Vec<Ident>> {
        let mut ports = Vec::new();
        if matches!(self.kind(), Tok::Semi | Tok::RBrace) || self.on_new_line() {
            return Ok(ports);
        }
        loop {
            ports.push(self.any_word("a port or `;`")?);
            if !self.eat(Tok::Comma) {
                return Ok(ports);
            }
        }
    }

    fn reason(&mut self) -> Option<(String, Span)> {
        if !matches!(self.kind(), Tok::Str | Tok::Error) {
            return None;
        }
        let span = self.here();
        let text = string_value(self.text(0)).unwrap_or_default();
        self.bump();
        Some((text, span))
    }

    fn push(&mut self) -> Parsed<StmtKind> {
        let header = self.any_word("a header, such as `vlan`")?;
        let mut args = Vec::new();
        if self.at(Tok::LParen) {
            args = self.bracketed((Tok::LParen, Tok::RParen), true, Self::expr)?;
        }
        Ok(StmtKind::Push { header, args })
    }

    /// Parses `else STMT`, which has its own `;`, or the `;`.
    fn otherwise(&mut self) -> Parsed<Option<Box<Stmt>>> {
        if self.eat_word("else") {
            return Ok(Some(Box::new(self.stmt()?)));
        }
        self.semicolon()?;
        Ok(None)
    }

    fn let_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let name = self.name("a name")?;
        self.expect(Tok::Assign, "`=` and a value")?;
        let value = self.expr()?;
        Ok(StmtKind::Let { name, value, otherwise: self.otherwise()? })
    }

    fn hold_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let queue = self.name("the name of a queue")?;
        self.expect_word("for")?;
        let delay = self.expr()?;
        Ok(StmtKind::Hold { queue, delay, otherwise: self.otherwise()? })
    }

    fn assign_or_call(&mut self) -> Parsed<StmtKind> {
        let word = self.word();
        let value = matches!(word, "exists" | "has" | "not" | "true" | "false");
        if word == "else" {
            let help = "an `else` follows the `}` of its `if`, or the value of a statement";
            return Err(self.expected_with("a statement", Some(help.into())));
        }
        let starts = !word.is_empty() && (value || !is_keyword(word));
        if !starts && !self.at(Tok::LParen) {
            return Err(self.expected("a statement"));
        }
        let place = self.expr()?;
        if let Some((op, tokens)) = self.assignment() {
            self.bump_operator(tokens);
            let value = self.expr()?;
            return Ok(StmtKind::Assign { place, op, value, otherwise: self.otherwise()? });
        }
        let plain = matches!(&place.kind, ExprKind::Path(path) if path.parts.len() == 1);
        let call = matches!(place.kind, ExprKind::Call(..)) || plain;
        let ends = self.at(Tok::Semi) || self.on_new_line() || self.at_block_end();
        if !ends {
            return Err(self.expected("`;` or an assignment"));
        }
        if !call && !matches!(place.kind, ExprKind::Error) {
            self.useless(&place);
        }
        self.semicolon()?;
        Ok(if call { StmtKind::Call(place) } else { StmtKind::Error })
    }

    fn useless(&mut self, value: &Expr) {
        let message = "this expression has no effect";
        let found =
            Diagnostic::new(codes::USELESS_STATEMENT, message, value.span, "not a statement");
        let equality = matches!(value.kind, ExprKind::Binary(BinOp::Eq, ..));
        let help = if equality { "assign with `=`" } else { "assign it, or remove it" };
        self.report(found.help(help));
    }

    fn if_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let cond = self.condition()?;
        let then = self.block()?;
        // `else =>` is the next row of a `match`, in which this statement is a row.
        if !self.at_word("else") || self.token(1).kind == Tok::FatArrow {
            return Ok(StmtKind::If { cond, then, otherwise: None });
        }
        self.bump();
        let otherwise = if self.at_word("if") {
            let nested = self.stmt()?;
            Block { span: nested.span, stmts: vec![nested] }
        } else {
            self.block()?
        };
        Ok(StmtKind::If { cond, then, otherwise: Some(otherwise) })
    }

    fn for_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let var = self.name("a name")?;
        self.expect_word("in")?;
        let from = self.binary(level::BIT_OR)?;
        self.expect(Tok::DotDot, "`..` and the upper bound")?;
        let to = self.binary(level::BIT_OR)?;
        Ok(StmtKind::For { var, from, to, body: self.block()? })
    }

    fn match_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let mut rows = Vec::new();
        self.body(LINE, |p| {
            rows.push(p.row()?);
            Ok(())
        })?;
        Ok(StmtKind::Match(rows))
    }

    fn row(&mut self) -> Parsed<Row> {
        let start = self.pos;
        let pred = if self.eat_word("else") { None } else { Some(self.condition()?) };
        self.expect(Tok::FatArrow, "`=>`")?;
        let body = if self.at(Tok::LBrace) {
            self.block()?
        } else {
            let only = self.stmt()?;
            Block { span: only.span, stmts: vec![only] }
        };
        Ok(Row { pred, body, span: self.span_from(start) })
    }

    fn send_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let shape = self.any_word("the kind of packet, such as `icmp`")?;
        let mut fields = Vec::new();
        let mut payload = None;
        self.body(STMT, |p| {
            if p.at_word("payload") && p.token(1).kind == Tok::Assign {
                let span = p.here();
                let value = p.payload()?;
                if payload.replace(value).is_some() {
                    let message = "the payload of the new packet is given twice";
                    p.report(Diagnostic::new(codes::PAYLOAD_TWICE, message, span, "again"));
                }
            } else {
                fields.push(p.send_field()?);
            }
            Ok(())
        })?;
        let mut port = None;
        if self.eat_word("to") {
            port = Some(self.any_word("a port")?);
            self.semicolon()?;
        }
        Ok(StmtKind::Send { shape, fields, payload, port })
    }

    fn send_field(&mut self) -> Parsed<(Path, Expr)> {
        let field = self.path("a field of the new packet")?;
        self.expect(Tok::Assign, "`=` and a value")?;
        let value = self.expr()?;
        self.semicolon()?;
        Ok((field, value))
    }

    /// `payload = quote(N);`, `payload = same;`
    fn payload(&mut self) -> Parsed<(Ident, Option<Expr>)> {
        self.bump();
        self.bump();
        let what = self.any_word("`quote(N)` or `same`")?;
        let mut length = None;
        if self.at(Tok::LParen) {
            self.mark(GLUE);
            let open = self.bump();
            length = Some(self.expr()?);
            self.close(open, Tok::RParen, "")?;
        }
        self.semicolon()?;
        Ok((what, length))
    }

    fn emit_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let event = self.any_word("the name of an event")?;
        let args = if self.at(Tok::LBrace) { self.record()? } else { Vec::new() };
        self.semicolon()?;
        Ok(StmtKind::Emit { event, args })
    }
}
