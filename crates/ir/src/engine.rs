//! What every engine offers: packets in, packets out, counters, state, events.

use crate::chain::{Control, Malformed};
use crate::model::{Kind, Word};
use braid_packet::Packet;
use std::collections::BTreeMap;

/// A way to run a chain. All engines give the same results on all inputs; `reference` defines them.
pub trait Engine {
    /// Processes one packet that entered at an interface. Expiries and timers that are due by its
    /// time run first; time never goes back.
    fn packet(&mut self, ingress: u16, packet: Packet, out: &mut dyn Outputs);

    /// Runs everything that is due by this time.
    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs);

    /// Applies a change of configuration at its time (which `advance`s to it first).
    ///
    /// # Errors
    /// When the change cannot be applied (no such rule or backend), with the reason; nothing changed.
    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String>;

    /// Counters up to now.
    fn counters(&self) -> Counters;

    /// All state entries, in the order function, table, creation.
    fn state(&self) -> Vec<StateEntry>;
}

/// Takes what an engine gives out, in order.
pub trait Outputs {
    /// A packet leaves by an interface.
    fn packet(&mut self, interface: u16, packet: Packet);
    /// A function published an event.
    fn event(&mut self, event: Event);
}

/// An event that a function published.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Time of processing (ns).
    pub time_ns: u64,
    /// The function, by number.
    pub node: u16,
    /// The event's type.
    pub name: String,
    /// Types that it extends, nearest first.
    pub ancestors: Vec<String>,
    /// Its fields in order.
    pub fields: Vec<(String, EventValue)>,
}

/// A value in an event.
#[derive(Clone, PartialEq, Debug)]
pub enum EventValue {
    /// A scalar and what it denotes.
    Scalar(Kind, Word),
    /// Text.
    Str(String),
}

/// A state entry.
#[derive(Clone, PartialEq, Debug)]
pub struct StateEntry {
    /// The function, by number.
    pub node: u16,
    /// The table's name.
    pub table: String,
    /// The worker's shard; 0 for state that is not sharded.
    pub shard: u16,
    /// Key parts, empty for global state.
    pub key: Vec<(Kind, Word)>,
    /// Slots by name ("" for a scalar).
    pub slots: Vec<(String, Kind, Word)>,
    /// When it was created (ns).
    pub created_ns: u64,
    /// When a packet last found or assigned it, or an entry that it lives with (ns).
    pub last_seen_ns: u64,
    /// When it expires unless found again (ns), if ever.
    pub expires_ns: Option<u64>,
}

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
    /// Packets that functions consumed.
    pub consumed: u64,
    /// Packets that wait in queues.
    pub held: u64,
    /// Packets lost for a named reason: malformed ones, or past the hop limit.
    pub lost: BTreeMap<String, u64>,
    /// Drops by (function number, row number, reason).
    pub drops: BTreeMap<(u16, u32, String), u64>,
    /// Per function.
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
    /// Per rule of each parameter that is a rule set: packets that it decided; the last is the
    /// default. By parameter number.
    pub rules: BTreeMap<u32, Vec<u64>>,
    /// Assignments refused by each table at capacity, evictions, expiries: by table number.
    pub tables: Vec<TableCounters>,
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
    /// Entries now.
    pub entries: u64,
    /// Entries created.
    pub created: u64,
    /// Assignments refused at capacity.
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

/// The reason for which a malformed packet is lost where it enters, if it is.
#[must_use]
pub fn malformed_loss(packet: &Packet, policy: Malformed) -> Option<&'static str> {
    match policy {
        Malformed::Pass => None,
        Malformed::Drop => packet.parse().malformed(),
    }
}
