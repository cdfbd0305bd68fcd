//! The engine's side of the interface to the flow cache ([`braid_flowcache::Programs`] and
//! [`braid_flowcache::Functions`]).
#![expect(
    clippy::indexing_slicing,
    reason = "flow records name programs and functions of this engine"
)]

use crate::exec_context::Functions;
use crate::mutants::DeliveryMutant;
use crate::programs::ProgramSet;
use braid_flowcache::{BlockEnd, Cut, State};
use braid_ir::chain::Chain;
use braid_ir::engine::Outputs;
use braid_ir::model::{EventId, Op, ParamId, StateId, ValueId};
use braid_ir::residual::{CounterListId, HeaderMask, Point, Residual};
use braid_ir::rules::RulePacket;
use braid_ir::values::Values;
use braid_jit::Count;
use braid_native::Instance;
use braid_state::{Handle, TableRef};
use std::sync::Arc;

impl braid_flowcache::Programs for ProgramSet {
    #[inline]
    fn count(&self) -> usize {
        self.all.len()
    }

    #[inline]
    fn residual(&self, program: usize) -> Option<&Arc<Residual>> {
        self.all.get(program).map(|program| &program.residual)
    }

    #[inline(always)]
    fn known(&self, point: Point, presence: u128) -> Option<usize> {
        self.points.known(point, presence)
    }

    #[inline]
    fn last(&self, point: Point) -> Option<(HeaderMask, usize)> {
        self.points.last(point)
    }

    fn weight(&self, program: usize) -> u32 {
        self.all[program].weight
    }

    fn cut(&self, cut: &Cut) -> Option<usize> {
        self.cuts.get(cut).copied()
    }

    fn end(&self, program: usize, block: usize) -> BlockEnd {
        let program = &self.all[program];
        let end = &program.ends[block];
        BlockEnd { next: end.next, visits: end.visits, backward: program.ends_backward(block) }
    }

    fn is_even(&self, program: usize, hops: u32) -> bool {
        self.all[program].is_even(hops)
    }

    fn count_packets(
        &self,
        program: usize,
        block: usize,
        counters: &[(CounterListId, i32)],
        (packets, bytes): (u64, u64),
    ) {
        let program = &self.all[program];
        for (counters, longer) in counters {
            let more = i64::from(*longer).wrapping_mul(packets.cast_signed());
            program.counts[counters.0 as usize].update(|count| Count {
                packets: count.packets.wrapping_add(packets),
                bytes: count.bytes.wrapping_add(bytes).wrapping_add_signed(more),
            });
        }
        program.ends[block].reached.update(|times| times.wrapping_add(packets));
    }
}

impl braid_flowcache::Functions for Functions {
    #[inline(always)]
    fn chain(&self) -> &Chain {
        &self.chain
    }

    fn is_taken(&self, node: u16, event: EventId) -> bool {
        let is_forgotten = self.mutants.has(DeliveryMutant::TakenRecorded);
        self.subscriptions.stays_outside(node, event) && !is_forgotten
    }

    #[inline(always)]
    fn state(&self) -> &State {
        &self.store
    }

    #[inline(always)]
    fn parts(&mut self) -> (&Chain, &mut State) {
        (&self.chain, &mut self.store)
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        self.now
    }

    #[inline(always)]
    fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    fn table(&self, node: u16, state: StateId, worker: u16) -> TableRef {
        Functions::table(self, node, state, worker)
    }

    fn peek(
        &mut self,
        table: TableRef,
        values: &Values<'_>,
        parts: &[ValueId],
    ) -> (&[u64], Option<Handle>) {
        Functions::peek(self, table, values, parts)
    }

    #[inline]
    fn compute(&self, node: u16, values: &mut Values<'_>, op: &Op) -> Option<()> {
        let params = &self.chain.nodes[usize::from(node)].params;
        crate::ops::pure(params, values, op).ok()?.then_some(())
    }

    fn call(
        &mut self,
        (node, worker): (u16, u16),
        out: &mut dyn Outputs,
        values: &mut Values<'_>,
        op: &Op,
    ) -> Option<()> {
        self.context_of(node, worker, out).common(None, values, op).ok()
    }

    fn classify(&self, node: u16, param: ParamId, packet: Option<&RulePacket>) -> (bool, u32) {
        self.instances[usize::from(node)].classify(param, packet)
    }

    fn rule_flags(&self, node: u16, param: ParamId) -> u8 {
        let rules = &self.instances[usize::from(node)].rules[param.index()];
        rules.as_ref().map_or(0, |rules| rules.flags)
    }

    fn count_rule(&self, node: u16, param: ParamId, rule: u32, packets: u64) {
        self.instances[usize::from(node)].count_rules(param, rule, packets);
    }

    fn shard(&self, node: u16, worker: u16) -> u16 {
        self.instances[usize::from(node)].shard(worker)
    }

    fn native(&self, node: u16, shard: u16) -> Option<&Instance> {
        let shards = &self.instances.get(usize::from(node))?.shards;
        shards.get(usize::from(shard))?.native.as_ref()
    }

    fn native_mut(&mut self, node: u16, shard: u16) -> Option<(&mut Instance, &mut State)> {
        let shards = &mut self.instances.get_mut(usize::from(node))?.shards;
        Some((shards.get_mut(usize::from(shard))?.native.as_mut()?, &mut self.store))
    }
}
