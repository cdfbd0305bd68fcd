//! Finds out which path a packet takes, and why, for example why its flow has no record.
#![expect(
    clippy::indexing_slicing,
    reason = "programs and verified models refer only to what they declare"
)]

use crate::basis::Basis;
use crate::batch::Flow;
use crate::cache::{FlowCache, Flows};
use crate::extractors::Extractors;
use crate::findings::Findings;
use crate::guard::{Guard, Link};
use crate::host::{Functions, Host, Programs};
use crate::key::is_key;
use crate::listing::FlowTemplate;
use crate::obstacle::{NoRecording, Obstacle, Stopped, Varying};
use crate::peel::{Arrived, InsidePacket};
use crate::slab::NONE;
use crate::specialiser::Specialiser;
use crate::subpaths::Stop;
use crate::value_dependency::ValueDependency;
use braid_ir::model::{Op, ValueId};
use braid_ir::residual::{End, Point, Residual, Step, What};
use braid_packet::rewrite::Outline;
use braid_packet::{Field, Layout, Malformed, Packet};
use std::collections::BTreeSet;

/// The path that a packet took.
#[derive(Clone, Debug)]
pub struct PacketPath {
    /// Which path.
    pub taken: Taken,
    /// Why the packet did not take another path. `None` for a hit on a record that existed before.
    pub why: Option<Reason>,
    /// Whether the packet took a record for the rest of its path, behind a function that did what
    /// no record contains.
    pub rest: bool,
    /// Whether the packet took a record for a part of its path, in front of such a function.
    pub part: bool,
}

/// The paths of packets through the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// The packet took its flow's record.
    Hit,
    /// The packet's flow has a record that the packet could not take.
    GuardFailure,
    /// The packet's flow has no record.
    Miss,
}

/// Why a packet took its path.
#[derive(Clone, Debug)]
pub enum Reason {
    /// The record was made for the packet.
    Made,
    /// The record was made for the packet, in place of one that is outdated.
    Renewed,
    /// No function is where the packet enters.
    NowhereToGo,
    /// The packet is the first one of all.
    First,
    /// No packet takes a record while the state is copied.
    Paused,
    /// The sampling left the packet out.
    LeftOut,
    /// The cache makes no record yet for a flow with so few packets.
    TooEarly,
    /// Attempts for similar packets led to no record, so the cache made none for this one.
    Hopeless,
    /// The packet enters at functions under `Priority`.
    Priority,
    /// No packet with such headers has run yet.
    NewHeaders,
    /// The packet is malformed.
    Malformed(Malformed),
    /// The program looks up nothing but routes.
    OnlyRoutes,
    /// No packets with such headers have records.
    NoOutline,
    /// The packet's worker depends on fields that cannot be part of a key.
    NoKey,
    /// A timer, queue or entry is due.
    Due,
    /// Parameters of the record have changed. The obstacle, if any, is why no new record can
    /// replace it.
    Outdated(Vec<Basis>, Option<Obstacle>),
    /// The packet's link addresses differ from those of the record.
    Link,
    /// The packet in the tunnel has other headers than those of the record.
    Inside,
    /// The packet does not pass a guard of the record's template.
    Guard {
        /// The template.
        template: Box<FlowTemplate>,
        /// The guard.
        guard: Guard,
        /// Whether it is about the outer headers of a tunnel that ends on the path.
        is_outer: bool,
        /// The number that it tests.
        is: u32,
    },
    /// A native function keeps the packet from taking the record.
    Function(u16, NoRecording),
    /// A pattern of a function matches the payload.
    Pattern(u16),
    /// The record has used up its fuel.
    Fuel,
    /// Other records read state that the new one would change, or change state that it would read.
    Contended,
    /// There are too many records.
    Full,
    /// No record can be made.
    Impossible(Obstacle),
}

