//! The syntax tree of a `.braid` file, as the parser builds it. Every node has a span.
#![allow(missing_docs, reason = "a variant's doc shows its fields in their syntax")]

mod name;
mod op;
mod option_of;

pub use crate::source::Span;
pub use braid_ir::native::OnFailure;
pub use name::{Ident, Path, joined};
pub use op::{Arrow, BinOp, is_comparison};
pub use option_of::OptionOf;

/// A file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct File {
    /// Its items in order.
    pub items: Vec<Item>,
    /// Items with syntax errors, so a part of each may be missing. If the file has too many errors
    /// to list, this span covers the whole file.
    pub doubtful: Vec<Span>,
}

/// A top-level item.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// `use "other.braid";`
    Use { path: String, span: Span },
    /// `const NAME = EXPR;`
    Const(Const),
    /// `event NAME extends PARENT { field: type, … }`
    Event(EventDef),
    /// `fn`
    Fn(FnDef),
    /// `header NAME after PARENT { field: type, … }`
    Header(HeaderDef),
    /// `nf`
    Nf(Nf),
    /// `chain`
    Chain(Chain),
}

/// `const NAME = EXPR;` in a file or a function.
#[derive(Clone, PartialEq, Debug)]
pub struct Const {
    /// Its name.
    pub name: Ident,
    /// Its value.
    pub value: Expr,
    /// The place of the whole constant.
    pub span: Span,
}

/// An event type.
#[derive(Clone, PartialEq, Debug)]
pub struct EventDef {
    /// Its name.
    pub name: Ident,
    /// The event type that it extends. The root is `EVENT`.
    pub parent: Option<Ident>,
    /// Its own fields.
    pub fields: Vec<(Ident, Type)>,
    /// The place of the whole definition.
    pub span: Span,
}

/// `header NAME after PARENT [when COND], … { field: type, … } [length EXPR]
/// [holds packet|frame [when COND]];`
#[derive(Clone, PartialEq, Debug)]
pub struct HeaderDef {
    /// Its name.
    pub name: Ident,
    /// The headers in front of it, at least one. The first one counts that is there.
    pub after: Vec<After>,
    /// Its length in bytes. `None`: its fields fill it.
    pub length: Option<Expr>,
    /// The field with its checksum.
    pub checksum: Option<Ident>,
    /// Whether it holds frames, and not packets, and when. `None`: it is not a tunnel's.
    pub holds: Option<(bool, Option<Expr>)>,
    /// Its fields, from its first bit on.
    pub fields: Vec<(Ident, Type)>,
    /// The place of the whole definition.
    pub span: Span,
}

/// `PARENT [when COND]`: a header in front of a declared one.
#[derive(Clone, PartialEq, Debug)]
pub struct After {
    /// The header in front.
    pub header: Path,
    /// When the declared header follows it. `None`: always.
    pub when: Option<Expr>,
}

/// A pure function `fn NAME(a: T, …) -> T = EXPR;`, or statements `action NAME(a: T, …) { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct FnDef {
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<(Ident, Type)>,
    /// Its body.
    pub body: FnBody,
    /// The place of the whole definition.
    pub span: Span,
}

/// The body of one of the program's own functions.
#[derive(Clone, PartialEq, Debug)]
pub enum FnBody {
    /// `-> T = EXPR;`
    Pure(Type, Expr),
    /// `-> T from "LIBRARY" [function NAME];`
    Library(Type, NativeCode),
    /// `{ … }`, inlined where a statement calls it.
    Action(Block),
}

/// A network function.
#[derive(Clone, PartialEq, Debug)]
pub struct Nf {
    /// Whether it is a `stream nf`.
    pub stream: bool,
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<ParamDef>,
    /// The code of a `native nf … from "LIBRARY"`.
    pub native: Option<NativeCode>,
    /// Declarations and statements in order.
    pub items: Vec<NfItem>,
    /// The place of the whole function.
    pub span: Span,
    /// The place from the start up to the opening brace.
    pub head: Span,
}

