//! The counters of a run: of the chain as a whole, of functions, of tables.

use std::collections::BTreeMap;

/// Counters of a run. Every packet is accounted for:
/// in + created + copied = out + dropped + consumed + held + lost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets that entered.
    pub packets_in: u64,
    /// Packets that functions built.
    pub created: u64,
    /// Copies made (by `mirror` and by several outputs).
    pub copied: u64,
    /// Packets that left, by interface number.
    pub out: BTreeMap<u16, u64>,
    /// Packets that functions consumed intentionally.
    pub consumed: u64,
    /// Packets that wait in queues.
    pub held: u64,
    /// Packets lost, by reason: malformed packets, packets past the hop limit, and so on.
    pub lost: BTreeMap<String, u64>,
    /// Drops by (function number, row number, reason).
    pub drops: BTreeMap<(u16, u32, String), u64>,
    /// Counters of each function.
    pub nodes: Vec<NodeCounters>,
}

/// Counters of a function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeCounters {
    /// Packets and bytes that entered going forward.
    pub forward: Traffic,
    /// Packets and bytes that entered going backward.
    pub backward: Traffic,
    /// Packets and bytes per row.
    pub rows: Vec<Traffic>,
    /// For each parameter that is a rule set, by parameter number: the packets that each rule
    /// decided. The last count is for the default.
    pub rules: BTreeMap<u32, Vec<u64>>,
    /// Counters of each table, by table number.
    pub tables: Vec<TableCounters>,
    /// Timer firings that were skipped because time jumped by more than [`crate::engine::CATCH_UP`]
    /// periods.
    pub timers_skipped: u64,
    /// Runs of timer and expiry programs that ended with a fault.
    pub background_faults: u64,
}

/// Packets and bytes (on the wire).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Counters of a state table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableCounters {
    /// Current number of entries.
    pub entries: u64,
    /// Entries created.
    pub created: u64,
    /// Refused assignments: the table was full, there was no entry to live with, or an expiry
    /// program wanted to create an entry.
    pub refused: u64,
    /// Entries evicted at capacity.
    pub evicted: u64,
    /// Entries expired.
    pub expired: u64,
}

impl Counters {
    /// Whether the accounting equation holds.
    #[must_use]
    pub fn balanced(&self) -> bool {
        self.packets_in + self.created + self.copied
            == self.out.values().sum::<u64>()
                + self.drops.values().sum::<u64>()
                + self.consumed
                + self.held
                + self.lost.values().sum::<u64>()
    }
}
