//! The data of residual programs.

use crate::engine::Fault;
use crate::model::{Dest, Op, ParamId, QueueId, ReasonId, RowId, StateId, Target, Ty, ValueId};
use braid_packet::{Field, Header};

/// A point of the chain: where packets enter a function (or those that `Priority` puts beside it).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Point {
    /// The function, by number.
    pub node: u16,
    /// Whether packets enter it by its right port.
    pub backward: bool,
    /// Whether they come from a queue of this function.
    pub held: bool,
}

/// Which headers packets of a shape have, as bits by [`Header`] number (`Layout::presence`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HeaderMask {
    /// Headers whose presence matters.
    pub care: u128,
    /// Of those, the ones that are present.
    pub present: u128,
}

/// How far a residual program reaches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extent {
    /// One function: the chain runs function by function.
    Function,
    /// As far as the chain can be put together.
    Chain,
}

/// A residual program.
#[derive(Clone, PartialEq, Debug)]
pub struct Residual {
    /// Where its packets are when it starts.
    pub point: Point,
    /// Their headers.
    pub shape: HeaderMask,
    /// Most functions that a packet visits in it.
    pub visits: u32,
    /// Type of each value.
    pub values: Vec<Ty>,
    /// Blocks in topological order; block 0 is the entry, without parameters.
    pub blocks: Vec<Block>,
    /// What its ways count.
    pub tallies: Vec<Tally>,
}

/// A block.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// Values given by those who jump here.
    pub params: Vec<ValueId>,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// How it ends.
    pub end: End,
}

/// A step.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Where in the chain it comes from.
    pub site: Site,
    /// What is done.
    pub what: What,
    /// What to count when it ends by a fault; the packet is then dropped at the function's row
    /// `fault`. `None` for steps that cannot fault.
    pub fault: Option<TallyId>,
}

/// The operation of a function's packet program that a step comes from; for terminators the number
/// of operations in the block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Site {
    /// The function.
    pub node: u16,
    /// The block.
    pub block: u32,
    /// The operation.
    pub op: u32,
}

/// The number of a tally.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TallyId(pub u32);

/// Counters that move together: a packet that comes to a place where a tally is counted adds one
/// packet to each of them, and its length.
pub type Tally = Vec<Tallied>;

/// One counter of a tally.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Tallied {
    /// The function.
    pub node: u16,
    /// Which of its counters.
    pub counter: Counter,
    /// What its length was when it was counted there, less its length where the tally is counted.
    pub length: i32,
}

/// A counter of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Counter {
    /// Packets that entered going forward.
    Forward,
    /// Packets that entered going backward.
    Backward,
    /// Packets at a row.
    Row(RowId),
}

/// What a step does.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    /// An operation of the function, as in the model IR, on the function's parameters, state, tags and
    /// so on. Not in residual programs: `LoadEntry`, `Store`, `Rules`, `StateExists`, `StateGet`,
    /// `Expiring`, `ExpiringKey`, `Count`. Keys are [`crate::model::Key::Explicit`] with the parts of
    /// the table's key (global state: none). `Has` reads the layout as last parsed.
    Op(Op),
    /// A function starts on the packet: what its run has found or assigned is forgotten. Only for
    /// functions in which state lives with other state.
    Enter,
    /// As `Op::Rules`, on these values of the packet's fields, and without counting the rule. `packet`
    /// is `None` for packets that are not IP.
    Classify {
        /// Whether the packet passes (bool).
        pass: ValueId,
        /// The rule that decides (32 bits).
        rule: ValueId,
        /// The rule set.
        param: ParamId,
        /// The packet.
        packet: Option<Box<RuleFields>>,
    },
    /// Counts a rule (by number, as `Classify` gave it).
    CountRule {
        /// The rule set.
        param: ParamId,
        /// The rule.
        rule: ValueId,
    },
    /// Looks an entry up. One that is found is last seen now, and the one that this run last found.
    Find {
        /// Whether there is one (bool).
        found: ValueId,
        /// Its handle (64 bits), for `Read` on this way before anything else is assigned or removed
        /// in the function's state; meaningless if there is none.
        entry: ValueId,
        /// The table.
        state: StateId,
        /// The parts of the key.
        key: Vec<ValueId>,
    },
    /// The slots of an entry that was found.
    Read {
        /// A value for each slot.
        outs: Vec<ValueId>,
        /// The table.
        state: StateId,
        /// The handle.
        entry: ValueId,
    },
    /// Assigns fields; dependent checksums follow, and come out in canonical form, also where the
    /// value is the field's old one. Fields do not overlap; their headers are present.
    Write(Vec<(Field, ValueId)>),
    /// Parses the packet anew, after a change of headers.
    Parse,
    /// Counts a tally before the end of the way.
    Tally(TallyId),
}