/// `from "LIBRARY" [function NAME] [isolated [on failure WORD]]`
#[derive(Clone, PartialEq, Debug)]
pub struct NativeCode {
    /// The library.
    pub library: String,
    /// The place of the library's name.
    pub span: Span,
    /// The function's name in the library, if it differs.
    pub function: Option<Ident>,
    /// If its instances run in processes of their own: what happens to packets when these fail.
    pub isolated: Option<OnFailure>,
}

/// A parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamDef {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub ty: Type,
    /// `= EXPR`.
    pub default: Option<Expr>,
}

/// A part of a function.
#[derive(Clone, PartialEq, Debug)]
pub enum NfItem {
    /// `const`
    Const(Const),
    /// `fn` or `action`
    Fn(FnDef),
    /// `port a, b;`, or with `true` `side a, b;`
    Port(Vec<Ident>, bool),
    /// `tag NAME: TYPE;`
    Tag(Ident, Type),
    /// `state …;`
    State(StateDef),
    /// `queue NAME capacity N;`
    Queue { name: Ident, capacity: Expr, span: Span },
    /// `every PERIOD { … }`
    Every { period: Expr, body: Block, span: Span },
    /// `on expire STATE { … }`
    OnExpire { state: Ident, body: Block, span: Span },
    /// `on open|close { … }` or `on data [from client|server] { … }` of a stream function.
    OnStream { what: Ident, from: Option<Ident>, body: Block, span: Span },
    /// `on EVENT { … }`
    OnEvent { event: Ident, body: Block, span: Span },
    /// A statement of the packet program.
    Stmt(Stmt),
}

/// `state NAME: TYPE per KEY = DEFAULT, option, …;`
#[derive(Clone, PartialEq, Debug)]
pub struct StateDef {
    /// Its name.
    pub name: Ident,
    /// Type of its entries: a scalar or a record.
    pub ty: Type,
    /// `global`, `per flow`, `per biflow`, `per (…)`.
    pub key: KeyDef,
    /// `= EXPR`.
    pub default: Option<Expr>,
    /// Options in order.
    pub options: Vec<StateOption>,
    /// The place of the whole declaration.
    pub span: Span,
}

/// The key of a state's entries.
#[derive(Clone, PartialEq, Debug)]
pub enum KeyDef {
    /// `global`
    Global(Span),
    /// `per flow`
    Flow(Span),
    /// `per biflow`
    Biflow(Span),
    /// `per (ip.src, l4.sport)` with fields, or `per (ip4, port)` with types, for which keys are
    /// always written. A single part needs no parentheses.
    List(Vec<KeyPart>, Span),
}

/// A part of a key.
#[derive(Clone, PartialEq, Debug)]
pub enum KeyPart {
    /// A dotted field name.
    Field(Path),
    /// A type.
    Type(Type),
}

/// An option of a state declaration.
#[derive(Clone, PartialEq, Debug)]
pub enum StateOption {
    /// `idle EXPR`
    Idle(Expr),
    /// `hard EXPR`
    Hard(Expr),
    /// `tick EXPR`
    Tick(Expr),
    /// `capacity EXPR`
    Capacity(Expr),
    /// `full refuse` or `full evict_oldest`
    Full(Ident),
    /// `lives with NAME`
    LivesWith(Ident),
    /// `sharded`
    Sharded(Span),
    /// `portions (NAME, …)`
    Portions(Vec<Ident>, Span),
}

/// A written type.
#[derive(Clone, PartialEq, Debug)]
pub struct Type {
    /// Its form.
    pub kind: TypeKind,
    /// Its place in the file.
    pub span: Span,
}

