//! Parses chains: interfaces, instances, paths, links, policy.

use super::marks::{GLUE, LINE};
use super::state::{Parsed, Parser};
use super::words::CHAIN_ITEMS;
use crate::ast::{Arrow, Chain, ChainItem, Expr, PathEnd, PolicyKind, PolicyRule};
use crate::diag::{Diagnostic, codes, did_you_mean_help};
use crate::lexer::Tok;

const POLICY_RULES: [&str; 3] = ["Order", "Priority", "Position"];

impl Parser<'_> {
    /// `chain NAME { … }`
    pub(super) fn chain(&mut self) -> Parsed<Chain> {
        let start = self.pos;
        self.bump();
        let name = self.name("the name of the chain")?;
        let mut items = Vec::new();
        self.body(LINE, |p| {
            items.push(p.chain_item()?);
            Ok(())
        })?;
        Ok(Chain { name, items, span: self.span_from(start) })
    }

    fn chain_item(&mut self) -> Parsed<ChainItem> {
        if self.at(Tok::Ident) && self.token(1).kind == Tok::Assign {
            return self.instance();
        }
        match self.word() {
            "interface" => self.interface(),
            "path" => self.path_item(),
            "link" => self.link_item(),
            "policy" => self.policy(),
            "malformed" => {
                self.bump();
                let what = self.any_word("`drop` or `pass`")?;
                self.semicolon()?;
                Ok(ChainItem::Malformed(what))
            }
            "seed" | "workers" => {
                let name = self.any_word("a setting")?;
                let value = self.expr()?;
                self.semicolon()?;
                Ok(ChainItem::Setting { name, value })
            }
            _ => Err(self.unknown_item("a part of the chain", CHAIN_ITEMS)),
        }
    }

    /// `NAME = FUNCTION(…);`
    fn instance(&mut self) -> Parsed<ChainItem> {
        let start = self.pos;
        let name = self.any_word("a name")?;
        self.bump();
        let function = self.name("the name of a function")?;
        let args = self.args()?;
        self.semicolon()?;
        Ok(ChainItem::Instance { name, function, args, span: self.span_from(start) })
    }

    /// `interface NAME;` or `interface NAME { behind PREFIX, …; }`. The inner `;` is optional.
    fn interface(&mut self) -> Parsed<ChainItem> {
        let start = self.pos;
        self.bump();
        let name = self.any_word("the name of the interface")?;
        let mut behind = Vec::new();
        if self.at(Tok::LBrace) {
            let open = self.bump();
            if !self.at(Tok::RBrace) {
                behind = self.behind()?;
            }
            self.close(open, Tok::RBrace, "")?;
        } else {
            self.semicolon()?;
        }
        Ok(ChainItem::Interface { name, behind, span: self.span_from(start) })
    }

    fn behind(&mut self) -> Parsed<Vec<Expr>> {
        self.expect_word("behind")?;
        let mut prefixes = vec![self.expr()?];
        while self.eat(Tok::Comma) {
            if matches!(self.kind(), Tok::Semi | Tok::RBrace) {
                break;
            }
            prefixes.push(self.expr()?);
        }
        self.eat(Tok::Semi);
        Ok(prefixes)
    }

    fn arrow(&mut self) -> Option<Arrow> {
        let arrow = match self.kind() {
            Tok::Arrow => Arrow::OneWay,
            Tok::BothArrow => Arrow::TwoWay,
            _ => return None,
        };
        self.bump();
        Some(arrow)
    }

    fn path_item(&mut self) -> Parsed<ChainItem> {
        let start = self.pos;
        self.bump();
        let mut ends = vec![self.path_end()?];
        let mut arrows = Vec::new();
        while let Some(arrow) = self.arrow() {
            arrows.push(arrow);
            ends.push(self.path_end()?);
        }
        if !self.at(Tok::Semi) && !self.on_new_line() {
            return Err(self.expected("`<->`, `->` or `;`"));
        }
        self.semicolon()?;
        Ok(ChainItem::Path { ends, arrows, span: self.span_from(start) })
    }

    fn link_item(&mut self) -> Parsed<ChainItem> {
        let start = self.pos;
        self.bump();
        let from = self.path_end()?;
        let Some(arrow) = self.arrow() else {
            return Err(self.expected("`->` or `<->`"));
        };
        let to = self.path_end()?;
        self.semicolon()?;
        Ok(ChainItem::Link { from, arrow, to, span: self.span_from(start) })
    }

    /// `NAME`, `NAME.PORT` or `FUNCTION(…)`
    fn path_end(&mut self) -> Parsed<PathEnd> {
        let start = self.pos;
        let name = self.any_word("an interface or function")?;
        let mut port = None;
        let mut args = None;
        if self.at(Tok::LParen) {
            args = Some(self.args()?);
        } else if self.eat(Tok::Dot) {
            port = Some(self.any_word("a port")?);
        }
        Ok(PathEnd { name, port, args, span: self.span_from(start) })
    }

    fn policy(&mut self) -> Parsed<ChainItem> {
        let start = self.pos;
        self.bump();
        let mut rules = Vec::new();
        self.body(super::marks::STMT, |p| {
            rules.push(p.policy_rule()?);
            Ok(())
        })?;
        Ok(ChainItem::Policy { rules, span: self.span_from(start) })
    }

    fn policy_rule(&mut self) -> Parsed<PolicyRule> {
        let start = self.pos;
        let word = self.word();
        if !POLICY_RULES.contains(&word) {
            return Err(self.unknown_rule());
        }
        self.bump();
        self.mark(GLUE);
        let open = self.expect(Tok::LParen, "`(`")?;
        let first = self.any_word("the name of a function")?;
        let kind = match word {
            "Order" => {
                self.expect(Tok::Comma, "`, before, NAME`")?;
                self.expect_word("before")?;
                self.expect(Tok::Comma, "`,` and the name of a function")?;
                PolicyKind::Order(first, self.any_word("the name of a function")?)
            }
            "Priority" => {
                self.expect(Tok::Gt, "`>` and the name of a function")?;
                PolicyKind::Priority(first, self.any_word("the name of a function")?)
            }
            _ => {
                self.expect(Tok::Comma, "`, first` or `, last`")?;
                PolicyKind::Position(first, self.any_word("`first` or `last`")?)
            }
        };
        self.close(open, Tok::RParen, "")?;
        self.semicolon()?;
        Ok(PolicyRule { kind, span: self.span_from(start) })
    }

    fn unknown_rule(&mut self) -> super::state::Bail {
        if self.at(Tok::Error) {
            return super::state::Bail;
        }
        let message = format!("expected `Order`, `Priority` or `Position`, found {}", self.found());
        let found =
            Diagnostic::new(codes::UNKNOWN_POLICY_RULE, message, self.here(), "unknown rule");
        let help = did_you_mean_help(self.word(), POLICY_RULES);
        self.report(found.help_if(help))
    }
}
