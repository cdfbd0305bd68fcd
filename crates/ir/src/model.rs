//! The model IR: a network function after lowering.
//!
//! A model's program is a directed acyclic graph of basic blocks. Lowering unrolls bounded loops
//! and inlines the functions that a function defines. Values are unsigned integers of 1 to 128
//! bits. Every access to a header field, the payload, state, a pool or a queue is a separate
//! operation, so analyses see all accesses. `docs/ir.md` describes the text form.

pub use crate::event::{Ancestor, EventDecl, EventTy, FLOW_EVENT, ROOT_EVENT, flow_of};
pub use crate::ids::{
    BlockId, EventId, ParamId, PortId, QueueId, ReasonId, RowId, StateId, TagId, ValueId,
};
pub use crate::stream::{StreamEvent, StreamField, StreamText, TEXT_WORDS};
pub use crate::strings::{Haystack, StringParts};
pub use crate::table::{Granularity, Setting, StateDecl, Sum, WhenFull};
pub use crate::term::{Dest, Target, Term};
pub use crate::ty::{FIRST_IP6, Kind, ParamTy, PoolOrder, Ty, Word, ip6_range};
pub use braid_packet::bytes::Area;
pub use braid_packet::translate::Version;
pub use braid_packet::tunnel::Inner;
use braid_packet::{Field, Header};
pub use braid_packet::{NewPayload, Shape};
use std::collections::BTreeSet;

/// The left port: forward packets enter here, and backward packets leave.
pub const LEFT: PortId = PortId(0);
/// The right port: backward packets enter here, and forward packets leave.
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
    /// Event types that the function publishes or takes.
    pub events: Vec<EventDecl>,
    /// Tags that the function reads or writes. All functions of a chain share tags by name.
    pub tags: Vec<TagDecl>,
    /// Counted places: match rows, and `body` for statements outside every match.
    pub rows: Vec<RowDecl>,
    /// Drop reasons.
    pub reasons: Vec<String>,
    /// Runs for each packet.
    pub packet: Program,
    /// Programs that run when an entry of the table expires, is evicted, or ends together with the
    /// entry that it lives with. They do not run on `delete`.
    pub expire: Vec<(StateId, Program)>,
    /// Programs that run periodically.
    pub timers: Vec<Timer>,
    /// Programs for what happens in TCP connections. A model with such programs is a stream
    /// function: its packet program gives packets to the function's TCP stack ([`Op::Stream`]).
    pub streams: Vec<(StreamEvent, Program)>,
    /// Handlers: programs for events that other functions of the chain publish
    /// ([`crate::subscriptions`]).
    pub handlers: Vec<(EventId, Program)>,
    /// The native function that [`Op::Native`] calls. The packet program then belongs to it, or in
    /// a stream function, the programs for events of connections (`braid_native::bridge::model`).
    pub native: Option<crate::native::Native>,
}

