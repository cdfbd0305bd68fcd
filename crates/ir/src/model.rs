//! The model IR: what a network function is after lowering.
//!
//! A model's program is a directed acyclic graph of basic blocks (bounded loops are unrolled and a
//! function's own functions inlined by lowering). Values are unsigned integers of 1 to 128 bits.
//! Every access to a header field, the payload, state, a pool or a queue is an operation of its
//! own, so that analyses see all of them. See `docs/ir.md` for the text form.

use braid_packet::{Field, Header};
pub use braid_packet::{NewPayload, Shape};

/// A scalar value, in the low bits.
pub type Word = u128;

/// What a scalar denotes; decides how it is printed, never how it is computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A plain unsigned integer.
    Uint,
    /// `bool`, one bit.
    Bool,
    /// IPv4 address.
    Ip4,
    /// IPv6 address.
    Ip6,
    /// MAC address.
    Mac,
    /// Transport port.
    Port,
    /// Nanoseconds.
    Duration,
    /// Nanoseconds since the epoch.
    Time,
    /// Bytes.
    Size,
    /// Bits per second.
    Bitrate,
}

/// The type of a scalar value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ty {
    /// Width in bits, 1 to 128.
    pub width: u16,
    /// What it denotes.
    pub kind: Kind,
}

/// Index newtypes of a model's parts.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// The number as an index; one that no vector has when it does not fit.
            #[must_use]
            pub fn index(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}
ids! {
    /// A value of a program.
    ValueId "v";
    /// A block of a program.
    BlockId "b";
    /// A parameter of a model.
    ParamId "param";
    /// A state table of a model.
    StateId "state";
    /// A queue of held packets of a model.
    QueueId "queue";
    /// An event type that a model emits.
    EventId "event";
    /// A row (or other counted place) of a model.
    RowId "row";
    /// A drop reason of a model.
    ReasonId "reason";
    /// A tag that a model puts on packets.
    TagId "tag";
    /// An output port of a model.
    PortId "port";
}

/// The port on the left: where forward packets enter and backward ones leave.
pub const LEFT: PortId = PortId(0);
/// The port on the right: where backward packets enter and forward ones leave.
pub const RIGHT: PortId = PortId(1);

/// A network function as a model.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    /// Its name in the language.
    pub name: String,
    /// Port names: `left`, `right`, then the declared ones.
    pub ports: Vec<String>,
    /// Parameters in declaration order.
    pub params: Vec<ParamDecl>,
    /// State tables in declaration order.
    pub state: Vec<StateDecl>,
    /// Queues of held packets.
    pub queues: Vec<QueueDecl>,
    /// Event types that the function emits.
    pub events: Vec<EventDecl>,
    /// Tags (by name, shared by all functions of a chain) that the function reads or writes.
    pub tags: Vec<TagDecl>,
    /// Counted places: match rows, and `body` for statements outside any match.
    pub rows: Vec<RowDecl>,
    /// Drop reasons.
    pub reasons: Vec<String>,
    /// Runs for each packet.
    pub packet: Program,
    /// Runs when an entry of the table expires, is evicted, or goes with the one it lives with;
    /// not on `delete`.
    pub expire: Vec<(StateId, Program)>,
    /// Run periodically.
    pub timers: Vec<Timer>,
    /// The native function that [`Op::Native`] asks; the packet program is then made for it
    /// ([`crate::native::model`]).
    pub native: Option<crate::native::Native>,
}

/// A parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamDecl {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: ParamTy,
    /// Used when a chain gives no value.
    pub default: Option<crate::value::ParamValue>,
}

/// The type of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamTy {
    /// One scalar.
    Scalar(Ty),
    /// A list of records; a list of scalars has one column named "".
    List(Vec<(String, Ty)>),
    /// A set of scalars as intervals: prefixes, port ranges, enumerated values.
    Set(Ty),
    /// An ordered rule set over packets, first match decides.
    Rules,
    /// A longest-prefix-match table from IPv4 and IPv6 prefixes to a next hop number (32 bits).
    Routes,
    /// Patterns over the payload: literals and regular expressions, each with a number (32 bits).
    Patterns,
    /// A pool of scalars; allocation state belongs to the instance.
    Pool(Ty, PoolOrder),
    /// Backends with health: columns as in `List`, plus up or down.
    Backends(Vec<(String, Ty)>),
    /// Text (names in logs and events).
    Str,
}

