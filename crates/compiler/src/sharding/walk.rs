//! Follows one residual program: finds the entries of state tables that it uses, with the facts
//! about the worker at each use.

use super::claims::{Claim, Claims, Invariants, Known, Table, claims, facts};
use super::conditions::{self, Values};
use super::created::Created;
use super::facts::{Fact, Facts, Law, Term};
use super::place::{Edge, Place, join};
use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{
    Area, Dest, Granularity, Key, Op, RIGHT, StateDecl, StateId, Target, ValueId,
};
use braid_ir::residual::{Counter, End, Fate, HeaderMask, Point, Residual, Site, Step, What};
use braid_packet::{FIELDS, Field};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A use of an entry.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) table: Table,
    /// Whether it may change the table.
    pub(super) writes: bool,
    /// The parts of the key.
    pub(super) key: Vec<Term>,
    /// The claims that give the worker from the parts of the key.
    pub(super) claims: Claims,
    pub(super) own_address: bool,
    pub(super) site: Site,
    pub(super) program: Rc<Residual>,
}

/// Packets that go on in another program.
pub(super) struct Onward {
    pub(super) point: Point,
    pub(super) facts: Facts,
    /// Headers whose presence the program may have changed.
    pub(super) changed: u128,
    /// The packet that a function built, if it is not the one that entered.
    pub(super) created: Option<Created>,
    /// Whether a function has sent the packet back in the direction it came from.
    pub(super) turned: bool,
}

/// The uses of state in a program.
#[derive(Default)]
pub(super) struct Found {
    pub(super) uses: Vec<Use>,
    /// Tables that get entries, with the claims that hold for these entries.
    pub(super) inserted: Vec<(Table, Known)>,
    pub(super) onward: Vec<Onward>,
}

/// The walk through one program.
pub(super) struct Walk<'a> {
    values: Values<'a>,
    graph: &'a Graph,
    invariants: &'a Invariants,
    /// The table and key of each entry that was looked up.
    entries: HashMap<ValueId, (Table, Vec<Term>)>,
    /// Results of lookups that find nothing.
    missed: HashSet<ValueId>,
    /// Whether the parser knows no protocol in the packets.
    no_transport: bool,
    found: Found,
}

/// Follows a program for packets with these facts.
pub(super) fn walk(
    chain: &Chain,
    graph: &Graph,
    program: &Rc<Residual>,
    headers: HeaderMask,
    facts: &Facts,
    invariants: &Invariants,
) -> Found {
    let values = Values { chain, program, headers, terms: HashMap::new(), defs: HashMap::new() };
    let mut walk = Walk {
        values,
        graph,
        invariants,
        entries: HashMap::new(),
        missed: HashSet::new(),
        no_transport: conditions::lacks_transport(chain, headers),
        found: Found::default(),
    };
    let mut edges: Vec<Vec<Edge>> = Vec::new();
    edges.resize_with(program.blocks.len(), Vec::new);
    edges[0]
        .push(Edge { args: Vec::new(), place: Place { facts: facts.clone(), ..Place::default() } });
    for (number, block) in program.blocks.iter().enumerate() {
        let Some(mut place) = join(std::mem::take(&mut edges[number])) else { continue };
        for param in &block.params {
            walk.values.terms.insert(*param, Term::Value(*param));
        }
        if block.steps.iter().all(|step| walk.step(step, &mut place)) {
            walk.end(&block.end, &place, &mut edges);
        }
    }
    walk.found
}

impl<'a> Walk<'a> {
    fn decl(&self, (node, state): Table) -> &StateDecl {
        &self.values.chain.nodes[usize::from(node)].model.state[state.index()]
    }

    /// Whether any packet continues after the step.
    fn step(&mut self, step: &'a Step, place: &mut Place) -> bool {
        let node = step.site.node;
        match &step.what {
            What::Op(op) => self.op(step.site, op, place),
            What::Find { found, entry, state, key } => {
                let key = self.uses(step.site, *state, key, false, place);
                if self.finds_nothing((node, *state), &key, place) {
                    self.missed.insert(*found);
                }
                self.entries.insert(*entry, ((node, *state), key));
            }
            What::Read { outs, state, entry } => {
                return self.read((node, *state), *entry, outs, place);
            }
            What::Write(fields) => {
                for (field, value) in fields {
                    place.written.insert(*field, Some(self.values.term(*value)));
                    place.changed |= field.decided_bits();
                }
            }
            What::Enter
            | What::Classify { .. }
            | What::CountRule { .. }
            | What::Parse
            | What::Count(_) => {}
        }
        true
    }

