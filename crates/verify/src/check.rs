//! Checks one program against the chain. It asks questions whose answers must all be "never".

use std::time::Instant;

use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::residual::{Fate, HeaderMask, Point, Residual};
use braid_ir::subscriptions::Subscriptions;
use braid_packet::{Access, FIELDS, Field};

use crate::ends::{Done, Goal, Path, Stop};
use crate::ops::State;
use crate::original::Walk;
use crate::packet::{Kind, Packet};
use crate::residual::{Program, read};
use crate::solver::{Answer, Session, Solver};
use crate::sums::SUMS;
use crate::term::{Sort, Term, Terms};
use crate::world::{Touch, World};

/// The result of one program.
#[derive(Clone, Debug)]
pub struct Found {
    /// The result.
    pub verdict: Verdict,
    /// Number of paths of the program.
    pub paths: usize,
    /// Number of terms on both sides.
    pub terms: usize,
    /// Number of questions to the solver.
    pub questions: usize,
    /// Time taken in milliseconds.
    pub millis: u128,
}

/// Whether a program does what the chain does.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// It does, for all packets of its header shape and all states.
    Proven,
    /// It does not. Holds a difference.
    Refuted(Box<Difference>),
    /// The solver gave no answer, or the check does not cover some part.
    Unknown(String),
}

/// A packet for which a program and the chain differ.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// The end of the packet's path through the program.
    pub path: String,
    /// Names of the fields, tables and counters that differ.
    pub parts: Vec<String>,
    /// The packet's headers, as a mask by header number.
    pub presence: u128,
    /// The values of the packet's fields, for fields that have one.
    pub fields: Vec<(Field, u128)>,
}

struct Question {
    title: String,
    /// A condition that must never hold.
    bad: Term,
    /// Parts that together show that `bad` can never hold.
    parts: Vec<Part>,
}

/// An equality that must hold.
struct Part {
    name: String,
    equal: Term,
    /// The condition under which the two differ. It must never hold.
    bad: Term,
    /// The negation of `bad`.
    lemma: Term,
}

impl Part {
    /// An equality that must hold if `when` holds.
    fn new(terms: &mut Terms, when: Term, name: String, equal: Term) -> Self {
        let differs = terms.not(equal);
        let bad = terms.both(when, differs);
        Self { name, equal, bad, lemma: terms.not(bad) }
    }
}

/// Checks one program.
#[must_use]
pub fn check(chain: &Chain, graph: &Graph, residual: &Residual, solver: &Solver) -> Found {
    let start = Instant::now();
    let mut found = Found { verdict: Verdict::Proven, paths: 0, terms: 0, questions: 0, millis: 0 };
    found.verdict = match verdict(chain, graph, residual, solver, &mut found) {
        Ok(verdict) => verdict,
        Err(why) => Verdict::Unknown(why),
    };
    found.millis = start.elapsed().as_millis();
    found
}