/// The forms of types.
#[derive(Clone, PartialEq, Debug)]
pub enum TypeKind {
    /// `ip4`, `u16`, `rules`, …, and `list<ip4>`, `pool<port, fifo>`, `index(servers)`.
    Named { name: Ident, args: Vec<Type>, of: Option<Ident> },
    /// `bytes<64>`
    Bytes(u128),
    /// `{ addr: ip4, port: port }`
    Record(Vec<(Ident, Type)>),
}

/// `{ stmt … }`
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Block {
    /// Its statements.
    pub stmts: Vec<Stmt>,
    /// The place of the block, including its braces.
    pub span: Span,
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub struct Stmt {
    /// Its form.
    pub kind: StmtKind,
    /// Its place in the file.
    pub span: Span,
}

/// The statements.
#[derive(Clone, PartialEq, Debug)]
pub enum StmtKind {
    /// `match { PRED => BODY … else => BODY }`
    Match(Vec<Row>),
    /// `if COND { … } else if … else { … }` (the last branch may be missing)
    If { cond: Expr, then: Block, otherwise: Option<Block> },
    /// `for i in A..B [while COND] { … }` with constant bounds. A is included and B is excluded.
    For { var: Ident, from: Expr, to: Expr, cond: Option<Expr>, body: Block },
    /// `let NAME = EXPR [else STMT];`
    Let { name: Ident, mutable: bool, value: Expr, otherwise: Option<Box<Stmt>> },
    /// `PLACE = EXPR [else STMT];`, or with `op` the statement `PLACE op= EXPR`
    Assign { place: Expr, op: Option<BinOp>, value: Expr, otherwise: Option<Box<Stmt>> },
    /// `delete STATE;` or `delete STATE[key];`
    Delete(Expr),
    /// `output;`, `output back;`, `output a, b;`
    Output(Vec<Ident>),
    /// `drop;` or `drop "reason";`
    Drop(Option<(String, Span)>),
    /// `reset "reason";` of a stream function.
    Reset(Option<(String, Span)>),
    /// `consume;`
    Consume,
    /// `mirror PORT;`
    Mirror(Ident),
    /// `hold QUEUE for EXPR [else STMT];`
    Hold { queue: Ident, delay: Expr, otherwise: Option<Box<Stmt>> },
    /// `resubmit;`
    Resubmit,
    /// `send SHAPE { field = EXPR; … push OPTION(EXPR); … payload = quote; } [to PORT];` (default:
    /// back)
    Send { shape: Ident, contents: Contents, port: Option<Ident> },
    /// `emit EVENT { field: EXPR, … };`
    Emit { event: Ident, args: Vec<(Ident, Expr)> },
    /// `push HEADER(EXPR, …) [else STMT];` or `push HEADER { field: EXPR, … }, … [else STMT];`
    Push { pushes: Vec<Push>, otherwise: Option<Box<Stmt>> },
    /// `pop HEADER, … [else STMT];` or `pop HEADER { field: EXPR, … }, … [else STMT];`
    Pop { pops: Vec<Push>, otherwise: Option<Box<Stmt>> },
    /// A call for its effect: `release(ports, p);`, an `action`, `forward;` in stream functions.
    Call { call: Expr, otherwise: Option<Box<Stmt>> },
    /// `{ … }`
    Block(Block),
    /// A statement with a syntax error, which is already reported.
    Error,
}

/// What `send` puts into a new packet.
#[derive(Clone, PartialEq, Debug)]
pub struct Contents {
    /// Fields and options, in the order of the text.
    pub parts: Vec<Part>,
    /// `payload = quote(EXPR);`
    pub payload: Option<(Ident, Option<Expr>)>,
}

impl Contents {
    /// The values, in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &Expr> {
        let parts = self.parts.iter().flat_map(|part| {
            let fields = part.fields.iter().map(|(_, value)| value);
            part.when.iter().chain(fields).chain(part.options.iter().flat_map(Push::values))
        });
        parts.chain(self.payload.iter().filter_map(|(_, length)| length.as_ref()))
    }
}

