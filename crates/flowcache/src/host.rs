//! The engine as the flow cache sees it: programs, and functions with their state.

use crate::records::Records;
use braid_ir::chain::Chain;
use braid_ir::engine::Outputs;
use braid_ir::graph::Graph;
use braid_ir::model::{EventId, Op, ParamId, StateId, ValueId, Word};
use braid_ir::residual::{CounterListId, HeaderMask, Point, Residual};
use braid_ir::rules::RulePacket;
use braid_ir::values::Values;
use braid_ir::walk::At;
use braid_native::Instance;
use braid_state::{Handle, Store, TableRef};
use std::sync::Arc;

/// The state of a chain, with its flow records.
pub type State = Store<Records>;

/// The programs of a chain.
pub trait Programs {
    /// The number of programs.
    fn count(&self) -> usize;

    /// A program by its number.
    fn residual(&self, program: usize) -> Option<&Arc<Residual>>;

    /// The program for packets with these headers at a point, if there is one.
    fn known(&self, point: Point, presence: u128) -> Option<usize>;

    /// The program that ran last at a point, and its shape.
    fn last(&self, point: Point) -> Option<(HeaderMask, usize)>;

    /// The weight of a program's lookups on the path with the most ([`braid_ir::visit::HEAVY`]).
    fn weight(&self, program: usize) -> u32;

    /// The program that ends in front of a function, if it exists ([`FlowCache::take_wanted`]).
    ///
    /// [`FlowCache::take_wanted`]: crate::FlowCache::take_wanted
    fn cut(&self, cut: &Cut) -> Option<usize>;

    /// Facts about the end of a block of a program.
    fn end(&self, program: usize, block: usize) -> BlockEnd;

    /// Whether all packets that end at the same place of the program have visited the same number
    /// of functions, and none that visited `hops` functions before the program exceeds the limit of
    /// visits.
    fn is_even(&self, program: usize, hops: u32) -> bool;

    /// Counts packets that took a program to the end of a block. `traffic` is the number of packets
    /// and the number of their bytes on arrival. Each of `counters` comes with the number of bytes
    /// by which each packet is longer there.
    fn count_packets(
        &self,
        program: usize,
        block: usize,
        counters: &[(CounterListId, i32)],
        traffic: (u64, u64),
    );
}

/// A program that covers the chain from a point up to a function that does what no record contains.
/// Records can contain this part of the packets' path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cut {
    /// The point.
    pub point: Point,
    /// The headers of the packets, as far as the whole program at the point depends on them.
    pub present: u128,
    /// The program ends in front of this function.
    pub node: u16,
}

/// Facts about the end of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockEnd {
    /// The next place of packets for which the program has sent no other packet. `None` if the
    /// program's end does not determine it.
    pub next: Option<At>,
    /// The number of functions that packets have visited in the program by this end, if it is the
    /// same for all packets.
    pub visits: Option<u32>,
    /// Whether packets go backward through the last function.
    pub backward: bool,
}

/// The functions of a chain, with their parameters and state.
pub trait Functions {
    /// The chain, with the present values of parameters.
    fn chain(&self) -> &Chain;

    /// Whether functions take this event of a function. Their handlers may change any state.
    fn is_taken(&self, node: u16, event: EventId) -> bool;

    /// The state.
    fn state(&self) -> &State;

    /// The chain and the state.
    fn parts(&mut self) -> (&Chain, &mut State);

    /// The time (ns).
    fn now(&self) -> u64;

    /// Advances the time.
    fn set_now(&mut self, now: u64);

    /// A function's state table for programs of a worker.
    fn table(&self, node: u16, state: StateId, worker: u16) -> TableRef;

    /// A packed key, and the entry with this key. The lookup does not renew the entry.
    fn peek(
        &mut self,
        table: TableRef,
        values: &Values<'_>,
        parts: &[ValueId],
    ) -> (&[u64], Option<Handle>);

    /// Executes an operation that needs only values and parameters. `None` for other operations and
    /// for faults.
    fn compute(&self, node: u16, values: &mut Values<'_>, op: &Op) -> Option<()>;

    /// Executes an operation that looks up a function's routes or calls an extern. `None` for
    /// faults.
    fn call(
        &mut self,
        place: (u16, u16),
        out: &mut dyn Outputs,
        values: &mut Values<'_>,
        op: &Op,
    ) -> Option<()>;

    /// Whether a packet passes a rule set, and the number of the deciding rule. Counts nothing.
    fn classify(&self, node: u16, param: ParamId, packet: Option<&RulePacket>) -> (bool, u32);

    /// The TCP flags that any rule of a rule set tests.
    fn rule_flags(&self, node: u16, param: ParamId) -> u8;

    /// Adds packets to the count of a rule.
    fn count_rule(&self, node: u16, param: ParamId, rule: u32, packets: u64);

    /// The shard of a function for a worker.
    fn shard(&self, node: u16, worker: u16) -> u16;

    /// The native function of a node in a shard.
    fn native(&self, node: u16, shard: u16) -> Option<&Instance>;

    /// The native function of a node in a shard, and the state.
    fn native_mut(&mut self, node: u16, shard: u16) -> Option<(&mut Instance, &mut State)>;
}

/// An engine that is about to process packets, as far as the flow cache uses it.
pub struct Host<'a, P, F> {
    /// The programs.
    pub programs: &'a P,
    /// The functions.
    pub functions: &'a mut F,
    /// The links between functions.
    pub graph: &'a Graph,
    /// The time before which no timer and no queue is due (ns).
    pub wake: u64,
    /// Memory for the values of a program, large enough for every program.
    pub words: &'a mut [Word],
    /// Where packets and events go.
    pub out: &'a mut dyn Outputs,
}

impl<P, F: Functions> Host<'_, P, F> {
    /// The time before which no timer, queue or state entry is due (ns).
    pub(crate) fn due(&self) -> u64 {
        self.wake.min(self.functions.state().next_due())
    }
}