fn verdict(
    chain: &Chain,
    graph: &Graph,
    residual: &Residual,
    solver: &Solver,
    found: &mut Found,
) -> Result<Verdict, String> {
    let mut terms = Terms::default();
    let kind = Kind::new(&mut terms, residual.shape);
    let start = start(&mut terms, residual.point, residual.shape);
    let subscriptions = Subscriptions::new(chain)?;
    let of_chain = (chain, &subscriptions);
    let program = read(&mut terms, of_chain, &kind, residual, start.clone())?;
    found.paths = program.paths.len();
    let (touches, stops) = walk(&mut terms, (of_chain, graph), &kind, residual, &program, start)?;
    let questions = questions(&mut terms, chain, &program, &touches, &stops);
    let plain = plain(&mut terms, &kind);
    let lemmas: Vec<_> = questions.iter().map(|one| terms.not(one.bad)).collect();
    let plain_too: Vec<_> = questions.iter().map(|one| terms.both(one.bad, plain)).collect();
    found.terms = terms.len();
    let shown = shown(&mut terms, &kind);
    let facts: Vec<_> = kind.facts.iter().chain(&terms.facts).copied().collect();
    let asking = |coarse| Asking { session: None, solver, facts: &facts, coarse };
    let (mut coarse, mut exact) = (asking(true), asking(false));
    // Contradictory facts would prove anything.
    let some = terms.var("some packet", Sort::Bool);
    if !questions.is_empty() && coarse.ask(&terms, some, &[])?.0 == Answer::Never {
        return Err("no packet can have these headers".to_owned());
    }
    for (place, question) in questions.into_iter().enumerate() {
        found.questions += 1;
        let asked: Vec<_> =
            question.parts.iter().map(|part| part.equal).chain(shown.iter().map(|s| s.1)).collect();
        if coarse.ask(&terms, question.bad, &[])?.0 == Answer::Never {
            // A proven answer is a lemma for the next questions.
            coarse.learn(&terms, lemmas[place])?;
            continue;
        }
        if !question.parts.is_empty() {
            // The solver answers small questions sooner than their conjunction.
            let answer = part_by_part(&terms, &question, &mut coarse, &mut exact)?;
            if let Answer::Unknown(why) = answer {
                return Ok(Verdict::Unknown(format!("{}: {why}", question.title)));
            }
            if answer == Answer::Never {
                coarse.learn(&terms, lemmas[place])?;
                exact.learn(&terms, lemmas[place])?;
                continue;
            }
        }
        match exact.ask(&terms, question.bad, &asked)? {
            (Answer::Never, _) => {
                coarse.learn(&terms, lemmas[place])?;
                exact.learn(&terms, lemmas[place])?;
            }
            (Answer::Unknown(why), _) => {
                return Ok(Verdict::Unknown(format!("{}: {why}", question.title)));
            }
            (Answer::Possible, values) => {
                // If possible, the example is a packet without rare headers, which is easier to
                // read and to run.
                let plain = exact.ask(&terms, plain_too[place], &asked)?;
                let values = if plain.0 == Answer::Possible { plain.1 } else { values };
                return Ok(Verdict::Refuted(Box::new(difference(&question, &shown, &values))));
            }
        }
    }
    Ok(Verdict::Proven)
}

/// Walks along the chain to the places where the program's paths end.
fn walk(
    terms: &mut Terms,
    ((chain, subscriptions), graph): ((&Chain, &Subscriptions), &Graph),
    kind: &Kind,
    residual: &Residual,
    program: &Program,
    start: State,
) -> Result<(Vec<Touch>, Vec<Stop>), String> {
    let mut walk = Walk {
        terms,
        chain,
        subscriptions,
        graph,
        kind,
        paths: &program.paths,
        most: residual.visits + 1,
        touches: Vec::new(),
        stops: Vec::new(),
    };
    walk.run(residual.point, start)?;
    Ok((walk.touches, walk.stops))
}

/// Whether any of a question's parts can differ, asked one by one. `Never` if none can.
fn part_by_part(
    terms: &Terms,
    question: &Question,
    coarse: &mut Asking<'_>,
    exact: &mut Asking<'_>,
) -> Result<Answer, String> {
    for part in &question.parts {
        if coarse.ask(terms, part.bad, &[])?.0 != Answer::Never {
            match exact.ask(terms, part.bad, &[])?.0 {
                Answer::Never => {}
                Answer::Possible => return Ok(Answer::Possible),
                Answer::Unknown(why) => {
                    return Ok(Answer::Unknown(format!("{}: {why}", part.name)));
                }
            }
        }
        coarse.learn(terms, part.lemma)?;
        exact.learn(terms, part.lemma)?;
    }
    Ok(Answer::Never)
}

/// A solver that starts at the first question.
struct Asking<'a> {
    session: Option<Session>,
    solver: &'a Solver,
    facts: &'a [Term],
    coarse: bool,
}

impl Asking<'_> {
    /// Adds a lemma for the next questions.
    fn learn(&mut self, terms: &Terms, lemma: Term) -> Result<(), String> {
        match &mut self.session {
            Some(session) => session.assume(terms, lemma),
            None => Ok(()),
        }
    }

    fn ask(
        &mut self,
        terms: &Terms,
        bad: Term,
        values: &[Term],
    ) -> Result<(Answer, Vec<u128>), String> {
        let session = match &mut self.session {
            Some(session) => session,
            empty => {
                let mut session = self.solver.session(self.coarse)?;
                for fact in self.facts {
                    session.assume(terms, *fact)?;
                }
                empty.insert(session)
            }
        };
        Ok(session.check(terms, bad, values))
    }
}