/// The first of these guards that does not hold for a packet, `is_outer` and the number that it
/// tests.
fn failed(guards: &[Guard], packet: &Packet, is_outer: bool) -> Option<(Guard, bool, u32)> {
    let (data, wire_len) = (packet.data(), packet.wire_len);
    let guard = guards.iter().find(|guard| !guard.holds(data, wire_len))?;
    Some((*guard, is_outer, guard.number.of(data, wire_len)))
}

fn failure(why: Reason) -> PacketPath {
    PacketPath { taken: Taken::GuardFailure, why: Some(why), rest: false, part: false }
}

impl PacketPath {
    /// The path of a packet that misses for this reason.
    #[must_use]
    pub fn miss(why: Reason) -> Self {
        Self { taken: Taken::Miss, why: Some(why), rest: false, part: false }
    }

    fn hit(why: Option<Reason>) -> Self {
        Self { taken: Taken::Hit, why, rest: false, part: false }
    }

    /// The path that a packet really took. `self` is the path that [`foresee`] returned for it.
    /// `before` and `after` are the numbers of packets and records before and after the packet.
    #[must_use]
    pub fn corrected(self, before: Flows, after: Flows) -> Self {
        let taken = match after.hits > before.hits {
            true => Taken::Hit,
            false if after.guard_failures > before.guard_failures => Taken::GuardFailure,
            false => Taken::Miss,
        };
        // `foresee` cannot know some reasons, because they depend on the other records.
        let why = match taken {
            _ if taken == self.taken => self.why,
            Taken::GuardFailure => Some(Reason::Fuel),
            Taken::Hit => Some(Reason::Made),
            _ if after.records.contended > before.records.contended => Some(Reason::Contended),
            _ => Some(Reason::Full),
        };
        let rest = after.rest_hits > before.rest_hits;
        Self { taken, why, rest, part: after.part_hits > before.part_hits }
    }
}

/// The path that a packet would take if it entered at a point now.
pub fn foresee<P: Programs, F: Functions>(
    cache: &mut FlowCache,
    host: Host<'_, P, F>,
    point: Point,
    (packet, layout): (&Packet, &Layout),
) -> PacketPath {
    cache.finish_outdating(host.functions);
    if cache.is_paused(host.functions) {
        return PacketPath::miss(Reason::Paused);
    }
    if !cache.sampled(1, host.functions).0 {
        return PacketPath::miss(Reason::LeftOut);
    }
    let mut explainer = Explainer { cache, host };
    explainer.foresee(point, packet, layout)
}

/// A flow cache with its engine.
struct Explainer<'a, 'h, P, F> {
    cache: &'a mut FlowCache,
    host: Host<'h, P, F>,
}

impl<P: Programs, F: Functions> Explainer<'_, '_, P, F> {
    fn foresee(&mut self, point: Point, packet: &Packet, layout: &Layout) -> PacketPath {
        let mut one = packet.clone();
        let all = (std::slice::from_mut(&mut one), std::slice::from_ref(layout));
        self.cache.find_flows(&mut self.host, all.0, all.1);
        let flow = self.cache.batch.flows[0];
        if flow.kind == NONE {
            return PacketPath::miss(self.without_flow(point, layout));
        }
        let is_due = packet.time_ns.max(self.host.functions.now()) >= self.host.due();
        let failed = match flow.record {
            NONE => None,
            record => match self.with_record(record, is_due, packet, layout) {
                Some(why) if is_due => return failure(why),
                Some(why) => Some(why),
                None => return PacketPath::hit(None),
            },
        };
        let extractor = self.cache.extractors.get(flow.extractor());
        let is_left_out = extractor.is_some_and(|extractor| extractor.is_left_out());
        let met = if failed.is_some() { !flow.hash } else { flow.hash };
        let admitted = self.cache.filter.would_admit(met);
        let obstacle = self.obstacle(flow, is_due, (packet, layout));
        match (failed, obstacle) {
            (Some(Reason::Outdated(..)), None) => PacketPath::hit(Some(Reason::Renewed)),
            (Some(Reason::Outdated(bases, _)), obstacle) => {
                failure(Reason::Outdated(bases, obstacle))
            }
            (None, None) if admitted && is_left_out => PacketPath::miss(Reason::Hopeless),
            (_, None) if admitted => PacketPath::hit(Some(Reason::Made)),
            (Some(why), _) => failure(why),
            (None, None) => PacketPath::miss(Reason::TooEarly),
            (None, Some(obstacle)) => PacketPath::miss(Reason::Impossible(obstacle)),
        }
    }

