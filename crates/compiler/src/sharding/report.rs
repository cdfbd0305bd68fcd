//! The result of the analysis as data for people and programs.

use super::candidates::Candidate;
use super::claims::Table;
use super::judge::{Best, Division, Judged, decl};
use super::search::Seen;
use super::shadow::is_hidden;
use super::usage::Share;
use super::words::{line, local, name, used};
use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::Graph;
use braid_ir::model::{Dest, Granularity, LEFT, Model, Op, ParamId, RIGHT, Term};
use braid_ir::show::steering_rule;
use braid_ir::steering::Steering;
use braid_ir::value::ParamValue;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// How a chain is divided over workers.
#[derive(Clone, Debug, Serialize)]
pub struct Sharding {
    /// The chain.
    pub chain: String,
    /// Whether it can be divided.
    pub verdict: Verdict,
    /// Why it cannot be divided, one sentence each.
    pub why_not: Vec<String>,
    /// The rule for the packets of each interface.
    pub entries: Vec<Rule>,
    /// Whether ICMP errors go to the worker of the flow that they are about.
    pub errors_follow: bool,
    /// All tables.
    pub tables: Vec<TableSharding>,
    /// The pools that are divided into shares.
    pub pools: Vec<PoolShare>,
    /// The assumptions under which many workers do what one does, one sentence each.
    pub assumes: Vec<String>,
    /// The steering, if the chain can be divided.
    #[serde(skip)]
    pub steering: Option<Steering>,
}

/// Whether a chain can be divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It has no state: any packet may go to any worker.
    Stateless,
    /// Workers share nothing.
    Split,
    /// It must run on one worker.
    OneWorker,
}

/// The rule for the packets of an interface.
#[derive(Clone, Debug, Serialize)]
pub struct Rule {
    /// The interface.
    pub interface: String,
    /// The rule in words.
    pub by: String,
}

/// How a table is divided.
#[derive(Clone, Debug, Serialize)]
pub struct TableSharding {
    /// The function's name in the chain.
    pub function: String,
    /// The function's name in the language.
    pub model: String,
    /// The table.
    pub table: String,
    /// How it is divided.
    pub placement: Placement,
    /// Why, in one sentence.
    pub reason: String,
    /// Packets for which this does not hold, one sentence each.
    pub exceptions: Vec<String>,
    /// The line of the function's source that the reason is about, if it is known.
    pub line: Option<u32>,
}

/// How a table is divided over workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Each entry belongs to one worker.
    Local,
    /// Each worker has all entries, which nothing changes.
    Replicated,
    /// Each worker counts in its own entries. Reports add up the entries with the same key.
    Summed,
    /// Each worker has its own round-robin position.
    Turns,
    /// Each worker has a table of its own, because the function says so.
    Own,
    /// Each worker has a table of its own, and an equal portion of the limits that the function
    /// names.
    Portions,
    /// One worker must have all entries.
    Owner,
}

/// A pool that is divided into shares.
#[derive(Clone, Debug, Serialize)]
pub struct PoolShare {
    /// The function.
    pub function: String,
    /// The pool.
    pub pool: String,
    /// The rule in one sentence.
    pub rule: String,
}

impl Placement {
    /// The placement in one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Placement::Local => "local",
            Placement::Replicated => "replicated",
            Placement::Summed => "summed",
            Placement::Turns => "turns",
            Placement::Own => "own",
            Placement::Portions => "portions",
            Placement::Owner => "owner",
        }
    }
}

/// The report about a chain for which a steering was found.
pub(super) fn found(chain: &Chain, best: &Best) -> Sharding {
    let mut tables: Vec<_> = best.judged.iter().map(|one| table(chain, best, one)).collect();
    let keeps = |table: &&TableSharding| table.placement == Placement::Owner;
    let owners = tables.iter().filter(keeps);
    let why_not: Vec<String> = owners
        .map(|table| format!("{}: {}", name(&table.function, &table.table), table.reason))
        .collect();
    let verdict = match (tables.is_empty(), why_not.is_empty()) {
        (true, _) => Verdict::Stateless,
        (false, true) => Verdict::Split,
        (false, false) => Verdict::OneWorker,
    };
    tables.retain(|table| !is_hidden(&table.table));
    let steering = &best.candidate.steering;
    let is_split = verdict != Verdict::OneWorker;
    Sharding {
        chain: chain.name.clone(),
        verdict,
        why_not,
        entries: if is_split { rules(chain, steering) } else { Vec::new() },
        errors_follow: steering.errors_follow,
        tables,
        pools: if is_split { pools(chain) } else { Vec::new() },
        assumes: if is_split { assumes(chain, best) } else { Vec::new() },
        steering: is_split.then(|| steering.clone()),
    }
}

