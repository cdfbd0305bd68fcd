//! Parses network functions: their head, their declarations, states.

use super::marks::STMT;
use super::state::{Parsed, Parser};
use super::words::{NF_ITEMS, STATE_OPTIONS};
use crate::ast::{Const, FnBody, FnDef, KeyDef, NativeCode, Nf, NfItem, StateDef, StateOption};
use crate::diag::{Diagnostic, codes, did_you_mean_help};
use crate::lexer::{Tok, string_value};

impl Parser<'_> {
    /// `nf NAME(…) { … }`, `stream nf …`, `native nf NAME(…) from …;`
    pub(super) fn nf(&mut self) -> Parsed<Nf> {
        let start = self.pos;
        let is_native = self.eat_word("native");
        let stream = !is_native && self.eat_word("stream");
        self.expect_word("nf")?;
        let name = self.name("the name of the function")?;
        let params = self.params()?;
        let head = self.span_from(start);
        if is_native {
            let native = Some(self.native_code()?);
            let span = self.span_from(start);
            return Ok(Nf { stream, name, params, native, items: Vec::new(), span, head });
        }
        let mut items = Vec::new();
        self.body(STMT, |p| p.nf_item(&mut items))?;
        let span = self.span_from(start);
        Ok(Nf { stream, name, params, native: None, items, span, head })
    }

    /// `from "LIBRARY" [function NAME];`
    fn native_code(&mut self) -> Parsed<NativeCode> {
        self.expect_word("from")?;
        let start = self.pos;
        let token = self.expect(Tok::Str, "the library, in double quotes")?;
        let literal = self.text.get(token.start as usize..token.end as usize).unwrap_or("");
        let library = string_value(literal).unwrap_or_default();
        let span = self.span_from(start);
        let function = match self.eat_word("function") {
            true => Some(self.name("the name of the function in the library")?),
            false => None,
        };
        self.semicolon()?;
        Ok(NativeCode { library, span, function })
    }

    /// Whether a declaration starts here. A statement may begin with a name that is the same word.
    fn at_nf_item(&self) -> bool {
        let next = self.token(1).kind;
        let assigned = matches!(next, Tok::Assign | Tok::Dot);
        let called = matches!(next, Tok::LParen | Tok::LBracket) && !self.at_word("every");
        let used = assigned || called;
        NF_ITEMS.contains(&self.word()) && !used && !is_operator(next)
    }

    fn nf_item(&mut self, items: &mut Vec<NfItem>) -> Parsed<()> {
        if !self.at_nf_item() {
            let mut stmts = Vec::with_capacity(1);
            let result = self.stmt_into(&mut stmts);
            items.extend(stmts.into_iter().map(NfItem::Stmt));
            return result;
        }
        self.mark(super::marks::LINE);
        let item = match self.word() {
            "const" => NfItem::Const(self.constant()?),
            "fn" | "action" => NfItem::Fn(self.fn_def()?),
            "port" => self.port_item()?,
            "tag" => self.tag_item()?,
            "state" => {
                let (state, rest) = self.state()?;
                items.push(NfItem::State(state));
                return rest;
            }
            "queue" => self.queue_item()?,
            "every" => self.every_item()?,
            _ => self.on_item()?,
        };
        items.push(item);
        Ok(())
    }

    /// `const NAME = EXPR;`
    pub(super) fn constant(&mut self) -> Parsed<Const> {
        let start = self.pos;
        self.bump();
        let name = self.name("the name of the constant")?;
        self.expect(Tok::Assign, "`=` and a value")?;
        let value = self.expr()?;
        self.semicolon()?;
        Ok(Const { name, value, span: self.span_from(start) })
    }

    /// `fn NAME(…) -> T = EXPR;` or `action NAME(…) { … }`
    pub(super) fn fn_def(&mut self) -> Parsed<FnDef> {
        let start = self.pos;
        let pure = self.bump_word() == "fn";
        let name = self.name("a name")?;
        let params = self.plain_params()?;
        let body = if pure {
            if self.at(Tok::LBrace) {
                let help = "a `fn` is `fn NAME(…) -> TYPE = EXPR;`; statements need an `action`";
                return Err(self.expected_with("`->` and a type", Some(help.into())));
            }
            self.expect(Tok::Arrow, "`->` and a type")?;
            let ty = self.ty()?;
            self.expect(Tok::Assign, "`=` and a value")?;
            let value = self.expr()?;
            self.semicolon()?;
            FnBody::Pure(ty, value)
        } else {
            FnBody::Action(self.block()?)
        };
        Ok(FnDef { name, params, body, span: self.span_from(start) })
    }

    fn bump_word(&mut self) -> &str {
        let word = self.word();
        self.bump();
        word
    }

    fn port_item(&mut self) -> Parsed<NfItem> {
        self.bump();
        let mut names = vec![self.name("the name of a port")?];
        while self.eat(Tok::Comma) {
            names.push(self.name("the name of a port")?);
        }
        self.semicolon()?;
        Ok(NfItem::Port(names))
    }

    fn tag_item(&mut self) -> Parsed<NfItem> {
        self.bump();
        let name = self.name("the name of the tag")?;
        self.expect(Tok::Colon, "`:` and a type")?;
        let ty = self.ty()?;
        self.semicolon()?;
        Ok(NfItem::Tag(name, ty))
    }

    fn queue_item(&mut self) -> Parsed<NfItem> {
        let start = self.pos;
        self.bump();
        let name = self.name("the name of the queue")?;
        self.expect_word("capacity")?;
        let capacity = self.expr()?;
        self.semicolon()?;
        Ok(NfItem::Queue { name, capacity, span: self.span_from(start) })
    }

    fn every_item(&mut self) -> Parsed<NfItem> {
        let start = self.pos;
        self.bump();
        let period = self.expr()?;
        let body = self.block()?;
        Ok(NfItem::Every { period, body, span: self.span_from(start) })
    }

    fn on_item(&mut self) -> Parsed<NfItem> {
        let start = self.pos;
        self.bump();
        match self.word() {
            "expire" => {
                self.bump();
                let state = self.name("the name of a state")?;
                let body = self.block()?;
                Ok(NfItem::OnExpire { state, body, span: self.span_from(start) })
            }
            "open" | "data" | "close" => {
                let what = self.any_word("what happens")?;
                let body = self.block()?;
                Ok(NfItem::OnStream { what, body, span: self.span_from(start) })
            }
            _ => {
                let words = ["expire", "open", "data", "close"];
                Err(self.expected_one_of("`expire`, `open`, `data` or `close`", &words))
            }
        }
    }

    /// `state NAME: TYPE KEY [= DEFAULT] {, OPTION};` A state with an error in its options is kept,
    /// so that its uses are not reported.
    fn state(&mut self) -> Parsed<(StateDef, Parsed<()>)> {
        let start = self.pos;
        self.bump();
        let name = self.name("the name of the state")?;
        self.expect(Tok::Colon, "`:` and a type")?;
        let ty = self.ty()?;
        let key = self.key_def()?;
        let default = if self.eat(Tok::Assign) { Some(self.expr()?) } else { None };
        let mut options = Vec::new();
        let rest = self.state_options(&mut options);
        Ok((StateDef { name, ty, key, default, options, span: self.span_from(start) }, rest))
    }

    /// `{, OPTION};`
    fn state_options(&mut self, options: &mut Vec<StateOption>) -> Parsed<()> {
        while self.eat(Tok::Comma) {
            options.push(self.state_option()?);
        }
        if STATE_OPTIONS.contains(&self.word()) {
            return Err(self.expected("`,` before the next option"));
        }
        self.semicolon()
    }

    fn key_def(&mut self) -> Parsed<KeyDef> {
        let start = self.pos;
        if self.eat_word("global") {
            return Ok(KeyDef::Global(self.span_from(start)));
        }
        if !self.at_word("per") {
            return Err(self.no_key());
        }
        self.bump();
        let alone = !matches!(self.token(1).kind, Tok::Dot | Tok::Lt | Tok::LParen);
        if alone && self.eat_word("flow") {
            return Ok(KeyDef::Flow(self.span_from(start)));
        }
        if alone && self.eat_word("biflow") {
            return Ok(KeyDef::Biflow(self.span_from(start)));
        }
        let parts = if self.at(Tok::LParen) {
            self.bracketed((Tok::LParen, Tok::RParen), false, Self::key_part)?
        } else {
            vec![self.key_part()?]
        };
        Ok(KeyDef::List(parts, self.span_from(start)))
    }

    fn no_key(&mut self) -> super::state::Bail {
        if self.at(Tok::Error) {
            return super::state::Bail;
        }
        let message = format!("expected `per …` or `global`, found {}", self.found());
        let found = Diagnostic::new(codes::STATE_WITHOUT_KEY, message, self.here(), "per what?");
        let help = "`per flow`, `per biflow`, `per (ip.src, l4.sport)`, or `global` for one entry";
        self.report(found.help(help))
    }

    fn state_option(&mut self) -> Parsed<StateOption> {
        let start = self.pos;
        let word = self.word();
        if !STATE_OPTIONS.contains(&word) {
            return Err(self.unknown_option());
        }
        self.bump();
        Ok(match word {
            "idle" => StateOption::Idle(self.expr()?),
            "hard" => StateOption::Hard(self.expr()?),
            "tick" => StateOption::Tick(self.expr()?),
            "capacity" => StateOption::Capacity(self.expr()?),
            "full" => StateOption::Full(self.any_word("`refuse` or `evict_oldest`")?),
            "lives" => {
                self.expect_word("with")?;
                StateOption::LivesWith(self.name("the name of a state")?)
            }
            _ => StateOption::Sharded(self.span_from(start)),
        })
    }

    fn unknown_option(&mut self) -> super::state::Bail {
        if self.at(Tok::Error) {
            return super::state::Bail;
        }
        let message = format!("expected an option of the state, found {}", self.found());
        let found =
            Diagnostic::new(codes::UNKNOWN_STATE_OPTION, message, self.here(), "unknown option");
        let all = "the options are `idle T`, `hard T`, `tick T`, `capacity N`, `full refuse`, \
                   `full evict_oldest`, `lives with STATE`, `sharded`";
        let help = did_you_mean_help(self.word(), STATE_OPTIONS.iter().copied());
        self.report(found.note(all).help_if(help))
    }
}

/// Whether the token starts an assignment operator. `>` may start `>>=`.
fn is_operator(kind: Tok) -> bool {
    use Tok::{AmpEq, CaretEq, Gt, MinusEq, PercentEq, PipeEq, PlusEq, ShlEq, SlashEq, StarEq};
    matches!(
        kind,
        PlusEq | MinusEq | StarEq | SlashEq | PercentEq | AmpEq | PipeEq | CaretEq | ShlEq | Gt
    )
}
