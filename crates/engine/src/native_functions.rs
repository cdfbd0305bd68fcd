//! Native functions in the engine. Each worker has an instance of each native function. The
//! instance gets each of the worker's packets.

use crate::deliver::deliver;
use crate::exec_context::{ExecContext, Functions};
use crate::scratch::Published;
use crate::work::{Emission, Origin, Role, Work};
use braid_flowcache::end_changed;
use braid_ir::chain::Control;
use braid_ir::engine::{Fault, Outputs, StateEntry};
use braid_ir::model::{Dest, Word};
use braid_native::bridge as native;
use braid_native::{Instance, Noted, Output, Profile};
use braid_packet::Packet;
use braid_streams::View;

impl Functions {
    /// Creates the instances. With `watch`, they remember the flows whose recordings change.
    pub(crate) fn load(&mut self, watch: bool) -> Result<(), String> {
        for (instance, node) in self.instances.iter_mut().zip(&self.chain.nodes) {
            let made = native::instances(node, instance.shard_count(), self.chain.only)?;
            for (shard, function) in instance.shards.iter_mut().zip(made) {
                shard.native = function;
                if let Some(function) = shard.native.as_mut().filter(|_| watch) {
                    function.watch();
                }
            }
        }
        Ok(())
    }

    /// All instances, each with the numbers of its function and worker.
    fn natives(&self) -> impl Iterator<Item = (u16, u16, &Instance)> {
        (0..).zip(&self.instances).flat_map(|(node, instance)| {
            let shards = (0..).zip(&instance.shards);
            shards.filter_map(move |(at, shard)| Some((node, at, shard.native.as_ref()?)))
        })
    }

    pub(crate) fn shard_count(&self, node: u16) -> u16 {
        let shards = self.instances.get(usize::from(node)).map_or(0, |one| one.shards.len());
        u16::try_from(shards).unwrap_or(u16::MAX)
    }

    /// Runs the due work of a native function for a worker. Returns the packets that its timers
    /// have sent.
    pub(crate) fn advance_native(
        &mut self,
        node: u16,
        worker: u16,
        out: &mut dyn Outputs,
    ) -> Vec<Emission> {
        let instance = self.instances.get_mut(usize::from(node));
        let shard = instance.and_then(|one| one.shards.get_mut(usize::from(worker)));
        let Some(function) = shard.and_then(|shard| shard.native.as_mut()) else {
            return Vec::new();
        };
        function.advance(self.now);
        end_changed(&mut self.store, (node, worker), function);
        if !function.has_outputs() {
            return Vec::new();
        }
        let outputs = function.take_outputs();
        let sent = native::packets_of_timers(&outputs, self.now).into_iter().map(made).collect();
        self.context(node, worker, Role::Packet, out).publish(outputs);
        deliver(self, out);
        sent
    }

    /// Tells native functions about a changed parameter. They may refuse the change.
    #[expect(
        clippy::indexing_slicing,
        reason = "`change_value` has refused changes of functions and parameters that do not exist"
    )]
    pub(crate) fn tell_natives(&mut self, control: &Control) -> Result<(), String> {
        let node = usize::from(control.node);
        let Self { chain, instances, store, .. } = self;
        let Some(config) = chain.nodes.get(node) else { return Ok(()) };
        let name = &config.model.params[control.param.index()].name;
        let value = native::value(&config.params[control.param.index()]);
        let shards = &mut instances[node].shards;
        let changed = native::change(
            shards.iter_mut().filter_map(|shard| shard.native.as_mut()),
            name,
            &value,
        );
        // The instances may have changed recordings on which flow records depend.
        for (at, shard) in (0..).zip(shards) {
            if let Some(function) = &mut shard.native {
                end_changed(store, (control.node, at), function);
            }
        }
        changed
    }

    pub(crate) fn native_state(&self) -> Vec<StateEntry> {
        let all = self.natives();
        all.flat_map(|(node, shard, function)| native::report(node, shard, function)).collect()
    }

    pub(crate) fn native_problems(&self) -> Vec<(u16, Noted)> {
        let all = self.natives();
        all.flat_map(|(node, _, f)| f.problems().into_iter().map(move |p| (node, p))).collect()
    }

    pub(crate) fn native_profiles(&self) -> Vec<(u16, Profile)> {
        self.natives().map(|(node, _, function)| (node, function.observed())).collect()
    }
}

impl ExecContext<'_> {
    /// Runs the native function on the packet.
    #[expect(
        clippy::indexing_slicing,
        reason = "an execution context names a shard of its function"
    )]
    pub(crate) fn native(&mut self, work: &mut Work<'_>) -> Result<Word, Fault> {
        let shard = &mut self.instance.shards[usize::from(self.shard)];
        let Some(function) = shard.native.as_mut() else { return Err(Fault::Native) };
        let answer = native::run(function, self.model, work.packet, self.now);
        end_changed(self.store, (self.node, self.shard), function);
        work.packet.parse_to(work.layout);
        if function.has_outputs() {
            let outputs = function.take_outputs();
            work.emissions.extend(native::packets(&outputs, work.packet).map(made));
            self.publish(outputs);
        }
        answer
    }

    /// Runs the native stream function for an event of a connection.
    #[expect(
        clippy::indexing_slicing,
        reason = "an execution context names a shard of its function"
    )]
    pub(crate) fn native_stream(&mut self, view: &View<'_>) -> Result<Word, Fault> {
        let shard = &mut self.instance.shards[usize::from(self.shard)];
        let Some(function) = shard.native.as_mut() else { return Err(Fault::Native) };
        let (event, bytes) = ((view.event, view.flow), (view.offset, view.bytes));
        let answer = native::connection(function, event, bytes, self.now);
        if function.has_outputs() {
            let outputs = function.take_outputs();
            self.publish(outputs);
        }
        answer
    }

    /// Publishes what a native function has published.
    fn publish(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            let found = native::event(self.node, self.model, output);
            let Some((made, taken)) = found else { continue };
            if self.subscriptions.is_empty() {
                self.out.event(made);
                continue;
            }
            let (event, fields) = taken.map_or((None, Vec::new()), |(event, f)| (Some(event), f));
            let (node, worker) = (self.node, self.worker);
            self.scratch.published.push(Published { node, worker, event, fields, made });
        }
    }
}

/// A packet that native code has made.
fn made((dest, packet): (Dest, Packet)) -> Emission {
    Emission { dest, packet, origin: Origin::Made }
}
