//! Parallelism of functions (NFP, Sun et al., SIGCOMM 2017): which functions of a chain can work on
//! a packet at the same time with the same result as one after the other, and the service graph
//! that makes use of it. The static half: §3 to §5 as data; nothing here moves a packet.
//!
//! - [`action`]: action profiles as lists of actions, with kinds that the paper does not have.
//! - [`part`]: what actions touch, and how fields overlap.
//! - [`depend`]: the dependency table and Algorithm 1; [`depend::Reading`] says how the paper's two
//!   readings of write→write are resolved.
//! - [`paper`]: Table 2 and the statistic of §4.3.
//! - [`policy`], [`plan`], [`versions`]: rules, intermediate representation, micrographs, graph,
//!   copies and merge operations.
//! - [`mod@tables`]: classification, forwarding and merging.
//! - [`chain`]: the ways of a chain, each with its graph.
//! - [`dot`], [`svg`]: pictures.
//!
//! What makes functions of Braid not parallel beyond the paper's table is listed in
//! `docs/parallel.md`.

pub mod action;
pub mod chain;
pub mod depend;
pub mod dot;
pub mod paper;
pub mod part;
pub mod plan;
pub mod policy;
pub mod svg;
pub mod tables;
pub mod versions;

use plan::{Micrograph, Plan};
use policy::{Function, Problem, Representation, Rule, represent};
use serde::Serialize;
use tables::{Tables, tables};
use versions::{Copy, Node};

/// What a policy compiles to. Functions are numbers, from 0.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ServiceGraph {
    /// The intermediate representation.
    pub representation: Representation,
    /// The micrographs.
    pub micrographs: Vec<Micrograph>,
    /// The graph.
    pub root: Node,
    /// Functions on the longest way through it.
    pub equivalent_length: usize,
    /// All copies that are made of each packet.
    pub copies: Vec<Copy>,
    /// The tables.
    pub tables: Tables,
}

/// Compiles a policy (NFP §4.4). `number` is the graph's in the tables.
///
/// # Errors
/// Rules that contradict each other; functions whose order matters, and no rule gives it.
pub fn service_graph(
    number: usize,
    functions: &[Function],
    rules: &[Rule],
) -> Result<ServiceGraph, Problem> {
    let representation = represent(functions, rules)?;
    let plan = Plan::new(functions, &representation);
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