/// Fields and options of a new packet: `if COND { … }`, or statements without a condition that
/// follow each other. The first part has no condition.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Part {
    /// The packet gets them only then.
    pub when: Option<Expr>,
    /// `field = EXPR;`
    pub fields: Vec<(Path, Expr)>,
    /// `push OPTION(EXPR);`
    pub options: Vec<Push>,
}

/// `push HEADER(EXPR, …)` or `push HEADER { field: EXPR, … }`: a header that a packet gets, with
/// its values, or one that it loses.
#[derive(Clone, PartialEq, Debug)]
pub struct Push {
    /// The header.
    pub header: Path,
    /// The values in parentheses.
    pub args: Vec<Expr>,
    /// The values with names.
    pub fields: Vec<(Ident, Expr)>,
    /// All of it.
    pub span: Span,
}

impl Push {
    /// The values.
    pub fn values(&self) -> impl Iterator<Item = &Expr> {
        self.args.iter().chain(self.fields.iter().map(|(_, value)| value))
    }
}

/// A row of a match.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The predicate. `None` for `else`.
    pub pred: Option<Expr>,
    /// Body: a block, or one statement (`=> output;`).
    pub body: Block,
    /// The place of the whole row.
    pub span: Span,
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// Its form.
    pub kind: ExprKind,
    /// Its place in the file.
    pub span: Span,
}

/// The expressions.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// A written number without a unit.
    Int(u128),
    /// A number with a unit. The unit is canonical (`ms`, `Ki`, `KiB`, `Mbit/s`).
    Quantity(u128, String),
    /// `true`, `false`
    Bool(bool),
    /// `"text"`
    Str(String),
    /// `10.0.0.1`
    Ip4(u32),
    /// `2001:db8::1`
    Ip6(u128),
    /// `02:00:00:00:00:01`
    Mac(u64),
    /// `10.0.0.0/8`
    Prefix4(u32, u8),
    /// `2001:db8::/32`
    Prefix6(u128, u8),
    /// A name or field, which is resolved later.
    Path(Path),
    /// `A..B`, with both ends included (except in `for`).
    Range(Box<Expr>, Box<Expr>),
    /// `{ a, b, 1..5 }`, a set or a list.
    Set(Vec<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `{ addr: X, port: Y }`
    Record(Vec<(Ident, Expr)>),
    /// `BASE[INDEX, …]`
    Index(Box<Expr>, Vec<Expr>),
    /// `EXPR.NAME`, where EXPR is not a plain path (such as `back[k].addr`)
    Member(Box<Expr>, Ident),
    /// `NAME(ARG, name: ARG, …)`
    Call(Ident, Vec<Arg>),
    /// `!EXPR`, `not EXPR`
    Not(Box<Expr>),
    /// `~EXPR`
    Complement(Box<Expr>),
    /// Binary operators.
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// `EXPR in SET`
    In(Box<Expr>, Box<Expr>),
    /// `payload matches PATTERNS`
    Matches(Box<Expr>, Box<Expr>),
    /// `TYPE at payload` or `TYPE at payload + OFFSET`
    At(Box<At>),
    /// `exists STATE` or `exists STATE[key]`
    Exists(Box<Expr>),
    /// `has HEADER`
    Has(Path),
    /// `from SIDE`
    From(Ident),
    /// `if COND { EXPR } else { EXPR }`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// An expression with a syntax error, which is already reported.
    Error,
}

/// An argument of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Arg {
    /// `name:`
    pub name: Option<Ident>,
    /// Its value.
    pub value: Expr,
}

/// A chain.
#[derive(Clone, PartialEq, Debug)]
pub struct Chain {
    /// Its name.
    pub name: Ident,
    /// Its parts in order.
    pub items: Vec<ChainItem>,
    /// The place of the whole chain.
    pub span: Span,
}

