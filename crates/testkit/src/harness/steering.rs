//! Steerings for generated chains. Workers share nothing if each has tables of its own, whatever
//! the rules are that steer packets. So a chain gets any rules. Also helpers to compare what
//! several workers do with what one worker does.

use super::engines::Engine;
use crate::compare::difference;
use crate::record::{Detail, Output, Stimulus, Trace, record};
use crate::rng::Rng;
use braid_compiler::sharding::divide_limits;
use braid_ir::chain::Chain;
use braid_ir::engine;
use braid_ir::model::{ParamId, Setting};
use braid_ir::steering::{By, Of, Part, Pool, Side, Steering};
use braid_ir::value::ParamValue;
use braid_packet::Field;
use braid_runtime::Sharded;
use std::sync::Arc;

/// Divides a chain with several workers over them: each worker gets tables of its own, and portions
/// of limits. The chain's seed chooses the rules that steer packets.
#[must_use]
pub fn over_workers(mut chain: Chain) -> Chain {
    if chain.workers <= 1 {
        return chain;
    }
    for node in &mut chain.nodes {
        let model = Arc::make_mut(&mut node.model);
        let in_portions: Vec<_> = model.state.iter().map(|decl| !decl.sharded).collect();
        model.state.iter_mut().for_each(|decl| decl.sharded = true);
        divide_limits(node, in_portions.into_iter(), chain.workers);
    }
    let mut rng = Rng::new(chain.seed ^ 0x7374_6565_7269_6e67);
    let pools = pools(&chain);
    let count = rng.below(chain.interfaces.len() + 1);
    chain.steering = Steering {
        entries: (0..count).map(|_| rule(&mut rng, &pools)).collect(),
        errors_follow: rng.one_in(2),
    };
    chain
}

/// Puts what several workers do at the same time into one order.
#[must_use]
pub fn settled(mut outputs: Vec<Output>) -> Vec<Output> {
    outputs.sort_by_cached_key(|output| match output {
        Output::Packet(interface, packet) => {
            (packet.time_ns, format!("{interface} {:?} {:?}", packet.data(), packet.tags))
        }
        Output::Event(event) => (event.time_ns, format!("{event:?}")),
        Output::Refused(why) => (0, why.clone()),
    });
    outputs
}

/// The first difference between engines of this kind, one for each worker of a divided chain, and
/// the reference engine with shards, which did this on these stimuli.
///
/// # Panics
/// When an engine refuses the chain.
#[must_use]
pub fn differs_from_shards(
    divided: &Chain,
    kind: Engine,
    (stimuli, mut expected): (Vec<Stimulus>, Trace),
) -> Option<String> {
    let make = |chain: Chain| Ok::<Box<dyn engine::Engine>, String>(kind.make(&chain));
    let mut workers = Sharded::new(divided, make).expect("engines of workers");
    let mut actual = record(&mut workers, &stimuli, Detail::End);
    for trace in [&mut expected, &mut actual] {
        trace.outputs = std::mem::take(&mut trace.outputs).into_iter().map(settled).collect();
        trace.state.sort_by_cached_key(|entry| format!("{entry:?}"));
    }
    difference(&expected, &actual).map(|found| format!("{kind}: {found:?}"))
}

/// A chain with tables and queues that never get full: workers have shares of each capacity.
#[must_use]
pub fn roomy(mut chain: Chain) -> Chain {
    for node in &mut chain.nodes {
        let model = Arc::make_mut(&mut node.model);
        model.state.iter_mut().for_each(|decl| decl.capacity = Setting::Const(1 << 16));
        model.queues.iter_mut().for_each(|queue| queue.capacity = Setting::Const(1 << 16));
    }
    chain
}

/// A rule that looks at the sender everywhere, which fits few chains.
#[must_use]
pub fn by_sender(chain: &Chain) -> Steering {
    let by = By::Part(Part { end: Side::Source, what: Of::Both });
    Steering { entries: vec![by; chain.interfaces.len()], errors_follow: false }
}

fn pools(chain: &Chain) -> Vec<Pool> {
    let params = (0..).zip(&chain.nodes).flat_map(|(node, of)| {
        (0..).zip(&of.params).map(move |(param, value)| (node, ParamId(param), value))
    });
    let pools = params.filter_map(|(node, param, value)| match value {
        ParamValue::Pool(members) => Some(Pool { node, param, members: members.clone() }),
        _ => None,
    });
    pools.collect()
}

fn rule(rng: &mut Rng, pools: &[Pool]) -> By {
    let part = Part {
        end: *rng.pick(&[Side::Source, Side::Destination]),
        what: *rng.pick(&[Of::Both, Of::Address, Of::Port]),
    };
    match rng.below(5) {
        0 => By::Connection,
        1 => By::Field(*rng.pick(&[Field::VlanId, Field::EthSrc, Field::InetSrc, Field::IpTtl])),
        2 | 3 if !pools.is_empty() => By::Pool(part, rng.pick(pools).clone()),
        _ => By::Part(part),
    }
}
