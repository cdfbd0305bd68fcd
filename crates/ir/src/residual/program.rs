//! The data of residual programs.

use crate::engine::Fault;
use crate::model::{Dest, Op, ParamId, QueueId, ReasonId, RowId, StateId, Target, Ty, ValueId};
use braid_packet::{Field, Header};

/// A point of the chain: where packets enter a function, or the functions that `Priority` puts
/// beside it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Point {
    /// The function, by number.
    pub node: u16,
    /// Whether packets enter it by its right port.
    pub backward: bool,
    /// Whether they come from a queue of this function.
    pub held: bool,
}

/// The headers of packets of a shape, as bits by [`Header`] number (`Layout::presence`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HeaderMask {
    /// Headers whose presence matters.
    pub care: u128,
    /// The relevant headers that are present.
    pub present: u128,
}

/// The part of the chain that a residual program covers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extent {
    /// One function. The chain then runs function by function.
    Function,
    /// As much of the chain as can be joined.
    Chain,
    /// As `Chain`, for an engine with flow records. The program also ends behind a function that
    /// has done with the packet what no record contains ([`Op::is_beyond_records`]), so that the
    /// packet may take a record from there on. It ends there only if the functions behind look up
    /// at least this much ([`Model::weight`]).
    ///
    /// [`Model::weight`]: crate::model::Model::weight
    Stretch(u32),
    /// As `Chain`, and the program ends in front of this function.
    UpTo(u16),
}

/// A residual program.
#[derive(Clone, PartialEq, Debug)]
pub struct Residual {
    /// The point where its packets are when it starts.
    pub point: Point,
    /// Their headers.
    pub shape: HeaderMask,
    /// The maximum number of functions that a packet visits in it.
    pub visits: u32,
    /// Type of each value.
    pub values: Vec<Ty>,
    /// Blocks in topological order. Block 0 is the entry and has no parameters.
    pub blocks: Vec<Block>,
    /// The counter lists of its paths.
    pub counter_lists: Vec<CounterList>,
}

/// A block.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// Values that jumps to this block pass.
    pub params: Vec<ValueId>,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// The block's end.
    pub end: End,
}

/// A step.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The step's origin in the chain.
    pub site: Site,
    /// The work of the step.
    pub what: What,
    /// The counters to add to when the step ends with a fault. The packet is then dropped at the
    /// function's row `fault`. `None` for steps that cannot fault.
    pub fault: Option<CounterListId>,
}

/// The operation of a function that a step comes from. A terminator has the number of operations in
/// the block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Site {
    /// The function.
    pub node: u16,
    /// The block of the packet program. The blocks of handlers follow, in the order of the
    /// handlers.
    pub block: u32,
    /// The operation.
    pub op: u32,
}

/// The number of a counter list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CounterListId(pub u32);

/// A list of counters that change together. A packet that reaches a place where the list is counted
/// adds one packet and its length to each counter.
pub type CounterList = Vec<ListedCounter>;

/// One counter of a list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ListedCounter {
    /// The function.
    pub node: u16,
    /// The counter.
    pub counter: Counter,
    /// The packet's length where this counter counts it, minus its length where the list is
    /// counted.
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
    /// Faults of handlers. They end the handler alone, and the packet goes on.
    Background,
}

/// The work of a step.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    /// An operation of the function, as in the model IR, on the function's parameters, state, tags
    /// and so on. Residual programs have no `LoadEntry`, `Store`, `Rules`, `StateExists`,
    /// `StateGet`, `Expiring`, `ExpiringKey` or `Count`. Keys are [`crate::model::Key::Explicit`]
    /// with the parts of the table's key. Global state has none. `Has` reads the layout of the last
    /// parse. Only programs for events of connections have `LoadEvent`, which reads a word that the
    /// engine fills in.
    Op(Op),
    /// A function starts on the packet: its run has not found or assigned any entry yet. Only for
    /// functions whose state lives with other state.
    Enter,
    /// As `Op::Rules`, on these values of the packet's fields, and without counting the rule.
    /// `packet` is `None` for packets that are not IP.
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
    /// Counts a rule by the number that `Classify` gave.
    CountRule {
        /// The rule set.
        param: ParamId,
        /// The rule.
        rule: ValueId,
    },
    /// Looks an entry up. A found entry is last seen now, and becomes the entry that this run last
    /// found.
    Find {
        /// Whether there is an entry (bool).
        found: ValueId,
        /// Its handle (64 bits). `Read` may use it on this path until the function's state is
        /// assigned or removed. It has no meaning if there is no entry.
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
    /// Assigns fields. Dependent checksums follow and become canonical, even if a value is the
    /// field's old one. The fields do not overlap, and their headers are present.
    Write(Vec<(Field, ValueId)>),
    /// Parses the packet again after a change of headers.
    Parse,
    /// Adds to a list of counters before the end of the path.
    Count(CounterListId),
}

