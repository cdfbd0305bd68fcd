//! The errors of models, and their places.

use crate::model::{
    BlockId, EventId, ParamId, QueueId, ReasonId, RowId, StateId, StreamEvent, TagId, ValueId,
};
use braid_packet::{Field, Header};
use std::fmt;

/// An error and its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct VerifyError {
    /// The place.
    pub place: Place,
    /// The error.
    pub problem: Problem,
}

/// One of a model's programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// The packet program.
    Packet,
    /// The program for expiring entries of a table.
    Expire(StateId),
    /// The timer with this number.
    Timer(usize),
    /// The program for an event of a TCP connection.
    Stream(StreamEvent),
    /// The handler of an event type.
    Handler(EventId),
}

/// A part of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Its parameters.
    Params,
    /// The operation with this number, from 0.
    Op(usize),
    /// Its terminator.
    Term,
}

/// A place in a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The model as a whole.
    Model,
    /// A parameter.
    Param(ParamId),
    /// A state table.
    State(StateId),
    /// A queue.
    Queue(QueueId),
    /// An event type.
    Event(EventId),
    /// A tag.
    Tag(TagId),
    /// A program as a whole.
    Program(Which),
    /// A part of a block.
    Block(Which, BlockId, Part),
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Which::Packet => f.write_str("packet"),
            Which::Expire(state) => write!(f, "expire {state}"),
            Which::Timer(number) => write!(f, "timer {number}"),
            Which::Stream(event) => write!(f, "stream {}", event.word()),
            Which::Handler(event) => write!(f, "on {event}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Model => f.write_str("model"),
            Place::Param(id) => id.fmt(f),
            Place::State(id) => id.fmt(f),
            Place::Queue(id) => id.fmt(f),
            Place::Event(id) => id.fmt(f),
            Place::Tag(id) => id.fmt(f),
            Place::Program(which) => which.fmt(f),
            Place::Block(which, block, Part::Params) => write!(f, "{which}, {block}"),
            Place::Block(which, block, Part::Op(number)) => {
                write!(f, "{which}, {block}, operation {number}")
            }
            Place::Block(which, block, Part::Term) => write!(f, "{which}, {block}, terminator"),
        }
    }
}

