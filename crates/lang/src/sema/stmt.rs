//! Lowers statements.

use braid_ir::model::{Dest, Op, PortId, QueueId, ReasonId, RowId, Term};
use braid_packet::Header;

use super::arith::Const;
use super::lower::{BODY, Binding, Lower, MAX_ROUNDS, Mode, Value};
use super::types::{DURATION, uint};
use crate::ast::{Block, Expr, ExprKind, FnBody, Ident, Span, Stmt, StmtKind};
use crate::diag::{Diagnostic, codes, foreign_statement};

impl<'a> Lower<'a> {
    /// Lowers a block with names of its own.
    pub fn block(&mut self, block: &'a Block) {
        self.scoped(|this| this.statements(block.stmts.iter(), block.span));
    }

    /// Lowers statements in order. Statements behind the end of the packet's path are reported and
    /// omitted.
    pub fn statements(&mut self, stmts: impl Iterator<Item = &'a Stmt>, span: Span) {
        let entered = self.b.live();
        self.exits = vec![(span, "goes on here")];
        for stmt in stmts {
            if entered && !self.b.live() {
                let message = "nothing gets to this statement";
                self.say(
                    Diagnostic::new(
                        codes::UNREACHABLE_STATEMENT,
                        message,
                        stmt.span,
                        "not reached",
                    )
                    .help("remove it, or the statement before it that ends the packet's path"),
                );
                return;
            }
            self.exits = vec![(stmt.span, "goes on behind this")];
            self.statement(stmt);
        }
    }

    /// Lowers one statement. `exits` tells where control continues behind it, if it does.
    pub fn statement(&mut self, stmt: &'a Stmt) {
        // `deeper` reports a program that is too large.
        let _ = self.deeper(stmt.span, |this| {
            this.any_statement(stmt);
            Some(())
        });
    }

