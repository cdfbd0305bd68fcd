//! Explains which path a packet takes, and why, for example why its flow has no record.
#![expect(
    clippy::indexing_slicing,
    reason = "programs and verified models refer only to what they declare"
)]

use crate::basis::Basis;
use crate::batch::Flow;
use crate::cache::{FlowCache, Flows};
use crate::extractors::Extractors;
use crate::field_names::named_guard;
use crate::findings::Findings;
use crate::host::{Functions, Host, Programs};
use crate::key::is_key;
use crate::slab::NONE;
use crate::specialiser::Specialiser;
use crate::subpaths::{Stop, Why};
use crate::value_dependency::ValueDependency;
use braid_ir::model::{Op, StateId, ValueId};
use braid_ir::residual::{End, Fate, Point, Residual, Step, What};
use braid_packet::rewrite::Outline;
use braid_packet::{Field, Layout, Packet};
use std::collections::BTreeSet;
use std::fmt;

/// The path that a packet took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketPath {
    /// Which path.
    pub taken: Taken,
    /// The reason why the packet did not take another path, in words. Empty for a hit on a record
    /// that existed before.
    pub why: String,
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

impl Taken {
    /// The path in one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Taken::Hit => "hit",
            Taken::GuardFailure => "guard failure",
            Taken::Miss => "miss",
        }
    }
}

impl fmt::Display for PacketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.taken, self.why.as_str()) {
            (Taken::Hit, "") => f.write_str("record (hit)"),
            (Taken::Hit, why) => write!(f, "record (hit): {why}"),
            (taken, why) => write!(f, "{}: {why}", taken.name()),
        }
    }
}

fn outcome(taken: Taken, why: impl Into<String>) -> PacketPath {
    PacketPath { taken, why: why.into() }
}

fn miss(why: impl Into<String>) -> PacketPath {
    outcome(Taken::Miss, why)
}

/// The reason for a hit on a record that was made for the packet itself.
const MADE: &str = "made for this packet";
/// The reason for a record that replaces another one.
const RENEWED: &str = "made for this packet, in place of one that is outdated";
/// The reason for a miss before the cache tries to make a record for the flow.
const YET: &str = "no record yet: Braid tries to make one for the flow's fourth packet, then \
                   for the eighth, the sixteenth, … (later if earlier records were hardly used, and \
                   for the second if they were used often)";

/// The reason for a miss while no packet takes a record.
const PAUSED: &str = "no packet takes a record while the state is being copied";

/// The reason for a miss while the sampling leaves packets out.
const LEFT_OUT: &str = "no search for a record: few earlier packets belonged to known flows or \
                        took records, so most packets skip the search";