/// The fields of an IP packet that rules read, as values (see [`crate::rules::RulePacket`]).
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

/// The end of a block. All but `Jump`, `Branch` and `Hold`'s `full` end the program. The engine
/// then adds to the counters and carries out the end.
#[derive(Clone, PartialEq, Debug)]
pub enum End {
    /// Continues in a later block.
    Jump(Target),
    /// Continues in one of two later blocks.
    Branch {
        /// The condition (bool).
        cond: ValueId,
        /// The target if it holds.
        yes: Target,
        /// The target if it does not hold.
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
        /// The waiting time (64 bits, ns).
        delay: ValueId,
        /// The counters to add to when the packet waits.
        counters: CounterListId,
        /// The target when the queue is full.
        full: Target,
    },
}

/// The packet's fate and its counters.
#[derive(Clone, PartialEq, Debug)]
pub struct Exit {
    /// The counters to add to.
    pub counters: CounterListId,
    /// The packet's fate.
    pub fate: Fate,
}

/// The fate of a packet at the end of a program.
#[derive(Clone, PartialEq, Debug)]
pub enum Fate {
    /// It leaves the chain. No packet that the program sent is waiting.
    Leave {
        /// The interface.
        interface: u16,
    },
    /// It continues at another point, with the program for its shape there. No packet that the
    /// program sent is waiting.
    Go(Point),
    /// A function is done with it. The packets that the program sent go out first, from that
    /// function. Then the packet leaves by these ports. All but the last get copies.
    Output {
        /// The function.
        node: u16,
        /// Its ports.
        ports: Vec<Dest>,
    },
    /// A function drops it. The packets that the program sent go out.
    Drop {
        /// The function.
        node: u16,
        /// The row.
        row: RowId,
        /// The reason.
        reason: ReasonId,
    },
    /// It ends with a fault. The packets that the program sent go out.
    Fault {
        /// The function.
        node: u16,
        /// The fault.
        fault: Fault,
    },
    /// It ends here intentionally. The packets that the program sent go out.
    Consume {
        /// The function.
        node: u16,
    },
    /// The function runs on it again. Past the limit, this is a fault. The packets that the program
    /// sent wait.
    Resubmit {
        /// The function.
        node: u16,
    },
}

impl Block {
    /// Whether every packet that reaches the block is dropped, consumed or answered. `unlikely`
    /// says this of the blocks behind it.
    #[must_use]
    pub fn is_unlikely(&self, unlikely: &[bool]) -> bool {
        self.steps.iter().any(|step| matches!(step.what, What::Op(Op::Create { .. })))
            || match &self.end {
                End::Exit(exit) => matches!(
                    exit.fate,
                    Fate::Drop { .. } | Fate::Fault { .. } | Fate::Consume { .. }
                ),
                End::Hold { .. } => false,
                end => end
                    .targets()
                    .iter()
                    .all(|target| unlikely.get(target.block.index()).is_some_and(|is| *is)),
            }
    }
}

impl HeaderMask {
    /// Whether a packet with these headers has this shape.
    #[must_use]
    pub fn fits(self, presence: u128) -> bool {
        (presence ^ self.present) & self.care == 0
    }

    /// Whether a header is present, if its presence matters.
    #[must_use]
    pub fn has(self, header: Header) -> Option<bool> {
        let bit = header.bit();
        (self.care & bit != 0).then_some(self.present & bit != 0)
    }
}

/// A shape in words: the headers that must be present, and with `not` the headers that must be
/// absent.
#[must_use]
pub fn shape_words(shape: HeaderMask) -> String {
    let words = braid_packet::HEADERS.iter().filter_map(|(header, name)| {
        shape.has(*header).map(|has| if has { (*name).to_owned() } else { format!("not {name}") })
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "any".to_owned() } else { words.join(" ") }
}