/// In which order a pool hands out its members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolOrder {
    /// The lowest free member.
    Lowest,
    /// The member that has been free for longest (first in, first out).
    Fifo,
    /// Uniformly random among the free ones, from the instance's seeded generator
    /// (NFD's non-replacing sampling, §III-B).
    Random,
}

/// A number that is fixed when an instance starts: a constant or a scalar parameter's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Constant.
    Const(Word),
    /// Current value of a scalar parameter.
    Param(ParamId),
}

/// Per what a state table has entries.
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

/// What happens when a table is at capacity and a new entry is assigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// The assignment is refused.
    Refuse,
    /// The entry created first goes (its `on expire` runs), the new one comes.
    EvictOldest,
}

/// A state table.
#[derive(Clone, PartialEq, Debug)]
pub struct StateDecl {
    /// Its name.
    pub name: String,
    /// Per what it has entries.
    pub granularity: Granularity,
    /// Slots of an entry: one named "" for a scalar, one a field for a record.
    pub slots: Vec<(String, Ty)>,
    /// Value read where no entry exists, slot by slot; `None`: such a read is a fault. A global
    /// table's entry exists from the start, with this value.
    pub default: Option<Vec<Setting>>,
    /// Most entries at a time.
    pub capacity: Setting,
    /// What happens at capacity.
    pub when_full: WhenFull,
    /// Entry expires when not found by any packet for so long (ns).
    pub idle: Option<Setting>,
    /// Entry expires so long after its creation (ns).
    pub hard: Option<Setting>,
    /// Deadlines are rounded up to multiples of this (ns since the epoch).
    pub tick: Setting,
    /// Entries are tied to one of this table: they share last-seen times and end together.
    pub lives_with: Option<StateId>,
    /// One instance per worker, each with its share of the capacity; else one for all.
    pub sharded: bool,
}

/// A bounded queue of held packets.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueDecl {
    /// Its name.
    pub name: String,
    /// Most packets at a time.
    pub capacity: Setting,
}

/// An event type.
#[derive(Clone, PartialEq, Debug)]
pub struct EventDecl {
    /// Its name.
    pub name: String,
    /// Names of the types that it extends, nearest first.
    pub ancestors: Vec<String>,
    /// Fields, inherited ones first.
    pub fields: Vec<(String, EventTy)>,
}

/// The type of an event's field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventTy {
    /// A scalar.
    Scalar(Ty),
    /// Text: a string constant or a string parameter.
    Str,
}

/// A tag.
#[derive(Clone, PartialEq, Debug)]
pub struct TagDecl {
    /// Its name; functions of a chain share tags by name.
    pub name: String,
    /// Its type; untagged packets read 0.
    pub ty: Ty,
}

/// A counted place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowDecl {
    /// `1`, `2`, … for rows of a match in order; nested `2.1`; `body` outside of any match;
    /// `fault` is always the last row and counts drops by faults.
    pub label: String,
    /// The predicate as written, or empty.
    pub text: String,
    /// Line in the source, from 1; 0 when unknown.
    pub line: u32,
}

/// Runs its body every period from the first packet's time on.
#[derive(Clone, PartialEq, Debug)]
pub struct Timer {
    /// Period (ns).
    pub period: Setting,
    /// What runs.
    pub body: Program,
}

/// Blocks in topological order: jumps go to later blocks only; block 0 is the entry.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Program {
    /// Blocks.
    pub blocks: Vec<Block>,
    /// Type of each value.
    pub values: Vec<Ty>,
}

/// A basic block.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// Values given by those who jump here.
    pub params: Vec<ValueId>,
    /// Operations in order.
    pub ops: Vec<Op>,
    /// How it ends.
    pub term: Term,
}

/// Binary operators. Both operands and the result have one width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinOp {
    /// Sum, stops at the largest value.
    AddSat,
    /// Difference, stops at 0.
    SubSat,
    /// Product, stops at the largest value.
    MulSat,
    /// Sum modulo 2^width.
    AddWrap,
    /// Difference modulo 2^width.
    SubWrap,
    /// Product modulo 2^width.
    MulWrap,
    /// Quotient, rounded down; division by 0 is a fault.
    Div,
    /// Remainder; division by 0 is a fault.
    Rem,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift left; counts of at least the width give 0.
    Shl,
    /// Shift right; counts of at least the width give 0.
    Shr,
    /// Smaller operand.
    Min,
    /// Larger operand.
    Max,
}

