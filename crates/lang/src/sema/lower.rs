//! The state of lowering one function: the names in scope, the program so far, the limits.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use braid_ir::model::{
    BlockId, EventId, Model, PortId, ReasonId, RowId, StateId, StreamEvent, TagId, ValueId,
};
use rustc_hash::FxHashMap;

use super::build::Builder;
use super::cover::Rows;
use super::facts::{Amount, AnyField, Facts};
use super::module::Module;
use super::scope::Scope;
use super::{constant, say};
use crate::ast::{Span, Stmt};
use crate::diag::{Diagnostic, Diagnostics, codes};
use crate::source::SourceMap;

/// The most levels of nesting, including calls of the program's own functions.
pub const MAX_DEPTH: usize = 200;
/// The most statements and expressions that are lowered. Each expansion counts.
pub const MAX_STEPS: usize = 2_000_000;
/// The number of rows from which on they make a function large, if no loop or call does.
const MANY_ROWS: usize = 256;

const LESS: &str = "unroll or expand less";
const TO_A_FILE: &str = "put rows that compare fields with constants into a file: a parameter \
                         `filter: rules` takes up to 1,048,576 rules from `rules(\"FILE\")`, and \
                         the row `packet in filter` stands for all of them (docs/rule-files.md)";

/// The most declarations and parameters of a function.
pub const MAX_DECLARATIONS: usize = 4096;
/// The most rounds of all loops of a function together.
pub const MAX_ROUNDS: usize = 1024;
/// Stands for the row `body` until all rows have numbers.
pub const BODY: RowId = RowId(u32::MAX);

/// The kind of program that is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The program for a packet.
    Packet,
    /// The program of a timer.
    Timer,
    /// The program for an ending entry of this table.
    Expire(StateId),
    /// The program for an event of a TCP connection.
    Stream(StreamEvent),
    /// The handler of an event type.
    Handler(EventId),
}

impl Mode {
    /// Whether the program belongs to a stream function's connections.
    pub fn is_stream(self) -> bool {
        matches!(self, Mode::Stream(_))
    }

    /// Whether the program counts rows.
    pub fn counts(self) -> bool {
        matches!(self, Mode::Packet | Mode::Stream(_))
    }
}

/// The lowering of one function.
pub struct Lower<'a> {
    pub module: &'a Module<'a>,
    pub sources: &'a SourceMap,
    pub diags: &'a mut Diagnostics,
    pub model: Model,
    pub scope: Scope<'a>,
    pub b: Builder,
    pub mode: Mode,
    /// Whether the function is a stream function.
    pub of_stream: bool,
    /// The row at which statements count. `None` outside of any row.
    pub row: Option<RowId>,
    /// The target of an atom that reads something absent. `None` in statements.
    pub absent: Option<BlockId>,
    pub wrapping: bool,
    /// Names of the program's functions that are being expanded.
    pub calls: Vec<String>,
    /// Number of loops that are being unrolled.
    pub loops: usize,
    pub rounds: usize,
    pub depth: usize,
    /// Number of operations of finished programs.
    pub spent: usize,
    /// Rows by place and enclosing row. An unrolled row is one row.
    pub rows: BTreeMap<(u32, u32, Option<RowId>), RowId>,
    /// Number of rows in each row, or outside of any.
    pub row_counts: BTreeMap<Option<RowId>, usize>,
    /// The findings about each match, by place.
    pub covers: BTreeMap<(u32, u32), Rc<Rows>>,
    /// Numbers of drop reasons.
    pub reasons: FxHashMap<String, ReasonId>,
    /// Numbers of events.
    pub events: FxHashMap<String, EventId>,
    /// For each table, the table whose entries its own entries live with in the end.
    pub roots: Vec<StateId>,
    /// The ports that are sides, and the tag of packets from them.
    pub sides: Vec<PortId>,
    pub side_tag: Option<TagId>,
    /// The number of the side that the packet came from.
    pub came: Option<ValueId>,
    steps: usize,
    /// Where control continues behind a statement.
    pub exits: Vec<(Span, &'static str)>,
    /// The declared headers that are being tested, and where each would begin.
    pub testing: Vec<(usize, Amount)>,
    /// The fields that were read for the declared header that is being tested.
    pub reads: BTreeSet<AnyField>,
    /// The last product of a rate and a time that differs from packet to packet.
    pub rounded: Option<ValueId>,
    /// Whether an unreadable or unknown construct may have ended a packet's path.
    pub doubt: bool,
    /// Whether the function exceeds its limits, which is reported. The code that follows is not
    /// lowered.
    pub too_large: bool,
}

