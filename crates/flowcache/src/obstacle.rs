//! The reasons why a packet can have no record. Other crates put them into words.

use braid_ir::model::{EventId, StateId};
use braid_ir::residual::{Fate, What};
use braid_packet::Field;

/// Why no record can be made for a packet.
#[derive(Clone, Debug)]
pub enum Obstacle {
    /// A timer, queue or entry is due.
    Due,
    /// It would save no time: the path looks up nothing but routes.
    OnlyRoutes,
    /// It would save no time: the path ends in front of a function after few lookups.
    ShortPart,
    /// It would save no time: too many values must be computed for each packet.
    TooDynamic,
    /// It would be longer than other records of its kind.
    TooLong,
    /// The specialisation stopped for this reason. If it stopped at a step or went on, no program
    /// had run before.
    Path(Stopped),
    /// The path does not end at the end of a program.
    GoesOn(Fate),
    /// A function lets the packet wait.
    Waits(u16),
    /// A branch of the program depends on values that differ between packets.
    Branch(Varying),
    /// The record would change state that it depends on, or change a packet after it has sent a
    /// copy of it.
    Contradiction,
    /// A function makes a state entry.
    NewEntry(u16, StateId),
    /// Functions take an event of a function.
    TakenEvent(u16, EventId),
    /// A step of a function, and what its operands depend on.
    Step(u16, What, Varying),
}

/// What values depend on that differ between packets of a flow.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Varying {
    /// Fields outside the key.
    pub fields: Vec<Field>,
    /// Whether they depend on what is counted in state.
    pub counts: bool,
}

/// Why a specialisation stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// A record cannot express a step or the end of a block, or cannot depend on it.
    Step,
    /// The end of a block is not the end of the packets' path.
    GoesOn,
    /// The end of the packets' path does not determine the number of functions that they visit.
    Uneven,
    /// No program exists yet for the packet at this function.
    Unknown(u16),
    /// Tags, events or copies of a program would be out of order with the effects of native
    /// functions or of later programs.
    Beside,
    /// The packet's headers are at places that no record supports, or they change to other headers.
    Headers,
    /// A native function or a stream function gives this reason.
    Function(u16, NoRecording),
}

/// Why a record cannot contain the work of a native function or a stream function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoRecording {
    /// It has no instance.
    Absent,
    /// It is isolated or checked, and so runs on each packet.
    Checked,
    /// Other functions take its events.
    Taken,
    /// It has due work.
    Due,
    /// It follows the connection in a TCP stack.
    Stack,
    /// It has the packet twice.
    Twice,
    /// It gets a fragment.
    Fragment,
    /// It gets a packet of no flow.
    NoFlow,
    /// It has recorded nothing for the flow.
    Nothing,
    /// It has recorded actions for packets from the other side.
    OtherSide,
    /// It has recorded an action that it does not declare.
    Undeclared,
    /// It has recorded a change that depends on more than the key.
    NotKey,
    /// Its state functions may read tags that the record sets.
    Tags,
    /// It writes the payload.
    WritesPayload,
    /// It needs a payload that the capture has cut.
    Cut,
    /// It sees checksums that the capture lacks.
    NoChecksums,
    /// It drops packets whose length it has changed.
    DropsChanged,
    /// It changes headers that it has moved.
    ChangesMoved,
    /// It inserts or removes bytes behind the headers.
    BehindHeaders,
}
