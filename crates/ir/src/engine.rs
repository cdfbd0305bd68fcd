//! The interface of every engine: it takes packets, and gives packets, counters, state and events.

pub use crate::chain::HOP_LIMIT;
use crate::chain::{Control, Malformed};
pub use crate::counters::{Counters, NodeCounters, TableCounters, Traffic};
use crate::model::{EventDecl, EventTy, Kind, Word};
use crate::native::{Noted, Profile};
use crate::snapshot::{ImportError, Snapshot};
use braid_packet::{Burst, Packet, Reached};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::BTreeMap;

/// The maximum number of times that a function runs again on a packet by `resubmit`. One more is a
/// fault.
pub const RESUBMIT_LIMIT: u32 = 8;

/// The most packets that an isolated function runs ahead.
pub const AHEAD: usize = 32;

/// The maximum number of firings that a timer makes up for when time jumps. A timer may be behind
/// by more periods when `advance` begins, or when a packet or a control change arrives. Then it
/// skips the earliest firings and counts them in `timers_skipped`.
pub const CATCH_UP: u64 = 10_000;

/// The loss of packets past [`HOP_LIMIT`].
pub const LOST_HOP_LIMIT: &str = "hop_limit";

/// The loss of packets that leave by a port or enter by an interface without a link.
pub const LOST_UNLINKED: &str = "unlinked";

/// The reason why a program ended early. The packet is then dropped at row `fault`. Earlier effects
/// of the program stay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// An index past the end of a list.
    Index,
    /// Division by zero.
    Division,
    /// A read of an entry that does not exist, in a table without a default.
    NoEntry,
    /// A packet was resubmitted more than [`RESUBMIT_LIMIT`] times.
    Resubmit,
    /// The program needs bytes that the capture lacks.
    Truncated,
    /// A native function failed.
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

/// Memory for a copy of an engine's state, as this kind of engine uses it. `None`: the copy takes
/// memory when it is made.
pub type Room = Option<Box<dyn Any + Send>>;

/// Work that any thread may do.
pub type Later<T> = Box<dyn FnOnce() -> T + Send>;

/// An engine runs a chain. All engines give the same results on all inputs. The engine `reference`
/// defines these results.
pub trait Engine: Send {
    /// Processes the packets of a burst, one after the other. Expiries and timers that are due by a
    /// packet's time run before the packet. Time never goes back. Packets either stay in the burst,
    /// which then says where they leave, or leave through `out`, as copies and built packets do.
    fn burst(&mut self, burst: &mut Burst, out: &mut dyn Outputs);

    /// Processes one packet that entered at an interface, as a burst of its own.
    fn packet(&mut self, ingress: u16, packet: Packet, out: &mut dyn Outputs) {
        let mut burst = Burst::of(ingress, packet);
        self.burst(&mut burst, out);
        if let (Some(Reached::Interface(interface)), Some(packet)) =
            (burst.reached.first().copied(), burst.pop())
        {
            out.packet(interface, packet);
        }
    }

    /// As [`Engine::packet`]. Returns how the engine found the packet's way, if it knows several
    /// ways to do so. This kind of engine defines its type.
    fn explained(
        &mut self,
        ingress: u16,
        packet: Packet,
        out: &mut dyn Outputs,
    ) -> Option<Box<dyn Any + Send>> {
        self.packet(ingress, packet, out);
        None
    }

    /// As [`Engine::packet`]. Shows `watcher` the packet, its copies, and the packets that
    /// functions build for it, between functions. They run function by function, which takes
    /// longer. The results are the same. Packets that leave a queue are not shown. An engine that
    /// cannot show packets between functions shows none.
    fn watched(
        &mut self,
        ingress: u16,
        packet: Packet,
        out: &mut dyn Outputs,
        _watcher: &mut dyn Watcher,
    ) {
        self.packet(ingress, packet, out);
    }

