//! What the flow cache asks of the engine whose packets it takes: its programs, and its functions
//! with their state.

use crate::records::Records;
use braid_ir::chain::Chain;
use braid_ir::engine::Outputs;
use braid_ir::graph::Graph;
use braid_ir::model::{Op, ParamId, StateId, ValueId, Word};
use braid_ir::residual::{HeaderMask, Point, Residual, TallyId};
use braid_ir::rules::RulePacket;
use braid_ir::values::Values;
use braid_ir::walk::At;
use braid_native::Instance;
use braid_state::{Handle, Store, TableRef};

/// The state of a chain with its flow records.
pub type State = Store<Records>;

/// The programs of a chain.
pub trait Programs {
    /// How many there are.
    fn count(&self) -> usize;

    /// A program by its number.
    fn residual(&self, program: usize) -> Option<&Residual>;

    /// The program for packets with these headers at a point, if there is one.
    fn known(&self, point: Point, presence: u128) -> Option<usize>;

    /// The program that ran last at a point, and its shape.
    fn last(&self, point: Point) -> Option<(HeaderMask, usize)>;

    /// What is known of the end of a program's block.
    fn end(&self, program: usize, block: usize) -> BlockEnd;

    /// Whether a program tells by where packets come to an end how many functions they have visited,
    /// and packets that have visited so many before it stay within the limit.
    fn is_even(&self, program: usize, hops: u32) -> bool;

    /// Packets with so many bytes went through a program, to the end of a block. They are counted at
    /// these counters, each packet by so many bytes longer.
    fn count_packets(
        &self,
        program: usize,
        block: usize,
        counters: &[(TallyId, i32)],
        traffic: (u64, u64),
    );
}

/// What is known of the end of a program's block.
#[derive(Clone, Copy, Debug)]
pub struct BlockEnd {
    /// Where packets go from there that sent nothing, if that is known.
    pub next: Option<At>,
    /// Visits of functions that it stands for, if those are the same for all packets.
    pub visits: Option<u32>,
    /// Whether packets turn up going backward there.
    pub backward: bool,
}

/// The functions of a chain, with their parameters and state.
pub trait Functions {
    /// The chain; values of parameters are those of now.
    fn chain(&self) -> &Chain;

    /// The state.
    fn state(&self) -> &State;

    /// The chain and the state.
    fn parts(&mut self) -> (&Chain, &mut State);

    /// The time (ns).
    fn now(&self) -> u64;

    /// It is later.
    fn set_now(&mut self, now: u64);

    /// A function's table for what runs for a worker.
    fn table(&self, node: u16, state: StateId, worker: u16) -> TableRef;

    /// A packed key, and the entry that has it. The entry does not count as seen.
    fn peek(
        &mut self,
        table: TableRef,
        values: &Values<'_>,
        parts: &[ValueId],
    ) -> (&[u64], Option<Handle>);

    /// Does an operation on values and parameters alone; `None` for others, and where it fails.
    fn compute(&self, node: u16, values: &mut Values<'_>, op: &Op) -> Option<()>;

    /// Does an operation that asks a function's routes or calls an operator; `None` where it fails.
    fn call(
        &mut self,
        place: (u16, u16),
        out: &mut dyn Outputs,
        values: &mut Values<'_>,
        op: &Op,
    ) -> Option<()>;

    /// Whether a packet passes a rule set, and the number of the rule that decides.
    fn classify(&self, node: u16, param: ParamId, packet: Option<&RulePacket>) -> (bool, u32);

    /// TCP flags that some rule of a rule set looks at.
    fn rule_flags(&self, node: u16, param: ParamId) -> u8;

    /// A rule has decided so many packets more.
    fn count_rule(&self, node: u16, param: ParamId, rule: u32, packets: u64);

    /// The shard of a function for a worker.
    fn shard(&self, node: u16, worker: u16) -> u16;

    /// The native function of a node's shard.
    fn native(&self, node: u16, shard: u16) -> Option<&Instance>;

    /// The native function of a node's shard, and the state.
    fn native_mut(&mut self, node: u16, shard: u16) -> Option<(&mut Instance, &mut State)>;
}

/// An engine about to take packets: all that the flow cache may use of it.
pub struct Host<'a, P, F> {
    /// The programs.
    pub programs: &'a P,
    /// The functions.
    pub functions: &'a mut F,
    /// The links between functions.
    pub graph: &'a Graph,
    /// How many workers there are.
    pub workers: u16,
    /// Timers and queues are due at this time (ns).
    pub wake: u64,
    /// Memory for the values of a program: as many as any of them has.
    pub words: &'a mut [Word],
    /// Where packets and events go.
    pub out: &'a mut dyn Outputs,
}

impl<P, F: Functions> Host<'_, P, F> {
    /// Nothing is due before this time (ns).
    pub(crate) fn due(&self) -> u64 {
        self.wake.min(self.functions.state().next_due())
    }
}
