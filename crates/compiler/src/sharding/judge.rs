//! Judges a steering: for each table, whether all packets that use an entry have the same worker.

use super::candidates::Candidate;
use super::claims::{Claim, Claims, Table, of_key};
use super::mutants::ShardingMutant;
use super::search::{Kind, Seen};
use super::usage::{Share, share, usage};
use braid_ir::chain::Chain;
use braid_ir::model::{Granularity, StateDecl, StateId};
use braid_ir::steering::{By, Of, Part};
use std::collections::BTreeMap;

/// How the workers divide a table under a steering.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) table: Table,
    pub(super) kind: Division,
    /// Uses that do not follow the rule: lookups that may miss ([`may_miss`]). For a table that is
    /// not local: the uses that prevent it from being local.
    pub(super) exceptions: Vec<Seen>,
}

/// How the workers divide a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Division {
    /// All packets that use an entry have the same worker, for this reason.
    Local(Claim),
    /// No steering divides it.
    Shared(Share),
}

/// The best steering that was found, with its judgement of each table.
pub(super) struct Best {
    pub(super) candidate: Candidate,
    pub(super) judged: Vec<Judged>,
    /// For each table that some steering divides, the first such steering.
    pub(super) alone: BTreeMap<Table, Candidate>,
    /// Whether the analysis has followed packets that functions send back in the direction they
    /// came from.
    pub(super) turned: bool,
}

impl Best {
    /// The number of tables that keep the chain on one worker.
    pub(super) fn owners(&self) -> usize {
        cost(&self.candidate, &self.judged).0
    }
}

/// The tables of a chain.
pub(super) fn tables(chain: &Chain) -> Vec<Table> {
    let nodes = (0..).zip(&chain.nodes);
    let tables = nodes.flat_map(|(node, of)| {
        (0..).zip(&of.model.state).map(move |(state, _)| (node, StateId(state)))
    });
    tables.collect()
}

/// The declaration of a table.
pub(super) fn decl(chain: &Chain, (node, state): Table) -> &StateDecl {
    &chain.nodes[usize::from(node)].model.state[state.index()]
}

/// Judges all tables of a chain.
pub(super) fn judge(
    chain: &Chain,
    candidate: &Candidate,
    seen: &[Seen],
    bug: Option<ShardingMutant>,
) -> Vec<Judged> {
    tables(chain).into_iter().map(|table| one(chain, candidate, seen, table, bug)).collect()
}

fn one(
    chain: &Chain,
    candidate: &Candidate,
    seen: &[Seen],
    table: Table,
    bug: Option<ShardingMutant>,
) -> Judged {
    let model = &chain.nodes[usize::from(table.0)].model;
    let granularity = &decl(chain, table).granularity;
    let used: Vec<&Seen> = seen.iter().filter(|seen| seen.by.table == table).collect();
    let unsure = usage(model, table.1);
    let shared = |exceptions: Vec<Seen>| {
        let kind = Division::Shared(share(model, table.1, bug));
        Judged { table, kind, exceptions }
    };
    if *granularity == Granularity::Global || unsure.background || unsure.counted {
        return shared(Vec::new());
    }
    if used.is_empty() {
        let kind = Division::Shared(Share::Replicated);
        return Judged { table, kind, exceptions: Vec::new() };
    }
    let of = |seen: &&Seen| of_key(seen.by.claims.clone(), granularity, candidate.one_sided);
    if let Some(claim) = common(used.iter().map(of)) {
        return Judged { table, kind: Division::Local(claim), exceptions: Vec::new() };
    }
    let (may, must): (Vec<&Seen>, Vec<&Seen>) = used.iter().partition(|seen| may_miss(seen));
    // The same packets must also find entries of the function by the rule. Otherwise these lookups
    // are the function's main purpose.
    let finds = |one: &Seen, other: &Seen, claim: &Claim| {
        let granularity = &decl(chain, other.by.table).granularity;
        let claims = of_key(other.by.claims.clone(), granularity, candidate.one_sided);
        let alike = is_short(one) || one.kind == other.kind;
        let good = match other.by.table == table {
            true => claims.contains(claim),
            false => !claims.is_empty() && !may_miss(other),
        };
        (one.entered, table.0) == (other.entered, other.by.table.0) && alike && good
    };
    let is_rule =
        |claim: &Claim| may.iter().all(|one| seen.iter().any(|other| finds(one, other, claim)));
    if let Some(claim) = common(must.iter().map(of)).filter(is_rule) {
        let apart = may.into_iter().filter(|seen| !of(seen).contains(&claim));
        let exceptions = apart.cloned().collect();
        return Judged { table, kind: Division::Local(claim), exceptions };
    }
    shared(against(&must, &of))
}

/// Whether the chain can be divided although this lookup misses entries of other workers. This
/// holds for lookups by packets to an address that a function owns, and by ICMP errors that quote
/// too little. The report names these lookups.
fn may_miss(seen: &Seen) -> bool {
    !seen.by.writes && (seen.by.own_address || is_short(seen))
}

/// Whether only ICMP errors that quote too little use the entry.
fn is_short(seen: &Seen) -> bool {
    matches!(seen.kind, Kind::ShortError | Kind::Cut)
}

/// The first claim that is in all sets.
fn common(sets: impl Iterator<Item = Claims>) -> Option<Claim> {
    let all = sets.reduce(|mut all, set| {
        all.retain(|claim| set.contains(claim));
        all
    });
    all?.into_iter().next()
}

/// The uses that contradict the claim of most uses.
fn against(used: &[&Seen], of: &dyn Fn(&&Seen) -> Claims) -> Vec<Seen> {
    let sets: Vec<Claims> = used.iter().map(of).collect();
    let count = |claim: &&Claim| sets.iter().filter(|set| set.contains(claim)).count();
    let best = sets.iter().flatten().max_by_key(count);
    let lacks = |set: &Claims| best.is_none_or(|best| !set.contains(best));
    let uses = used.iter().zip(&sets).filter(|(_, set)| lacks(set));
    uses.map(|(seen, _)| (*seen).clone()).collect()
}

/// The cost of a steering: the number of tables that keep the chain on one worker, the number of
/// tables that workers share, whether it looks at ports alone, the number of lookups that may find
/// nothing. Less is better.
pub(super) type Cost = (usize, usize, bool, usize);

/// The cost of a steering.
pub(super) fn cost(candidate: &Candidate, judged: &[Judged]) -> Cost {
    let count = |wanted: &dyn Fn(&Judged) -> bool| judged.iter().filter(|one| wanted(one)).count();
    let keeps = [Share::Limit, Share::None].map(Division::Shared);
    let none = count(&|one| keeps.contains(&one.kind));
    let shared = |one: &Judged| match one.kind {
        Division::Shared(share) => !matches!(share, Share::Replicated | Share::Turns),
        Division::Local(_) => false,
    };
    let local = judged.iter().filter(|one| matches!(one.kind, Division::Local(_)));
    let exceptions = local.map(|one| one.exceptions.len()).sum();
    // Packets without ports would all go to one worker.
    let port = |by: &By| matches!(by, By::Part(Part { what: Of::Port, .. }));
    let ports = candidate.steering.entries.iter().any(port);
    (none, count(&shared), ports, exceptions)
}