/// Any packet of a header shape and any state, at a point.
fn start(terms: &mut Terms, point: Point, shape: HeaderMask) -> State {
    let mut packet = Packet::arriving(terms, shape);
    packet.backward = terms.bits(1, u128::from(point.backward));
    packet.held = terms.bits(1, u128::from(point.held));
    State { parsed: packet.clone(), packet, world: World::any(terms) }
}

fn questions(
    terms: &mut Terms,
    chain: &Chain,
    program: &Program,
    touches: &[Touch],
    stops: &[Stop],
) -> Vec<Question> {
    let mut found = Vec::new();
    let guards: Vec<_> = program.paths.iter().map(|path| path.guard).collect();
    let some = terms.or(&guards);
    let none = terms.not(some);
    found.push(Question { title: "no path is taken".to_owned(), bad: none, parts: Vec::new() });
    for (bad, title) in &program.never {
        found.push(Question { title: title.clone(), bad: *bad, parts: Vec::new() });
    }
    for path in &program.paths {
        found.extend(path_questions(terms, chain, path, stops));
    }
    for (title, ones, others) in [
        ("an entry is not renewed", touches, &*program.touches),
        ("an entry is renewed that is not found", &*program.touches, touches),
    ] {
        found.extend(renewals(terms, chain, title, ones, others));
    }
    found.retain(|question| terms.decided(question.bad) != Some(false));
    found
}

/// The questions for a path: it must end where the walk stops, and everything must be equal there.
fn path_questions(terms: &mut Terms, chain: &Chain, path: &Path, stops: &[Stop]) -> [Question; 2] {
    let mut matches = Vec::new();
    let mut parts: Vec<(String, Term)> = Vec::new();
    let mut somewhere = Vec::new();
    for stop in stops.iter().filter(|stop| path.stops_at(stop)) {
        let number = terms.bits(16, stop.visits);
        let visits = terms.eq(path.visits, number);
        let here = terms.both(stop.guard, visits);
        if terms.decided(here) == Some(false) {
            continue;
        }
        somewhere.push(here);
        let same = same(terms, chain, path, stop);
        let mut all: Vec<_> = same.iter().map(|(_, equal)| *equal).collect();
        all.push(here);
        matches.push(terms.and(&all));
        let not_here = terms.not(here);
        parts.extend(same.into_iter().map(|(name, equal)| (name, terms.or(&[not_here, equal]))));
    }
    let title = format!("a packet {}", path.goal.text(chain));
    let stops_there = terms.or(&somewhere);
    let nowhere = terms.not(stops_there);
    let lost = terms.both(path.guard, nowhere);
    let place = Part::new(terms, path.guard, "where it ends".to_owned(), stops_there);
    let where_it_ends = Question { title: title.clone(), bad: lost, parts: vec![place] };
    let good = terms.or(&matches);
    let bad = terms.not(good);
    let there = terms.both(path.guard, stops_there);
    let bad = terms.both(there, bad);
    let parts = parts.into_iter().map(|(name, equal)| Part::new(terms, there, name, equal));
    let parts = parts.collect();
    [where_it_ends, Question { title, bad, parts }]
}

/// The parts that must be equal when a path ends and the walk stops.
fn same(terms: &mut Terms, chain: &Chain, path: &Path, stop: &Stop) -> Vec<(String, Term)> {
    let mut parts = stop.state.world.same(terms, chain, &path.state.world);
    let goes_on = match &path.goal {
        Goal::Hold { delay, .. } => {
            if let Done::Hold(_, theirs) = stop.done {
                let width = terms.width(*delay).max(terms.width(theirs));
                let (a, b) = (terms.resize(*delay, width), terms.resize(theirs, width));
                parts.push(("how long it waits".to_owned(), terms.eq(a, b)));
            }
            true
        }
        Goal::Fate(fate) => {
            if matches!(fate, Fate::Leave { .. } | Fate::Go(_)) {
                parts.push(("packets sent before".to_owned(), terms.not(stop.state.world.sends)));
            }
            !matches!(fate, Fate::Drop { .. } | Fate::Fault { .. } | Fate::Consume { .. })
        }
    };
    if goes_on {
        let tags = !matches!(&path.goal, Goal::Fate(Fate::Leave { .. }));
        parts.extend(stop.state.packet.same(terms, &path.state.packet, tags));
    }
    parts
}

