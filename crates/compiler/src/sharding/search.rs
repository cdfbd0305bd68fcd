//! Follows all packets of a chain under one steering, through all programs.

use super::claims::{Invariants, Known, Table};
use super::created::{Created, Shown};
use super::facts::{Facts, Law, on_entry};
use super::programs::Programs;
use super::walk::{Onward, Use, walk};
use braid_ir::chain::Sink;
use braid_ir::model::RIGHT;
use braid_ir::residual::{HeaderMask, Point};
use braid_ir::steering::Steering;
use braid_packet::Header;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The largest number of contexts that the analysis visits.
const MOST_CONTEXTS: usize = 100_000;

/// A use of an entry by the packets that entered at an interface.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) by: Use,
    /// The interface.
    pub(super) entered: u16,
    pub(super) kind: Kind,
}

/// A kind of packets where they enter the chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    /// ICMP errors that quote the ports of a packet, or the identifier of an echo.
    Error,
    /// ICMP errors that quote neither.
    ShortError,
    /// Packets that a function built in answer to one that entered.
    Created,
    /// ICMP errors that a function built and that do not quote all headers of the packet.
    Cut,
    /// All other packets.
    Other,
}

impl Kind {
    fn of(presence: u128) -> Self {
        let has = |header: Header| presence & header.bit() != 0;
        match (has(Header::Quoted), has(Header::QuotedL4) || has(Header::QuotedEcho)) {
            (false, _) => Kind::Other,
            (true, true) => Kind::Error,
            (true, false) => Kind::ShortError,
        }
    }
}

/// A set of packets with the same program and the same knowledge.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Context {
    point: Point,
    program: usize,
    facts: Facts,
    entered: u16,
    kind: Kind,
}

/// The packets that the search must still follow, with their sets of headers.
struct Open {
    known: BTreeMap<Context, BTreeSet<u128>>,
    queue: VecDeque<(Context, BTreeSet<u128>)>,
}

impl Open {
    fn add(&mut self, context: Context, presences: BTreeSet<u128>) {
        let known = self.known.entry(context.clone()).or_default();
        let new: BTreeSet<u128> = presences.difference(known).copied().collect();
        if !new.is_empty() {
            known.extend(&new);
            self.queue.push_back((context, new));
        }
    }
}

/// The packets that the search follows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Scope {
    /// ICMP errors. They are followed last, because most wrong steerings fail without them.
    errors: bool,
    /// Packets that a function sends back in the direction they came from.
    pub(super) turned: bool,
}

/// The knowledge about the packets of a chain under one steering. The claims about entries follow
/// from the facts where entries are made, and these facts follow from claims about entries. So the
/// search runs in rounds: each round finds more uses and drops claims that fail, until nothing
/// changes.
#[derive(Default)]
pub(super) struct Search {
    invariants: Invariants,
    /// The uses of entries that are known so far.
    pub(super) seen: Vec<Seen>,
    pub(super) scope: Scope,
    /// Whether these are all.
    pub(super) is_done: bool,
}

impl Search {
    /// Goes one round further.
    ///
    /// # Errors
    /// The reason why some packets cannot be followed.
    pub(super) fn advance(
        &mut self,
        programs: &mut Programs,
        steering: &Steering,
    ) -> Result<(), String> {
        let (seen, inserted) = round(programs, steering, self.scope, &self.invariants)?;
        let settled = inserted == self.invariants;
        self.is_done = settled && self.scope.errors;
        self.scope.errors |= settled;
        self.seen = seen;
        self.invariants = inserted;
        Ok(())
    }
}