    /// A page of the engine's flow records, at most `most` from the place `from` on. This kind of
    /// engine defines its type. `None` if the engine makes no flow records.
    fn flow_page(&self, _from: usize, _most: usize) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// Runs everything that is due by this time.
    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs);

    /// When the first packet leaves its queue. `None` if no packet waits in a queue, or if this
    /// kind of engine does not say.
    fn next_release(&self) -> Option<u64> {
        None
    }

    /// These packets form one of the next bursts, behind those of earlier calls that have not come
    /// yet. Nothing else happens before they come. An isolated function that they enter first may
    /// run them ahead: at most [`AHEAD`] at a time. Returns whether it runs all of them ahead. If
    /// not, they must come before this is called again.
    fn ahead(&mut self, _burst: &mut Burst) -> bool {
        false
    }

    /// Runs what is due by this time when a packet enters that visits no function. Native functions
    /// wait: their due work comes with their own next packet.
    fn pass_time(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.advance(time_ns, out);
    }

    /// The first packet of all enters at this time, but not this engine: it belongs to another
    /// worker. Timers start.
    fn begin(&mut self, time_ns: u64, out: &mut dyn Outputs);

    /// Applies a change of configuration at its time. First runs everything that is due by that
    /// time.
    ///
    /// # Errors
    /// The reason why the change cannot be applied (no such rule or backend). Then nothing has
    /// changed.
    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String>;

    /// The function that does beforehand, on any thread, the part of a change that takes time.
    fn preparer(&self) -> fn(Control) -> Prepared {
        |control| Prepared { control, made: None }
    }

    /// As [`Self::control`], with a change that was prepared. Afterwards the change may hold what
    /// it has replaced, so that another thread can drop it.
    ///
    /// # Errors
    /// As [`Self::control`].
    fn control_prepared(
        &mut self,
        change: &mut Prepared,
        out: &mut dyn Outputs,
    ) -> Result<(), String> {
        self.control(&change.control, out)
    }

    /// The current counters.
    fn counters(&self) -> Counters;

    /// All state entries, ordered by function, table and creation. A native function's entries are
    /// the state that it reports.
    fn state(&self) -> Vec<StateEntry>;

    /// Everything that the engine holds and that matters for later packets. An engine of the same
    /// chain that takes it ([`Engine::import`]) does what this engine would have done.
    fn export(&mut self) -> Snapshot;

    /// Goes on from a snapshot. The chain may have changed since: [`crate::snapshot::Plan`] says
    /// what it can take. The engine must be new.
    ///
    /// # Errors
    /// The reason why the engine does not take the snapshot. The engine is then of no further use.
    fn import(&mut self, snapshot: Snapshot) -> Result<(), ImportError>;

    /// Does a part of the work that a copy of the state needs first, for a fraction of a
    /// millisecond. Returns whether all is done. Packets may come between the calls. From the first
    /// call until [`Engine::resume`], no packet takes a flow record. Results stay the same, with
    /// and without these calls.
    fn prepare_copy(&mut self) -> bool {
        true
    }

    /// Packets take flow records again.
    fn resume(&mut self) {}

    /// Makes memory for a copy of the state, on any thread: of all functions, or of one
    /// ([`Engine::reporter`]).
    fn room(&self, _function: Option<u16>) -> Later<Room> {
        Box::new(|| None)
    }

    /// Copies the state. The result makes of the copy, on any thread, what [`Engine::export`] would
    /// give now. The copy itself takes a fraction of that time if it was prepared
    /// ([`Engine::prepare_copy`]), and if there is room for it ([`Engine::room`]).
    fn exporter(&mut self, _room: Room) -> Later<Snapshot> {
        let snapshot = self.export();
        Box::new(|| snapshot)
    }

    /// As [`Engine::exporter`], for what [`Engine::state`] would give: the entries of all
    /// functions, or of one.
    fn reporter(&mut self, _room: Room, function: Option<u16>) -> Later<Vec<StateEntry>> {
        let mut state = self.state();
        state.retain(|entry| function.is_none_or(|function| entry.node == function));
        Box::new(|| state)
    }

    /// The engine itself, if engines of its type can take over each other's tables
    /// ([`Engine::take_over`]).
    fn movable(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// As [`Engine::export`], but the entries and pools of these functions stay in the engine.
    fn export_without(&mut self, _staying: &[u16]) -> Snapshot {
        self.export()
    }

    /// Takes over the entries and pools of functions from an engine of the same type
    /// ([`Engine::movable`]), after it has taken the rest as a snapshot
    /// ([`Engine::export_without`]). The functions are pairs of [`crate::snapshot::staying`]: the
    /// number here, and the number there. The time does not depend on the number of entries, if
    /// `old` was prepared ([`Engine::prepare_copy`]). Afterwards `old` is of no further use.
    fn take_over(&mut self, _old: &mut dyn Engine, _functions: &[(u16, u16)]) {}

    /// How far the engine has compiled the chain. `None` if it compiles nothing.
    fn compilation(&self) -> Option<Compilation> {
        None
    }

    /// The problems of native functions and stream functions, each with the function's number, in
    /// the order of the functions.
    fn problems(&self) -> Vec<(u16, Noted)> {
        Vec::new()
    }

    /// The observed profiles of native functions whose checks ask for them, each with the
    /// function's number.
    fn observed(&self) -> Vec<(u16, Profile)> {
        Vec::new()
    }
}