/// The report about a chain that the analysis cannot follow.
pub(super) fn unsure(chain: &Chain, why: String) -> Sharding {
    Sharding {
        chain: chain.name.clone(),
        verdict: Verdict::OneWorker,
        why_not: vec![why],
        entries: Vec::new(),
        errors_follow: false,
        tables: Vec::new(),
        pools: Vec::new(),
        assumes: Vec::new(),
        steering: None,
    }
}

fn rules(chain: &Chain, steering: &Steering) -> Vec<Rule> {
    let Ok(graph) = Graph::new(chain) else { return Vec::new() };
    let interfaces = (0..).zip(&chain.interfaces);
    let interfaces =
        interfaces.filter(|(number, _)| matches!(graph.entry(*number), Some(Sink::Port(..))));
    let rule = |(number, interface): (u16, &braid_ir::chain::Interface)| Rule {
        interface: interface.name.clone(),
        by: steering_rule(chain, steering.by(number)),
    };
    interfaces.map(rule).collect()
}

/// Pools that functions take members of.
fn pools(chain: &Chain) -> Vec<PoolShare> {
    let mut found = Vec::new();
    for node in &chain.nodes {
        let handlers = node.model.handlers.iter().map(|(_, program)| program);
        let programs = handlers.chain([&node.model.packet]);
        let ops = programs.flat_map(|program| &program.blocks).flat_map(|block| &block.ops);
        let taken: BTreeSet<ParamId> = ops
            .filter_map(|op| match op {
                Op::Take { pool, .. } | Op::TakeThis { pool, .. } => Some(*pool),
                _ => None,
            })
            .collect();
        found.extend(taken.into_iter().map(|pool| {
            PoolShare {
            function: node.name.clone(),
            pool: node.model.params[pool.index()].name.clone(),
            rule: "each worker takes only from its own share: the members in ascending order, cut \
                   into equal parts"
                .to_owned(),
        }
        }));
    }
    found
}

/// The assumptions under which many workers do what one does.
fn assumes(chain: &Chain, best: &Best) -> Vec<String> {
    let by_end = best.judged.iter().any(|one| {
        let flow = matches!(
            decl(chain, one.table).granularity,
            Granularity::Flow | Granularity::Biflow
        );
        flow && matches!(&one.kind, Division::Local(claim) if claim.law != super::facts::Law::Connection)
    });
    let text = "no packet has a sender that belongs to the other side of the chain (filter spoofed \
                addresses at the edge)";
    let mut found = if by_end { vec![text.to_owned()] } else { Vec::new() };
    if !best.turned {
        let names: Vec<&str> =
            chain.nodes.iter().filter(|node| turns(&node.model)).map(|node| &*node.name).collect();
        found.push(format!(
            "{} send packets back only to where others expect them (packets sent \
             back in the direction they came from may belong to another worker)",
            names.join(", ")
        ));
    }
    let counts = |value: &ParamValue| match value {
        ParamValue::Signatures(set) => set.has_thresholds(),
        _ => false,
    };
    for node in chain.nodes.iter().filter(|node| node.params.iter().any(counts)) {
        found.push(format!(
            "no threshold of {}'s signatures counts connections of several workers (each worker \
             counts its own)",
            node.name
        ));
    }
    found
}

/// Whether a function may send a packet back in the direction it came from.
fn turns(model: &Model) -> bool {
    let back = |dest: &Dest| matches!(dest, Dest::Back | Dest::Port(LEFT | RIGHT));
    let mut ends = model.packet.blocks.iter().map(|block| &block.term);
    ends.any(|end| matches!(end, Term::Output { ports, .. } if ports.iter().any(back)))
}

