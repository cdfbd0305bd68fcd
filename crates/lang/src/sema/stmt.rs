//! Lowers blocks and statements. `Lower::block` and `Lower::statement` are where other modules
//! lower the statements inside their own.

use braid_ir::model::{Dest, Op, Term};

use super::arith::Const;
use super::lower::{Lower, MAX_ROUNDS};
use super::scope::{Binding, Value};
use super::{
    assign, bucket, calls, crypt, ends, expand, locals, needs, push, rows, send, sides, translate,
};
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
            any_statement(this, stmt);
            Some(())
        });
    }
}

fn any_statement<'a>(lower: &mut Lower<'a>, stmt: &'a Stmt) {
    match &stmt.kind {
        StmtKind::Match(rows) => rows::match_rows(lower, rows, stmt.span),
        StmtKind::If { cond, then, otherwise } => {
            if_statement(lower, cond, then, otherwise.as_ref(), stmt.span);
        }
        StmtKind::For { var, from, to, cond, body } => {
            for_loop(lower, var, (from, to), cond.as_ref(), body);
        }
        StmtKind::Let { name, mutable, value, otherwise } => {
            locals::declare(lower, (name, *mutable), value, otherwise.as_deref());
        }
        StmtKind::Assign { place, op, value, otherwise } => {
            let _ = assign::assign(lower, place, *op, value, otherwise.as_deref(), stmt.span);
        }
        StmtKind::Delete(place) => {
            let _ = assign::delete(lower, place);
        }
        StmtKind::Output(ports) => ends::output(lower, ports, stmt.span),
        StmtKind::Drop(reason) => {
            let reason = reason.as_ref().map_or("denied", |(text, _)| text.as_str());
            ends::drop_packet(lower, reason, stmt.span);
        }
        StmtKind::Reset(reason) => {
            let reason = reason.as_ref().map_or("denied", |(text, _)| text.as_str());
            let reason = ends::reason_number(lower, reason);
            ends::event(lower, "reset", stmt.span, |row| Term::Reset { reason, row });
        }
        StmtKind::Consume => ends::end(lower, stmt.span, |row| Term::Consume { row }),
        StmtKind::Resubmit => {
            sides::put_back(lower);
            ends::end(lower, stmt.span, |row| Term::Resubmit { row });
        }
        StmtKind::Mirror(port) => {
            if needs::packet(lower, stmt.span)
                && let Some(port) = ends::dest(lower, port)
            {
                sides::to_origin(lower, port == Dest::Back, |lower, origin| {
                    lower.b.op(Op::Mirror { port: sides::back_to(port, origin) });
                });
            }
        }
        StmtKind::Hold { queue, delay, otherwise } => {
            ends::hold(lower, queue, delay, otherwise.as_deref(), stmt.span);
        }
        StmtKind::Send { shape, contents, port } => {
            let _ = send::send(lower, shape, contents, port.as_ref(), stmt.span);
        }
        StmtKind::Emit { event, args } => {
            let _ = send::emit_event(lower, event, args, stmt.span);
        }
        StmtKind::Push { pushes, otherwise } => {
            let _ = push::push(lower, pushes, otherwise.as_deref(), stmt.span);
        }
        StmtKind::Pop { pops, otherwise } => {
            let _ = push::pop(lower, pops, otherwise.as_deref(), stmt.span);
        }
        StmtKind::Call { call, otherwise } => {
            let _ = call_statement(lower, call, otherwise.as_deref());
        }
        StmtKind::Block(block) => lower.block(block),
        StmtKind::Error => lower.doubt = true,
    }
}

fn if_statement<'a>(
    lower: &mut Lower<'a>,
    cond: &Expr,
    then: &'a Block,
    otherwise: Option<&'a Block>,
    span: Span,
) {
    let (yes, no, done) = (lower.b.block(), lower.b.block(), lower.b.block());
    lower.predicate(cond, yes, no);
    let mut exits = Vec::new();
    for (start, body) in [(yes, Some(then)), (no, otherwise)] {
        lower.b.start(start);
        lower.exits = vec![(span, "goes on where the condition does not hold")];
        if let Some(body) = body {
            lower.block(body);
        }
        if lower.b.live() {
            exits.append(&mut lower.exits);
        }
        lower.b.jump(done, Vec::new());
    }
    lower.b.start(done);
    lower.exits = exits;
}