/// Comparisons (unsigned) of two values of one width; the result is a bool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CmpOp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// Which entry of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Key {
    /// The table's implicit key, read from the packet as it entered the function (`Global`: the
    /// one entry). The headers that the key needs must be known to be present.
    Entry,
    /// The implicit key of the packet that the (entering) ICMP error quotes; `Flow` and `Biflow`
    /// only; needs header `Quoted`.
    Quoted,
    /// As `Entry` or `Quoted` for `Flow`, with source and destination exchanged.
    Reversed(bool),
    /// These values.
    Explicit(Vec<ValueId>),
}

/// A set of scalars.
#[derive(Clone, PartialEq, Debug)]
pub enum SetRef {
    /// A constant.
    Const(crate::value::IntervalSet),
    /// A parameter of type `Set`.
    Param(ParamId),
    /// The members (one column) of a parameter of type `List` or `Backends`.
    List(ParamId, u32),
}

/// An operation. `out` is the value it defines.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "each operation's description says what its parts are")]
pub enum Op {
    /// A constant.
    Const { out: ValueId, value: Word },
    /// Current value of a scalar parameter.
    Param { out: ValueId, param: ParamId },
    /// Number of members of a parameter of type `List` or `Backends` (32 bits).
    ListLen { out: ValueId, param: ParamId },
    /// One column of a member; an index past the end is a fault.
    ListGet { out: ValueId, param: ParamId, index: ValueId, column: u32 },
    /// Whether a backend is up (bool); an index past the end is a fault.
    BackendUp { out: ValueId, param: ParamId, index: ValueId },
    /// Binary operation.
    Bin { out: ValueId, op: BinOp, a: ValueId, b: ValueId },
    /// Comparison.
    Cmp { out: ValueId, op: CmpOp, a: ValueId, b: ValueId },
    /// Bitwise complement within the width.
    Not { out: ValueId, a: ValueId },
    /// Change of width: zero-extends, or keeps the low bits.
    Resize { out: ValueId, a: ValueId },
    /// Change of width: zero-extends, or stops at the largest value of the new width.
    Clamp { out: ValueId, a: ValueId },
    /// `cond ? a : b`.
    Select { out: ValueId, cond: ValueId, a: ValueId, b: ValueId },
    /// Membership (bool).
    InSet { out: ValueId, a: ValueId, set: SetRef },
    /// Whether a header is present now (bool).
    Has { out: ValueId, header: Header },
    /// A field's value now. Its header must be known to be present.
    Load { out: ValueId, field: Field },
    /// A field's value when the packet entered this function.
    LoadEntry { out: ValueId, field: Field },
    /// Assigns a field; dependent checksums follow. Its header must be known to be present.
    Store { field: Field, a: ValueId },
    /// Reads a tag (0 when never set).
    LoadTag { out: ValueId, tag: TagId },
    /// Sets a tag.
    StoreTag { tag: TagId, a: ValueId },
    /// Adds an outermost 802.1Q tag (TPID 0x8100) with this id, PCP 0 and DEI 0. Needs `Eth`.
    PushVlan { id: ValueId },
    /// Removes the outermost VLAN tag. Needs `Vlan`.
    PopVlan,
    /// First matching rule: whether the packet passes (bool) and the rule's number from 0
    /// (32 bits; the number of rules when none matched and the default decided). Packets without
    /// `Inet` match no rule, and the default is not applied: (0, number of rules).
    Rules { pass: ValueId, rule: ValueId, param: ParamId },
    /// Longest-prefix match of an address (32 or 128 bits wide, which picks the family):
    /// whether there is a route (bool), and its next hop (32 bits, 0 when none).
    Route { found: ValueId, hop: ValueId, param: ParamId, addr: ValueId },
    /// Patterns over the payload: whether one matches (bool), and the lowest number of those that
    /// do (32 bits, 0 when none). A payload that was cut by the capture is a fault `truncated`.
    Patterns { found: ValueId, number: ValueId, param: ParamId },
    /// Gives the packet to the model's native function, which does with it what it wants: the number of what
    /// it says becomes of the packet (32 bits): onward, back, consumed, then ports and reasons in order.
    Native { out: ValueId },
    /// Calls an extern of the registry by name. `param` is the parameter that it works on, if its
    /// signature has one (such as the backends of a consistent-hash table).
    Extern { outs: Vec<ValueId>, name: String, param: Option<ParamId>, args: Vec<ValueId> },
    /// Whether an entry exists (bool). Finding it renews its idle time.
    StateExists { out: ValueId, state: StateId, key: Key },
    /// Reads all slots; where no entry exists the default, or a fault. Finding it renews its
    /// idle time.
    StateGet { outs: Vec<ValueId>, state: StateId, key: Key },
    /// Assigns all slots, creating the entry if need be; `ok` is false (and nothing changed) when
    /// refused.
    StateSet { ok: ValueId, state: StateId, key: Key, values: Vec<ValueId> },
    /// Assigns one slot of an entry; where none exists it is created from the default; without a
    /// default that is a fault. `ok` as above.
    StatePut { ok: ValueId, state: StateId, key: Key, slot: u32, value: ValueId },
    /// Removes an entry (and what lives with it) if it exists; `on expire` does not run.
    StateDelete { state: StateId, key: Key },
    /// Number of entries (32 bits).
    StateLen { out: ValueId, state: StateId },
    /// In an `expire` program: the slots of the ending entry.
    Expiring { outs: Vec<ValueId> },
    /// In an `expire` program: the key of the ending entry.
    ExpiringKey { outs: Vec<ValueId> },
    /// Takes a member of a pool: whether there was one (bool), and which.
    Take { ok: ValueId, out: ValueId, pool: ParamId },
    /// Takes a given member of a pool: whether it was free (bool).
    TakeThis { ok: ValueId, pool: ParamId, a: ValueId },
    /// Gives a member back; one that is not taken (or not of the pool) is ignored.
    Release { pool: ParamId, a: ValueId },
    /// Publishes an event.
    Emit { event: EventId, args: Vec<EventArg> },
    /// Counts the packet at a row (packets and bytes as of now).
    Count { row: RowId },
    /// Sends a copy of the packet as it is now to a port.
    Mirror { port: Dest },
    /// Builds a new packet and sends it to a port.
    Create { new: Box<NewPacket>, port: Dest },
}