impl PacketPath {
    /// The path of a packet for which no program can run yet, and why.
    #[must_use]
    pub fn miss(why: &str) -> Self {
        miss(why)
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
            Taken::GuardFailure => {
                "its record has used up its fuel, which must be computed again".into()
            }
            _ if after.records.contended > before.records.contended => {
                "no record can be made: other records read state that it would change, or change \
                 state that it would read"
                    .into()
            }
            _ => "no record can be made: there are too many".into(),
        };
        Self { taken, why }
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
        return miss(PAUSED);
    }
    if !cache.sampled(1, host.functions).0 {
        return miss(LEFT_OUT);
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
        let one = (std::slice::from_ref(packet), std::slice::from_ref(layout));
        self.cache.find_flows(&mut self.host, one.0, one.1);
        let flow = self.cache.batch.flows[0];
        if flow.kind == NONE {
            return miss(self.without_flow(point, layout));
        }
        let is_due = packet.time_ns.max(self.host.functions.now()) >= self.host.due();
        let (failure, is_outdated) = match flow.record {
            NONE => (None, false),
            record => match self.with_record(record, is_due, packet, layout) {
                (outcome, _) if outcome.taken == Taken::Hit || is_due => return outcome,
                (failure, is_outdated) => (Some(failure), is_outdated),
            },
        };
        let extractor = self.cache.extractors.get(flow.extractor());
        let is_left_out = extractor.is_some_and(|extractor| extractor.is_left_out());
        let met = if failure.is_some() { !flow.hash } else { flow.hash };
        let admitted = self.cache.filter.would_admit(met);
        let tried = self.try_record(flow, is_due, (packet, layout));
        match (admitted, tried, failure) {
            (_, Ok(()), _) if is_outdated => outcome(Taken::Hit, RENEWED),
            (true, Ok(()), None) if is_left_out => miss(
                "no attempt to make a record: many attempts for similar packets failed or would \
                 have saved no time",
            ),
            (true, Ok(()), _) => outcome(Taken::Hit, MADE),
            (_, Err(why), Some(failure)) if is_outdated => outcome(
                Taken::GuardFailure,
                format!("{failure}, and no other record can be made: {why}", failure = failure.why),
            ),
            (_, _, Some(failure)) => failure,
            (false, Ok(()), None) => miss(YET),
            (_, Err(why), None) => miss(format!("no record can be made: {why}")),
        }
    }

    /// The path of a packet whose flow has a record, and whether the record is outdated.
    fn with_record(
        &self,
        record: u32,
        is_due: bool,
        packet: &Packet,
        layout: &Layout,
    ) -> (PacketPath, bool) {
        let records = self.host.functions.state().dependents();
        let template = records.template(record);
        if is_due {
            (outcome(Taken::GuardFailure, "something is due"), false)
        } else if records.is_template_outdated(template) {
            (outcome(Taken::GuardFailure, self.outdated(template)), true)
        } else {
            (self.with_template(record, template, packet, layout), false)
        }
    }

    /// Says that a record of a template is outdated.
    fn outdated(&self, template: u32) -> String {
        let path = self.cache.templates.paths.get(template as usize);
        let name = |basis: &Basis| {
            let model = &self.host.functions.chain().nodes[usize::from(basis.node)].model;
            format!("{}.{}", self.name(basis.node), model.params[basis.param.index()].name)
        };
        let names: BTreeSet<String> =
            path.into_iter().flat_map(|path| &path.bases).map(name).collect();
        let names: Vec<String> = names.into_iter().collect();
        format!("its record is outdated: it depends on {}, which has changed", names.join(" or "))
    }

    /// Whether a packet can take its flow's record, which has this template.
    fn with_template(
        &self,
        record: u32,
        template: u32,
        packet: &Packet,
        layout: &Layout,
    ) -> PacketPath {
        let known = self.cache.templates.get(template);
        let Some((template, path)) = known else {
            return outcome(Taken::GuardFailure, "its record means nothing");
        };
        let data = packet.data();
        if !template.link.holds(data) {
            return outcome(
                Taken::GuardFailure,
                "its link addresses differ from those of its record",
            );
        }
        let fails = path.guards.iter().find(|guard| !guard.holds(data, packet.wire_len));
        if let Some(guard) = fails {
            let words = named_guard(path, guard, (&self.cache.extractors, self.host.programs));
            let is = guard.number.of(data, packet.wire_len) >> words.shift;
            let is = if words.mask.is_some() { format!("{is:#x}") } else { is.to_string() };
            return outcome(
                Taken::GuardFailure,
                format!("guard {words} does not hold: it is {is}"),
            );
        }
        let time = packet.time_ns.max(self.host.functions.now());
        let bindings = self.cache.bindings(record);
        let unready = bindings.and_then(|all| all.unready(&*self.host.functions, layout, time));
        if let Some((node, why)) = unready {
            return outcome(Taken::GuardFailure, format!("{} {why}", self.name(node)));
        }
        let chain = self.host.functions.chain();
        let mut searches = template.more.iter().flat_map(|more| &more.searches);
        match searches.find(|search| !search.finds_nothing(chain, packet, layout)) {
            Some(search) => {
                let name = self.name(search.node);
                outcome(Taken::GuardFailure, format!("a pattern of {name} matches the payload"))
            }
            None => outcome(Taken::Hit, ""),
        }
    }

    /// Why a packet belongs to no flow.
    fn without_flow(&self, point: Point, layout: &Layout) -> String {
        if self.host.graph.group(point.node).len() > 1 {
            return "functions under Priority have no records".into();
        }
        let extractors: &Extractors = &self.cache.extractors;
        let program = self.host.programs.known(point, layout.presence());
        if program.is_none() && !extractors.is_open {
            return "no packet with such headers has run yet".into();
        }
        if let Some(reason) = layout.malformed() {
            return format!("the packet is malformed: {reason}");
        }
        let extractor = program.and_then(|program| extractors.program(program));
        match (extractor, Outline::of(layout)) {
            (None, _) if !extractors.is_open => {
                "its path looks up nothing but routes: a record would save no time".into()
            }
            (_, None) => {
                "only IP over Ethernet, with up to two tags, without options or extension \
                          headers, has records"
                    .into()
            }
            (_, Some(_)) => "it belongs to no flow: its worker depends on fields that cannot be \
                             part of its key"
                .into(),
        }
    }

    /// Whether a record can be made for a packet.
    fn try_record(
        &mut self,
        flow: Flow,
        is_due: bool,
        (packet, layout): (&Packet, &Layout),
    ) -> Result<(), String> {
        if is_due {
            return Err("something is due".into());
        }
        let worker = self.host.functions.chain().worker(packet, layout);
        let elsewhere = || "its headers are elsewhere".to_owned();
        let start = self.cache.extractors.start(flow.extractor()).ok_or_else(elsewhere)?;
        let (at_hand, mut findings) = ((packet, layout), Findings::new());
        let host = &mut self.host;
        let (functions, out) = (&mut *host.functions, &mut *host.out);
        let specialiser =
            Specialiser::new(flow.extractor(), functions, worker, out, at_hand, &mut findings);
        let world = (host.programs, host.graph);
        let found = specialiser.ok_or_else(elsewhere)?.run(start, world, host.words);
        let eager = self.cache.eager;
        match found {
            Ok(_) if let Some(why) = findings.loss().filter(|_| !eager) => {
                Err(format!("{why}: a record would save no time"))
            }
            Ok(_) if flow.is_narrow() && !findings.path.rewrite.is_narrow() => Err(
                "it needs a longer record than others of its kind: Braid tries to make one for \
                 later packets"
                    .into(),
            ),
            Ok(_) => Ok(()),
            Err(stop) => Err(self.why(worker, stop, &findings)),
        }
    }

    /// Why a specialisation stopped.
    fn why(&self, worker: u16, stop: Stop, findings: &Findings) -> String {
        match (stop.why, self.host.programs.residual(stop.program as usize)) {
            (Why::Step, Some(residual)) => self.reason(residual, worker, stop, findings),
            (Why::GoesOn, Some(residual)) => self.goes_on(residual, stop.block),
            (Why::Step | Why::GoesOn, None) => "it goes nowhere".into(),
            (Why::Uneven, _) => {
                "the end of the packet's path does not determine how many functions it visits"
                    .into()
            }
            (Why::Unknown(node), _) => {
                format!("no packet with such headers has reached {} yet", self.name(node))
            }
            (Why::Beside, _) => {
                "tags, events and copies would come out of order with what native functions do"
                    .into()
            }
            (Why::Headers, _) => "its headers are elsewhere".into(),
            (Why::Function(node, why), _) => format!("{} {why}", self.name(node)),
        }
    }

    fn name(&self, node: u16) -> &str {
        &self.host.functions.chain().nodes[usize::from(node)].name
    }

    /// A table's name as people write it: `nat.map`
    fn table(&self, node: u16, state: StateId) -> String {
        let model = &self.host.functions.chain().nodes[usize::from(node)].model;
        format!("{}.{}", self.name(node), model.state[state.index()].name)
    }

    /// The reason why a packet's path continues after the end of a block.
    fn goes_on(&self, residual: &Residual, block: usize) -> String {
        let End::Exit(exit) = &residual.blocks[block].end else { return "it waits".into() };
        match &exit.fate {
            Fate::Go(point) => {
                format!("it continues at {}, in another program", self.name(point.node))
            }
            Fate::Output { node, .. } => {
                format!("{} sends the packet or copies of it to other functions", self.name(*node))
            }
            Fate::Resubmit { node } => format!("{} runs on it anew", self.name(*node)),
            Fate::Leave { .. } | Fate::Drop { .. } | Fate::Fault { .. } | Fate::Consume { .. } => {
                "it sends packets".into()
            }
        }
    }

    /// Why a record cannot express the step at which a specialisation stopped.
    fn reason(&self, residual: &Residual, worker: u16, stop: Stop, findings: &Findings) -> String {
        let block = &residual.blocks[stop.block];
        let Some(step) = stop.step.map(|step| &block.steps[step]) else {
            return match &block.end {
                End::Hold { node, .. } => format!("{} lets it wait", self.name(*node)),
                End::Branch { cond, .. } => {
                    format!(
                        "the packet's treatment depends on {}",
                        dependencies_of(residual, findings, &[*cond])
                    )
                }
                _ => "it would change what it takes for granted, or what it sent a copy of".into(),
            };
        };
        let node = step.site.node;
        let name = self.name(node);
        match &step.what {
            What::Op(op) => self.op_reason(residual, (node, worker), op, step, findings),
            What::Write(fields) => {
                let names: Vec<_> = fields.iter().map(|(field, _)| field.info().name).collect();
                let values: Vec<_> = fields.iter().map(|(_, value)| *value).collect();
                let on = dependencies_of(residual, findings, &values);
                format!("the value that {name} assigns to {} depends on {on}", names.join(", "))
            }
            _ => {
                format!(
                    "the action of {name} depends on {}",
                    dependencies_of(residual, findings, &step.what.uses())
                )
            }
        }
    }

    fn op_reason(
        &self,
        residual: &Residual,
        (node, worker): (u16, u16),
        op: &Op,
        step: &Step,
        findings: &Findings,
    ) -> String {
        let name = self.name(node);
        let model = &self.host.functions.chain().nodes[usize::from(node)].model;
        match op {
            Op::StateSet { state, .. } | Op::StatePut { state, .. } => {
                let table = self.host.functions.table(node, *state, worker);
                match findings.absent.last() == Some(table) {
                    true => format!("it changes state: new entry {}", self.table(node, *state)),
                    false => format!("it changes state: {}", self.table(node, *state)),
                }
            }
            Op::StateDelete { state, .. } => {
                format!("it changes state: removes {}", self.table(node, *state))
            }
            Op::StateLen { state, .. } => {
                format!(
                    "the packet's treatment depends on the number of entries of {}",
                    self.table(node, *state)
                )
            }
            Op::Take { pool, .. } | Op::TakeThis { pool, .. } | Op::Release { pool, .. } => {
                format!("it changes state: {name}'s pool {}", model.params[pool.index()].name)
            }
            Op::Emit { event, .. } if self.host.functions.is_taken(node, *event) => {
                format!("functions take the event {} of {name}", model.events[event.index()].name)
            }
            Op::Emit { event, .. } => {
                let event = &model.events[event.index()].name;
                let on = dependencies_of(residual, findings, &step.what.uses());
                format!("a field of the event {event} of {name} depends on {on}")
            }
            Op::Create { .. } => format!("{name} sends a packet"),
            Op::PushVlan { .. } => format!("{name} adds a ninth VLAN tag"),
            Op::InStrings { .. } => format!("{name} looks a string up"),
            Op::Patterns { .. }
            | Op::FindPatterns { .. }
            | Op::LoadBytes { .. }
            | Op::LoadString { .. } => {
                format!("{name} reads the payload")
            }
            op if op.changes_payload() => format!("{name} writes the payload"),
            Op::Encapsulate { seal: Some(_), .. } => format!("{name} encrypts the packet"),
            Op::Encapsulate { .. } => format!("{name} adds outer headers"),
            Op::Decapsulate { .. } => format!("{name} removes outer headers"),
            Op::HasRoom { .. } | Op::PushOption { .. } | Op::PopOption { .. } => {
                format!("{name} adds or removes a TCP option")
            }
            Op::Extern { name: of, .. } => format!("{name} calls {of}"),
            Op::Load { field, .. } => {
                format!(
                    "{name} reads {}, which was assigned before or is not at a known place",
                    field.info().name
                )
            }
            _ => {
                format!(
                    "the action of {name} depends on {}",
                    dependencies_of(residual, findings, &step.what.uses())
                )
            }
        }
    }
}

/// The sources of the values that are not fixed where a specialisation stopped: fields outside the
/// key, slots, the time.
fn dependencies_of(residual: &Residual, findings: &Findings, values: &[ValueId]) -> String {
    let is_open = |id: &ValueId| {
        findings
            .dependencies
            .get(id.index())
            .is_some_and(|dependency| *dependency != ValueDependency::Fixed)
    };
    let (mut all, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut left: Vec<ValueId> = values.iter().copied().filter(is_open).collect();
    while let Some(value) = left.pop() {
        if !seen.insert(value.index()) {
            continue;
        }
        for block in &residual.blocks {
            for step in block.steps.iter().filter(|step| step.what.outs().contains(&value)) {
                match &step.what {
                    What::Op(Op::Load { field: Field::PktTime, .. }) => {
                        all.insert("the time".to_owned());
                    }
                    What::Op(Op::Load { field, .. }) if !is_key(*field) => {
                        all.insert(field.info().name.to_owned());
                    }
                    What::Read { .. } => {
                        all.insert("what is counted in state".to_owned());
                    }
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
    match all.len() {
        0 => "bits of the packet that are not in the key".into(),
        _ => all.into_iter().collect::<Vec<_>>().join(", "),
    }
}