/// Both sides must renew the same entries. Makes the question for one direction.
fn renewals(
    terms: &mut Terms,
    chain: &Chain,
    title: &str,
    ones: &[Touch],
    others: &[Touch],
) -> Vec<Question> {
    let mut found = Vec::new();
    for (number, node) in (0..).zip(&chain.nodes) {
        for one in ones.iter().filter(|one| one.node == number && !one.assigned) {
            let of_table = others.iter().filter(|o| o.node == number && o.state == one.state);
            let mut covered = Vec::new();
            for other in of_table {
                let (content, key) =
                    (terms.eq(one.content, other.content), terms.eq(one.key, other.key));
                covered.push(terms.and(&[other.when, content, key]));
            }
            let covered = terms.or(&covered);
            let missed = terms.not(covered);
            let bad = terms.both(one.when, missed);
            let title = format!("{}: {title}", node.name);
            found.push(Question { title, bad, parts: Vec::new() });
        }
    }
    found
}

/// Whether a packet has no rare headers.
fn plain(terms: &mut Terms, kind: &Kind) -> Term {
    use braid_packet::Header::{
        Ah, Esp, Eth, Gre, Mpls, TcpMss, TcpSackOk, TcpTs, TcpWscale, Vlan,
    };
    let packet = Packet::arriving(terms, kind.shape);
    let mut parts = Vec::new();
    for header in [Ah, Esp, Gre, Mpls, Vlan, TcpMss, TcpSackOk, TcpTs, TcpWscale] {
        // A header that the shape decides is not restricted.
        if kind.shape.has(header).is_none() {
            let there = kind.has(terms, &packet, header);
            parts.push(terms.not(there));
        }
    }
    if kind.shape.has(Eth).is_none() {
        parts.push(kind.has(terms, &packet, Eth));
    }
    for (field, usual) in [
        (Field::PktFragment, 0),
        (Field::PktTruncated, 0),
        (Field::IpMf, 0),
        (Field::IpFrag, 0),
        (Field::IpHlen, 20),
    ] {
        let value = packet.get(terms, kind, &packet, field);
        let usual = terms.bits(field.info().width, usual);
        parts.push(terms.eq(value, usual));
    }
    terms.and(&parts)
}

/// The parts of a packet that are printed, by name and term: first the presence of headers, then
/// fields.
fn shown(terms: &mut Terms, kind: &Kind) -> Vec<(Option<Field>, Term)> {
    let packet = Packet::arriving(terms, kind.shape);
    let mut found = Vec::new();
    for (header, _) in braid_packet::HEADERS {
        found.push((None, kind.has(terms, &packet, *header)));
    }
    for info in FIELDS {
        let structural = matches!(info.header, braid_packet::Header::Pkt);
        let wanted = info.access == Access::Rw || structural || info.field == Field::InetProto;
        if wanted && info.field != Field::PktTime {
            let value = packet.get(terms, kind, &packet, info.field);
            if terms.sort(value) != Sort::Token {
                found.push((Some(info.field), value));
            }
        }
    }
    found
}

fn difference(question: &Question, shown: &[(Option<Field>, Term)], values: &[u128]) -> Difference {
    let (parts, rest) = values.split_at(question.parts.len().min(values.len()));
    let mut names: Vec<_> = question
        .parts
        .iter()
        .zip(parts)
        .filter(|(_, equal)| **equal == 0)
        .map(|(part, _)| part.name.clone())
        .collect();
    names.sort();
    names.dedup();
    let (mut presence, mut header) = (0_u128, 0);
    let mut fields = Vec::new();
    for ((field, _), value) in shown.iter().zip(rest) {
        match field {
            None => {
                presence |= u128::from(*value != 0) << header;
                header += 1;
            }
            Some(field) if presence >> field.info().header as u32 & 1 == 1 => {
                fields.push((*field, *value));
            }
            Some(_) => {}
        }
    }
    Difference { path: question.title.clone(), parts: names, presence, fields }
}

/// The checksums whose arithmetic is assumed to be right, for the report.
#[must_use]
pub fn checksums() -> Vec<&'static str> {
    SUMS.iter().map(|(_, name)| *name).collect()
}