fn round(
    programs: &mut Programs,
    steering: &Steering,
    scope: Scope,
    invariants: &Invariants,
) -> Result<(Vec<Seen>, Invariants), String> {
    let mut open = Open { known: BTreeMap::new(), queue: VecDeque::new() };
    enter(programs, steering, scope.errors, &mut open)?;
    let (mut seen, mut inserted) = (BTreeMap::new(), Invariants::new());
    while let Some((context, presences)) = open.queue.pop_front() {
        if open.known.len() > MOST_CONTEXTS {
            return Err("the chain is too large for the analysis".to_owned());
        }
        let program = programs.at(context.point)?.programs[context.program].clone();
        programs.walk(&program)?;
        let headers = common(&presences);
        let (chain, graph) = (&programs.chain, &programs.graph);
        let found = walk(chain, graph, &program, headers, &context.facts, invariants);
        for (table, known) in found.inserted {
            meet(&mut inserted, table, known);
        }
        let (entered, kind) = (context.entered, context.kind);
        for by in found.uses {
            // The report needs one of several uses with the same judgement.
            let alike = (by.table, by.writes, by.own_address, by.claims.clone(), entered, kind);
            seen.entry(alike).or_insert(Seen { by, entered, kind });
        }
        for onward in found.onward.into_iter().filter(|onward| scope.turned || !onward.turned) {
            go_on(programs, &context, &presences, &onward, &mut open)?;
        }
    }
    Ok((seen.into_values().collect(), inserted))
}

/// The headers that are in all of these sets, or in none.
fn common(presences: &BTreeSet<u128>) -> HeaderMask {
    let all = presences.iter().fold(u128::MAX, |bits, presence| bits & presence);
    let some = presences.iter().fold(0, |bits, presence| bits | presence);
    HeaderMask { care: all | !some, present: all }
}

/// Keeps the claims that hold for all entries of a table.
fn meet(invariants: &mut Invariants, table: Table, known: Known) {
    match invariants.get_mut(&table) {
        Some(before) => before.meet(&known),
        None => {
            invariants.insert(table, known);
        }
    }
}

/// The packets that enter the chain.
fn enter(
    programs: &mut Programs,
    steering: &Steering,
    errors: bool,
    open: &mut Open,
) -> Result<(), String> {
    let count = u16::try_from(programs.chain.interfaces.len()).unwrap_or(u16::MAX);
    for entered in 0..count {
        let Some(Sink::Port(node, at)) = programs.graph.entry(entered) else { continue };
        let point = Point { node, backward: at == RIGHT, held: false };
        let mut contexts: BTreeMap<Context, BTreeSet<u128>> = BTreeMap::new();
        for (presence, program) in programs.at(point)?.all() {
            let facts = Facts::from([on_entry(steering, entered, presence)]);
            let kind = Kind::of(presence);
            if kind != Kind::Other && !errors {
                continue;
            }
            let context = Context { point, program, facts, entered, kind };
            contexts.entry(context).or_default().insert(presence);
        }
        contexts.into_iter().for_each(|(context, presences)| open.add(context, presences));
    }
    Ok(())
}

/// The packets that go on in another program.
fn go_on(
    programs: &mut Programs,
    from: &Context,
    presences: &BTreeSet<u128>,
    onward: &Onward,
    open: &mut Open,
) -> Result<(), String> {
    let at = programs.at(onward.point)?;
    let changes = |presence: &u128, now: u128| (now ^ presence) & !onward.changed == 0;
    let now: BTreeSet<u128> = match onward.changed {
        0 => presences.clone(),
        _ => {
            let all = at.all().map(|(now, _)| now);
            all.filter(|now| presences.iter().any(|presence| changes(presence, *now))).collect()
        }
    };
    let mut contexts: BTreeMap<(Kind, usize), BTreeSet<u128>> = BTreeMap::new();
    match &onward.created {
        None => {
            for presence in now {
                let program = at.of(presence).ok_or("a packet with unforeseen headers")?;
                contexts.entry((from.kind, program)).or_default().insert(presence);
            }
        }
        Some(created) => {
            let relevant = Created::relevant();
            let of: BTreeSet<u128> = now.iter().map(|presence| presence & relevant).collect();
            for possible in of.into_iter().map(|of| created.headers(of)) {
                for (presence, program) in at.all() {
                    let kind = match possible.shown(presence, programs.bug) {
                        Some(Shown::Whole) => Kind::Created,
                        Some(Shown::Cut) => Kind::Cut,
                        None => continue,
                    };
                    contexts.entry((kind, program)).or_default().insert(presence);
                }
            }
        }
    }
    for ((kind, program), presences) in contexts {
        let mut facts = onward.facts.clone();
        if kind == Kind::Cut {
            // The quote may have another protocol than the packet, and no ports.
            facts.retain(|fact| fact.law != Law::Connection);
        }
        let point = onward.point;
        open.add(Context { point, program, facts, kind, entered: from.entered }, presences);
    }
    Ok(())
}
