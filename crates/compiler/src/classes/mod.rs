//! Traffic classes of a chain, for people to read: the programs that the synthesis makes, their
//! headers, the paths through them, and the work that joining functions saves (SNF, Fig. 5 and 6).

mod count;
mod data;
mod layout;
mod paths;
mod say;
mod svg;
mod text;

pub use count::Elements;
pub use data::{Classes, Detail, Entry, Program};
pub use paths::Path;
pub use svg::svg;
pub use text::text;

use crate::synth::{Stats, general};
use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::Graph;
use braid_ir::model::{Model, RIGHT};
use braid_ir::residual::{Extent, Point, Residual};
use braid_packet::{HEADERS, presences};
use data::is_drop;

/// The traffic classes of a chain.
///
/// # Errors
/// Returns an error when links or priorities are invalid.
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
        let first = match graph.entry(number) {
            Some(Sink::Port(node, _)) => Some(&chain.nodes[usize::from(node)]),
            _ => None,
        };
        let named = |is: fn(&Model) -> bool| {
            first.filter(|node| is(&node.model)).map(|node| node.name.clone())
        };
        let (native, stream) = (named(Model::is_native_on_packets), named(Model::is_stream));
        entries.push(Entry { interface: interface.name.clone(), native, stream, programs });
    }
    let functions = chain.nodes.iter().map(|node| node.name.clone()).collect();
    Ok(Classes { chain: chain.name.clone(), functions, entries })
}

/// Makes a program for every set of headers that packets may have.
fn programs(chain: &Chain, graph: &Graph, point: Point, detail: Detail) -> Vec<Program> {
    let mut made: Vec<((Residual, Stats), u128, usize)> = Vec::new();
    for presence in presences() {
        if graph.goes_to_stack(point.node, presence) {
            continue;
        }
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
        classes: paths::count(&residual).map_or("very many".to_owned(), |count| count.to_string()),
        drops,
        before,
        after: count::longest(&residual),
        saved,
        paths: paths::paths(chain, &residual, detail.paths),
        text: detail.programs.then(|| braid_ir::residual::print(&residual, chain)),
        residual,
    }
}