impl Model {
    /// A model without declarations, and without a program.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ports: vec!["left".to_owned(), "right".to_owned()],
            params: Vec::new(),
            state: Vec::new(),
            queues: Vec::new(),
            events: Vec::new(),
            tags: Vec::new(),
            rows: Vec::new(),
            reasons: Vec::new(),
            packet: Program::default(),
            expire: Vec::new(),
            timers: Vec::new(),
            streams: Vec::new(),
            handlers: Vec::new(),
            native: None,
        }
    }

    /// The number of shards of a function of this model, if this number of workers share the
    /// chain's state. A function has one for each worker if one of its tables is sharded, or if it
    /// has no tables: the workers then divide its pools, queues and random choices.
    #[must_use]
    pub fn shards(&self, workers: u16) -> u16 {
        let sharded = self.state.is_empty() || self.state.iter().any(|decl| decl.sharded);
        if sharded || self.is_opaque() { workers.max(1) } else { 1 }
    }

    /// Whether the model is a stream function.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        !self.streams.is_empty() || self.is_steered()
    }

    /// Whether native code gets the packets themselves. A native stream function gets what its TCP
    /// stack makes of them.
    #[must_use]
    pub fn is_native_on_packets(&self) -> bool {
        self.native.is_some() && !self.is_stream()
    }

    /// Whether events of other functions reset connections of this stream function, or switch it
    /// off or on for one.
    #[must_use]
    pub fn is_steered(&self) -> bool {
        self.handlers.iter().any(|(_, program)| program.steers())
    }

    /// Whether packets of all protocols go to the stack of the stream function, and not those of
    /// TCP alone: it has a program for alerts, or events steer it.
    #[must_use]
    pub fn stacks_all(&self) -> bool {
        self.stream(StreamEvent::Alert).is_some() || self.is_steered()
    }

    /// The headers of the packets that go to the stack of a stream function.
    #[must_use]
    pub fn stacked(&self) -> &'static [Header] {
        match (self.is_stream(), self.stacks_all()) {
            (false, _) => &[],
            (true, false) => &[Header::Tcp],
            (true, true) => &[Header::Inet],
        }
    }

    /// Whether the packet program leaves packets to something that analyses cannot look into:
    /// native code or a TCP stack.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        self.native.is_some() || self.is_stream()
    }

    /// The program for an event of a TCP connection, if the function takes this event.
    #[must_use]
    pub fn stream(&self, event: StreamEvent) -> Option<&Program> {
        self.streams.iter().find(|(of, _)| *of == event).map(|(_, program)| program)
    }

    /// The parameters whose signatures inspect the model's connections, in order.
    #[must_use]
    pub fn inspected(&self) -> Vec<ParamId> {
        if self.stream(StreamEvent::Alert).is_none() {
            return Vec::new();
        }
        let numbered = (0..).map(ParamId).zip(&self.params);
        let signatures = numbered.filter(|(_, decl)| decl.ty == ParamTy::Signatures);
        signatures.map(|(param, _)| param).collect()
    }

    /// The parameters whose patterns the model searches in the bytes of streams, in order.
    #[must_use]
    pub fn scanned(&self) -> Vec<ParamId> {
        let blocks = self.streams.iter().flat_map(|(_, program)| &program.blocks);
        let ops = blocks.flat_map(|block| &block.ops);
        let params = ops.filter_map(|op| match op {
            Op::StreamMatch { param, text: None, .. } => Some(*param),
            _ => None,
        });
        params.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// A parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamDecl {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: ParamTy,
    /// The value when a chain gives none.
    pub default: Option<crate::value::ParamValue>,
}

/// A bounded queue of held packets.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueDecl {
    /// Its name.
    pub name: String,
    /// The maximum number of packets.
    pub capacity: Setting,
}

/// A tag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagDecl {
    /// Its name. The functions of a chain share tags by name.
    pub name: String,
    /// Its type. The tag of an untagged packet reads 0.
    pub ty: Ty,
}

/// A counted place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowDecl {
    /// `1`, `2`, … for the rows of a match in order, `2.1` for nested rows, `body` outside every
    /// match. The last row is always `fault` and counts drops by faults.
    pub label: String,
    /// The predicate as written, or empty.
    pub text: String,
    /// Line in the source, from 1. It is 0 if unknown.
    pub line: u32,
}

/// A timer: its body runs every period, starting at the first packet's time.
#[derive(Clone, PartialEq, Debug)]
pub struct Timer {
    /// Period (ns).
    pub period: Setting,
    /// The program.
    pub body: Program,
}

/// Blocks in topological order: jumps go to later blocks only. Block 0 is the entry.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Program {
    /// Blocks.
    pub blocks: Vec<Block>,
    /// Type of each value.
    pub values: Vec<Ty>,
}

impl Program {
    /// Whether it may decide about a connection, as programs for events of connections and handlers
    /// of stream functions do.
    #[must_use]
    pub fn steers(&self) -> bool {
        self.blocks.iter().any(|block| block.term.steers())
    }
}

