//! Finds out how the values are computed that a function assigns to a table.

use braid_ir::model::{
    BinOp, Granularity, Key, Kind, Model, Op, Program, Setting, StateId, Term, Ty, ValueId,
};
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of places on the paths of a program that the analysis visits.
const MOST_PLACES: usize = 10_000;

/// Whether the counts of several workers, each in entries of its own, add up to the count of one
/// worker. This holds if each value is an amount that begins at 0 and to which packets add. Times
/// are not added: the first or the last of them counts.
pub(super) fn adds_up(model: &Model, state: StateId) -> bool {
    let decl = &model.state[state.index()];
    let tied = model.state.iter().any(|other| other.lives_with == Some(state));
    let alone = !tied && decl.lives_with.is_none();
    let begins = decl.default.iter().flatten().zip(&decl.slots);
    let mut begins = begins.filter(|(_, (_, ty))| ty.kind != Kind::Time);
    let quiet = model.timers.is_empty() && model.expire.is_empty() && model.handlers.is_empty();
    alone
        && quiet
        && begins.all(|(setting, _)| *setting == Setting::Const(0))
        && Values::new(&model.packet).add_up(model, state)
}

/// Whether each assignment to a table's only entry adds a constant to its values, modulo the length
/// of a list.
pub(super) fn takes_turns<'a>(
    model: &Model,
    state: StateId,
    mut programs: impl Iterator<Item = &'a Program>,
) -> bool {
    let is_global = model.state[state.index()].granularity == Granularity::Global;
    is_global
        && programs.all(|program| {
            let values = Values::new(program);
            program.blocks.iter().flat_map(|block| &block.ops).all(|op| match op {
                Op::StateDelete { state: of, .. } => *of != state,
                _ => assigned(op, state).iter().all(|(slot, value, key)| {
                    values.is_next(*value, &|old| values.is_old(old, state, *slot, key))
                }),
            })
        })
}

/// The slots of a table that an operation assigns, with the new values and the key.
fn assigned(op: &Op, state: StateId) -> Vec<(u32, ValueId, &Key)> {
    match op {
        Op::StateSet { state: of, key, values, .. } if *of == state => {
            (0..).zip(values).map(|(slot, value)| (slot, *value, key)).collect()
        }
        Op::StatePut { state: of, key, slot, value, .. } if *of == state => {
            vec![(*slot, *value, key)]
        }
        _ => Vec::new(),
    }
}

/// The values of a program with their definitions.
struct Values<'a> {
    program: &'a Program,
    defs: BTreeMap<ValueId, &'a Op>,
    /// The arguments that the parameters of blocks get.
    args: BTreeMap<ValueId, Vec<ValueId>>,
}

impl<'a> Values<'a> {
    fn new(program: &'a Program) -> Self {
        let (mut defs, mut args) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for block in &program.blocks {
            for op in &block.ops {
                defs.extend(op.outs().iter().map(|out| (*out, op)));
            }
            for target in block.term.targets() {
                let params = &program.blocks[target.block.index()].params;
                for (param, arg) in params.iter().zip(&target.args) {
                    args.entry(*param).or_default().push(*arg);
                }
            }
        }
        Self { program, defs, args }
    }

    fn ty(&self, value: ValueId) -> Ty {
        self.program.values[value.index()]
    }

    fn add_up(&self, model: &Model, state: StateId) -> bool {
        let ops = || self.program.blocks.iter().flat_map(|block| &block.ops);
        let Some(created) = self.creations(state) else { return false };
        let is_time = |slot: u32| {
            let slot = model.state[state.index()].slots.get(slot as usize);
            slot.is_some_and(|(_, ty)| ty.kind == Kind::Time)
        };
        let mut amounts: BTreeMap<u32, Vec<ValueId>> = BTreeMap::new();
        for op in ops() {
            for (slot, value, key) in assigned(op, state) {
                let amount = match self.added(value, &|old| self.is_old(old, state, slot, key)) {
                    Some(amount) => amount,
                    None if is_time(slot) || created.contains(&std::ptr::from_ref(op)) => value,
                    None => return false,
                };
                if self.reads(amount, state) {
                    return false;
                }
                if !is_time(slot) {
                    amounts.entry(slot).or_default().push(amount);
                }
            }
        }
        if !ops().any(|op| matches!(op, Op::StateExists { state: of, .. } if *of == state)) {
            return true;
        }
        // The first packet of each worker makes an entry. So it must be counted like all others,
        // and nothing else may depend on its being the first.
        let alike = |all: &Vec<ValueId>| all.iter().all(|one| self.same(*one, all[0]));
        let others = (0..).map(StateId).take(model.state.len()).filter(|other| *other != state);
        let written = |other: StateId| ops().any(|op| !assigned(op, other).is_empty());
        amounts.values().all(alike) && !others.into_iter().any(written)
    }