/// A part of a chain.
#[derive(Clone, PartialEq, Debug)]
pub enum ChainItem {
    /// `interface lan { behind 10.0.0.0/8, fd00::/8; address 10.0.0.1/24; }` or `interface wan;`
    Interface { name: Ident, parts: Vec<InterfacePart>, span: Span },
    /// `NAME = FUNCTION(param: VALUE, …);`
    Instance { name: Ident, function: Ident, args: Vec<Arg>, span: Span },
    /// `path a <-> b -> c;`
    Path { ends: Vec<PathEnd>, arrows: Vec<Arrow>, span: Span },
    /// `link a.port -> b;` or `<->`
    Link { from: PathEnd, arrow: Arrow, to: PathEnd, span: Span },
    /// `policy { Order(a, before, b); Priority(a > b); Position(a, first); }`
    Policy { rules: Vec<PolicyRule>, span: Span },
    /// `malformed drop;` or `malformed pass;`
    Malformed(Ident),
    /// `seed 7;` or `workers 4;`
    Setting { name: Ident, value: Expr },
}

/// A part of an interface.
#[derive(Clone, PartialEq, Debug)]
pub enum InterfacePart {
    /// `behind 10.0.0.0/8, fd00::/8`, `address 10.0.0.1/24`, `gateway 10.0.0.254` or
    /// `mac 02:00:00:00:00:01`
    Values { name: Ident, values: Vec<Expr> },
    /// `too_long icmp`
    TooLong { name: Ident, what: Ident },
}

/// An end of a link: `NAME` or `NAME.PORT`. A path may also contain a function with arguments, as
/// in `lan <-> monitor() <-> wan`.
#[derive(Clone, PartialEq, Debug)]
pub struct PathEnd {
    /// The interface, instance or (with `args`) function.
    pub name: Ident,
    /// The port.
    pub port: Option<Ident>,
    /// The arguments of a function that the path contains.
    pub args: Option<Vec<Arg>>,
    /// Its place in the file.
    pub span: Span,
}

/// A written policy rule.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyRule {
    /// Its form.
    pub kind: PolicyKind,
    /// Its place in the file.
    pub span: Span,
}

/// The policy rules of NFP Table 1.
#[derive(Clone, PartialEq, Debug)]
pub enum PolicyKind {
    /// `Order(a, before, b)`
    Order(Ident, Ident),
    /// `Priority(a > b)`
    Priority(Ident, Ident),
    /// `Position(a, first)` or `Position(a, last)`
    Position(Ident, Ident),
}

/// `u16 at payload + OFFSET`, `"GET " at tcp.option(KIND)`: bytes of the packet that are no fields.
#[derive(Clone, PartialEq, Debug)]
pub struct At {
    /// What the bytes are.
    pub what: Chunk,
    /// What has the bytes.
    pub within: Within,
    /// Where they begin. `None`: at the beginning.
    pub offset: Option<Expr>,
}

/// What has bytes that are no fields.
#[derive(Clone, PartialEq, Debug)]
pub enum Within {
    /// The payload.
    Payload,
    /// The value of the option of this kind.
    Option(OptionOf, Expr),
    /// The payload from this header of the program on.
    Header(Ident),
}

impl At {
    /// The expressions in it.
    pub fn parts(&self) -> impl Iterator<Item = &Expr> {
        let len = match &self.what {
            Chunk::Bytes(_, len) => len.as_ref(),
            Chunk::Number(_) | Chunk::Text(_) => None,
        };
        let kind = match &self.within {
            Within::Option(_, kind) => Some(kind),
            Within::Payload | Within::Header(_) => None,
        };
        kind.into_iter().chain(&self.offset).chain(len)
    }
}

/// The form of bytes that are no fields.
#[derive(Clone, PartialEq, Debug)]
pub enum Chunk {
    /// A number of a type.
    Number(Ident),
    /// This text.
    Text(String),
    /// A string. Its type has room for the first number of bytes. The value behind `for` is its
    /// length; without `for`, the string fills the room.
    Bytes(u128, Option<Expr>),
}