/// Sees packets between the functions of a chain ([`Engine::watched`]), in order.
pub trait Watcher {
    /// A packet enters a function, by number. `packet.backward` says by which port. Under
    /// `Priority`, it enters each of the functions.
    fn enters(&mut self, node: u16, packet: &Packet);

    /// A packet leaves a function by one of its ports. A packet that the function drops, consumes
    /// or holds does not leave it. Under `Priority`, the packet leaves the function whose verdict
    /// applies, with the changes of all of them.
    fn leaves(&mut self, node: u16, packet: &Packet);
}

/// How far an engine has compiled its chain ([`Engine::compilation`]). It compiles a program for
/// each shape of packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compilation {
    /// Programs that run as machine code.
    pub compiled: u64,
    /// Programs that are interpreted, because few packets have used them yet or they are too large.
    pub interpreted: u64,
    /// The reasons why programs have no machine code, each with the number of these programs. They
    /// are interpreted.
    pub refused: BTreeMap<String, u64>,
    /// Whether the compiler has ended, by a defect. Packets of further shapes are interpreted.
    pub has_ended: bool,
}

/// A change of configuration that an engine has prepared ([`Engine::preparer`]).
pub struct Prepared {
    /// The change.
    pub control: Control,
    /// What this kind of engine has made of it.
    pub made: Option<Box<dyn Any + Send>>,
}

/// Receives the outputs of an engine, in order.
pub trait Outputs {
    /// The next outputs come from the packet at this place of the burst, or from what is due before
    /// it. The packet itself, if it leaves in its place, comes after them.
    fn at(&mut self, _place: usize) {}
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

/// A value of an event's field.
#[derive(Clone, PartialEq, Debug)]
pub enum EventValue {
    /// A scalar and its kind.
    Scalar(Kind, Word),
    /// Text.
    Str(String),
}

/// What a function gives to a field of an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Content {
    /// A scalar. The field's type has its kind.
    Word(Word),
    /// Text.
    Str(String),
}

impl Event {
    /// The event of this type that a function publishes, with the contents of its fields in order.
    #[must_use]
    pub fn new(
        decl: &EventDecl,
        (time_ns, node): (u64, u16),
        contents: impl Iterator<Item = Content>,
    ) -> Self {
        let value = |((name, ty), content): (&(String, EventTy), Content)| {
            let value = match (ty, content) {
                (EventTy::Scalar(ty), Content::Word(word)) => EventValue::Scalar(ty.kind, word),
                (EventTy::Str, Content::Word(word)) => EventValue::Scalar(Kind::Uint, word),
                (_, Content::Str(text)) => EventValue::Str(text),
            };
            (name.clone(), value)
        };
        Self {
            time_ns,
            node,
            name: decl.name.clone(),
            ancestors: decl.ancestor_names(),
            fields: decl.fields.iter().zip(contents).map(value).collect(),
        }
    }
}

/// A state entry.
#[derive(Clone, PartialEq, Debug)]
pub struct StateEntry {
    /// The function, by number.
    pub node: u16,
    /// The table's name.
    pub table: String,
    /// The worker's shard. It is 0 for state that is not sharded.
    pub shard: u16,
    /// Key parts. Global state has none.
    pub key: Vec<(Kind, Word)>,
    /// Slots by name ("" for a scalar).
    pub slots: Vec<(String, Kind, Word)>,
    /// When it was created (ns).
    pub created_ns: u64,
    /// When a packet last found or assigned it, or an entry that shares its life (ns).
    pub last_seen_ns: u64,
    /// When it expires if no packet finds it before (ns). `None`: never.
    pub expires_ns: Option<u64>,
}

/// The reason for which a malformed packet is lost where it enters. `None`: it is not lost.
#[must_use]
pub fn malformed_loss(packet: &Packet, policy: Malformed) -> Option<&'static str> {
    match policy {
        Malformed::Pass => None,
        Malformed::Drop => packet.parse().malformed(),
    }
}

/// The share of a capacity that shard `part` of `parts` shards gets. Shares are as equal as
/// possible. The first shares may be larger by one.
#[must_use]
pub fn share(total: u64, parts: u16, part: u16) -> u64 {
    let parts = u64::from(parts.max(1));
    total / parts + u64::from(u64::from(part) < total % parts)
}