    /// Why a packet cannot take its flow's record. `None` if it can.
    fn with_record(
        &self,
        record: u32,
        is_due: bool,
        packet: &Packet,
        layout: &Layout,
    ) -> Option<Reason> {
        let records = self.host.functions.state().dependents();
        let number = records.template(record);
        let (template, path) = self.cache.templates.get(number)?;
        if is_due {
            return Some(Reason::Due);
        }
        if records.is_template_outdated(number) {
            return Some(Reason::Outdated(path.bases.clone(), None));
        }
        let mut inner = packet;
        let inside = self.cache.inside(self.cache.batch.flows[0], 0, packet);
        let mut failing = None;
        if let Some(front) = &path.front {
            let inside = inside.as_ref().filter(|one| front.shape.fits(one.layout.presence()));
            let Some(inside) = inside else { return Some(Reason::Inside) };
            inner = &inside.packet;
            failing = failed(&front.guards, packet, true);
        }
        if !template.link.holds(inner.data()) {
            return Some(Reason::Link);
        }
        if let Some((guard, is_outer, is)) = failing.or_else(|| failed(&path.guards, inner, false))
        {
            let world = (self.host.programs, &*self.host.functions);
            let template = Box::new(FlowTemplate::new(self.cache, number, world)?);
            return Some(Reason::Guard { template, guard, is_outer, is });
        }
        let time = packet.time_ns.max(self.host.functions.now());
        let bindings = self.cache.bindings(record);
        let unready = bindings.and_then(|all| all.unready(&*self.host.functions, layout, time));
        if let Some((node, why)) = unready {
            return Some(Reason::Function(node, why));
        }
        let chain = self.host.functions.chain();
        let mut searches = template.more.iter().flat_map(|more| &more.searches);
        let search = searches.find(|search| !search.finds_nothing(chain, packet, layout));
        search.map(|search| Reason::Pattern(search.node))
    }

    /// Why a packet belongs to no flow.
    fn without_flow(&self, point: Point, layout: &Layout) -> Reason {
        if self.host.graph.group(point.node).len() > 1 {
            return Reason::Priority;
        }
        let extractors: &Extractors = &self.cache.extractors;
        let program = self.host.programs.known(point, layout.presence());
        if program.is_none() && !extractors.is_open {
            return Reason::NewHeaders;
        }
        if let Some(reason) = layout.malformed_reason() {
            return Reason::Malformed(reason);
        }
        let extractor = program.and_then(|program| extractors.program(program));
        match (extractor, Outline::of(layout)) {
            (None, _) if !extractors.is_open => Reason::OnlyRoutes,
            (_, None) => Reason::NoOutline,
            (_, Some(_)) => Reason::NoKey,
        }
    }

    /// Why no record can be made for a packet. `None` if one can be made.
    fn obstacle(
        &mut self,
        flow: Flow,
        is_due: bool,
        (packet, layout): (&Packet, &Layout),
    ) -> Option<Obstacle> {
        if is_due {
            return Some(Obstacle::Due);
        }
        let elsewhere = Some(Obstacle::Path(Stopped::Headers));
        let worker = self.host.functions.chain().worker(packet, layout);
        let Some(start) = self.cache.extractors.start(flow.extractor()) else { return elsewhere };
        let inside = self.cache.inside(flow, 0, packet);
        let inside = inside.as_ref().map(InsidePacket::lent);
        let (at_hand, mut findings) = (Arrived { packet, layout, inside }, Findings::new());
        let host = &mut self.host;
        let (functions, out) = (&mut *host.functions, &mut *host.out);
        let entry = (flow.extractor(), self.cache.extractors.get(flow.extractor()));
        let specialiser = Specialiser::new(entry, functions, worker, out, at_hand, &mut findings);
        let Some(mut specialiser) = specialiser else { return elsewhere };
        match specialiser.run(start, (host.programs, host.graph), host.words) {
            Ok(_) => {
                let loss = findings.loss().filter(|_| !self.cache.eager);
                let extractor = self.cache.extractors.get(flow.extractor());
                let link = extractor.map_or(Link::default(), |one| one.link(packet));
                let is_long = flow.is_narrow() && !findings.path.is_narrow(&link);
                loss.or(is_long.then_some(Obstacle::TooLong))
            }
            Err(stop) => Some(self.met(worker, stop, &findings)),
        }
    }