    fn op(&mut self, site: Site, op: &'a Op, place: &mut Place) {
        let node = site.node;
        if let [out] = *op.outs() {
            self.values.defs.insert(out, op);
        }
        match op {
            Op::StoreBytes { area: Area::Payload, .. }
            | Op::ReplaceBytes { .. }
            | Op::Encrypt { .. }
            | Op::Decrypt { .. } => place.changed |= Field::L4Dport.decided_bits(),
            op if op.rewraps() => {
                place.changed = u128::MAX;
                place.written.extend(FIELDS.iter().map(|info| (info.field, None)));
            }
            Op::Const { out, value } => self.define(*out, Term::Word(*value)),
            Op::Param { out, param } => self.define(*out, Term::Param(node, *param)),
            Op::Load { out, field } => {
                if let Some(term) = place.value(*field) {
                    self.define(*out, term);
                }
            }
            Op::Resize { out, a } | Op::Clamp { out, a } => {
                let width = |value: ValueId| self.values.program.values[value.index()].width;
                if width(*out) >= width(*a) {
                    self.define(*out, self.values.term(*a));
                }
            }
            Op::Take { out, pool, .. } => {
                let law = Law::Pool(node, *pool);
                place.facts.insert(Fact::new(law, vec![self.values.term(*out)]));
            }
            Op::StateSet { state, key, values, .. } => {
                let key = self.uses(site, *state, explicit(key), true, place);
                let slots = values.iter().map(|value| Some(self.values.term(*value)));
                self.insert((node, *state), key, slots.collect(), place);
            }
            Op::StatePut { state, key, slot, value, .. } => {
                let key = self.uses(site, *state, explicit(key), true, place);
                let mut slots = vec![None; self.decl((node, *state)).slots.len()];
                if let Some(slot) = slots.get_mut(*slot as usize) {
                    *slot = Some(self.values.term(*value));
                }
                self.insert((node, *state), key, slots, place);
            }
            Op::StateDelete { state, key } => {
                self.uses(site, *state, explicit(key), true, place);
            }
            Op::PushVlan { .. } | Op::PopVlan => {
                place.changed = u128::MAX;
                for field in [Field::VlanId, Field::Vlan2Id] {
                    place.written.insert(field, None);
                }
            }
            Op::Mirror { port } => self.send(node, *port, place, None),
            Op::Create { new, port } => {
                let value = |value: ValueId| self.values.term(value);
                let created = Created::new(new, *port, &value, place);
                self.send(node, *port, place, Some(created));
            }
            _ => {}
        }
    }

    fn define(&mut self, out: ValueId, term: Term) {
        self.values.terms.insert(out, term);
    }

    /// Records the use of an entry, and returns the parts of its key.
    fn uses(
        &mut self,
        site: Site,
        state: StateId,
        key: &[ValueId],
        writes: bool,
        place: &Place,
    ) -> Vec<Term> {
        let table = (site.node, state);
        let biflow = self.decl(table).granularity == Granularity::Biflow;
        let part = |value: &ValueId| {
            if biflow { self.unordered(*value) } else { self.values.term(*value) }
        };
        let key: Vec<Term> = key.iter().map(part).collect();
        let parts: Vec<_> = key.iter().copied().map(Some).collect();
        let mut claims = claims(&place.facts, &parts);
        if biflow && self.is_in_handler(site) {
            claims.retain(|claim| is_of_flow(claim, &key, place));
        }
        self.found.uses.push(Use {
            table,
            writes,
            key: key.clone(),
            claims,
            own_address: place.own_address,
            site,
            program: self.values.program.clone(),
        });
        key
    }

    /// Whether a step belongs to a handler.
    fn is_in_handler(&self, site: Site) -> bool {
        let node = &self.values.chain.nodes[usize::from(site.node)];
        site.block as usize >= node.model.packet.blocks.len()
    }

    /// A part of a key before its ends are put in order.
    fn unordered(&self, mut value: ValueId) -> Term {
        loop {
            match self.values.defs.get(&value) {
                Some(Op::Select { a, .. } | Op::Resize { a, .. }) => value = *a,
                _ => return self.values.term(value),
            }
        }
    }

    fn insert(&mut self, table: Table, key: Vec<Term>, slots: Vec<Option<Term>>, place: &Place) {
        let parts = [self.ordered(table, &key), slots].concat();
        self.found.inserted.push((table, Known::new(&place.facts, &parts)));
    }

    /// Records the values that are read from an entry. Returns whether the entry can exist at all.
    fn read(&self, table: Table, entry: ValueId, outs: &[ValueId], place: &mut Place) -> bool {
        if self.decl(table).granularity == Granularity::Global {
            return true;
        }
        let Some(known) = self.invariants.get(&table) else { return false };
        if let Some((_, key)) = self.entries.get(&entry) {
            let slots = outs.iter().map(|out| Some(self.values.term(*out))).collect();
            let parts = [self.ordered(table, key), slots].concat();
            place.facts.extend(facts(&known.claims, &parts));
        }
        true
    }

    /// The parts of a key that stand at a fixed place of the key. The order of the ends in a
    /// `biflow` key depends on the packet.
    fn ordered(&self, table: Table, key: &[Term]) -> Vec<Option<Term>> {
        const ENDS: [usize; 4] = [1, 2, 4, 5];
        let biflow = self.decl(table).granularity == Granularity::Biflow;
        let part = |(at, part): (usize, &Term)| (!biflow || !ENDS.contains(&at)).then_some(*part);
        key.iter().enumerate().map(part).collect()
    }

