//! Finds operations that cannot fault where they are, although their kind can: divisions by
//! constants, and reads of entries that were just found.

use super::runs::Runs;
use braid_ir::model::{BinOp, Key, Model, Op, Program, StateId, Term, ValueId, WhenFull};
use std::collections::{HashMap, HashSet};

/// Places (block, operation) of operations that cannot fault.
pub(super) type Sound = HashSet<(usize, usize)>;

/// An entry, by table and key.
type Entry = (StateId, Key);

/// The largest number of facts at a time. The oldest facts are forgotten first. Forgetting a fact
/// is always safe.
const MAX_FACTS: usize = 64;

/// The facts at the beginning of a block.
#[derive(Clone, Default)]
struct Facts {
    /// Entries that exist.
    there: Vec<Entry>,
    /// Entries that exist if the value is true.
    there_if: Vec<(ValueId, Entry)>,
}

/// Finds the operations of a program that cannot fault.
pub(super) fn sound(model: &Model, program: &Program, runs: &Runs) -> Sound {
    let mut sound = Sound::new();
    let mut at_start: HashMap<usize, Facts> = HashMap::new();
    for (number, block) in runs.blocks(program) {
        let mut facts = at_start.remove(&number).unwrap_or_default();
        for (at, op) in block.ops.iter().enumerate() {
            let divides_soundly = matches!(op, Op::Bin { op: BinOp::Div | BinOp::Rem, b, .. }
                if runs.is_nonzero(*b));
            if divides_soundly || facts.has_entry_of(op) {
                sound.insert((number, at));
            }
            facts.after(model, op);
        }
        for (next, facts) in facts.at_targets(&block.term) {
            match at_start.get_mut(&next) {
                Some(known) => known.meet(&facts),
                None => {
                    at_start.insert(next, facts);
                }
            }
        }
    }
    sound
}

impl Facts {
    /// Whether the operation reads an entry that exists.
    fn has_entry_of(&self, op: &Op) -> bool {
        match op {
            Op::StateGet { state, key, .. } | Op::StatePut { state, key, .. } => {
                self.there.iter().any(|(table, known)| table == state && known == key)
            }
            _ => false,
        }
    }

    fn after(&mut self, model: &Model, op: &Op) {
        match op {
            Op::StateExists { out, state, key } => {
                self.there_if.push((*out, (*state, key.clone())));
            }
            // Without an entry, the operation would have faulted.
            Op::StateGet { state, key, .. }
                if model.state.get(state.index()).is_some_and(|decl| decl.default.is_none()) =>
            {
                self.there.push((*state, key.clone()));
            }
            Op::StateSet { ok, state, key, .. } | Op::StatePut { ok, state, key, .. } => {
                let evicts = model
                    .state
                    .get(state.index())
                    .is_none_or(|decl| decl.when_full == WhenFull::EvictOldest);
                // The table may evict any entry, and the expiry program of that entry may delete
                // more.
                if evicts && !self.there.contains(&(*state, key.clone())) {
                    *self = Self::default();
                }
                self.there_if.push((*ok, (*state, key.clone())));
            }
            // Entries that live with the deleted one end with it.
            Op::StateDelete { .. } => *self = Self::default(),
            _ => {}
        }
        self.there.drain(..self.there.len().saturating_sub(MAX_FACTS));
        self.there_if.drain(..self.there_if.len().saturating_sub(MAX_FACTS));
    }

    /// The facts at each target of the terminator.
    fn at_targets(&self, term: &Term) -> Vec<(usize, Facts)> {
        let mut found = Vec::new();
        for target in term.targets() {
            let mut facts = self.clone();
            if let Term::Branch { cond, yes, no } = term
                && yes.block == target.block
                && no.block != target.block
            {
                let learned = self.there_if.iter().filter(|(value, _)| value == cond);
                facts.there.extend(learned.map(|(_, entry)| entry.clone()));
            }
            found.push((target.block.index(), facts));
        }
        found
    }

    /// Keeps the facts that also hold on another path to the block.
    fn meet(&mut self, other: &Facts) {
        self.there.retain(|entry| other.there.contains(entry));
        self.there_if.retain(|fact| other.there_if.contains(fact));
    }
}
