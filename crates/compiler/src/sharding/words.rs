//! The analysis in words.

use super::claims::Claim;
use super::facts::{Law, Term};
use super::search::{Kind, Seen};
use super::shadow::is_hidden;
use braid_ir::chain::Chain;
use braid_ir::model::{Granularity, Op, StateDecl, ValueId};
use braid_ir::residual::{Residual, Site, What};
use braid_ir::show::pool_name;

/// The name of a function's table.
pub(super) fn name(function: &str, table: &str) -> String {
    match is_hidden(table) {
        true => format!("{table} of {function}"),
        false => format!("{function}.{table}"),
    }
}

/// Why all packets that use an entry have the same worker.
pub(super) fn local(chain: &Chain, decl: &StateDecl, claim: &Claim) -> String {
    let is_flow = matches!(decl.granularity, Granularity::Flow | Granularity::Biflow);
    let part = match claim.law {
        Law::First => return "only packets of worker 0 use it".to_owned(),
        Law::Connection => return "all packets of an entry belong to one connection".to_owned(),
        Law::Both => "the address and port",
        Law::Address => "the address",
        Law::Port => "the port",
        Law::Field(field) => {
            return format!("the key has {}, which steers the packet", field.info().name);
        }
        Law::Pool(node, param) => {
            let pool = pool_name(chain, node, param);
            return format!("the key has a member of {pool}, and each worker has its own members");
        }
    };
    let of = if is_flow { "of the end of the flow" } else { "" };
    format!("the key has {part} {of} that steers the packet").replace("  ", " ")
}

/// How packets use an entry: where they enter, and by which key.
pub(super) fn used(chain: &Chain, seen: &Seen) -> String {
    let interface = &chain.interfaces[usize::from(seen.entered)].name;
    let what = match seen.kind {
        Kind::Error => "ICMP errors",
        Kind::ShortError => "ICMP errors without quoted ports",
        Kind::Created => "answers to packets",
        Kind::Cut => "ICMP errors that do not quote all headers of packets",
        Kind::Other if seen.by.own_address => "packets to an address of the chain itself",
        Kind::Other => "packets",
    };
    let verb = if seen.by.writes { "change" } else { "look up" };
    let key: Vec<String> =
        seen.by.key.iter().map(|term| value(chain, &seen.by.program, *term)).collect();
    format!("{what} from {interface} {verb} entries by ({})", key.join(", "))
}

/// Where a value comes from.
fn value(chain: &Chain, program: &Residual, term: Term) -> String {
    match term {
        Term::Word(_) => "a constant".to_owned(),
        Term::Field(field) => field.info().name.to_owned(),
        Term::Param(node, param) => pool_name(chain, node, param),
        Term::Value(value) => origin(chain, program, value),
    }
}

fn origin(chain: &Chain, program: &Residual, value: ValueId) -> String {
    for step in program.blocks.iter().flat_map(|block| &block.steps) {
        if !step.what.outs().contains(&value) {
            continue;
        }
        let node = &chain.nodes[usize::from(step.site.node)];
        return match &step.what {
            What::Op(Op::Take { pool, .. }) => {
                format!("a member of {}", pool_name(chain, step.site.node, *pool))
            }
            What::Read { state, .. } if !is_hidden(&node.model.state[state.index()].name) => {
                format!("a value of {}.{}", node.name, node.model.state[state.index()].name)
            }
            _ => format!("a value that {} computes", node.name),
        };
    }
    "one of several values".to_owned()
}

/// The line of the function's source at which a step of its program stands, if it is known.
pub(super) fn line(chain: &Chain, site: Site) -> Option<u32> {
    let model = &chain.nodes[usize::from(site.node)].model;
    let block = model.packet.blocks.get(site.block as usize)?;
    let before = block.ops.iter().take(site.op as usize + 1).rev();
    let row = before.filter_map(|op| match op {
        Op::Count { row } => Some(*row),
        _ => None,
    });
    let row = row.into_iter().next()?;
    let line = model.rows.get(row.index())?.line;
    (line > 0).then_some(line)
}
