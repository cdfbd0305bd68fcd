//! The chains that the engines of stages run.

use super::groups::{Groups, speaks_on_time};
use super::log;
use super::routes::{Draft, DraftRoute, Enters, assigned, forks};
use super::visits::Visits;
use crate::parallel::tables::tables;
use braid_ir::chain::{Chain, Interface, Malformed, Sink, Source};
use braid_ir::model::{Block, Model, Program, RowDecl, RowId, Term};
use braid_ir::service_graph::stages::{Entry, Route, Stage, Stages};
use braid_ir::service_graph::{Node, Operation};
use std::sync::Arc;

/// The chain in stages.
pub(super) fn divided(chain: &Chain, visits: &Visits, groups: Groups, draft: Draft) -> Stages {
    let numbers = groups.numbers();
    let stage_of = |group: usize| numbers.iter().position(|number| *number == group).unwrap_or(0);
    let (mut routes, mut entry_of, mut logs) = (Vec::new(), Vec::new(), vec![false; numbers.len()]);
    for drafted in &draft.routes {
        let stages: Vec<usize> = drafted.groups.iter().map(|group| stage_of(*group)).collect();
        for function in logging(drafted) {
            logs[stages[function]] = true;
        }
        let graph = routes.len();
        routes.push(route(graph, &stages, &drafted.graph.root, drafted.graph.copies.len()));
        if drafted.is_parallel {
            let row = Node::Sequence((0..stages.len()).map(Node::Function).collect());
            routes.push(route(graph + 1, &stages, &row, 0));
        }
        entry_of.push(Entry::Routes { graph, sequence: routes.len() - 1 });
    }
    let entries = draft.entries.iter().map(|enters| match enters {
        Enters::Nowhere => Entry::Unlinked,
        Enters::Leaves(interface) => Entry::Leaves(*interface),
        Enters::Route(number) => entry_of[*number],
    });
    let entries: Vec<Entry> = entries.collect();
    let stages = (0..).zip(&numbers).map(|(stage, group)| {
        let functions = groups.functions(*group);
        let logged = if logs[stage] { assigned(chain, &functions).0 } else { Vec::new() };
        let mut own = own_chain(chain, visits, &functions);
        for node in functions.iter().filter(|_| logs[stage]) {
            log::add(Arc::make_mut(&mut own.nodes[usize::from(*node)].model), stage, &logged);
        }
        let is_apart = is_apart(chain, &functions);
        Stage { functions, chain: own, logged, is_apart }
    });
    let stages = stages.collect();
    Stages { stages, routes, entries, together: groups.together }
}

fn route(number: usize, stages: &[usize], root: &Node, copies: usize) -> Route {
    Route { stages: stages.to_vec(), root: root.clone(), tables: tables(number, root, copies) }
}

/// The functions of a route's graph whose writes a merger asks for.
fn logging(route: &DraftRoute) -> Vec<usize> {
    let forks = forks(&route.graph.root).into_iter();
    let operations = forks.flat_map(|fork| &fork.merge.operations);
    let named = operations.flat_map(|operation| match operation {
        Operation::Modify { by, unless, .. }
        | Operation::Add { by, unless, .. }
        | Operation::Remove { by, unless, .. } => {
            std::iter::once(*by).chain(unless.iter().copied())
        }
    });
    named.collect()
}

/// Whether the due work of these functions publishes events. They must be told apart from what
/// packets do: what is due belongs to the first packet of its time, and a stage may see a later one
/// first.
fn is_apart(chain: &Chain, functions: &[u16]) -> bool {
    functions.iter().any(|node| speaks_on_time(&chain.nodes[usize::from(*node)].model))
}

/// The chain of a stage.
fn own_chain(chain: &Chain, visits: &Visits, functions: &[u16]) -> Chain {
    let is_own = |node: u16| functions.contains(&node);
    let onward = u16::try_from(chain.interfaces.len()).unwrap_or(u16::MAX);
    let mut own = chain.clone();
    own.interfaces.push(Interface { name: String::new(), ..Interface::default() });
    own.links.clear();
    for (number, _) in (0..).zip(&chain.interfaces) {
        let entry = entry(visits, number, &is_own);
        own.links.extend(entry.map(|sink| (Source::Interface(number), sink)));
    }
    for (source, sink) in &chain.links {
        let Source::Port(node, _) = source else { continue };
        let sink = match *sink {
            Sink::Port(next, _) if !is_own(next) => Sink::Interface(onward),
            sink => sink,
        };
        own.links.extend(is_own(*node).then_some((*source, sink)));
    }
    let others = (0..).zip(&mut own.nodes).filter(|(node, _)| !is_own(*node));
    for (_, node) in others {
        node.model = Arc::new(idle(&node.model));
        node.params.clear();
    }
    own.priorities.retain(|rule| is_own(rule.winner) && is_own(rule.loser));
    own.policy.clear();
    // Packets are judged where they enter the whole chain.
    own.malformed = Malformed::Pass;
    own
}

/// Where packets of an interface enter the stage of these functions.
fn entry(visits: &Visits, interface: u16, is_own: &dyn Fn(u16) -> bool) -> Option<Sink> {
    let mut sink = visits.graph.entry(interface);
    loop {
        match sink? {
            Sink::Interface(_) => return None,
            Sink::Port(node, _) if is_own(node) => return sink,
            Sink::Port(..) => sink = visits.all.get(&visits.visit(sink)?)?.onward,
        }
    }
}

/// A model in the place of a function that another stage runs. No packet reaches it.
fn idle(model: &Model) -> Model {
    let row = RowDecl { label: "fault".to_owned(), text: String::new(), line: 0 };
    let block = Block { params: vec![], ops: vec![], term: Term::Consume { row: RowId(0) } };
    Model {
        ports: model.ports.clone(),
        rows: vec![row],
        packet: Program { blocks: vec![block], values: vec![] },
        ..Model::new(model.name.clone())
    }
}
