//! Native functions: each worker has an instance of the function, which is called for each packet.

use super::calls::{deliver, emit_packet};
use super::instance::Instance;
use super::run::{Emission, Env, Origin, Role, Run};
use crate::trace::Observer;
use braid_ir::chain::Chain;
use braid_ir::engine::Fault;
use braid_ir::model::{Model, ParamId, Word};
use braid_ir::native::Problems;
use braid_native::bridge;
use braid_native::{Noted, Output, Profile};
use braid_packet::{Access, Difference, Field, Packet, diff_fields};
use braid_streams::View;

/// Makes the instances of native functions.
pub(super) fn load(nodes: &mut [Instance], chain: &Chain) -> Result<(), String> {
    for (node, config) in nodes.iter_mut().zip(&chain.nodes) {
        let made = bridge::instances(config, node.shard_count(), chain.only)?;
        for (shard, instance) in node.shards.iter_mut().zip(made) {
            shard.native = instance;
        }
    }
    Ok(())
}

/// The packets that the timers of a native function have sent.
pub(super) fn sent_by_timers(outputs: &[Output], now: u64) -> Vec<Emission> {
    let sent = bridge::packets_of_timers(outputs, now).into_iter();
    sent.map(|(dest, packet)| Emission { dest, packet, origin: Origin::Made }).collect()
}

/// Publishes what a native function has published, and runs the handlers.
pub(super) fn publish(env: &mut Env<'_>, outputs: Vec<Output>) {
    let model = env.instance.model.clone();
    for output in outputs {
        let Some((event, taken)) = bridge::event(env.node, &model, output) else { continue };
        env.out.event(event);
        if let Some((event, fields)) = taken {
            deliver(env, event, &fields);
        }
    }
}

/// Informs the native functions of a node of a changed parameter. Each may refuse the change. Then
/// the functions that had accepted it return to the old value.
pub(super) fn tell(instance: &mut Instance, param: ParamId) -> Result<(), String> {
    let name = &instance.model.params[param.index()].name;
    let value = bridge::value(&instance.params[param.index()]);
    let functions = instance.shards.iter_mut().filter_map(|shard| shard.native.as_mut());
    bridge::change(functions, name, &value)
}

/// The problems of native functions, by worker, and those of stream functions, of all workers
/// together.
pub(super) fn problems(nodes: &[Instance]) -> Vec<(u16, Noted)> {
    let mut found = Vec::new();
    for (node, instance) in (0..).zip(nodes) {
        let natives = instance.shards.iter().filter_map(|shard| shard.native.as_ref());
        found.extend(natives.flat_map(|native| native.problems()).map(|noted| (node, noted)));
        let mut of_stacks = Problems::default();
        let stacks = instance.shards.iter().filter_map(|shard| shard.stack.as_ref());
        stacks.for_each(|stack| of_stacks.append(stack.problems(0)));
        found.extend(of_stacks.all().iter().cloned().map(|noted| (node, noted)));
    }
    found
}

pub(super) fn profiles(nodes: &[Instance]) -> Vec<(u16, Profile)> {
    functions(nodes).map(|(node, function)| (node, function.observed())).collect()
}

fn functions(nodes: &[Instance]) -> impl Iterator<Item = (u16, &braid_native::Instance)> {
    (0..).zip(nodes).flat_map(|(node, instance)| {
        instance.shards.iter().filter_map(move |s| s.native.as_ref().map(|f| (node, f)))
    })
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

/// Passes the packet, or what a connection has brought, to the native function.
pub(super) fn call(run: &mut Run<'_>, model: &Model) -> Result<Word, Fault> {
    let Run { env, role, .. } = &mut *run;
    let Some(function) = env.instance.shards[env.shard].native.as_mut() else {
        return Err(Fault::Native);
    };
    let state = match role {
        Role::Packet(state) => state,
        Role::Stream(subject) => {
            let View { event, flow, offset, bytes, .. } = subject.view();
            let answer = bridge::connection(function, (event, flow), (offset, bytes), env.now);
            let outputs = function.take_outputs();
            publish(env, outputs);
            return answer;
        }
        Role::Timer | Role::Expire(..) | Role::Handler(_) => return Err(Fault::Native),
    };
    let answer = bridge::run(function, model, &mut state.now, env.now);
    state.layout = state.now.parse();
    if env.observer.compares() {
        tell_writes(env.node, &state.entry, &state.now, env.observer);
    }
    let outputs = function.take_outputs();
    let sent: Vec<_> = bridge::packets(&outputs, &state.now).collect();
    publish(env, outputs);
    for (dest, packet) in sent {
        emit_packet(run, dest, packet, Origin::Made);
    }
    answer
}
