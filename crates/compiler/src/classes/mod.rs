//! Traffic classes of a chain, for people: which programs the synthesis makes, for which headers, what
//! the ways through them are, and what putting functions together saved (SNF, Fig. 5 and 6).

mod count;
mod layout;
mod say;
mod svg;
mod text;
mod ways;

pub use count::Elements;
pub use svg::svg;
pub use text::text;
pub use ways::Way;

use crate::synth::{Stats, general};
use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::Graph;
use braid_ir::model::RIGHT;
use braid_ir::residual::{End, Extent, Fate, Point, Residual};
use braid_packet::{HEADERS, presences};
use serde::Serialize;

/// How much is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Detail {
    /// Most ways of each program that are listed.
    pub ways: usize,
    /// Whether the programs themselves are.
    pub programs: bool,
}

/// The classes of a chain.
#[derive(Clone, Debug, Serialize)]
pub struct Classes {
    /// The chain's name.
    pub chain: String,
    /// Its functions, in their order.
    pub functions: Vec<String>,
    /// What each interface's packets may be.
    pub entries: Vec<Entry>,
}

/// Packets of an interface.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The interface.
    pub interface: String,
    /// The native function that they come to first, if it is one: then there are no programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// The programs for them, those first in which packets visit most functions. Each packet is of one.
    pub programs: Vec<Program>,
}

/// A program, and the classes that are its ways.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    /// Headers that its packets have, of those that matter.
    pub present: Vec<&'static str>,
    /// Headers that they lack, of those that matter.
    pub absent: Vec<&'static str>,
    /// So many of the possible sets of headers are of this shape.
    pub shapes: usize,
    /// Most functions that a packet visits.
    pub visits: u32,
    /// Blocks of the program.
    pub blocks: usize,
    /// Ways through its graph, in words, because there may be very many. Those that packets can take are
    /// its classes.
    pub classes: String,
    /// Blocks where packets are dropped.
    pub drops: usize,
    /// What the functions do on the longest way when each works for itself.
    pub before: Elements,
    /// What the program does on its longest way.
    pub after: Elements,
    /// What was found to be done already, to be done at once, or not at all, over all ways.
    pub saved: Stats,
    /// The first ways.
    pub ways: Vec<Way>,
    /// The program's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The program.
    #[serde(skip)]
    pub residual: Residual,
}

/// The classes of a chain.
///
/// # Errors
/// Links or priorities that make no sense.
pub fn classes(chain: &Chain, detail: Detail) -> Result<Classes, String> {
    let graph = Graph::new(chain)?;
    let mut entries = Vec::new();
    for (number, interface) in (0..).zip(&chain.interfaces) {
        let programs = match graph.entry(number) {
            Some(Sink::Port(node, port)) if graph.has_programs(node) => {
                let point = Point { node, backward: port == RIGHT, held: false };
                programs(chain, &graph, point, detail)
            }
            _ => Vec::new(),
        };
        let native = match graph.entry(number) {
            Some(Sink::Port(node, _)) => Some(&chain.nodes[usize::from(node)]),
            _ => None,
        };
        let native = native.filter(|node| node.model.native.is_some());
        let native = native.map(|node| node.name.clone());
        entries.push(Entry { interface: interface.name.clone(), native, programs });
    }
    let functions = chain.nodes.iter().map(|node| node.name.clone()).collect();
    Ok(Classes { chain: chain.name.clone(), functions, entries })
}

/// A program for every set of headers that packets may have.
fn programs(chain: &Chain, graph: &Graph, point: Point, detail: Detail) -> Vec<Program> {
    let mut made: Vec<((Residual, Stats), u128, usize)> = Vec::new();
    for presence in presences() {
        match made.iter_mut().find(|((program, _), ..)| program.shape.fits(presence)) {
            Some((.., shapes)) => *shapes += 1,
            None => {
                let program = general(chain, graph, point, presence, Extent::Chain);
                made.push((program, presence, 1));
            }
        }
    }
    made.sort_by_key(|((program, _), _, shapes)| std::cmp::Reverse((program.visits, *shapes)));
    made.into_iter()
        .map(|(program, presence, shapes)| {
            let before = count::apart(chain, graph, point, presence);
            describe(chain, program, shapes, before, detail)
        })
        .collect()
}

fn describe(
    chain: &Chain,
    (residual, saved): (Residual, Stats),
    shapes: usize,
    before: Elements,
    detail: Detail,
) -> Program {
    let named = |wanted: bool| {
        let headers =
            HEADERS.iter().filter(|(header, _)| residual.shape.has(*header) == Some(wanted));
        headers.map(|(_, name)| *name).collect()
    };
    let drops = residual.blocks.iter().filter(|block| is_drop(&block.end)).count();
    Program {
        present: named(true),
        absent: named(false),
        shapes,
        visits: residual.visits,
        blocks: residual.blocks.len(),
        classes: ways::count(&residual).map_or("very many".to_owned(), |count| count.to_string()),
        drops,
        before,
        after: count::longest(&residual),
        saved,
        ways: ways::ways(chain, &residual, detail.ways),
        text: detail.programs.then(|| braid_ir::residual::print(&residual, chain)),
        residual,
    }
}

fn is_drop(end: &End) -> bool {
    matches!(end, End::Exit(exit) if matches!(exit.fate, Fate::Drop { .. }))
}