/// Lowers `for VAR in FROM..TO while COND { … }`.
fn for_loop<'a>(
    lower: &mut Lower<'a>,
    var: &'a Ident,
    (from, to): (&Expr, &Expr),
    cond: Option<&Expr>,
    body: &'a Block,
) {
    let (from, to) = (bound(lower, from), bound(lower, to));
    let (Some((low, from_span)), Some((high, _))) = (from, to) else { return };
    let span = from_span.to(body.span);
    let rounds = high.saturating_sub(low);
    let left = u128::try_from(MAX_ROUNDS - lower.rounds.min(MAX_ROUNDS)).unwrap_or(0);
    if rounds > left {
        let message = format!("{rounds} rounds, where {left} of {MAX_ROUNDS} are left");
        lower.say(
            Diagnostic::new(codes::LOOP_BOUNDS, message, span, "too many rounds")
                .note("loops are unrolled; all rounds of a function count"),
        );
        return;
    }
    if lower.scope.is_taken(&var.text) {
        let diagnostic = locals::duplicate(&lower.scope, var);
        return lower.say(diagnostic);
    }
    lower.loops += 1;
    let done = lower.b.block();
    for round in low..high {
        lower.rounds += 1;
        if round > low && !lower.b.live() {
            break;
        }
        lower.scoped(|this| {
            this.scope.bind(&var.text, Value::Const(Const::plain(round)));
            if let Some(cond) = cond {
                let next = this.b.block();
                this.predicate(cond, next, done);
                this.b.start(next);
            }
            this.block(body);
        });
    }
    lower.b.jump(done, Vec::new());
    lower.b.start(done);
    lower.loops -= 1;
    lower.exits = vec![(span, "goes on behind the loop")];
}

fn bound(lower: &mut Lower<'_>, expr: &Expr) -> Option<(u128, Span)> {
    match lower.value(expr, None)? {
        Value::Const(constant) => Some((constant.value, expr.span)),
        _ => {
            let message = "a loop's bounds are constants";
            lower.fail(
                Diagnostic::new(codes::LOOP_BOUNDS, message, expr.span, "not a constant")
                    .note("loops are unrolled, so that the work per packet is bounded"),
            )
        }
    }
}

/// Checks that a single word is an action, or at least a known name.
fn known_statement(lower: &mut Lower<'_>, name: &Ident) -> Option<()> {
    let word = name.text.as_str();
    let known = lower.scope.knows(word);
    if known || matches!(word, "forward" | "backward" | "bypass" | "resume") {
        return Some(());
    }
    lower.doubt = true;
    let words = ["output", "drop", "consume", "resubmit"];
    let own = lower.scope.names_in_sight();
    let known = words.into_iter().chain(own.iter().map(String::as_str));
    let help = foreign_statement(word).or_else(|| lower.suggest(word, known));
    let message = format!("`{word}` is neither a statement nor an action");
    let wrong = Diagnostic::new(codes::UNKNOWN_NAME, message, name.span, "unknown here");
    lower.fail(wrong.help_if(help))
}

/// Lowers a call for its effect.
fn call_statement<'a>(
    lower: &mut Lower<'a>,
    call: &Expr,
    otherwise: Option<&'a Stmt>,
) -> Option<()> {
    let (name, args) = match &call.kind {
        ExprKind::Call(name, args) => (name, args.as_slice()),
        ExprKind::Path(path) => {
            let name = path.parts.first()?;
            known_statement(lower, name)?;
            (name, [].as_slice())
        }
        _ => return None,
    };
    let own = lower.scope.binding(&name.text);
    if bucket::is_spend(&lower.scope, &name.text) {
        return bucket::spend(lower, args, otherwise, call.span);
    }
    if own.is_none()
        && let Some(to) = translate::version(&name.text)
    {
        return translate::translate(lower, (name, to), args, otherwise, call.span);
    }
    if own.is_none() && crypt::is_crypt(&name.text) {
        return crypt::payload(lower, name, args, otherwise, call.span);
    }
    if let Some(otherwise) = otherwise {
        let (message, label) = ("this call is never refused", "this `else` is never reached");
        let code = codes::UNREACHABLE_STATEMENT;
        lower.say(Diagnostic::new(code, message, otherwise.span, label));
    }
    if let Some(Binding::Fn(def)) = own
        && let FnBody::Action(body) = &def.body
    {
        return expand::expand(lower, def, args, call.span, |this| {
            this.block(body);
            Some(())
        });
    }
    match name.text.as_str() {
        "release" => calls::release(lower, args, call.span),
        word @ ("forward" | "bypass" | "resume") if args.is_empty() => {
            ends::event(lower, word, call.span, |row| match word {
                "bypass" => Term::Bypass { row },
                "resume" => Term::Resume { row },
                _ => Term::Return,
            });
            Some(())
        }
        _ => {
            lower.value(call, None)?;
            let message = format!("the value of `{}` is not used", name.text);
            lower.fail(
                Diagnostic::new(codes::WRONG_NAME, message, call.span, "does nothing")
                    .help("write `let x = …;`, or call an action"),
            )
        }
    }
}
