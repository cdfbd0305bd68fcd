//! Routes of packets through groups of functions.

use super::groups::{Groups, row};
use super::log::assigns;
use super::visits::{Visit, Visits};
use crate::parallel::action::{Action, actions};
use crate::parallel::policy::{Function, Origin, Rule};
use crate::parallel::versions::Sharing;
use crate::parallel::{ServiceGraph, graph_sharing};
use braid_ir::chain::{Chain, PolicyRule, Sink};
use braid_ir::model::Op;
use braid_ir::service_graph::stages::{Meta, Why};
use braid_ir::service_graph::{Fork, Node, Operation, Part};
use std::collections::BTreeMap;

/// The routes of groups.
pub(super) struct Draft {
    /// By interface.
    pub(super) entries: Vec<Enters>,
    pub(super) routes: Vec<DraftRoute>,
    /// Two groups whose results a merger could not put together.
    pub(super) unmergeable: Option<(usize, usize)>,
    /// Groups that are next to each other on a route, and whether they run side by side on one.
    pub(super) neighbours: Vec<(usize, usize, bool)>,
}

/// What becomes of packets that enter by an interface.
#[derive(Clone, Copy)]
pub(super) enum Enters {
    Nowhere,
    Leaves(u16),
    Route(usize),
}

/// A route.
pub(super) struct DraftRoute {
    pub(super) groups: Vec<usize>,
    pub(super) graph: ServiceGraph,
    /// Whether groups run side by side.
    pub(super) is_parallel: bool,
}

/// The routes of a chain.
///
/// # Errors
/// The reason why the chain must be one stage.
pub(super) fn draft(chain: &Chain, visits: &Visits, groups: &Groups) -> Result<Draft, Why> {
    let mut draft =
        Draft { entries: vec![], routes: vec![], unmergeable: None, neighbours: vec![] };
    let mut known: BTreeMap<Visit, usize> = BTreeMap::new();
    for (number, _) in (0..).zip(&chain.interfaces) {
        let sink = visits.graph.entry(number);
        let enters = match (sink, visits.visit(sink)) {
            (Some(Sink::Interface(to)), _) => Enters::Leaves(to),
            (_, Some(visit)) => Enters::Route(match known.get(&visit) {
                Some(route) => *route,
                None => {
                    known.insert(visit, draft.routes.len());
                    let route = route(chain, visits, groups, visit, draft.routes.len())?;
                    draft.routes.push(route);
                    draft.routes.len() - 1
                }
            }),
            _ => Enters::Nowhere,
        };
        draft.entries.push(enters);
    }
    // A route may have a second one for packets that the capture has cut.
    if 2 * draft.routes.len() > Meta::ROUTES {
        return Err(Why::Unfit("there are more routes than metadata can number".into()));
    }
    draft.unmergeable = draft.routes.iter().find_map(|route| unmergeable(chain, groups, route));
    for route in &draft.routes {
        for pair in route.groups.windows(2) {
            let (a, b) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            draft.neighbours.push((a, b, false));
        }
    }
    let forked: Vec<(usize, usize)> = draft.routes.iter().flat_map(beside).collect();
    for (a, b, is_parallel) in &mut draft.neighbours {
        *is_parallel = forked.contains(&(*a, *b));
    }
    Ok(draft)
}

/// The route from a visit on.
fn route(
    chain: &Chain,
    visits: &Visits,
    groups: &Groups,
    from: Visit,
    number: usize,
) -> Result<DraftRoute, Why> {
    let row = row(visits, from)?;
    let mut passed: Vec<usize> = row.iter().map(|node| groups.of(*node)).collect();
    passed.dedup();
    let function = |group: &usize| {
        let mut all = Vec::new();
        for node in row.iter().filter(|node| groups.of(**node) == *group) {
            let members = visits.all.get(&(*node, from.1)).map_or(&[][..], |exits| &exits.members);
            for member in members {
                all.extend(actions(&member.profile, member.steers));
                all.extend(lacks_room(chain, member.node).then_some(Action::Drop));
            }
        }
        all.sort_unstable();
        all.dedup();
        Function { name: names(chain, &groups.functions(*group)), actions: all }
    };
    let functions: Vec<Function> = passed.iter().map(function).collect();
    let last = u16::try_from(functions.len()).unwrap_or(u16::MAX);
    let rule = |a: u16| Rule { rule: PolicyRule::Order(a, a + 1), origin: Origin::Path };
    let rules: Vec<Rule> = (0..last.saturating_sub(1)).map(rule).collect();
    let graph = graph_sharing(number, &functions, &rules, Sharing::Nothing)
        .map_err(|problem| Why::Unfit(problem.to_string()))?;
    let is_parallel = graph.equivalent_length < functions.len();
    Ok(DraftRoute { groups: passed, graph, is_parallel })
}