    /// Whether no entry can have this key.
    fn finds_nothing(&self, table: Table, key: &[Term], place: &Place) -> bool {
        if self.decl(table).granularity == Granularity::Global {
            return false;
        }
        let Some(known) = self.invariants.get(&table) else { return true };
        // In whole packets, the parser recognises the transport header, or the protocol has none.
        let proto = |term| matches!(term, Term::Field(Field::IpProto | Field::InetProto));
        let is_other = |term| self.no_transport && place.whole && proto(term);
        known.excludes(&self.ordered(table, key), &is_other)
    }

    fn end(&mut self, end: &End, place: &Place, edges: &mut [Vec<Edge>]) {
        match end {
            End::Jump(target) => self.go(target, place.clone(), edges),
            End::Branch { cond, yes, no } => {
                let decided = self.values.decided(*cond);
                if !self.missed.contains(cond) && decided != Some(false) {
                    let mut known = place.clone();
                    known.own_address |= self.values.compares_address(*cond);
                    self.go(yes, known, edges);
                }
                if decided != Some(true) {
                    let mut known = place.clone();
                    known.whole |= self.values.term(*cond) == Term::Field(Field::PktLaterFragment);
                    self.go(no, known, edges);
                }
            }
            End::Hold { node, full, .. } => {
                self.go(full, place.clone(), edges);
                self.again(*node, true, place);
            }
            End::Exit(exit) => match &exit.fate {
                Fate::Go(point) => self.onward(*point, place, None),
                Fate::Output { node, ports } => {
                    for port in ports {
                        self.send(*node, *port, place, None);
                    }
                }
                Fate::Resubmit { node } => self.again(*node, false, place),
                Fate::Leave { .. }
                | Fate::Drop { .. }
                | Fate::Fault { .. }
                | Fate::Consume { .. } => {}
            },
        }
    }

    fn go(&self, target: &Target, place: Place, edges: &mut [Vec<Edge>]) {
        let params = &self.values.program.blocks[target.block.index()].params;
        let args = target.args.iter().map(|arg| self.values.term(*arg));
        let args = params.iter().copied().zip(args).collect();
        edges[target.block.index()].push(Edge { args, place });
    }

    /// The function runs on the packet again.
    fn again(&mut self, node: u16, held: bool, place: &Place) {
        for backward in self.directions(node) {
            self.onward(Point { node, backward, held }, place, None);
            if let Some(last) = self.found.onward.last_mut() {
                last.turned = false;
            }
        }
    }

    /// A packet leaves a function by a port.
    fn send(&mut self, node: u16, dest: Dest, place: &Place, created: Option<Created>) {
        for backward in self.directions(node) {
            if let Some(Sink::Port(next, at)) = self.graph.next(node, port(dest, backward)) {
                let point = Point { node: next, backward: at == RIGHT, held: false };
                self.onward(point, place, created.clone());
            }
        }
    }

    fn onward(&mut self, point: Point, place: &Place, created: Option<Created>) {
        let facts = match &created {
            Some(created) => created.carried(place),
            None => place.carried(),
        };
        let (changed, here) = (place.changed, self.values.program.point);
        let again = point.backward != here.backward || !self.directions(point.node).is_empty();
        let turned = again && created.is_none();
        self.found.onward.push(Onward { point, facts, changed, created, turned });
    }

    /// The directions in which packets of the program visit a function.
    fn directions(&self, node: u16) -> Vec<bool> {
        let listed = || self.values.program.counter_lists.iter().flatten();
        let visits =
            |counter| listed().any(|counted| counted.node == node && counted.counter == counter);
        let all = [(false, Counter::Forward), (true, Counter::Backward)];
        all.into_iter().filter(|(_, counter)| visits(*counter)).map(|(way, _)| way).collect()
    }
}

fn explicit(key: &Key) -> &[ValueId] {
    match key {
        Key::Explicit(values) => values,
        Key::Entry | Key::Quoted | Key::Reversed(_) => &[],
    }
}

/// Whether a claim about the flow that an event names gives the worker of this flow. The key of a
/// packet's own flow has the packet's ends. An event may put together a key of any values.
fn is_of_flow(claim: &Claim, key: &[Term], place: &Place) -> bool {
    const WHOLE: [[usize; 6]; 2] = [[0, 3, 1, 4, 2, 5], [0, 3, 2, 5, 1, 4]];
    let is_one = |fields: &[Field], at: usize| {
        let now = fields.iter().filter_map(|field| place.value(*field));
        now.into_iter().any(|term| key.get(at) == Some(&term))
    };
    match (claim.law, claim.parts.as_slice()) {
        (Law::First, _) => true,
        (Law::Connection, parts) => WHOLE.iter().any(|whole| parts == whole),
        (Law::Both, parts) => matches!(parts, [1, 4] | [2, 5]),
        (Law::Address, parts) => matches!(parts, [1 | 2]),
        (Law::Port | Law::Pool(..), [at @ (4 | 5)]) => {
            let source = [Field::IpSrc, Field::Ip6Src];
            let destination = [Field::IpDst, Field::Ip6Dst];
            is_one(&[Field::L4Sport], *at) && is_one(&source, at - 3)
                || is_one(&[Field::L4Dport], *at) && is_one(&destination, at - 3)
        }
        _ => false,
    }
}