/// The kinds of errors.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// The first two ports are not `left` and `right`.
    #[error("the first two ports must be `left` and `right`")]
    Ports,
    /// Two parts of a kind share a name.
    #[error("another {0} has the name `{1}`")]
    DuplicateName(&'static str, String),
    /// No value can have the type.
    #[error("the type {0} does not exist")]
    Type(String),
    /// A list, an entry, a key or a record has no parts.
    #[error("it has no {0}")]
    Without(&'static str),
    /// There are too many tables.
    #[error("a function has at most {max} tables, not {0}", max = crate::model::MAX_STATES)]
    States(usize),
    /// A default does not have the parameter's type.
    #[error("its default: {0}")]
    ParamDefault(String),
    /// A setting refers to something other than a scalar parameter.
    #[error("{0} is not a scalar parameter")]
    Setting(ParamId),
    /// A setting is 0 but must be greater.
    #[error("its {0} is 0")]
    Zero(&'static str),
    /// A default does not have one value for each slot.
    #[error("its default has {found} values for {wanted} slots")]
    DefaultLength {
        /// Number of values of the default.
        found: usize,
        /// Number of slots.
        wanted: usize,
    },
    /// A value does not fit its width.
    #[error("the value {value} does not fit {width} bits")]
    TooWide {
        /// The value.
        value: u128,
        /// The width.
        width: u16,
    },
    /// A header is not a TCP option, or not one with this number of values in this packet.
    #[error("`{}` is no TCP option with these values", .0.name())]
    NoOption(Header),
    /// Options of this kind have no value.
    #[error("options of kind {0} have no value")]
    NoValue(u8),
    /// The area can only be read.
    #[error("IPv4 options and extension headers can only be read")]
    ReadOnlyArea,
    /// A TCP option with a name, or one that cannot have a value, where neither can stand.
    #[error("a TCP option of the kind {0} cannot stand here")]
    NamedOption(u8),
    /// A string has no words, or too many.
    #[error("a string has 1 to {max} words, not {0}", max = crate::model::MAX_STRING_WORDS)]
    Words(usize),
    /// Outer headers that cannot be added or removed, or whose contents have another length.
    #[error("these headers cannot be outer headers, or their contents have another length")]
    Outer,
    /// A number in the payload does not consist of whole bytes.
    #[error("{value} has {width} bits, which are no whole bytes")]
    Bytes {
        /// The number.
        value: ValueId,
        /// Its width.
        width: u16,
    },
    /// Global state violates a rule: it needs a default, never expires, and lives with no other
    /// state.
    #[error("global state {0}")]
    Global(&'static str),
    /// State that lives with other state violates a rule: for example, it has time-outs of its own,
    /// or is not sharded like the other state.
    #[error("it lives with {with}, so {why}")]
    LivesWith {
        /// The other state.
        with: StateId,
        /// The violated rule.
        why: &'static str,
    },
    /// A table has more than one program for expiring entries.
    #[error("a second program for expiring entries of {0}")]
    SecondExpire(StateId),
    /// An event of TCP connections has more than one program.
    #[error("a second program for `stream {}`", .0.word())]
    SecondStream(StreamEvent),
    /// An event type has more than one handler.
    #[error("a second handler of {0}")]
    SecondHandler(EventId),
    /// An event type has fewer fields than one of its ancestors.
    #[error("it has fewer fields than `{0}`, which it extends")]
    AncestorFields(String),
    /// A program for events of TCP connections reads a field that is no part of the flow key.
    #[error("{} is no part of a flow key", .0.info().name)]
    NotOfFlow(Field),
    /// The last row is not `fault`, or another row is.
    #[error("the last row, and no other, must be `fault`")]
    FaultRow,
    /// The model lacks something that is referred to.
    #[error("there is no {0}")]
    Missing(String),
    /// A program has no blocks.
    #[error("it has no blocks")]
    NoBlocks,
    /// The first block has parameters.
    #[error("the first block has parameters")]
    EntryParams,
    /// A jump does not lead to a later block.
    #[error("it goes back to {0}")]
    Backward(BlockId),
    /// A jump does not pass one value for each of the block's parameters.
    #[error("it gives {found} values to {block}, which has {wanted} parameters")]
    TargetArgs {
        /// The block.
        block: BlockId,
        /// Number of values passed.
        found: usize,
        /// Number of parameters.
        wanted: usize,
    },
    /// A value is defined more than once.
    #[error("{0} is defined twice")]
    DefinedTwice(ValueId),
    /// A value is used where some path to the use does not define it.
    #[error("{0} is not defined on every path to this place")]
    Undefined(ValueId),
    /// A value has a wrong width.
    #[error("{value} has {found} bits instead of {wanted}")]
    Width {
        /// The value.
        value: ValueId,
        /// Its width.
        found: u16,
        /// The required width.
        wanted: u16,
    },
    /// An address has neither the width of IPv4 addresses nor of IPv6 addresses.
    #[error("{0} is not an address")]
    Address(ValueId),
    /// The number of values is wrong.
    #[error("{found} {what} instead of {wanted}")]
    Count {
        /// The kind of the values.
        what: &'static str,
        /// The actual number.
        found: usize,
        /// The required number.
        wanted: usize,
    },
    /// The parameter's type does not fit the operation.
    #[error("{param} is not {wanted}")]
    ParamKind {
        /// The parameter.
        param: ParamId,
        /// The required type.
        wanted: &'static str,
    },
    /// The parameter has no such column.
    #[error("{param} has no column {column}")]
    Column {
        /// The parameter.
        param: ParamId,
        /// The column.
        column: u32,
    },
    /// A read-only field is assigned.
    #[error("{} is read-only", .0.info().name)]
    ReadOnly(Field),
    /// A new packet's shape does not have the field.
    #[error("the new packet has no {}", .0.info().name)]
    NotInShape(Field),
    /// A header is not known to be present.
    #[error("header `{}` is not known to be present", .0.name())]
    Absent(Header),
    /// A header is not known to have been present when the packet entered the function.
    #[error("header `{}` is not known to have been present on entry", .0.name())]
    AbsentOnEntry(Header),
    /// The table has no such key.
    #[error("{state} has no such key: {why}")]
    Key {
        /// The table.
        state: StateId,
        /// The reason.
        why: &'static str,
    },
    /// This kind of program cannot have the operation.
    #[error("this cannot stand in {0}")]
    NotHere(&'static str),
    /// The event has no such field, or the field is text.
    #[error("{event} has no field {field} that is a number")]
    EventField {
        /// The event type.
        event: EventId,
        /// The field's number.
        field: u32,
    },
    /// An argument of an event does not have the field's type.
    #[error("argument {0} is not of the event field's type")]
    EventArg(usize),
    /// An output has no ports.
    #[error("it leads to no port")]
    NoPorts,
    /// The model does not have the row.
    #[error("there is no {0}")]
    NoRow(RowId),
    /// The model does not have the drop reason.
    #[error("there is no {0}")]
    NoReason(ReasonId),
}
