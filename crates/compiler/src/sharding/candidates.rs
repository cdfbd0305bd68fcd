//! The steerings that the analysis tries, in the order of preference: steerings that spread flows
//! better come first.

use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::Graph;
use braid_ir::model::{Granularity, LEFT, ParamId, ParamTy, PortId, RIGHT};
use braid_ir::steering::{By, Of, Part, Pool, Side, Steering};
use braid_ir::value::ParamValue;
use braid_packet::Field;
use std::collections::VecDeque;

/// A steering to try.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) steering: Steering,
    /// Whether it looks at the same end of a flow in both directions.
    pub(super) one_sided: bool,
}

/// The rules for packets that enter the chain going forward and going backward.
struct Pair {
    forward: By,
    backward: By,
}

/// The steerings to try for a chain.
pub(super) fn candidates(chain: &Chain, graph: &Graph) -> Vec<Candidate> {
    let backward = |number: usize| {
        let entry = u16::try_from(number).ok().and_then(|number| graph.entry(number));
        matches!(entry, Some(Sink::Port(_, RIGHT)))
    };
    let mut found = Vec::new();
    for pair in pairs(chain, graph) {
        let entries = (0..chain.interfaces.len()).map(|number| match backward(number) {
            true => pair.backward.clone(),
            false => pair.forward.clone(),
        });
        let entries: Vec<By> = entries.collect();
        for errors_follow in [true, false] {
            let steering = Steering { entries: entries.clone(), errors_follow };
            found.push(Candidate { steering, one_sided: one_sided(&pair) });
        }
    }
    found
}

fn one_sided(pair: &Pair) -> bool {
    let end = |by: &By| match by {
        By::Part(part) | By::Pool(part, _) => Some(part.end),
        By::Connection | By::Field(_) => None,
    };
    end(&pair.forward).zip(end(&pair.backward)).is_some_and(|(a, b)| a != b)
}

fn pairs(chain: &Chain, graph: &Graph) -> Vec<Pair> {
    let same = |by: By| Pair { forward: by.clone(), backward: by };
    let mut found = vec![same(By::Connection)];
    let ends = [(Side::Source, Side::Destination), (Side::Destination, Side::Source)];
    let pools = pools(chain, graph);
    let [first, last] = [pools.first(), pools.last()];
    for what in [Of::Both, Of::Address, Of::Port] {
        for (forward, backward) in ends {
            let forward = By::Part(Part { end: forward, what });
            let backward = By::Part(Part { end: backward, what });
            found.push(Pair { forward: forward.clone(), backward: backward.clone() });
            // Packets that enter behind a function with a pool may be steered by the shares of this
            // pool. Packets that go backward meet the last function with a pool first.
            if let Some(pool) = last {
                let backward = By::Pool(pool.part(&backward), pool.pool.clone());
                found.push(Pair { forward: forward.clone(), backward });
            }
            if let Some(pool) = first {
                let forward = By::Pool(pool.part(&forward), pool.pool.clone());
                found.push(Pair { forward, backward: backward.clone() });
            }
        }
    }
    for end in [Side::Source, Side::Destination] {
        found.extend([Of::Both, Of::Address].map(|what| same(By::Part(Part { end, what }))));
    }
    found.extend(fields(chain).into_iter().map(|field| same(By::Field(field))));
    found
}

/// A pool, and the meaning of its members.
struct Known {
    pool: Pool,
    what: Of,
}

impl Known {
    /// The part of a packet that may hold a member, at the end that a rule looks at.
    fn part(&self, by: &By) -> Part {
        let end = match by {
            By::Part(part) | By::Pool(part, _) => part.end,
            By::Connection | By::Field(_) => Side::Source,
        };
        Part { end, what: self.what }
    }
}

fn pools(chain: &Chain, graph: &Graph) -> Vec<Known> {
    let mut found = Vec::new();
    for number in order(chain, graph) {
        let node = &chain.nodes[usize::from(number)];
        for ((at, decl), value) in (0..).zip(&node.model.params).zip(&node.params) {
            let (ParamTy::Pool(ty, _), ParamValue::Pool(members)) = (&decl.ty, value) else {
                continue;
            };
            let what = if ty.width <= 16 { Of::Port } else { Of::Address };
            let pool = Pool { node: number, param: ParamId(at), members: members.clone() };
            found.push(Known { pool, what });
        }
    }
    found
}

/// The functions in the order in which packets that go forward meet them first.
fn order(chain: &Chain, graph: &Graph) -> Vec<u16> {
    let entries = (0..).zip(&chain.interfaces).filter_map(|(number, _)| graph.entry(number));
    let mut open: VecDeque<Sink> = entries.collect();
    let mut found = Vec::new();
    while let Some(sink) = open.pop_front() {
        let Sink::Port(node, port) = sink else { continue };
        if port == RIGHT || found.contains(&node) {
            continue;
        }
        found.push(node);
        let ports = (0..).zip(&chain.nodes[usize::from(node)].model.ports);
        let forward = ports.filter(|(port, _)| PortId(*port) != LEFT);
        open.extend(forward.filter_map(|(port, _)| graph.next(node, PortId(port))));
    }
    found
}

/// Fields of tunnels and links by which tables are kept.
fn fields(chain: &Chain) -> Vec<Field> {
    let models = chain.nodes.iter().map(|node| &node.model);
    let mut found: Vec<Field> = Vec::new();
    for decl in models.flat_map(|model| &model.state) {
        if let Granularity::Fields(fields) = &decl.granularity {
            found.extend(fields.iter().filter(|field| !field.info().name.starts_with("inet.")));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