    fn any_statement(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::Match(rows) => self.match_rows(rows, stmt.span),
            StmtKind::If { cond, then, otherwise } => {
                self.if_statement(cond, then, otherwise.as_ref(), stmt.span);
            }
            StmtKind::For { var, from, to, body } => self.for_loop(var, from, to, body),
            StmtKind::Let { name, value, otherwise } => {
                self.let_statement(name, value, otherwise.as_deref());
            }
            StmtKind::Assign { place, op, value, otherwise } => {
                let _ = self.assign(place, *op, value, otherwise.as_deref(), stmt.span);
            }
            StmtKind::Delete(place) => {
                let _ = self.delete(place);
            }
            StmtKind::Output(ports) => self.output(ports, stmt.span),
            StmtKind::Drop(reason) => {
                let reason = reason.as_ref().map_or("denied", |(text, _)| text.as_str());
                self.drop_packet(reason, stmt.span);
            }
            StmtKind::Consume => self.ends(stmt.span, |row| Term::Consume { row }),
            StmtKind::Resubmit => self.ends(stmt.span, |row| Term::Resubmit { row }),
            StmtKind::Mirror(port) => {
                if self.needs_packet(stmt.span)
                    && let Some(port) = self.dest(port)
                {
                    self.b.op(Op::Mirror { port });
                }
            }
            StmtKind::Hold { queue, delay, otherwise } => {
                self.hold(queue, delay, otherwise.as_deref(), stmt.span);
            }
            StmtKind::Send { shape, fields, payload, port } => {
                let _ = self.send(shape, fields, payload.as_ref(), port.as_ref(), stmt.span);
            }
            StmtKind::Emit { event, args } => {
                let _ = self.emit_event(event, args, stmt.span);
            }
            StmtKind::Push { header, args } => {
                let _ = self.push(header, args, stmt.span);
            }
            StmtKind::Pop(header) => {
                let _ = self.pop(header, stmt.span);
            }
            StmtKind::Call(call) => {
                let _ = self.call_statement(call);
            }
            StmtKind::Block(block) => self.block(block),
            StmtKind::Error => self.doubt = true,
        }
    }

    fn if_statement(
        &mut self,
        cond: &Expr,
        then: &'a Block,
        otherwise: Option<&'a Block>,
        span: Span,
    ) {
        let (yes, no, done) = (self.b.block(), self.b.block(), self.b.block());
        self.predicate(cond, yes, no);
        let mut exits = Vec::new();
        for (start, body) in [(yes, Some(then)), (no, otherwise)] {
            self.b.start(start);
            self.exits = vec![(span, "goes on where the condition does not hold")];
            if let Some(body) = body {
                self.block(body);
            }
            if self.b.live() {
                exits.append(&mut self.exits);
            }
            self.b.jump(done, Vec::new());
        }
        self.b.start(done);
        self.exits = exits;
    }

    fn for_loop(&mut self, var: &'a Ident, from: &Expr, to: &Expr, body: &'a Block) {
        let (from, to) = (self.bound(from), self.bound(to));
        let (Some((low, from_span)), Some((high, _))) = (from, to) else { return };
        let span = from_span.to(body.span);
        let rounds = high.saturating_sub(low);
        let left = u128::try_from(MAX_ROUNDS - self.rounds.min(MAX_ROUNDS)).unwrap_or(0);
        if rounds > left {
            let message = format!("{rounds} rounds, where {left} of {MAX_ROUNDS} are left");
            self.say(
                Diagnostic::new(codes::LOOP_BOUNDS, message, span, "too many rounds")
                    .note("loops are unrolled; all rounds of a function count"),
            );
            return;
        }
        if self.taken(&var.text) {
            let diagnostic = self.duplicate(var);
            return self.say(diagnostic);
        }
        self.loops += 1;
        for round in low..high {
            self.rounds += 1;
            if round > low && !self.b.live() {
                break;
            }
            self.scoped(|this| {
                this.bind(&var.text, Value::Const(Const::plain(round)));
                this.block(body);
            });
        }
        self.loops -= 1;
        self.exits = vec![(span, "goes on behind the loop")];
    }

    fn bound(&mut self, expr: &Expr) -> Option<(u128, Span)> {
        match self.value(expr, None)? {
            Value::Const(constant) => Some((constant.value, expr.span)),
            _ => {
                let message = "a loop's bounds are constants";
                self.fail(
                    Diagnostic::new(codes::LOOP_BOUNDS, message, expr.span, "not a constant")
                        .note("loops are unrolled, so that the work per packet is bounded"),
                )
            }
        }
    }

    /// Whether a name is already in use here.
    pub fn taken(&self, name: &str) -> bool {
        self.local(name).is_some()
            || self.names.contains_key(name) && self.frames.last().is_none_or(|f| f.sees_nf)
    }

    /// The message for a name that is already in use.
    fn duplicate(&self, name: &Ident) -> Diagnostic {
        let message = format!("`{}` is declared twice", name.text);
        let found = Diagnostic::new(codes::DUPLICATE_NAME, message, name.span, "again here");
        match self.declared.get(name.text.as_str()) {
            Some(first) => found.label(*first, "first here"),
            None => found,
        }
        .help("give one of them another name")
    }

    fn let_statement(&mut self, name: &'a Ident, value: &Expr, otherwise: Option<&'a Stmt>) {
        if self.taken(&name.text) {
            let diagnostic = self.duplicate(name);
            self.say(diagnostic);
        }
        let value = match otherwise {
            None => self.value(value, None),
            Some(otherwise) => self.let_else(value, otherwise),
        };
        match value {
            Some(value) => self.bind(&name.text, value),
            // Uses of a local with a wrong value are not reported again.
            None => self.bind(&name.text, Value::Wrong),
        }
    }

    fn let_else(&mut self, value: &Expr, otherwise: &'a Stmt) -> Option<Value> {
        let call = match &value.kind {
            ExprKind::Call(name, args) if self.fallible(&name.text) => Some((name, args)),
            _ => None,
        };
        let Some((name, args)) = call else {
            self.value(value, None)?;
            return self.fail(
                Diagnostic::new(
                    codes::UNREACHABLE_STATEMENT,
                    "this value is always there",
                    otherwise.span,
                    "this `else` is never reached",
                )
                .help("leave the `else` out"),
            );
        };
        let (ok, value) = self.fallible_call(name, args, value.span)?;
        let (there, gone) = (self.b.block(), self.b.block());
        self.b.branch(ok, there, gone);
        self.b.start(gone);
        self.scoped(|this| this.statement(otherwise));
        if self.b.live() {
            let message =
                format!("the `else` must end the packet's way: `{}` has no value", name.text);
            self.say(
                Diagnostic::new(codes::ELSE_CONTINUES, message, otherwise.span, "goes on")
                    .help("end it with `drop`, `output` or the like"),
            );
        }
        self.b.start(there);
        Some(value)
    }

    /// Ends the packet's path at the current row.
    fn ends(&mut self, span: Span, term: impl FnOnce(RowId) -> Term) {
        if !self.needs_packet(span) {
            let nowhere = self.b.block();
            return self.b.start(nowhere);
        }
        let row = self.count_end();
        self.b.end(term(row));
    }

    /// The row of an end. Outside of any row, the packet is counted here, once on its path.
    fn count_end(&mut self) -> RowId {
        if let Some(row) = self.row {
            return row;
        }
        if !self.b.facts.counted {
            self.b.op(Op::Count { row: BODY });
            self.b.facts.counted = true;
        }
        BODY
    }

    /// Drops the packet for this reason.
    pub fn drop_packet(&mut self, reason: &str, span: Span) {
        let reason = self.reason(reason);
        self.ends(span, |row| Term::Drop { reason, row });
    }

    fn reason(&mut self, text: &str) -> ReasonId {
        if let Some(known) = self.reasons.get(text) {
            return *known;
        }
        let id = ReasonId(u32::try_from(self.model.reasons.len()).unwrap_or(u32::MAX));
        self.model.reasons.push(text.to_owned());
        self.reasons.insert(text.to_owned(), id);
        id
    }

    fn output(&mut self, ports: &[Ident], span: Span) {
        let found: Vec<Option<Dest>> = ports.iter().map(|port| self.dest(port)).collect();
        let mut dests: Vec<Dest> = found.into_iter().flatten().collect();
        if ports.is_empty() {
            dests.push(Dest::Onward);
        }
        self.ends(span, |row| Term::Output { ports: dests, row });
    }

    /// The destination: `back` or a port.
    pub fn dest(&mut self, port: &Ident) -> Option<Dest> {
        if port.text == "back" {
            return Some(Dest::Back);
        }
        if let Some(at) = self.model.ports.iter().position(|known| *known == port.text) {
            return Some(Dest::Port(PortId(u32::try_from(at).unwrap_or(u32::MAX))));
        }
        let known = self.model.ports.iter().map(String::as_str).chain(["back"]);
        let help = self.suggest(&port.text, known);
        let message = format!("there is no port `{}`", port.text);
        let diagnostic = Diagnostic::new(codes::UNKNOWN_PORT, message, port.span, "unknown port");
        self.fail(diagnostic.help(format!("declare it: `port {};`", port.text)).help_if(help))
    }

    fn hold(&mut self, queue: &Ident, delay: &Expr, otherwise: Option<&'a Stmt>, span: Span) {
        let id = self.queue(queue);
        let delay = self.typed(delay, DURATION);
        let (Some(id), Some(delay)) = (id, delay) else {
            return self.ends(span, |row| Term::Consume { row });
        };
        if !self.needs_packet(span) {
            return;
        }
        let row = self.count_end();
        let full = self.b.block();
        let target = braid_ir::model::Target { block: full, args: Vec::new() };
        self.b.hold(Term::Hold { queue: id, delay, row, full: target }, full);
        self.b.start(full);
        match otherwise {
            Some(otherwise) => self.scoped(|this| this.statement(otherwise)),
            None => self.drop_packet(&format!("{} full", queue.text), span),
        }
    }

    fn queue(&mut self, name: &Ident) -> Option<QueueId> {
        if let Some(Binding::Queue(queue)) = self.binding(&name.text) {
            return Some(queue);
        }
        let known = self.model.queues.iter().map(|queue| queue.name.as_str());
        let help = self.suggest(&name.text, known);
        let message = format!("there is no queue `{}`", name.text);
        let diagnostic = Diagnostic::new(codes::UNKNOWN_QUEUE, message, name.span, "unknown queue");
        self.fail(
            diagnostic.help(format!("declare it: `queue {} capacity N;`", name.text)).help_if(help),
        )
    }

    fn push(&mut self, header: &Ident, args: &[Expr], span: Span) -> Option<()> {
        self.only_vlan(header)?;
        let [id] = args else {
            let message = format!(
                "`push vlan` takes the identifier, found {}",
                super::say::count(args.len(), "value")
            );
            return self.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, ""));
        };
        let id = self.typed(id, uint(12));
        if !self.needs_packet(span) {
            return None;
        }
        self.need_header(Header::Eth, false, span, "`push vlan`")?;
        self.b.op(Op::PushVlan { id: id? });
        self.b.facts.pushed_vlan();
        Some(())
    }

    fn pop(&mut self, header: &Ident, span: Span) -> Option<()> {
        self.only_vlan(header)?;
        if !self.needs_packet(span) {
            return None;
        }
        self.need_header(Header::Vlan, false, span, "`pop vlan`")?;
        self.b.op(Op::PopVlan);
        self.b.facts.popped_vlan();
        Some(())
    }

    fn only_vlan(&mut self, header: &Ident) -> Option<()> {
        if header.text == "vlan" {
            return Some(());
        }
        let message = format!("`{}` cannot be pushed or popped", header.text);
        self.fail(
            Diagnostic::new(codes::UNKNOWN_HEADER, message, header.span, "")
                .help("`vlan` is the one header that can"),
        )
    }

    /// Checks that a single word is an action, or at least a known name.
    fn known_statement(&mut self, name: &Ident) -> Option<()> {
        let word = name.text.as_str();
        let known = self.local(word).is_some() || self.binding(word).is_some();
        if known || matches!(word, "forward" | "backward" | "close" | "reset") {
            return Some(());
        }
        self.doubt = true;
        let words = ["output", "drop", "consume", "resubmit"];
        let own = self.names_in_sight();
        let known = words.into_iter().chain(own.iter().map(String::as_str));
        let help = foreign_statement(word).or_else(|| self.suggest(word, known));
        let message = format!("`{word}` is neither a statement nor an action");
        let wrong = Diagnostic::new(codes::UNKNOWN_NAME, message, name.span, "unknown here");
        self.fail(wrong.help_if(help))
    }

    /// Lowers a call for its effect.
    fn call_statement(&mut self, call: &Expr) -> Option<()> {
        let (name, args) = match &call.kind {
            ExprKind::Call(name, args) => (name, args.as_slice()),
            ExprKind::Path(path) => {
                let name = path.parts.first()?;
                self.known_statement(name)?;
                (name, [].as_slice())
            }
            _ => return None,
        };
        if let Some(Binding::Fn(def)) = self.binding(&name.text)
            && let FnBody::Action(body) = &def.body
        {
            return self.expand(def, args, call.span, |this| {
                this.block(body);
                Some(())
            });
        }
        match name.text.as_str() {
            "release" => self.release(args, call.span),
            "forward" | "close" | "reset" if args.is_empty() && self.mode == Mode::Stream => {
                self.b.end(Term::Return);
                Some(())
            }
            "forward" | "close" | "reset" if args.is_empty() => {
                let message = format!("`{};` belongs to stream functions", name.text);
                self.fail(
                    Diagnostic::new(codes::MIXED_STREAM, message, call.span, "")
                        .help("write `output;` or `drop;`"),
                )
            }
            _ => {
                self.value(call, None)?;
                let message = format!("the value of `{}` is not used", name.text);
                self.fail(
                    Diagnostic::new(codes::WRONG_NAME, message, call.span, "does nothing")
                        .help("write `let x = …;`, or call an action"),
                )
            }
        }
    }
}
