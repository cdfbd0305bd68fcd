//! What an operation defines and uses, and where a block may go: for passes over programs.

use crate::model::{EventArg, Key, Op, Target, Term, ValueId};

impl Key {
    /// Values that make up the key.
    #[must_use]
    pub fn values(&self) -> &[ValueId] {
        match self {
            Key::Explicit(values) => values,
            Key::Entry | Key::Quoted | Key::Reversed(_) => &[],
        }
    }
}

impl Op {
    /// Values that it defines, in the order in which the text form prints them.
    #[must_use]
    pub fn outs(&self) -> Vec<ValueId> {
        match self {
            Op::Const { out, .. }
            | Op::Param { out, .. }
            | Op::ListLen { out, .. }
            | Op::ListGet { out, .. }
            | Op::BackendUp { out, .. }
            | Op::Bin { out, .. }
            | Op::Cmp { out, .. }
            | Op::Not { out, .. }
            | Op::Resize { out, .. }
            | Op::Clamp { out, .. }
            | Op::Select { out, .. }
            | Op::InSet { out, .. }
            | Op::Has { out, .. }
            | Op::Load { out, .. }
            | Op::LoadEntry { out, .. }
            | Op::LoadTag { out, .. }
            | Op::StateExists { out, .. }
            | Op::StateLen { out, .. } => vec![*out],
            Op::StateSet { ok, .. } | Op::StatePut { ok, .. } | Op::TakeThis { ok, .. } => {
                vec![*ok]
            }
            Op::Rules { pass, rule, .. } => vec![*pass, *rule],
            Op::Route { found, hop, .. } => vec![*found, *hop],
            Op::Patterns { found, number, .. } => vec![*found, *number],
            Op::Take { ok, out, .. } => vec![*ok, *out],
            Op::Extern { outs, .. }
            | Op::StateGet { outs, .. }
            | Op::Expiring { outs }
            | Op::ExpiringKey { outs } => outs.clone(),
            Op::Store { .. }
            | Op::StoreTag { .. }
            | Op::PushVlan { .. }
            | Op::PopVlan
            | Op::StateDelete { .. }
            | Op::Release { .. }
            | Op::Emit { .. }
            | Op::Count { .. }
            | Op::Mirror { .. }
            | Op::Create { .. } => Vec::new(),
        }
    }

    /// Values that it uses, in the order in which the text form prints them.
    #[must_use]
    pub fn uses(&self) -> Vec<ValueId> {
        match self {
            Op::ListGet { index, .. } | Op::BackendUp { index, .. } => vec![*index],
            Op::Bin { a, b, .. } | Op::Cmp { a, b, .. } => vec![*a, *b],
            Op::Not { a, .. }
            | Op::Resize { a, .. }
            | Op::Clamp { a, .. }
            | Op::InSet { a, .. }
            | Op::Store { a, .. }
            | Op::StoreTag { a, .. }
            | Op::TakeThis { a, .. }
            | Op::Release { a, .. } => vec![*a],
            Op::Select { cond, a, b, .. } => vec![*cond, *a, *b],
            Op::PushVlan { id } => vec![*id],
            Op::Route { addr, .. } => vec![*addr],
            Op::Extern { args, .. } => args.clone(),
            Op::StateExists { key, .. }
            | Op::StateGet { key, .. }
            | Op::StateDelete { key, .. } => key.values().to_vec(),
            Op::StateSet { key, values, .. } => [key.values(), values].concat(),
            Op::StatePut { key, value, .. } => [key.values(), &[*value]].concat(),
            Op::Emit { args, .. } => args.iter().filter_map(EventArg::value).collect(),
            Op::Create { new, .. } => new.fields.iter().map(|(_, value)| *value).collect(),
            Op::Const { .. }
            | Op::Param { .. }
            | Op::ListLen { .. }
            | Op::Has { .. }
            | Op::Load { .. }
            | Op::LoadEntry { .. }
            | Op::LoadTag { .. }
            | Op::PopVlan
            | Op::Rules { .. }
            | Op::Patterns { .. }
            | Op::StateLen { .. }
            | Op::Expiring { .. }
            | Op::ExpiringKey { .. }
            | Op::Take { .. }
            | Op::Count { .. }
            | Op::Mirror { .. } => Vec::new(),
        }
    }
}

impl EventArg {
    /// The value, if it is one.
    #[must_use]
    pub fn value(&self) -> Option<ValueId> {
        match self {
            EventArg::Value(value) => Some(*value),
            EventArg::Str(_) | EventArg::Param(_) => None,
        }
    }
}

impl Term {
    /// Blocks that may come next.
    #[must_use]
    pub fn targets(&self) -> Vec<&Target> {
        match self {
            Term::Jump(target) | Term::Hold { full: target, .. } => vec![target],
            Term::Branch { yes, no, .. } => vec![yes, no],
            Term::Output { .. }
            | Term::Drop { .. }
            | Term::Consume { .. }
            | Term::Resubmit { .. }
            | Term::Return => Vec::new(),
        }
    }

    /// Values that it uses, other than those that it passes on.
    #[must_use]
    pub fn uses(&self) -> Vec<ValueId> {
        match self {
            Term::Branch { cond, .. } => vec![*cond],
            Term::Hold { delay, .. } => vec![*delay],
            _ => Vec::new(),
        }
    }
}