    /// The assignments that happen only if the table has no entry with their key. `None`: the
    /// program has too many paths.
    fn creations(&self, state: StateId) -> Option<BTreeSet<*const Op>> {
        let all = self.program.blocks.iter().flat_map(|block| &block.ops);
        let mut created: BTreeSet<*const Op> = all.map(std::ptr::from_ref).collect();
        let (mut known, mut open) = (BTreeSet::new(), vec![Path::default()]);
        while let Some(mut path) = open.pop() {
            if !known.insert(path) {
                continue;
            }
            if known.len() > MOST_PLACES {
                return None;
            }
            let block = &self.program.blocks[path.block];
            for op in &block.ops {
                for (_, _, key) in assigned(op, state) {
                    let absent = path.absent.and_then(|test| self.defs.get(&test).copied());
                    let is_new = matches!(absent, Some(Op::StateExists { key: absent, .. })
                        if self.same_key(absent, key));
                    if !is_new {
                        created.remove(&std::ptr::from_ref(op));
                    }
                }
                if !assigned(op, state).is_empty() {
                    path.absent = None;
                }
                if let Op::StateDelete { state: of, .. } = op
                    && *of == state
                {
                    return None;
                }
            }
            match &block.term {
                Term::Branch { cond, yes, no } => {
                    let cond_of = self.defs.get(cond).copied();
                    for (target, holds) in [(yes, true), (no, false)] {
                        let next = Path { block: target.block.index(), ..path };
                        open.extend(next.with(*cond, cond_of, state, holds));
                    }
                }
                end => {
                    let targets = end.targets();
                    open.extend(
                        targets.into_iter().map(|to| Path { block: to.block.index(), ..path }),
                    );
                }
            }
        }
        Some(created)
    }

    /// The addend, if the value is the sum of an old value and an addend.
    fn added(&self, value: ValueId, is_old: &dyn Fn(ValueId) -> bool) -> Option<ValueId> {
        match self.defs.get(&value)? {
            Op::Bin { op: BinOp::AddSat | BinOp::AddWrap, a, b, .. } => match (*a, *b) {
                (old, amount) | (amount, old) if is_old(old) => Some(amount),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a value is `(old + constant) % len`.
    fn is_next(&self, value: ValueId, is_old: &dyn Fn(ValueId) -> bool) -> bool {
        let is_old = |value| is_old(value) || self.in_list(value).is_some_and(is_old);
        let sum = self.in_list(value).and_then(|sum| self.added(sum, &is_old));
        sum.is_some_and(|step| matches!(self.defs.get(&step), Some(Op::Const { .. })))
    }

    /// The dividend, if the value is a remainder by a list's length.
    fn in_list(&self, value: ValueId) -> Option<ValueId> {
        match self.defs.get(&value)? {
            Op::Bin { op: BinOp::Rem, a, b, .. } => {
                matches!(self.defs.get(b)?, Op::ListLen { .. }).then_some(*a)
            }
            _ => None,
        }
    }

    /// Whether a value is the content of this slot of the entry.
    fn is_old(&self, value: ValueId, state: StateId, slot: u32, key: &Key) -> bool {
        match self.defs.get(&value) {
            Some(Op::StateGet { outs, state: of, key: other }) => {
                let same = outs.get(slot as usize) == Some(&value);
                *of == state && same && self.same_key(key, other)
            }
            _ => false,
        }
    }

    /// Whether a value depends on a value of the table.
    fn reads(&self, value: ValueId, state: StateId) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![value]);
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            open.extend(self.args.get(&value).into_iter().flatten());
            match self.defs.get(&value) {
                Some(Op::StateGet { state: of, .. }) if *of == state => return true,
                Some(op) => op.visit_uses(&mut |part| open.push(*part)),
                None => {}
            }
        }
        false
    }

    fn same_key(&self, a: &Key, b: &Key) -> bool {
        match (a, b) {
            (Key::Explicit(a), Key::Explicit(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(*a, *b))
            }
            _ => a == b,
        }
    }

    /// Whether two values are computed in the same way from the packet, which the function does not
    /// change.
    fn same(&self, mut a: ValueId, mut b: ValueId) -> bool {
        while a != b && self.ty(a) == self.ty(b) {
            match (self.defs.get(&a), self.defs.get(&b)) {
                (Some(Op::Const { value: a, .. }), Some(Op::Const { value: b, .. })) => {
                    return a == b;
                }
                (Some(Op::Param { param: a, .. }), Some(Op::Param { param: b, .. })) => {
                    return a == b;
                }
                (Some(Op::Load { field: a, .. }), Some(Op::Load { field: b, .. })) => {
                    return a == b;
                }
                (Some(Op::Resize { a: c, .. }), Some(Op::Resize { a: d, .. }))
                | (Some(Op::Clamp { a: c, .. }), Some(Op::Clamp { a: d, .. })) => (a, b) = (*c, *d),
                _ => return false,
            }
        }
        a == b
    }
}

/// A place on a path through a program, with the results of the path's tests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Path {
    block: usize,
    /// Headers that the packet has, and headers that it lacks, as bits.
    has: u128,
    lacks: u128,
    /// The test that has found no entry.
    absent: Option<ValueId>,
}

impl Path {
    /// The path after a condition with this outcome. `None`: no packet takes it.
    fn with(mut self, cond: ValueId, op: Option<&Op>, state: StateId, holds: bool) -> Option<Self> {
        match op {
            Some(Op::Has { header, .. }) => {
                let needs = header.closure();
                match holds {
                    true if self.lacks & needs != 0 => return None,
                    true => self.has |= needs,
                    false if self.has & header.bit() != 0 => return None,
                    false => self.lacks |= header.bit(),
                }
            }
            Some(Op::StateExists { state: of, .. }) if *of == state => {
                self.absent = (!holds).then_some(cond);
            }
            _ => {}
        }
        Some(self)
    }
}
