//! `braid graph --plan`: the stages of a chain for the engine `parallel`.

use std::fmt::Write as _;

use braid_ir::chain::Chain;
use braid_ir::service_graph::stages::{Entry, Route, Stages, Together};
use braid_ir::service_graph::{Extent, Step, Target};
use serde_json::{Value, json};

use crate::planning::words::{name, names, reason};

/// The plan as text.
pub fn text(chain: &Chain, plan: &Stages) -> String {
    let count = match plan.stages.len() {
        1 => "1 stage".to_owned(),
        many => format!("{many} stages"),
    };
    let mut text = format!("chain {} in {count}\n\n", chain.name);
    for (number, stage) in (1..).zip(&plan.stages) {
        let _ = writeln!(text, "stage {number}  {}", names(chain, &stage.functions));
    }
    for (entry, interface) in plan.entries.iter().zip(&chain.interfaces) {
        let name = &interface.name;
        match entry {
            Entry::Unlinked => drop(writeln!(text, "\nfrom {name}: no link leads onward")),
            Entry::Leaves(to) => {
                let to = chain.interfaces.get(usize::from(*to)).map_or("", |to| &to.name);
                let _ = writeln!(text, "\nfrom {name}: to {to} at once");
            }
            Entry::Routes { graph, sequence } => {
                let routes = [graph, sequence].map(|number| plan.routes.get(*number));
                if let [Some(graph), Some(sequence)] = routes {
                    route_text(name, graph, sequence, &mut text);
                }
            }
        }
    }
    if !plan.together.is_empty() {
        text.push_str("\none stage\n");
    }
    for Together { functions, why } in &plan.together {
        let functions = match functions.as_slice() {
            [] => "all functions".to_owned(),
            some => names(chain, some),
        };
        let _ = writeln!(text, "  {functions}: {}", reason(chain, why));
    }
    text
}

fn route_text(from: &str, graph: &Route, sequence: &Route, text: &mut String) {
    let stage = |function: usize| format!("stage {}", number(graph, function));
    let _ = writeln!(text, "\nfrom {from}  {}", graph.root.text(&stage));
    let tables = &graph.tables;
    let steps = tables.forwarding.iter().flat_map(|forwarding| &forwarding.steps);
    for step in tables.classification.steps.iter().chain(steps) {
        let Step::Copy { to, extent, .. } = step else { continue };
        let extent = match extent {
            Extent::Headers => "the headers",
            Extent::Full => "the whole packet",
        };
        let _ = writeln!(text, "  copy    {extent} for {}", whom(graph, *to));
    }
    if graph != sequence {
        let row = sequence.root.text(&stage);
        let _ = writeln!(text, "  cut and malformed packets, and fragments: {row}");
    }
    for merging in &tables.merging {
        let merge = &merging.merge;
        let (expects, writes) = (merge.expects, merge.operations.len());
        let _ = writeln!(text, "  merge   {expects} versions, {writes} parts if they were written");
    }
}

/// The stage that begins with a version.
fn whom(route: &Route, version: u32) -> String {
    let tables = &route.tables;
    let steps = tables.forwarding.iter().flat_map(|forwarding| &forwarding.steps);
    let mut all = tables.classification.steps.iter().chain(steps);
    let first = all.find_map(|step| match step {
        Step::Distribute { version: of, targets } if *of == version => targets.first(),
        _ => None,
    });
    match first {
        Some(Target::Function(function)) => format!("stage {}", number(route, *function)),
        _ => "a merger".to_owned(),
    }
}

/// The number of a stage, from 1.
fn number(route: &Route, function: usize) -> usize {
    route.stages.get(function).map_or(0, |stage| stage + 1)
}

/// The plan as JSON.
pub fn value(chain: &Chain, plan: &Stages) -> Value {
    let list = |functions: &[u16]| -> Vec<&str> {
        functions.iter().map(|node| name(chain, *node)).collect()
    };
    let stages = plan.stages.iter().map(|stage| json!(list(&stage.functions)));
    let together = plan.together.iter().map(|Together { functions, why }| {
        json!({ "functions": list(functions), "why": reason(chain, why) })
    });
    json!({
        "chain": chain.name,
        "stages": stages.collect::<Vec<_>>(),
        "entries": plan.entries,
        "routes": plan.routes,
        "one_stage": together.collect::<Vec<_>>(),
    })
}
