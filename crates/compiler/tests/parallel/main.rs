//! The static half of NFP: the paper's tables, policies to graphs, graphs of chains.

mod graphs;
mod paper;
mod parts;
mod policies;

use braid_compiler::parallel::action::Action;
use braid_compiler::parallel::policy::{Function, Origin, Rule};
use braid_compiler::parallel::{ServiceGraph, service_graph};
use braid_ir::chain::PolicyRule;
use braid_ir::service_graph::Part;
use braid_packet::{Field, Header};

/// A function with these actions: `r PART`, `w PART`, `has HEADER`, `add HEADER`, `remove HEADER`,
/// `drop`, `steer`, `emit`, `hold`. A part is a field's name, `payload`, `whole` or `#TAG`. Every
/// function also counts.
pub fn function(name: &str, actions: &str) -> Function {
    let mut found: Vec<Action> =
        actions.split(',').map(str::trim).filter(|a| !a.is_empty()).map(action).collect();
    found.push(Action::Count);
    Function { name: name.into(), actions: found }
}

fn action(text: &str) -> Action {
    let (verb, object) = text.split_once(' ').unwrap_or((text, ""));
    let part = || match (object, object.strip_prefix("#")) {
        ("payload", _) => Part::Payload,
        ("whole", _) => Part::Whole,
        (_, Some(tag)) => Part::Tag(tag.into()),
        _ => Part::Field(Field::by_name(object).unwrap_or_else(|| panic!("{object}"))),
    };
    let header = || Header::by_name(object).unwrap_or_else(|| panic!("{object}"));
    match verb {
        "r" => Action::Read(part()),
        "has" => Action::Read(Part::Presence(header())),
        "w" => Action::Write(part()),
        "add" => Action::Add(header()),
        "remove" => Action::Remove(header()),
        "drop" => Action::Drop,
        "steer" => Action::Steer,
        "emit" => Action::Emit,
        "hold" => Action::Hold,
        _ => panic!("{text}"),
    }
}

/// A rule of the policy.
pub fn said(rule: PolicyRule) -> Rule {
    Rule { rule, origin: Origin::Policy }
}

/// Orders between neighbours.
pub fn row(count: u16) -> Vec<Rule> {
    (1..count).map(|at| said(PolicyRule::Order(at - 1, at))).collect()
}

/// The graph of a policy, which must have one.
#[track_caller]
pub fn graph(functions: &[Function], rules: &[Rule]) -> ServiceGraph {
    service_graph(1, functions, rules).unwrap_or_else(|problem| panic!("{problem}"))
}

/// A graph as text.
pub fn shown(functions: &[Function], graph: &ServiceGraph) -> String {
    graph.root.text(&|function| functions[function].name.clone())
}
