//! The uses of a table's values in its function. They decide how workers may share a table that no
//! steering splits.

use super::assigned::{adds_up, takes_turns};
use super::mutants::ShardingMutant::{self, AnyTurns, DecidingSums};
use super::mutants::is;
use braid_ir::model::{
    BinOp, Dest, Key, Kind, Model, Op, Program, StateId, Sum, Term, Ty, ValueId,
};
use std::collections::BTreeSet;

/// The uses of the values of a table.
#[derive(Default, Debug)]
pub(super) struct Usage {
    /// Programs assign entries or remove them.
    pub(super) written: bool,
    /// New values are computed from old ones.
    accumulated: bool,
    /// Values choose a member of a list.
    chooses: bool,
    /// Values are compared.
    compared: bool,
    /// Values are stored in other tables.
    stored: bool,
    /// Values are published in events.
    published: bool,
    /// Values are used otherwise: written into packets, as keys and so on.
    used: bool,
    /// A timer or an expiry program uses entries by key.
    pub(super) background: bool,
    /// A program asks for the number of entries.
    pub(super) counted: bool,
}

/// How workers share a table that no steering splits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    /// Nothing changes it.
    Replicated,
    /// Each worker counts in its own entries. Reports add up the values.
    Summed,
    /// Each worker has its own round-robin position.
    Turns,
    /// Each worker has a table of its own.
    Own,
    /// Each worker has a table of its own, and a portion of the limits.
    Portions,
    /// Amounts are compared with a limit, and the function does not allow portions of it.
    Limit,
    /// They cannot share it.
    None,
}

/// How workers may share a table.
pub(super) fn share(model: &Model, state: StateId, bug: Option<ShardingMutant>) -> Share {
    let decl = &model.state[state.index()];
    match by_use(model, state, bug) {
        Share::Limit if !decl.portions.is_empty() => Share::Portions,
        Share::Limit | Share::None if decl.sharded => Share::Own,
        share => share,
    }
}

/// How workers may share a table whose function says nothing about it.
fn by_use(model: &Model, state: StateId, bug: Option<ShardingMutant>) -> Share {
    let usage = usage(model, state);
    if usage.background || usage.counted {
        return Share::None;
    }
    if !usage.written {
        return Share::Replicated;
    }
    let decides = usage.compared || usage.used || usage.published;
    let is_read = (decides || usage.stored || usage.chooses) && !is(bug, DecidingSums);
    if !is_read && is_passive(model) && adds_up(model, state) {
        return Share::Summed;
    }
    let all = programs(model).into_iter().map(|(program, ..)| program);
    if usage.chooses && !decides && (is(bug, AnyTurns) || takes_turns(model, state, all)) {
        return Share::Turns;
    }
    let amount = usage.accumulated && usage.compared;
    match amount && !usage.used && !usage.stored && !usage.chooses {
        true => Share::Limit,
        false => Share::None,
    }
}

/// Whether a function passes every packet unchanged, so that no other function depends on its
/// state.
fn is_passive(model: &Model) -> bool {
    let op = |op: &Op| {
        let acts = matches!(
            op,
            Op::StoreTag { .. }
                | Op::Native { .. }
                | Op::Emit { .. }
                | Op::Mirror { .. }
                | Op::Create { .. }
        );
        !acts && !op.changes_bytes()
    };
    let end = |end: &Term| match end {
        Term::Output { ports, .. } => *ports == [Dest::Onward],
        Term::Jump(_) | Term::Branch { .. } => true,
        _ => false,
    };
    model.packet.blocks.iter().all(|block| block.ops.iter().all(op) && end(&block.term))
}

/// For each slot of a table with the placement *summed*: how listings combine the entries of
/// several workers.
pub(super) fn sums(model: &Model, state: StateId) -> Vec<Sum> {
    let decl = &model.state[state.index()];
    let ops = model.packet.blocks.iter().flat_map(|block| &block.ops);
    let changed = ops.filter_map(|op| match op {
        Op::StatePut { state: of, slot, .. } if *of == state => Some(*slot),
        _ => None,
    });
    let changed: BTreeSet<u32> = changed.collect();
    let sum = |(number, (_, ty)): (u32, &(String, Ty))| match ty.kind {
        // A time that is set only with the whole entry is the first one.
        Kind::Time if changed.contains(&number) => Sum::Last,
        Kind::Time => Sum::First,
        _ => Sum::Add,
    };
    (0..).zip(&decl.slots).map(sum).collect()
}

/// The uses of the values of a table.
pub(super) fn usage(model: &Model, state: StateId) -> Usage {
    let mut usage = Usage::default();
    // Slots whose values come from the table, by table and number.
    let count = u32::try_from(model.state[state.index()].slots.len()).unwrap_or(u32::MAX);
    let mut slots: BTreeSet<(StateId, u32)> = (0..count).map(|slot| (state, slot)).collect();
    loop {
        let before = slots.len();
        for (program, is_background, ending) in programs(model) {
            let (usage, slots) = (&mut usage, &mut slots);
            let mut scan = Scan { state, usage, slots, is_background, ending };
            scan.program(program);
        }
        if slots.len() == before {
            return usage;
        }
    }
}