/// Names of functions, as text.
fn names(chain: &Chain, functions: &[u16]) -> String {
    let name = |node: &u16| chain.nodes.get(usize::from(*node)).map_or("", |node| &node.name);
    functions.iter().map(name).collect::<Vec<_>>().join(" + ")
}

/// Whether a function may fault on a complete packet that has no room for an option.
fn lacks_room(chain: &Chain, node: u16) -> bool {
    let blocks = &chain.nodes[usize::from(node)].model.packet.blocks;
    blocks.iter().flat_map(|block| &block.ops).any(|op| matches!(op, Op::PushOption { .. }))
}

/// The forks of a graph.
pub(super) fn forks(node: &Node) -> Vec<&Fork> {
    match node {
        Node::Function(_) => Vec::new(),
        Node::Sequence(parts) => parts.iter().flat_map(forks).collect(),
        Node::Parallel(fork) => {
            let inner = fork.branches.iter().flat_map(|branch| forks(&branch.node));
            std::iter::once(&**fork).chain(inner).collect()
        }
    }
}

/// The functions of a part of a graph.
fn functions(node: &Node) -> Vec<usize> {
    match node {
        Node::Function(function) => vec![*function],
        Node::Sequence(parts) => parts.iter().flat_map(functions).collect(),
        Node::Parallel(fork) => {
            fork.branches.iter().flat_map(|branch| functions(&branch.node)).collect()
        }
    }
}

/// The pairs of groups that run side by side.
fn beside(route: &DraftRoute) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for fork in forks(&route.graph.root) {
        let branches: Vec<Vec<usize>> =
            fork.branches.iter().map(|branch| functions(&branch.node)).collect();
        for (at, one) in branches.iter().enumerate() {
            for (a, b) in
                branches[at + 1..].iter().flatten().flat_map(|b| one.iter().map(move |a| (a, b)))
            {
                let (a, b) = (route.groups[*a], route.groups[*b]);
                pairs.push((a.min(b), a.max(b)));
            }
        }
    }
    pairs
}

/// Two groups of a route that a merger cannot put together, or whose versions are too many.
fn unmergeable(chain: &Chain, groups: &Groups, route: &DraftRoute) -> Option<(usize, usize)> {
    let most = usize::try_from(Meta::VERSIONS).unwrap_or(usize::MAX);
    for fork in forks(&route.graph.root) {
        let main = fork.branches.iter().find(|branch| branch.version == fork.merge.into);
        let main = main.and_then(|branch| functions(&branch.node).first().copied());
        let fits = |operation: &Operation| can_merge(chain, groups, route, operation);
        let by = fork.merge.operations.iter().find(|operation| !fits(operation)).map(by);
        let other = |by: usize| {
            let all = fork.branches.iter().flat_map(|branch| functions(&branch.node));
            main.into_iter().chain(all).find(|function| *function != by)
        };
        // Version 1 is the packet itself.
        let too_many = (route.graph.copies.len() + 2 > most).then_some(main).flatten();
        if let Some(by) = by.or(too_many) {
            return Some((route.groups[by], route.groups[other(by)?]));
        }
    }
    None
}

fn by(operation: &Operation) -> usize {
    match operation {
        Operation::Modify { by, .. } | Operation::Add { by, .. } | Operation::Remove { by, .. } => {
            *by
        }
    }
}

/// Whether logs tell all that an operation asks.
fn can_merge(chain: &Chain, groups: &Groups, route: &DraftRoute, operation: &Operation) -> bool {
    let Operation::Modify { part, by, unless, .. } = operation else { return false };
    let assigned = |function: usize| assigned(chain, &groups.functions(route.groups[function]));
    let (own, only) = assigned(*by);
    let yields = |function: &usize| {
        let (parts, only) = assigned(*function);
        let mut over = parts.iter().filter(|one| one.changes(part));
        only && over.all(|one| one.shares_bits(part))
    };
    only && own.contains(part) && unless.iter().all(yields)
}

/// The parts that functions assign, and whether they change packets in no other way.
pub(super) fn assigned(chain: &Chain, functions: &[u16]) -> (Vec<Part>, bool) {
    let (mut all, mut only) = (Vec::new(), true);
    for node in functions {
        let (parts, this) = assigns(&chain.nodes[usize::from(*node)].model);
        all.extend(parts);
        only &= this;
    }
    all.sort_unstable();
    all.dedup();
    (all, only)
}