fn table(chain: &Chain, best: &Best, one: &Judged) -> TableSharding {
    let node = &chain.nodes[usize::from(one.table.0)];
    let (placement, reason) = match &one.kind {
        Division::Local(claim) => (Placement::Local, local(chain, decl(chain, one.table), claim)),
        Division::Shared(share) => shared(chain, best, one, *share),
    };
    let exceptions = match one.kind {
        Division::Local(_) => {
            let end = ", and find only the entries of their own worker";
            distinct(chain, &one.exceptions, end)
        }
        Division::Shared(_) => Vec::new(),
    };
    TableSharding {
        function: node.name.clone(),
        model: node.model.name.clone(),
        table: decl(chain, one.table).name.clone(),
        placement,
        reason,
        exceptions,
        line: one.exceptions.iter().find_map(|seen| line(chain, seen.by.site)),
    }
}

/// Different sentences about uses.
fn distinct(chain: &Chain, uses: &[Seen], end: &str) -> Vec<String> {
    let texts: BTreeSet<String> = uses.iter().map(|seen| used(chain, seen)).collect();
    texts.into_iter().map(|text| format!("{text}{end}")).collect()
}

/// The placement of a table that no steering divides, and the reason.
fn shared(chain: &Chain, best: &Best, one: &Judged, share: Share) -> (Placement, String) {
    let is_global = decl(chain, one.table).granularity == Granularity::Global;
    let why = match (is_global, distinct(chain, &one.exceptions, "").first()) {
        (true, _) => "all packets use its only entry".to_owned(),
        (false, Some(text)) => format!("{text}, which does not decide their worker"),
        (false, None) => "programs use it in ways that the analysis does not follow".to_owned(),
    };
    match share {
        Share::Replicated => {
            (Placement::Replicated, "nothing changes it, so each worker has a copy".to_owned())
        }
        Share::Summed => (
            Placement::Summed,
            format!("{why}; the function only counts, so reports add up the values"),
        ),
        Share::Turns => (
            Placement::Turns,
            format!(
                "{why}; it is only a round-robin position, so each worker has its own: compared \
                 with one worker, a member may be chosen once more for each worker"
            ),
        ),
        Share::Own => {
            (Placement::Own, format!("{why}; its function gives each worker a table of its own"))
        }
        Share::Portions => (Placement::Portions, portions(chain, one.table, &why)),
        Share::Limit => (
            Placement::Owner,
            format!(
                "{why}; it compares an amount with a limit (`portions` divides limits, `sharded` \
                 gives each worker the whole limit)"
            ),
        ),
        Share::None => (Placement::Owner, owner(chain, best, one.table, why)),
    }
}

/// The consequences of portions for a table's limits, in words.
fn portions(chain: &Chain, table: Table, why: &str) -> String {
    let params = &chain.nodes[usize::from(table.0)].model.params;
    let names = decl(chain, table).portions.iter().map(|param| &*params[param.index()].name);
    let names: Vec<&str> = names.collect();
    let workers = match chain.workers {
        0 | 1 => "the number of workers".to_owned(),
        workers => workers.to_string(),
    };
    format!(
        "{why}; each worker has {} divided by {workers}: all portions together are at most the \
         limit, and the packets of one worker get no more than its portion",
        names.join(" and ")
    )
}

/// Why one worker must have a table.
fn owner(chain: &Chain, best: &Best, table: Table, mut why: String) -> String {
    if let Some(alone) = best.alone.get(&table) {
        let rules: BTreeSet<String> =
            alone.steering.entries.iter().map(|by| steering_rule(chain, by)).collect();
        let rules: Vec<String> = rules.into_iter().collect();
        let others = best.judged.iter().filter(|one| {
            one.table != table && !best.alone.get(&one.table).is_some_and(|by| same(by, alone))
        });
        let others = others.filter(|one| matches!(one.kind, Division::Local(_)));
        let others: Vec<String> = others
            .map(|one| {
                let function = &chain.nodes[usize::from(one.table.0)].name;
                name(function, &decl(chain, one.table).name)
            })
            .collect();
        let rules = rules.join(" / ");
        let _ = write!(why, "; without the other tables it would be divided by {rules}");
        if !others.is_empty() {
            let _ = write!(why, ", which does not fit {}", others.join(", "));
        }
    }
    why
}

fn same(a: &Candidate, b: &Candidate) -> bool {
    a.steering == b.steering
}
