//! Sharding: gives each packet of a chain a worker, so that workers share no state.
//!
//! A steering gives each packet a worker where it enters the chain. It fits a table if the key of
//! an entry decides the worker of all packets that use the entry. The analysis proves this over the
//! residual programs of the chain (Maestro, Pereira et al., NSDI 2024, does it for one function):
//!
//! - `candidates` lists the steerings to try.
//! - `facts` derives facts about a packet's worker from a steering: "the worker is the hash of the
//!   source address". `walk` carries such facts through a program. A member that a function takes
//!   from a pool is a new fact: each worker takes only from its own share.
//! - `claims` derives claims about the entries of a table: "the worker is the hash of the second
//!   part of the key". A claim that holds for all entries when they are made holds when they are
//!   found. `search` repeats the walk through all programs until the claims no longer change.
//! - `judge` finds for each table whether one claim holds for all uses of its entries. If no claim
//!   does, `usage` finds out whether workers can share the table by other means.
//! - `shadow` makes packet functions that stand for stream functions and native functions in all of
//!   this; `native` makes the programs of the latter.
//! - `handlers` makes sure that the programs contain all handlers of events.

mod assigned;
mod candidates;
mod claims;
mod conditions;
mod created;
mod facts;
mod handlers;
mod judge;
mod mutants;
mod native;
mod place;
mod portions;
mod programs;
mod report;
mod search;
mod shadow;
mod usage;
mod walk;
mod words;

pub use mutants::ShardingMutant;
pub use portions::divide_limits;
pub use report::{Placement, PoolShare, Rule, Sharding, TableSharding, Verdict};

use braid_ir::chain::Chain;
use braid_ir::model::StateId;
use candidates::{Candidate, candidates};
use claims::Table;
use judge::{Best, Cost, Division, Judged, cost, judge};
use programs::Programs;
use search::Search;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Derives how a chain can be divided over workers.
///
/// # Errors
/// Links or priorities are invalid.
pub fn sharding(chain: &Chain) -> Result<Sharding, String> {
    sharding_with(chain, None)
}

/// The same with a mutant.
///
/// # Errors
/// Links or priorities are invalid.
pub fn sharding_with(chain: &Chain, bug: Option<ShardingMutant>) -> Result<Sharding, String> {
    braid_ir::graph::Graph::new(chain)?;
    let shadow = shadow::chain(chain, bug);
    Ok(match handlers::follow_no_natives(chain).and_then(|()| best(&shadow, bug)) {
        Ok(best) => report::found(&shadow, &best),
        Err(why) => report::unsure(chain, why),
    })
}

/// Divides a chain over its workers. The chain gets the steering that the analysis derives. Each
/// worker gets tables, pools and queues of its own, and portions of limits. A chain that cannot be
/// divided gets one worker.
///
/// # Errors
/// Links or priorities are invalid.
pub fn divide(chain: Chain) -> Result<(Chain, Sharding), String> {
    let found = sharding(&chain)?;
    Ok((divide_as(chain, &found), found))
}

/// Divides a chain by the result of the analysis.
#[must_use]
pub fn divide_as(mut chain: Chain, found: &Sharding) -> Chain {
    match &found.steering {
        Some(steering) => {
            chain.steering.clone_from(steering);
            let mut tables = &found.tables[..];
            for node in &mut chain.nodes {
                let shadow = shadow::model(&node.model, None);
                let model = Arc::make_mut(&mut node.model);
                for (state, table) in (0..model.state.len()).zip(tables) {
                    if table.placement == Placement::Summed {
                        let id = StateId(u32::try_from(state).unwrap_or(u32::MAX));
                        model.state[state].sums = usage::sums(&shadow, id);
                    }
                    model.state[state].sharded = true;
                }
                let (own, others) = tables.split_at(model.state.len());
                let in_portions = own.iter().map(|table| table.placement == Placement::Portions);
                divide_limits(node, in_portions, chain.workers);
                tables = others;
            }
        }
        None => chain.workers = 1,
    }
    chain
}

fn best(chain: &Chain, bug: Option<ShardingMutant>) -> Result<Best, String> {
    for node in &chain.nodes {
        if let Some(why) = node.model.native.as_ref().and_then(native::unknown) {
            return Err(format!("{} {why}", node.name));
        }
    }
    handlers::follow_packets(chain)?;
    let mut programs = Programs::new(chain, bug)?;
    let all = candidates(chain, &programs.graph);
    let best = search(chain, &mut programs, &all, true)?;
    if best.owners() == 0 {
        return Ok(best);
    }
    // A router may send any packet back, although its routes hardly ever do so. This prevents a
    // division of most chains with a router beside a NAT.
    let without = search(chain, &mut programs, &all, false)?;
    if without.owners() == 0 {
        return Ok(without);
    }
    // This only adds details to the reasons, so an analysis that takes too long is no error here.
    let alone = alone(chain, &mut programs, &all).unwrap_or_default();
    Ok(Best { alone, ..best })
}

fn search(
    chain: &Chain,
    programs: &mut Programs,
    all: &[Candidate],
    turned: bool,
) -> Result<Best, String> {
    let mut tried: Vec<Tried> = all.iter().map(|_| Tried::default()).collect();
    tried.iter_mut().for_each(|tried| tried.search.scope.turned = turned);
    // The cost of a steering only grows during its search. So the search with the lowest cost so
    // far goes on, and the first search that ends has the best steering.
    let number = loop {
        let number = (0..all.len()).min_by_key(|number| tried[*number].cost);
        let number = number.ok_or("no steering to try")?;
        if tried[number].search.is_done {
            break number;
        }
        tried[number].advance(chain, programs, &all[number])?;
    };
    let judged = std::mem::take(&mut tried[number].judged);
    Ok(Best { candidate: all[number].clone(), judged, alone: BTreeMap::new(), turned })
}

/// A steering that is being tried.
#[derive(Default)]
struct Tried {
    search: Search,
    judged: Vec<Judged>,
    cost: Cost,
}

impl Tried {
    fn advance(
        &mut self,
        chain: &Chain,
        programs: &mut Programs,
        candidate: &Candidate,
    ) -> Result<(), String> {
        self.search.advance(programs, &candidate.steering)?;
        self.judged = judge(chain, candidate, &self.search.seen, programs.bug);
        self.cost = cost(candidate, &self.judged);
        Ok(())
    }
}

/// For each table that some steering divides, the first such steering.
fn alone(
    chain: &Chain,
    programs: &mut Programs,
    all: &[Candidate],
) -> Result<BTreeMap<Table, Candidate>, String> {
    let mut found = BTreeMap::new();
    for candidate in all {
        let mut tried = Tried::default();
        tried.search.scope.turned = true;
        while !tried.search.is_done {
            tried.advance(chain, programs, candidate)?;
        }
        for one in tried.judged {
            if let Division::Local(_) = one.kind {
                found.entry(one.table).or_insert_with(|| candidate.clone());
            }
        }
    }
    Ok(found)
}