    /// What a specialisation met where it stopped.
    fn met(&self, worker: u16, stop: Stop, findings: &Findings) -> Obstacle {
        let residual = self.host.programs.residual(stop.program as usize);
        let residual = residual.filter(|_| matches!(stop.why, Stopped::Step | Stopped::GoesOn));
        let Some(residual) = residual else { return Obstacle::Path(stop.why) };
        let block = &residual.blocks[stop.block];
        match (stop.step, &block.end) {
            (Some(step), _) => self.met_step(residual, worker, &block.steps[step], findings),
            (None, End::Exit(exit)) if stop.why == Stopped::GoesOn => {
                Obstacle::GoesOn(exit.fate.clone())
            }
            (None, End::Hold { node, .. }) => Obstacle::Waits(*node),
            (None, End::Branch { cond, .. }) => {
                Obstacle::Branch(varying(residual, findings, &[*cond]))
            }
            (None, _) => Obstacle::Contradiction,
        }
    }

    /// What a step does that no record can express.
    fn met_step(
        &self,
        residual: &Residual,
        worker: u16,
        step: &Step,
        findings: &Findings,
    ) -> Obstacle {
        let node = step.site.node;
        match &step.what {
            What::Op(Op::StateSet { state, .. } | Op::StatePut { state, .. })
                if findings.absent.last()
                    == Some(self.host.functions.table(node, *state, worker)) =>
            {
                Obstacle::NewEntry(node, *state)
            }
            What::Op(Op::Emit { event, .. }) if self.host.functions.is_taken(node, *event) => {
                Obstacle::TakenEvent(node, *event)
            }
            What::Write(fields) => {
                let values: Vec<_> = fields.iter().map(|(_, value)| *value).collect();
                Obstacle::Step(node, step.what.clone(), varying(residual, findings, &values))
            }
            what => Obstacle::Step(node, what.clone(), varying(residual, findings, &what.uses())),
        }
    }
}

/// What these values depend on that is not fixed where a specialisation stopped.
fn varying(residual: &Residual, findings: &Findings, values: &[ValueId]) -> Varying {
    let is_open = |id: &ValueId| {
        findings
            .dependencies
            .get(id.index())
            .is_some_and(|dependency| *dependency != ValueDependency::Fixed)
    };
    let (mut all, mut seen) = (Varying::default(), BTreeSet::new());
    let mut left: Vec<ValueId> = values.iter().copied().filter(is_open).collect();
    while let Some(value) = left.pop() {
        if !seen.insert(value.index()) {
            continue;
        }
        for block in &residual.blocks {
            for step in block.steps.iter().filter(|step| step.what.outs().contains(&value)) {
                match &step.what {
                    What::Op(Op::Load { field, .. })
                        if *field == Field::PktTime || !is_key(*field) =>
                    {
                        all.fields.push(*field);
                    }
                    What::Read { .. } => all.counts = true,
                    what => left.extend(what.uses().into_iter().filter(is_open)),
                }
            }
            block.end.visit_targets(&mut |target| {
                let params = &residual.blocks[target.block.index()].params;
                let args = params.iter().zip(&target.args).filter(|(param, _)| **param == value);
                left.extend(args.map(|(_, arg)| *arg).filter(|arg| is_open(arg)));
            });
        }
    }
    all
}
