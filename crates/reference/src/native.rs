//! Native functions: each worker has an instance of the function, which is called for each packet.

use super::Reference;
use super::run::{Role, Run};
use crate::trace::Observer;
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Fault, Outputs};
use braid_ir::model::{Model, Word};
use braid_native::bridge;
use braid_native::{Noted, Profile};
use braid_packet::{Access, Difference, Field, Packet, diff_fields};

impl Reference {
    /// Makes the instances.
    pub(super) fn load(&mut self, chain: &Chain) -> Result<(), String> {
        for (node, config) in self.nodes.iter_mut().zip(&chain.nodes) {
            let made = bridge::instances(config, node.shard_count())?;
            for (shard, instance) in node.shards.iter_mut().zip(made) {
                shard.native = Some(instance);
            }
        }
        Ok(())
    }

    /// Runs the work of native functions that is due by now.
    pub(super) fn advance_natives(&mut self, out: &mut dyn Outputs) {
        for (node, instance) in (0..).zip(&mut self.nodes) {
            for function in instance.shards.iter_mut().filter_map(|shard| shard.native.as_mut()) {
                function.advance(self.now);
                let logs = function.take_logs();
                logs.into_iter().for_each(|log| out.event(bridge::event(node, log)));
            }
        }
    }

    /// Informs native functions of a changed parameter. Each may refuse the change. Then the
    /// functions that had accepted it return to the old value.
    pub(super) fn tell_natives(&mut self, control: &Control) -> Result<(), String> {
        let Some(instance) = self.nodes.get_mut(usize::from(control.node)) else { return Ok(()) };
        let name = &instance.model.params[control.param.index()].name;
        let value = bridge::value(&instance.params[control.param.index()]);
        let functions = instance.shards.iter_mut().filter_map(|shard| shard.native.as_mut());
        bridge::change(functions, name, &value)
    }

    pub(super) fn native_problems(&self) -> Vec<(u16, Noted)> {
        self.natives()
            .flat_map(|(node, function)| function.problems().into_iter().map(move |p| (node, p)))
            .collect()
    }

    pub(super) fn native_profiles(&self) -> Vec<(u16, Profile)> {
        self.natives().map(|(node, function)| (node, function.observed())).collect()
    }

    fn natives(&self) -> impl Iterator<Item = (u16, &braid_native::Instance)> {
        let nodes = (0..).zip(&self.nodes);
        nodes.flat_map(|(node, instance)| {
            instance.shards.iter().filter_map(move |s| s.native.as_ref().map(|f| (node, f)))
        })
    }
}

/// Reports the fields of a packet that a native function has changed.
fn tell_writes(node: u16, before: &Packet, after: &Packet, observer: &mut dyn Observer) {
    let layout = after.parse();
    for Difference { what, .. } in diff_fields(before, after) {
        let field = Field::by_name(&what).filter(|field| field.info().access == Access::Rw);
        if let Some((field, value)) = field.and_then(|f| Some((f, after.get(&layout, f)?))) {
            observer.write(node, field, value);
        }
    }
}

impl Run<'_> {
    /// Passes the packet to the native function.
    pub(super) fn native(&mut self, model: &Model) -> Result<Word, Fault> {
        let function = self.env.instance.shards[self.env.shard].native.as_mut();
        let (Some(function), Role::Packet(state)) = (function, &mut self.role) else {
            return Err(Fault::Native);
        };
        let answer = bridge::run(function, model, &mut state.now, self.env.now);
        state.layout = state.now.parse();
        if self.env.observer.compares() {
            tell_writes(self.env.node, &state.entry, &state.now, self.env.observer);
        }
        for log in function.take_logs() {
            self.env.out.event(bridge::event(self.env.node, log));
        }
        answer
    }
}