/// The programs of a model, whether they run in the background, and the table whose entries they
/// see end.
fn programs(model: &Model) -> Vec<(&Program, bool, Option<StateId>)> {
    let handlers = model.handlers.iter().map(|(_, program)| (program, false, None));
    let timers = model.timers.iter().map(|timer| (&timer.body, true, None));
    let expiries = model.expire.iter().map(|(state, program)| (program, true, Some(*state)));
    let packet = std::iter::once((&model.packet, false, None));
    packet.chain(handlers).chain(timers).chain(expiries).collect()
}

/// The relation of a value of a program to the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It does not come from the table.
    Elsewhere,
    /// It is a value of the table.
    Value,
    /// It is computed from a value of the table.
    Computed,
    /// It is the result of a comparison of such a value.
    Test,
}

struct Scan<'a> {
    state: StateId,
    usage: &'a mut Usage,
    slots: &'a mut BTreeSet<(StateId, u32)>,
    is_background: bool,
    /// The table whose entries the program sees end.
    ending: Option<StateId>,
}

impl Scan<'_> {
    fn program(&mut self, program: &Program) {
        let mut from = vec![Origin::Elsewhere; program.values.len()];
        for block in &program.blocks {
            for op in &block.ops {
                self.op(op, &mut from);
            }
            if let Term::Branch { cond, .. } = &block.term {
                self.usage.compared |= from[cond.index()] != Origin::Elsewhere;
            }
            if let Term::Hold { delay, .. } = &block.term {
                self.usage.used |= from[delay.index()] != Origin::Elsewhere;
            }
            for target in block.term.targets() {
                let params = &program.blocks[target.block.index()].params;
                for (param, arg) in params.iter().zip(&target.args) {
                    from[param.index()] = worst(&from, &[*param, *arg]);
                }
            }
        }
    }

    fn op(&mut self, op: &Op, from: &mut [Origin]) {
        self.access(op);
        match op {
            Op::StateGet { outs, state, .. } => self.values(*state, outs, from),
            Op::Expiring { outs } => {
                if let Some(state) = self.ending {
                    self.values(state, outs, from);
                }
            }
            Op::StateSet { state, values, .. } => {
                for (slot, value) in (0..).zip(values) {
                    self.store(*state, slot, from[value.index()]);
                }
            }
            Op::StatePut { state, slot, value, .. } => {
                self.store(*state, *slot, from[value.index()]);
            }
            Op::Cmp { out, a, b, .. } => {
                if worst(from, &[*a, *b]) != Origin::Elsewhere {
                    from[out.index()] = Origin::Test;
                }
            }
            Op::InSet { out, a, .. } => {
                if from[a.index()] != Origin::Elsewhere {
                    from[out.index()] = Origin::Test;
                }
            }
            Op::Bin { out, op, a, b } => {
                from[out.index()] = match (worst(from, &[*a, *b]), op) {
                    (Origin::Test, BinOp::And | BinOp::Or | BinOp::Xor) => Origin::Test,
                    (Origin::Elsewhere, _) => Origin::Elsewhere,
                    _ => Origin::Computed,
                }
            }
            Op::Not { out, a } | Op::Resize { out, a } | Op::Clamp { out, a } => {
                from[out.index()] = from[a.index()];
            }
            Op::Select { out, cond, a, b } => {
                if worst(from, &[*cond, *a, *b]) != Origin::Elsewhere {
                    from[out.index()] = Origin::Computed;
                }
            }
            Op::ListGet { index, .. } | Op::BackendUp { index, .. } => {
                self.usage.chooses |= from[index.index()] != Origin::Elsewhere;
            }
            Op::Emit { .. } => self.usage.published |= uses_any(op, from),
            _ => self.usage.used |= uses_any(op, from),
        }
        // A value as a key decides about entries of other flows.
        if let Some(Key::Explicit(key)) = op.entry().map(|(_, key)| key) {
            self.usage.used |= worst(from, key) != Origin::Elsewhere;
        }
    }

    /// Records the values that an operation reads from an entry.
    fn values(&self, state: StateId, outs: &[ValueId], from: &mut [Origin]) {
        for (slot, out) in (0..).zip(outs) {
            if self.slots.contains(&(state, slot)) {
                from[out.index()] = Origin::Value;
            }
        }
    }

    /// Records the uses of the table itself.
    fn access(&mut self, op: &Op) {
        if let Op::StateLen { state, .. } = op {
            self.usage.counted |= *state == self.state;
        }
        let Some((state, key)) = op.entry() else { return };
        if state == self.state {
            let writes = !matches!(op, Op::StateExists { .. } | Op::StateGet { .. });
            self.usage.written |= writes;
            self.usage.background |= self.is_background && matches!(key, Key::Explicit(_));
        }
    }

    fn store(&mut self, state: StateId, slot: u32, from: Origin) {
        match from {
            Origin::Elsewhere => {}
            Origin::Test => self.usage.used = true,
            Origin::Value | Origin::Computed if state == self.state => {
                self.usage.accumulated |= from == Origin::Computed;
            }
            Origin::Value | Origin::Computed => {
                self.usage.stored = true;
                self.slots.insert((state, slot));
            }
        }
    }
}

/// The strongest relation of these values to the table.
fn worst(from: &[Origin], values: &[ValueId]) -> Origin {
    let all = values.iter().map(|value| from[value.index()]);
    all.max_by_key(|from| *from as u8).unwrap_or(Origin::Elsewhere)
}

fn uses_any(op: &Op, from: &[Origin]) -> bool {
    let mut any = false;
    op.visit_uses(&mut |value| any |= from[value.index()] != Origin::Elsewhere);
    any
}
