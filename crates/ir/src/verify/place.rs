//! What can be wrong with a model, and where.

use crate::model::{BlockId, EventId, ParamId, QueueId, ReasonId, RowId, StateId, TagId, ValueId};
use braid_packet::{Field, Header};
use std::fmt;

/// What is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct VerifyError {
    /// Where.
    pub place: Place,
    /// What.
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

/// What can be wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// The first two ports are `left` and `right`.
    #[error("the first two ports must be `left` and `right`")]
    Ports,
    /// Two parts of a kind share a name.
    #[error("another {0} has the name `{1}`")]
    DuplicateName(&'static str, String),
    /// A type that no value can have.
    #[error("the type {0} does not exist")]
    Type(String),
    /// A list, an entry, a key or a record without parts.
    #[error("it has no {0}")]
    Without(&'static str),
    /// A default that is not of the parameter's type.
    #[error("its default: {0}")]
    ParamDefault(String),
    /// A setting names something that is not a scalar parameter.
    #[error("{0} is not a scalar parameter")]
    Setting(ParamId),
    /// A setting that must be above 0.
    #[error("its {0} is 0")]
    Zero(&'static str),
    /// A default with another number of values than there are slots.
    #[error("its default has {found} values for {wanted} slots")]
    DefaultLength {
        /// Values of the default.
        found: usize,
        /// Slots.
        wanted: usize,
    },
    /// A value that does not fit.
    #[error("the value {value} does not fit {width} bits")]
    TooWide {
        /// The value.
        value: u128,
        /// The width.
        width: u16,
    },
    /// Global state has a default, no time-outs, and lives with nothing.
    #[error("global state {0}")]
    Global(&'static str),
    /// State that lives with other state has its time-outs and is sharded like it.
    #[error("it lives with {with}, so {why}")]
    LivesWith {
        /// The other.
        with: StateId,
        /// What is wrong.
        why: &'static str,
    },
    /// A table has at most one program for expiring entries.
    #[error("a second program for expiring entries of {0}")]
    SecondExpire(StateId),
    /// The last row, and no other, is `fault`.
    #[error("the last row, and no other, must be `fault`")]
    FaultRow,
    /// Something that the model does not have.
    #[error("there is no {0}")]
    Missing(String),
    /// A program without blocks.
    #[error("it has no blocks")]
    NoBlocks,
    /// The first block has parameters.
    #[error("the first block has parameters")]
    EntryParams,
    /// A jump that does not go forward.
    #[error("it goes back to {0}")]
    Backward(BlockId),
    /// A jump that gives another number of values than the block has parameters.
    #[error("it gives {found} values to {block}, which has {wanted} parameters")]
    TargetArgs {
        /// The block.
        block: BlockId,
        /// Values given.
        found: usize,
        /// Parameters.
        wanted: usize,
    },
    /// A value that is defined more than once.
    #[error("{0} is defined twice")]
    DefinedTwice(ValueId),
    /// A value that is used where it is not defined on every way there.
    #[error("{0} is not defined on every way there")]
    Undefined(ValueId),
    /// A value of a wrong width.
    #[error("{value} has {found} bits instead of {wanted}")]
    Width {
        /// The value.
        value: ValueId,
        /// Its width.
        found: u16,
        /// The width that it must have.
        wanted: u16,
    },
    /// An address that has neither the width of IPv4 nor of IPv6 addresses.
    #[error("{0} is not an address")]
    Address(ValueId),
    /// Another number of values than there must be.
    #[error("{found} {what} instead of {wanted}")]
    Count {
        /// Of what.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many there must be.
        wanted: usize,
    },
    /// A parameter of another type than the operation works on.
    #[error("{param} is not {wanted}")]
    ParamKind {
        /// The parameter.
        param: ParamId,
        /// What it must be.
        wanted: &'static str,
    },
    /// A column that the parameter does not have.
    #[error("{param} has no column {column}")]
    Column {
        /// The parameter.
        param: ParamId,
        /// The column.
        column: u32,
    },
    /// An assignment to a field that is only read.
    #[error("{} is read-only", .0.info().name)]
    ReadOnly(Field),
    /// A new packet's field that its shape does not have.
    #[error("the new packet has no {}", .0.info().name)]
    NotInShape(Field),
    /// A header is not known to be present.
    #[error("header `{}` is not known to be present", .0.name())]
    Absent(Header),
    /// A header is not known to have been present when the packet entered the function.
    #[error("header `{}` is not known to have been present on entry", .0.name())]
    AbsentOnEntry(Header),
    /// A key that the table does not have.
    #[error("{state} has no such key: {why}")]
    Key {
        /// The table.
        state: StateId,
        /// Why not.
        why: &'static str,
    },
    /// Something that this kind of program cannot do.
    #[error("this cannot stand in {0}")]
    NotHere(&'static str),
    /// An argument of an event that is not of the field's type.
    #[error("argument {0} is not of the event field's type")]
    EventArg(usize),
    /// An output without ports.
    #[error("it leads to no port")]
    NoPorts,
    /// A row that the model does not have.
    #[error("there is no {0}")]
    NoRow(RowId),
    /// A drop reason that the model does not have.
    #[error("there is no {0}")]
    NoReason(ReasonId),
}