/// A basic block.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// Values that jumps to this block pass.
    pub params: Vec<ValueId>,
    /// Operations in order.
    pub ops: Vec<Op>,
    /// The terminator.
    pub term: Term,
}

/// The largest number of tables of a model.
pub const MAX_STATES: usize = 1 << 16;

/// The most words of [`Op::LoadString`].
pub const MAX_STRING_WORDS: usize = braid_packet::bytes::MAX_WORDS;

/// Binary operators. Both operands and the result have the same width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinOp {
    /// Sum, limited to the largest value.
    AddSat,
    /// Difference, limited to 0.
    SubSat,
    /// Product, limited to the largest value.
    MulSat,
    /// Sum modulo 2^width.
    AddWrap,
    /// Difference modulo 2^width.
    SubWrap,
    /// Product modulo 2^width.
    MulWrap,
    /// Quotient, rounded down. Division by 0 is a fault.
    Div,
    /// Remainder. Division by 0 is a fault.
    Rem,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift left. A count of at least the width gives 0.
    Shl,
    /// Shift right. A count of at least the width gives 0.
    Shr,
    /// Smaller operand.
    Min,
    /// Larger operand.
    Max,
}

/// Unsigned comparisons of two values of the same width. The result is a bool.
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

impl CmpOp {
    /// The comparison with its operands exchanged.
    #[must_use]
    pub fn swapped(self) -> Self {
        match self {
            CmpOp::Eq | CmpOp::Ne => self,
            CmpOp::Lt => CmpOp::Gt,
            CmpOp::Le => CmpOp::Ge,
            CmpOp::Gt => CmpOp::Lt,
            CmpOp::Ge => CmpOp::Le,
        }
    }
}

/// The entry of a table that an operation refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Key {
    /// The table's implicit key, read from the packet as it entered the function (`Global`: the one
    /// entry). The headers of the key's fields must be known to be present.
    Entry,
    /// The implicit key of the packet that the entering ICMP error quotes. Only for `Flow` and
    /// `Biflow`. Needs header `Quoted`.
    Quoted,
    /// As `Entry` or `Quoted` for `Flow`, with source and destination swapped.
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

/// A key: a parameter of type `Keys`, and the number of the key in it (32 bits).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyRef {
    /// The keys.
    pub keys: ParamId,
    /// The key's number.
    pub number: ValueId,
}

/// What both ends of a tunnel know of a packet ([`braid_packet::tunnel::Association`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Association {
    /// The key.
    pub key: KeyRef,
    /// The upper half of the packet's extended sequence number (32 bits).
    pub high: Option<ValueId>,
}

