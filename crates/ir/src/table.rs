//! The state tables of a model.

use crate::ids::{ParamId, StateId};
use crate::ty::{Ty, Word};
use braid_packet::Field;

/// A number that is fixed when an instance starts: a constant or a scalar parameter's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Constant.
    Const(Word),
    /// The current value of a scalar parameter.
    Param(ParamId),
}

impl Setting {
    /// The setting's value, with these values of its function's parameters.
    #[must_use]
    pub fn value(self, params: &[crate::value::ParamValue]) -> Word {
        match self {
            Setting::Const(value) => value,
            Setting::Param(param) => match params.get(param.index()) {
                Some(crate::value::ParamValue::Scalar(value)) => *value,
                _ => 0,
            },
        }
    }
}

/// The granularity of a state table: it has one entry for each of these.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Granularity {
    /// One entry.
    Global,
    /// Per 5-tuple in one direction: (IP version, src, dst, protocol, sport, dport) as `inet.*`.
    Flow,
    /// Per 5-tuple in both directions: as `Flow` with the smaller (address, port) pair first.
    Biflow,
    /// Per value of these fields.
    Fields(Vec<Field>),
    /// Per explicit key of these types.
    Key(Vec<Ty>),
}

/// The treatment of a new entry in a full table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// The assignment is refused.
    Refuse,
    /// The entry that was created first is evicted (its `on expire` program runs), and the new
    /// entry is created.
    EvictOldest,
}

/// How the values that workers have in a slot for one key become one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sum {
    /// They are added.
    Add,
    /// The smallest one counts: the first time.
    First,
    /// The largest one counts: the last time.
    Last,
}

/// A state table.
#[derive(Clone, PartialEq, Debug)]
pub struct StateDecl {
    /// Its name.
    pub name: String,
    /// The granularity of its entries.
    pub granularity: Granularity,
    /// Slots of an entry: one slot named "" for a scalar, or one slot for each field of a record.
    pub slots: Vec<(String, Ty)>,
    /// The value of each slot that is read where no entry exists. `None`: the read is a fault. The
    /// entry of a global table exists from the start, with this value.
    pub default: Option<Vec<Setting>>,
    /// The maximum number of entries.
    pub capacity: Setting,
    /// The treatment of a new entry when the table is full.
    pub when_full: WhenFull,
    /// An entry expires when no packet has found it for this time (ns).
    pub idle: Option<Setting>,
    /// An entry expires this time after its creation (ns).
    pub hard: Option<Setting>,
    /// Deadlines are rounded up to multiples of this (ns since the epoch).
    pub tick: Setting,
    /// Each entry lives with an entry of this table: they share last-seen times and end together.
    pub lives_with: Option<StateId>,
    /// Whether each worker has its own table with a share of the capacity. Otherwise all workers
    /// share one table.
    pub sharded: bool,
    /// Scalar parameters that hold limits. If workers cannot share the table otherwise, each gets
    /// its own table, and these parameters count divided by the number of workers.
    pub portions: Vec<ParamId>,
    /// For each slot, how listings unite the entries of several workers for one key. Empty: they
    /// list each of them.
    pub sums: Vec<Sum>,
}

impl StateDecl {
    /// Whether an assignment may end other entries.
    #[must_use]
    pub fn evicts(&self) -> bool {
        self.when_full == WhenFull::EvictOldest && self.granularity != Granularity::Global
    }

    /// A table of one entry that workers share, without default and time-outs.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        granularity: Granularity,
        slots: Vec<(String, Ty)>,
    ) -> Self {
        Self {
            name: name.into(),
            granularity,
            slots,
            default: None,
            capacity: Setting::Const(1),
            when_full: WhenFull::Refuse,
            idle: None,
            hard: None,
            tick: Setting::Const(1),
            lives_with: None,
            sharded: false,
            portions: Vec::new(),
            sums: Vec::new(),
        }
    }
}
