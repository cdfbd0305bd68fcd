//! Finds the functions of a chain that can work on a packet in parallel with the same result as in
//! sequence, and makes the service graph for them (NFP, Sun et al., SIGCOMM 2017, §3 to §5).
//!
//! No code here processes packets. The graph and its tables are data of `braid_ir::service_graph`,
//! so a runtime can follow them without this analysis.
//!
//! - [`action`]: action profiles as lists of actions, with kinds that the paper does not have.
//! - [`depend`]: the dependency table and Algorithm 1. [`depend::Reading`] selects between the two
//!   readings that the paper allows for write→write.
//! - [`paper`]: Table 2 and the statistic of §4.3.
//! - [`policy`], [`plan`], `branches`, `versions`: rules, intermediate representation, micrographs,
//!   graph, copies and merge operations.
//! - [`mod@tables`]: classification, forwarding and merging.
//! - [`chain`]: the paths of a chain, each with its graph.
//! - [`stages`]: the same for stages of functions, each on a thread of its own.
//! - [`dot`], [`svg`]: pictures.
//!
//! `docs/parallel.md` lists the other reasons why functions of Braid do not run in parallel.

pub mod action;
mod branches;
pub mod chain;
pub mod depend;
pub mod dot;
pub mod paper;
pub mod plan;
pub mod policy;
pub mod stages;
pub mod svg;
pub mod tables;
mod versions;

use braid_ir::service_graph::{Copy, Node, Tables};
use plan::{Micrograph, Plan};
use policy::{Function, Problem, Representation, Rule, represent};
use serde::Serialize;
use tables::tables;
use versions::Sharing;

/// The result of compiling a policy. Functions are named by number, from 0.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ServiceGraph {
    /// The intermediate representation.
    pub representation: Representation,
    /// The micrographs.
    pub micrographs: Vec<Micrograph>,
    /// The graph.
    pub root: Node,
    /// The number of functions on the longest path through the graph (the paper's equivalent chain
    /// length).
    pub equivalent_length: usize,
    /// All copies that are made of each packet.
    pub copies: Vec<Copy>,
    /// The tables.
    pub tables: Tables,
}

/// Compiles a policy (NFP §4.4). `number` identifies the graph in the tables.
///
/// # Errors
/// Returns an error when rules contradict each other, or when the order of two functions matters
/// but no rule gives it.
pub fn service_graph(
    number: usize,
    functions: &[Function],
    rules: &[Rule],
) -> Result<ServiceGraph, Problem> {
    graph_sharing(number, functions, rules, Sharing::Parts)
}

/// As [`service_graph`].
pub(crate) fn graph_sharing(
    number: usize,
    functions: &[Function],
    rules: &[Rule],
    sharing: Sharing,
) -> Result<ServiceGraph, Problem> {
    let representation = represent(functions, rules)?;
    let plan = Plan::new(functions, &representation, sharing);
    let micrographs = plan.micrographs();
    let (root, versions) = plan.graph(&micrographs);
    let copies = versions.copies();
    let tables = tables(number, &root, copies.len());
    Ok(ServiceGraph {
        equivalent_length: root.equivalent_length(),
        micrographs: micrographs.into_iter().map(|(micrograph, _)| micrograph).collect(),
        root,
        copies,
        tables,
        representation,
    })
}
