//! What every engine offers: packets in, packets out, counters, state, events.

use crate::chain::{Control, Malformed};
use crate::model::{Kind, Word};
use crate::native::{Noted, Profile};
use braid_packet::{FlowKey, Packet};
use std::collections::BTreeMap;

/// Most visits of functions by one packet that entered, all its copies and answers included, before
/// what is left of it is lost as `hop_limit`. A held packet goes on counting from where it waited.
pub const HOP_LIMIT: u32 = 256;

/// Most times that a function runs anew on a packet by `resubmit` before that is a fault.
pub const RESUBMIT_LIMIT: u32 = 8;

/// Most firings that a timer makes up for when time jumps: one that is behind by more periods than
/// this when `advance` begins (or a packet or a control change comes) skips the earliest ones, and
/// counts them in `timers_skipped`.
pub const CATCH_UP: u64 = 10_000;

/// The loss of packets past [`HOP_LIMIT`].
pub const LOST_HOP_LIMIT: &str = "hop_limit";

/// The loss of packets that leave by a port or enter by an interface without a link.
pub const LOST_UNLINKED: &str = "unlinked";

/// Why a program ended early. A packet is then dropped at row `fault`; what the program did before
/// stays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// An index past the end of a list.
    Index,
    /// Division by zero.
    Division,
    /// A read of an entry that does not exist, in a table without default.
    NoEntry,
    /// Resubmitted more than [`RESUBMIT_LIMIT`] times.
    Resubmit,
    /// Bytes that the capture lacks are needed.
    Truncated,
    /// A native function could not go on.
    Native,
}

impl Fault {
    /// The drop reason.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Fault::Index => "index",
            Fault::Division => "division",
            Fault::NoEntry => "no_entry",
            Fault::Resubmit => "resubmit",
            Fault::Truncated => "truncated",
            Fault::Native => "native",
        }
    }
}

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

    /// All state entries, in the order function, table, creation; of native functions what they show.
    fn state(&self) -> Vec<StateEntry>;

    /// What went wrong in native functions, in the order of the functions: their number, and what.
    fn problems(&self) -> Vec<(u16, Noted)> {
        Vec::new()
    }

    /// What native functions were seen to do, where that was asked for: their number, and their profile.
    fn observed(&self) -> Vec<(u16, Profile)> {
        Vec::new()
    }
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
    /// Firings of timers that were skipped because time jumped by more than [`CATCH_UP`] periods.
    pub timers_skipped: u64,
    /// Runs of timer and expiry programs that ended by a fault.
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
    /// Entries now.
    pub entries: u64,
    /// Entries created.
    pub created: u64,
    /// Assignments refused: at capacity, without an entry to live with, or of a new entry while
    /// one expires.
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

/// The worker that a packet belongs to, from 0: `hash` (the operator) of the parts of its `biflow`
/// key as it enters the chain, modulo the number of workers. The hash is symmetric because the key
/// is: both directions of a connection have the same. Packets that are not IP belong to worker 0.
#[inline]
#[must_use]
pub fn worker(packet: &Packet, workers: u16) -> u16 {
    if workers <= 1 { 0 } else { one_of(packet, workers) }
}

fn one_of(packet: &Packet, workers: u16) -> u16 {
    let Some(key) = packet.flow_key(&packet.parse()) else { return 0 };
    let args: Vec<_> = flow_words(key.bidirectional()).into_iter().zip(FLOW_WIDTHS).collect();
    let hash = braid_externs::ops::hash::of_args(&args);
    u16::try_from(hash % u32::from(workers)).unwrap_or(0)
}

/// Widths in bits of the parts of a `flow` or `biflow` key.
pub const FLOW_WIDTHS: [u16; 6] = [8, 128, 128, 8, 16, 16];

/// The parts of a `flow` or `biflow` key in a table: IP version, source, destination, protocol,
/// source port, destination port.
#[must_use]
pub fn flow_words(key: FlowKey) -> [Word; 6] {
    [key.version.into(), key.src, key.dst, key.proto.into(), key.sport.into(), key.dport.into()]
}

/// The share of a capacity that one of `parts` shards has: as equal as possible, the first ones
/// larger by one.
#[must_use]
pub fn share(total: u64, parts: u16, part: u16) -> u64 {
    let parts = u64::from(parts.max(1));
    total / parts + u64::from(u64::from(part) < total % parts)
}