/// What rules look at in an IP packet, as values (see [`crate::rules::RulePacket`]).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RuleFields {
    /// 4 or 6.
    pub version: u8,
    /// Source address: 32 or 128 bits.
    pub src: ValueId,
    /// Destination address: 32 or 128 bits.
    pub dst: ValueId,
    /// Upper-layer protocol (8 bits).
    pub proto: ValueId,
    /// Ports of TCP or UDP (16 bits each).
    pub ports: Option<(ValueId, ValueId)>,
    /// TCP flags (8 bits).
    pub tcp_flags: Option<ValueId>,
    /// ICMP or ICMPv6 type and code (8 bits each).
    pub icmp: Option<(ValueId, ValueId)>,
}

/// How a block ends. All but `Jump`, `Branch` and `Hold`'s `full` end the program; whoever runs it
/// then counts the tally and does what is said.
#[derive(Clone, PartialEq, Debug)]
pub enum End {
    /// Goes on in a later block.
    Jump(Target),
    /// Goes on in one of two later blocks.
    Branch {
        /// The condition (bool).
        cond: ValueId,
        /// If it holds.
        yes: Target,
        /// If not.
        no: Target,
    },
    /// The program is over.
    Exit(Exit),
    /// The packet waits in a queue of a function.
    Hold {
        /// The function.
        node: u16,
        /// The queue.
        queue: QueueId,
        /// For so long (64 bits, ns).
        delay: ValueId,
        /// What is counted when it waits.
        tally: TallyId,
        /// Where it goes on when the queue is full.
        full: Target,
    },
}

/// What becomes of the packet.
#[derive(Clone, PartialEq, Debug)]
pub struct Exit {
    /// What is counted.
    pub tally: TallyId,
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of a packet at the end of a program.
#[derive(Clone, PartialEq, Debug)]
pub enum Fate {
    /// It leaves the chain. Nothing that the program sent waits.
    Leave {
        /// By this interface.
        interface: u16,
    },
    /// It goes on at another point, with the program for its shape there. Nothing that the program
    /// sent waits.
    Go(Point),
    /// A function is done with it. What the program sent goes out first, from that function; then the
    /// packet by these ports, copies for all but the last.
    Output {
        /// The function.
        node: u16,
        /// Its ports.
        ports: Vec<Dest>,
    },
    /// It is dropped by a function; what the program sent goes out.
    Drop {
        /// The function.
        node: u16,
        /// The row.
        row: RowId,
        /// The reason.
        reason: ReasonId,
    },
    /// It ends by a fault; what the program sent goes out.
    Fault {
        /// The function.
        node: u16,
        /// The fault.
        fault: Fault,
    },
    /// It ends here by intent; what the program sent goes out.
    Consume {
        /// The function.
        node: u16,
    },
    /// The function runs on it anew (a fault past the limit). What the program sent waits.
    Resubmit {
        /// The function.
        node: u16,
    },
}

impl HeaderMask {
    /// Whether a packet with these headers is of this shape.
    #[must_use]
    pub fn fits(self, presence: u128) -> bool {
        (presence ^ self.present) & self.care == 0
    }

    /// Whether a header is present, if its presence matters.
    #[must_use]
    pub fn has(self, header: Header) -> Option<bool> {
        let bit = 1 << header as u32;
        (self.care & bit != 0).then_some(self.present & bit != 0)
    }
}

/// A shape in words: the headers that have to be there, and with `not` those that must not.
#[must_use]
pub fn shape_words(shape: HeaderMask) -> String {
    let words = braid_packet::HEADERS.iter().filter_map(|(header, name)| {
        shape.has(*header).map(|has| if has { (*name).to_owned() } else { format!("not {name}") })
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "any".to_owned() } else { words.join(" ") }
}
