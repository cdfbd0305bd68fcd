//! The parts of a snapshot.

use crate::counters::{TableCounters, Traffic};
use crate::model::{ParamTy, Word};
use crate::value::ParamValue;
use braid_packet::Packet;
use std::collections::BTreeMap;

/// Everything that an engine holds and that matters for later packets. Flow records and machine
/// code are no part of it, because an engine makes them again.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshot {
    /// The chain's name.
    pub chain: String,
    /// The number of workers that share sharded state.
    pub workers: u16,
    /// The rule that gave packets their workers, as text. Empty if there was one worker.
    pub steering: String,
    /// The engine's time (ns).
    pub now_ns: u64,
    /// Whether a packet has entered yet, so that timers run.
    pub started: bool,
    /// Counters of the chain as a whole.
    pub totals: Totals,
    /// The functions, in the order of the chain.
    pub functions: Vec<FunctionState>,
}

/// Counters of the chain as a whole.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Packets that entered.
    pub packets_in: u64,
    /// Packets that functions built.
    pub created: u64,
    /// Copies made.
    pub copied: u64,
    /// Packets that functions consumed.
    pub consumed: u64,
    /// Packets that left, by the interface's name.
    pub out: BTreeMap<String, u64>,
    /// Packets lost, by reason.
    pub lost: BTreeMap<String, u64>,
}

/// The state of a function.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FunctionState {
    /// Its name in the chain.
    pub name: String,
    /// The name of its model.
    pub model: String,
    /// The name of the native function that it calls, if any.
    pub native: Option<String>,
    /// Packets and bytes that entered going forward.
    pub forward: Traffic,
    /// Packets and bytes that entered going backward.
    pub backward: Traffic,
    /// Timer firings that were skipped.
    pub timers_skipped: u64,
    /// Runs of timer and expiry programs that ended with a fault.
    pub background_faults: u64,
    /// Its rows.
    pub rows: Vec<RowState>,
    /// Its parameters.
    pub params: Vec<ParamState>,
    /// Its tables.
    pub tables: Vec<TableState>,
    /// Its queues.
    pub queues: Vec<QueueState>,
    /// Its timers.
    pub timers: Vec<TimerState>,
    /// One shard, or one for each worker if a table of the function is sharded.
    pub shards: Vec<ShardState>,
    /// Its entries and pools are not here: the next engine takes them over from the engine itself
    /// ([`crate::engine::Engine::take_over`]).
    pub stays: bool,
}

/// The counters of a row.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RowState {
    /// The row's label.
    pub label: String,
    /// The row's predicate as written.
    pub text: String,
    /// Packets and bytes.
    pub traffic: Traffic,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// A parameter. Of secret keys, there are only the name and the type.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamState {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: ParamTy,
    /// Its current value.
    pub value: ParamValue,
    /// The chain's value, if a change of configuration has set another value since.
    pub configured: Option<ParamValue>,
    /// For a rule set: the packets that each rule decided. The last count is for the default.
    pub rule_counts: Vec<u64>,
}

impl ParamState {
    /// Whether its values are secret. Then a new run has those of its chain.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.ty == ParamTy::Keys
    }

    /// Notes the value that the chain gives it.
    pub fn configure(&mut self, chain: &ParamValue) {
        let is_changed = !self.is_secret() && self.value != *chain;
        self.configured = is_changed.then(|| chain.clone());
    }
}

/// A table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableState {
    /// Its name.
    pub name: String,
    /// Its keys, slots and partner as text. A table with another schema cannot take the entries.
    pub schema: String,
    /// The number of the table that its entries live with, among the tables of the function.
    pub lives_with: Option<u32>,
    /// Its counters.
    pub counters: TableCounters,
    /// Its entries, in the order of their creation. Eviction and reports depend on this order.
    pub entries: Vec<EntryState>,
}

/// An entry of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EntryState {
    /// The parts of its key.
    pub key: Vec<Word>,
    /// Its slots.
    pub slots: Vec<Word>,
    /// The shard that holds it.
    pub shard: u16,
    /// The shard in which it was created. Its expiry program runs there.
    pub creator: u16,
    /// When it was created (ns).
    pub created_ns: u64,
    /// When its group was last seen (ns). The entry that the others live with has it. It is 0 in
    /// all other entries.
    pub last_seen_ns: u64,
    /// The entry with which it and all others of its group live: the entry's place in the list of
    /// its table. `None`: it lives with no other entry.
    pub root: Option<u64>,
}

/// A queue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueState {
    /// Its name.
    pub name: String,
    /// Its packets, in the order in which they are released.
    pub packets: Vec<HeldState>,
}

/// A held packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldState {
    /// The time of its release (ns).
    pub until_ns: u64,
    /// The number of function visits so far.
    pub hops: u32,
    /// Its worker.
    pub worker: u16,
    /// The packet.
    pub packet: Packet,
}

/// A timer. Timers have no names: they are known by their places and periods.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TimerState {
    /// The period as the model writes it: a time, or the name of a parameter.
    pub period: String,
    /// When it fires next (ns). `None` before the first packet, and when no firing is left.
    pub next_ns: Option<u64>,
}

/// The parts of a shard besides its tables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShardState {
    /// The state of the random generator.
    pub random: u64,
    /// The pool of each pool parameter, in the order of the parameters.
    pub pools: Vec<PoolState>,
    /// The memory that a native function has saved. `None` if there is none or if it cannot be
    /// saved.
    pub memory: Option<Vec<u8>>,
    /// What the TCP stack of a stream function holds.
    pub stack: Option<Vec<u8>>,
}

/// A pool of a shard. Its members follow from the parameter's value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PoolState {
    /// The parameter's name.
    pub name: String,
    /// The taken values as ascending intervals. A value may be no member any more.
    pub taken: Vec<(Word, Word)>,
    /// For a pool in the order of release: the free members, as intervals in their order.
    pub free: Vec<(Word, Word)>,
}

/// The reason why an engine does not take a snapshot.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImportError {
    /// The engine has state of its own.
    #[error("the engine has already run")]
    HasRun,
    /// The snapshot contradicts itself or the chain.
    #[error("the state of `{part}` is damaged: {why}")]
    Damaged {
        /// The function, table or other part.
        part: String,
        /// The contradiction.
        why: String,
    },
    /// A function refuses the state.
    #[error("`{function}` refuses its state: {why}")]
    Refused {
        /// The function's name.
        function: String,
        /// Its reason.
        why: String,
    },
}

impl Snapshot {
    /// The number of table entries of all functions.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.functions.iter().flat_map(|function| &function.tables).map(|t| t.entries.len()).sum()
    }
}