/// An argument of an event.
#[derive(Clone, PartialEq, Debug)]
pub enum EventArg {
    /// A scalar.
    Value(ValueId),
    /// A string constant.
    Str(String),
    /// A parameter of type `Str`.
    Param(ParamId),
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dest {
    /// On in its direction.
    Onward,
    /// Back against its direction.
    Back,
    /// To a port.
    Port(PortId),
}

/// How to build a new packet. The link header is the current packet's: Ethernet addresses
/// exchanged if it is sent `Back`, VLAN tags kept. IP addresses exchanged likewise; TTL 64, other
/// fields 0; then the assignments; lengths and checksums follow.
#[derive(Clone, PartialEq, Debug)]
pub struct NewPacket {
    /// Its headers.
    pub shape: Shape,
    /// Assignments to its fields, in order.
    pub fields: Vec<(Field, ValueId)>,
    /// Its payload.
    pub payload: NewPayload,
}

/// The end of a block. A `row` says where in the source the packet's fate was decided; it is what
/// drops are accounted under. Only `Count` and faults add to the counters of rows.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "each variant's description says what its parts are")]
pub enum Term {
    /// Goes on in a later block.
    Jump(Target),
    /// Goes on in one of two later blocks.
    Branch { cond: ValueId, yes: Target, no: Target },
    /// The packet leaves by these ports, in order (copies for all but the last).
    Output { ports: Vec<Dest>, row: RowId },
    /// The packet is dropped.
    Drop { reason: ReasonId, row: RowId },
    /// The packet ends here by intent (answered, absorbed).
    Consume { row: RowId },
    /// The packet waits in a queue for so long (ns), then this function runs on it anew, with
    /// `pkt.held` set. When the queue is full: goes on in `full`.
    Hold { queue: QueueId, delay: ValueId, row: RowId, full: Target },
    /// This function runs on the packet anew, as it is now; at most 8 times, then it is a fault.
    Resubmit { row: RowId },
    /// The end of a timer's or expiry program.
    Return,
}

/// A jump's destination with the values for its block parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Target {
    /// The block.
    pub block: BlockId,
    /// One value for each of its parameters.
    pub args: Vec<ValueId>,
}