impl<'a> Lower<'a> {
    pub fn new(
        module: &'a Module<'a>,
        sources: &'a SourceMap,
        diags: &'a mut Diagnostics,
        model: Model,
    ) -> Self {
        Self {
            module,
            sources,
            diags,
            model,
            scope: Scope::new(module),
            b: Builder::new(Facts::start()),
            mode: Mode::Packet,
            of_stream: false,
            row: None,
            absent: None,
            wrapping: false,
            calls: Vec::new(),
            loops: 0,
            rounds: 0,
            depth: 0,
            spent: 0,
            rows: BTreeMap::new(),
            row_counts: BTreeMap::new(),
            covers: BTreeMap::new(),
            reasons: FxHashMap::default(),
            events: FxHashMap::default(),
            roots: Vec::new(),
            sides: Vec::new(),
            side_tag: None,
            came: None,
            steps: 0,
            exits: Vec::new(),
            testing: Vec::new(),
            rounded: None,
            reads: BTreeSet::new(),
            doubt: false,
            too_large: false,
        }
    }

    /// Reports a diagnostic.
    pub fn say(&mut self, diagnostic: Diagnostic) {
        self.diags.push(diagnostic);
    }

    /// Reports a diagnostic and returns `None`.
    pub fn fail<T>(&mut self, diagnostic: Diagnostic) -> Option<T> {
        self.diags.push(diagnostic);
        None
    }

    /// Runs `inner` one level deeper, unless the nesting is too deep or the program too large.
    pub fn deeper<T>(
        &mut self,
        span: Span,
        inner: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        if self.too_large || self.depth >= MAX_DEPTH {
            return self.refuse(span);
        }
        self.steps += 1;
        if self.steps > MAX_STEPS || self.spent + self.b.size() > super::build::MAX_OPS {
            return self.refuse(span);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn refuse<T>(&mut self, span: Span) -> Option<T> {
        if !self.too_large {
            self.too_large = true;
            let is_expanded = self.loops > 0 || !self.calls.is_empty();
            let (message, help) = if self.depth >= MAX_DEPTH {
                ("nesting is too deep", "split it with `let`")
            } else if self.steps > MAX_STEPS {
                ("the function grows beyond 2,000,000 statements and expressions", LESS)
            } else if is_expanded || self.rows.len() < MANY_ROWS {
                ("the function grows beyond 65,536 operations", LESS)
            } else {
                ("the function has more than 65,536 operations", TO_A_FILE)
            };
            self.say(Diagnostic::new(codes::TOO_LARGE, message, span, "at this point").help(help));
        }
        None
    }

    /// Opens a block of names, runs `inner` and closes the block.
    pub fn scoped<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        self.scope.open();
        let result = inner(self);
        self.scope.close();
        result
    }

    /// The help line for a misspelt name, unless there are too many messages already.
    pub fn suggest<'s>(
        &self,
        name: &str,
        known: impl IntoIterator<Item = &'s str>,
    ) -> Option<String> {
        say::suggest(self.diags, name, known)
    }

    /// Runs the statement behind `else` if the condition does not hold.
    pub fn or_else(&mut self, ok: ValueId, otherwise: &'a Stmt) {
        let (done, gone) = (self.b.block(), self.b.block());
        self.b.branch(ok, done, gone);
        self.refused(gone, done, otherwise);
    }

    /// Runs the statement behind `else` from the block `gone` on, and goes on in `done`.
    pub fn refused(&mut self, gone: BlockId, done: BlockId, otherwise: &'a Stmt) {
        self.b.start(gone);
        self.scoped(|this| this.statement(otherwise));
        self.b.jump(done, Vec::new());
        self.b.start(done);
    }

    /// An evaluator of constants.
    pub fn eval(&mut self) -> constant::Eval<'_> {
        constant::Eval::new(&self.scope.consts, self.diags)
    }

    /// Runs `inner` with another target for atoms that read something absent.
    pub fn with_absent<T>(
        &mut self,
        absent: Option<BlockId>,
        inner: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = std::mem::replace(&mut self.absent, absent);
        let result = inner(self);
        self.absent = before;
        result
    }
}