/// An operation. `out` is the value it defines.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "each operation's description says what its parts are")]
pub enum Op {
    /// A constant.
    Const { out: ValueId, value: Word },
    /// The current value of a scalar parameter.
    Param { out: ValueId, param: ParamId },
    /// Number of members of a parameter of type `List` or `Backends` (32 bits).
    ListLen { out: ValueId, param: ParamId },
    /// One column of a member. An index past the end is a fault.
    ListGet { out: ValueId, param: ParamId, index: ValueId, column: u32 },
    /// Whether a backend is up (bool). An index past the end is a fault.
    BackendUp { out: ValueId, param: ParamId, index: ValueId },
    /// Binary operation.
    Bin { out: ValueId, op: BinOp, a: ValueId, b: ValueId },
    /// Comparison.
    Cmp { out: ValueId, op: CmpOp, a: ValueId, b: ValueId },
    /// Bitwise complement within the width.
    Not { out: ValueId, a: ValueId },
    /// Change of width: zero-extends, or keeps the low bits.
    Resize { out: ValueId, a: ValueId },
    /// Change of width: zero-extends, or limits the value to the largest value of the new width.
    Clamp { out: ValueId, a: ValueId },
    /// `cond ? a : b`.
    Select { out: ValueId, cond: ValueId, a: ValueId, b: ValueId },
    /// Membership (bool).
    InSet { out: ValueId, a: ValueId, set: SetRef },
    /// Whether a header is present at this moment (bool).
    Has { out: ValueId, header: Header },
    /// A field's current value. Its header must be known to be present.
    Load { out: ValueId, field: Field },
    /// A field's value when the packet entered this function.
    LoadEntry { out: ValueId, field: Field },
    /// Assigns a field. Dependent checksums follow. Its header must be known to be present.
    Store { field: Field, a: ValueId },
    /// Reads a tag (0 when never set).
    LoadTag { out: ValueId, tag: TagId },
    /// Sets a tag.
    StoreTag { tag: TagId, a: ValueId },
    /// Adds an outermost 802.1Q tag (TPID 0x8100) with this id, PCP 0 and DEI 0. Needs `Eth`.
    PushVlan { id: ValueId },
    /// Removes the outermost VLAN tag. Needs `Vlan`.
    PopVlan,
    /// Whether the packet can get this TCP option (bool): it has TCP, lacks the option, and has
    /// room for it ([`braid_packet::options::has_room`]).
    HasRoom { out: ValueId, option: Header },
    /// Adds a TCP option with these values in front of the others. Lengths and checksums follow.
    /// Needs `Tcp`. A packet without room is a fault `truncated`.
    PushOption { option: Header, values: Vec<ValueId> },
    /// Overwrites the first TCP option of this form by NOPs. Needs the option.
    PopOption { option: Header },
    /// Adds or removes a nameless TCP option. `ok` is what [`braid_packet::options::set`] returns.
    SetOption { ok: ValueId, kind: u8, value: Option<StringParts> },
    /// The first matching rule: whether the packet passes (bool), and the rule's number from 0 (32
    /// bits). If no rule matches, the default decides, and the number is the number of rules. A
    /// packet without `Inet` matches no rule, and the default does not apply: the results are 0 and
    /// the number of rules.
    Rules { pass: ValueId, rule: ValueId, param: ParamId },
    /// Longest-prefix match of an address. Its width, 32 or 128 bits, selects the family. Whether
    /// there is a route (bool), and its next hop (32 bits, 0 without a route).
    Route { found: ValueId, hop: ValueId, param: ParamId, addr: ValueId },
    /// Patterns over the payload: whether one matches (bool), and the lowest number of a pattern
    /// that matches (32 bits, 0 without a match). A payload that the capture cut is a fault
    /// `truncated`.
    Patterns { found: ValueId, number: ValueId, param: ParamId },
    /// As [`Op::Patterns`], and where in `of` the first match of a pattern with this number begins
    /// and ends (32 bits each, 0 without one; [`braid_externs::PatternSet::first_match`]).
    FindPatterns { outs: [ValueId; 4], param: ParamId, of: Haystack },
    /// Whether a parameter of type `Strings` or `Hosts` has this string (bool): its length (8 bits)
    /// and its words. A length beyond the words counts the bytes of the words.
    InStrings { out: ValueId, param: ParamId, len: ValueId, words: Vec<ValueId> },
    /// A number in an area of the packet, from a byte of the area on (an offset of 32 bits), in
    /// network byte order. The width of `out`, a multiple of 8, gives the number of bytes. `found`
    /// (bool) says whether the area has all of these bytes; if not, `out` is 0. Bytes that the
    /// capture lacks are a fault `truncated`.
    LoadBytes { found: ValueId, out: ValueId, area: Area, offset: ValueId },
    /// A string in an area of the packet: `len` bytes from a byte of the area on (an offset of 32
    /// bits) in words of 128 bits, the first byte highest, filled with zeros. `found` (bool) says
    /// whether the area has all of these bytes and the words hold as many; if not, the words are 0.
    /// Faults as for [`Op::LoadBytes`].
    LoadString { found: ValueId, outs: Vec<ValueId>, area: Area, offset: ValueId, len: ValueId },
    /// Writes a number to an area, as [`Op::LoadBytes`] reads it. The checksum of TCP or UDP
    /// follows. `ok` (bool) is false if the area lacks some of the bytes, or if the packet has
    /// neither header. Then nothing has changed.
    StoreBytes { ok: ValueId, area: Area, offset: ValueId, a: ValueId },
    /// Replaces `old` bytes of the payload (32 bits), from byte `offset` on (32 bits), by the first
    /// `new` bytes of `words` (8 bits; words as of [`Op::LoadString`]). Lengths and checksums
    /// follow. `ok` (bool) is false if [`braid_packet::replace::replace`] refuses: then nothing has
    /// changed. Bytes that the capture lacks are a fault `truncated`.
    ReplaceBytes { ok: ValueId, offset: ValueId, old: ValueId, new: ValueId, words: Vec<ValueId> },
    /// Adds outer headers: `parts`, the outermost first. Their contents are the first `len` bytes
    /// of `words` (as of [`Op::LoadString`]); bytes behind the parts are headers of the program.
    /// Lengths, checksums and the fields that announce the next header are filled in. `ok` (bool)
    /// is false if [`braid_packet::tunnel::encapsulate`] refuses: then nothing has changed. Bytes
    /// that the capture lacks are a fault `truncated`. Behind a last part ESP, `seal` encrypts the
    /// packet: with a key, and a number that the key has not been used with before (64 bits).
    /// Without such a key, `ok` is false.
    Encapsulate {
        ok: ValueId,
        inner: Inner,
        parts: Vec<Header>,
        len: u32,
        words: Vec<ValueId>,
        seal: Option<(Association, ValueId)>,
    },
    /// Removes outer headers up to the end of the header `last`, and `offset` bytes behind it (32
    /// bits). `pkt` stands for all headers that the parser recognises. `ok` (bool) is false if
    /// [`braid_packet::tunnel::decapsulate`] refuses: then nothing has changed. Faults as for
    /// [`Op::Encapsulate`]. A packet behind ESP is decrypted with a key. Without such a key, `ok`
    /// is false. A last header UDP with a key stands for ESP behind it.
    Decapsulate {
        ok: ValueId,
        inner: Inner,
        last: Header,
        offset: ValueId,
        association: Option<Association>,
    },
    /// Translates a packet of the other version of IP to this version, with these addresses: source
    /// and destination of the packet, and of the packet that it quotes if it is an ICMP error (32
    /// or 128 bits). `ok` (bool) is false if [`braid_packet::translate::translate`] refuses: then
    /// nothing has changed. Faults as for [`Op::Encapsulate`].
    Translate { ok: ValueId, to: Version, own: [ValueId; 2], quoted: Option<[ValueId; 2]> },
    /// Encrypts the payload of TCP or UDP from byte `offset` on (32 bits), with a key and a number
    /// that the key has not been used with before (64 bits). Lengths and checksums follow. `ok`
    /// (bool) is false without such a key, and if [`braid_packet::crypt::encrypt`] refuses: then
    /// nothing has changed. Bytes that the capture lacks are a fault `truncated`.
    Encrypt { ok: ValueId, key: KeyRef, number: ValueId, offset: ValueId },
    /// Decrypts the payload of TCP or UDP from byte `offset` on, as [`Op::Encrypt`] made it.
    Decrypt { ok: ValueId, key: KeyRef, offset: ValueId },
    /// Gives the packet to the model's native function, which may change it freely. The result is
    /// the number of the function's verdict (32 bits): onward, back, consumed, then ports and
    /// reasons in order.
    Native { out: ValueId },
    /// Gives the packet to the function's TCP stack, which runs the programs of [`Model::streams`]
    /// for what the packet brings. `verdict` (32 bits) is 0 if the packet goes on, or else 1 plus
    /// the number of the reason for which a program has reset the connection. `is_new` (bool) says
    /// whether that has happened just now. Then `seq` and `ack` (32 bits each) are the sequence
    /// numbers of a RST that the packet's receiver takes, and `ack` and `seq` those for its sender.
    Stream { verdict: ValueId, is_new: ValueId, seq: ValueId, ack: ValueId },
    /// In a program for an event of a TCP connection: a number of the stream, of an alert or of an
    /// HTTP message.
    LoadStream { out: ValueId, field: StreamField },
    /// In a program for bytes of a stream: whether a match of a pattern ends in these bytes (bool),
    /// and the lowest number of these patterns (32 bits, 0 without a match). The match may begin in
    /// bytes that came before. With `text`, in a program for an HTTP request: the same for a match
    /// in this string, which is whole.
    StreamMatch { found: ValueId, number: ValueId, param: ParamId, text: Option<StreamText> },
    /// In a handler: a field of the event, by its number. Fields that are text cannot be read.
    LoadEvent { out: ValueId, field: u32 },
    /// Calls an extern of the registry by name. `param` is the parameter that the extern works on,
    /// if its signature has one (such as the backends of a consistent-hash table).
    Extern { outs: Vec<ValueId>, name: String, param: Option<ParamId>, args: Vec<ValueId> },
    /// Whether an entry exists (bool). Finding it renews its idle time.
    StateExists { out: ValueId, state: StateId, key: Key },
    /// Reads all slots. If no entry exists, reads the default, or faults without a default. Finding
    /// the entry renews its idle time.
    StateGet { outs: Vec<ValueId>, state: StateId, key: Key },
    /// Assigns all slots, and creates the entry if it does not exist. `ok` is false if the
    /// assignment was refused. Then nothing has changed.
    StateSet { ok: ValueId, state: StateId, key: Key, values: Vec<ValueId> },
    /// Assigns one slot of an entry. If no entry exists, it is created from the default. Without a
    /// default, that is a fault. `ok` as above.
    StatePut { ok: ValueId, state: StateId, key: Key, slot: u32, value: ValueId },
    /// Removes an entry, and the entries that live with it. `on expire` does not run. A missing
    /// entry is ignored.
    StateDelete { state: StateId, key: Key },
    /// Number of entries (32 bits).
    StateLen { out: ValueId, state: StateId },
    /// In an `expire` program: the slots of the ending entry.
    Expiring { outs: Vec<ValueId> },
    /// In an `expire` program: the key of the ending entry.
    ExpiringKey { outs: Vec<ValueId> },
    /// Takes a member of a pool: whether there was a free one (bool), and its value.
    Take { ok: ValueId, out: ValueId, pool: ParamId },
    /// Takes a given member of a pool: whether it was free (bool).
    TakeThis { ok: ValueId, pool: ParamId, a: ValueId },
    /// Returns a member to its pool. A value that is not taken, or not in the pool, is ignored.
    Release { pool: ParamId, a: ValueId },
    /// Publishes an event.
    Emit { event: EventId, args: Vec<EventArg> },
    /// Counts the packet at a row (one packet and its current bytes).
    Count { row: RowId },
    /// Sends a copy of the current packet to a port.
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
    /// A string from a packet: its length and its words ([`crate::show::string`]).
    Bytes(Vec<ValueId>),
    /// A parameter of type `Str`.
    Param(ParamId),
}

/// How to build a new packet. It takes the link header of the current packet with its VLAN tags,
/// and its IP addresses. If it goes back, these addresses are exchanged. TTL is 64, other fields
/// are 0. Then the assignments follow, and then lengths and checksums.
#[derive(Clone, PartialEq, Debug)]
pub struct NewPacket {
    /// Its headers.
    pub shape: Shape,
    /// Whether a port that is not `Back` leads back.
    pub exchanged: bool,
    /// Assignments to its fields, in order.
    pub fields: Vec<(Field, ValueId)>,
    /// Its TCP options in their order, each with its values.
    pub options: Vec<(Header, Vec<ValueId>)>,
    /// Its payload.
    pub payload: NewPayload,
}

impl NewPacket {
    /// Whether the packet goes back if it leaves there.
    #[must_use]
    pub fn goes_back(&self, port: Dest) -> bool {
        self.exchanged || port == Dest::Back
    }
}
