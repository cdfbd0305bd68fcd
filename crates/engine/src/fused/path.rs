//! Which path a packet takes, and why: for people who wonder why a flow has no record.

use super::NONE;
use super::change::Basis;
use super::find::Flow;
use super::legs::{Stop, Why, World};
use super::plan::{VARIANTS, is_key};
use super::probe::{Hang, Notes, Probe};
use crate::Compiled;
use crate::programs::Programs;
use crate::walk::At;
use braid_ir::engine::{Engine, Outputs, worker};
use braid_ir::model::{Op, StateId, ValueId};
use braid_ir::residual::{End, Fate, Point, Residual, Step, What};
use braid_packet::blend::Outline;
use braid_packet::{Field, Layout, Packet};
use std::collections::BTreeSet;
use std::fmt;

/// The path that a packet took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// Which one.
    pub taken: Taken,
    /// Why not another one, in words; empty for a record that was there.
    pub why: String,
}

/// The paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// The packet took its flow's record.
    Hit,
    /// Its flow has a record, which it did not fit.
    Misfit,
    /// Its flow has none.
    Miss,
}

impl Taken {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Taken::Hit => "hit",
            Taken::Misfit => "misfit",
            Taken::Miss => "miss",
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.taken, self.why.as_str()) {
            (Taken::Hit, "") => f.write_str("record (hit)"),
            (Taken::Hit, why) => write!(f, "record (hit): {why}"),
            (taken, why) => write!(f, "{}: {why}", taken.name()),
        }
    }
}

fn path(taken: Taken, why: impl Into<String>) -> Path {
    Path { taken, why: why.into() }
}

fn miss(why: impl Into<String>) -> Path {
    path(Taken::Miss, why)
}

/// What is said of a record that is made for the very packet.
const MADE: &str = "made for this packet";
/// And of one that is made in place of another one.
const RENEWED: &str = "made for this packet, in place of one that is outdated";
/// And where none is tried.
const YET: &str = "no record yet: one is tried for the fourth packet of its flow that could have one, and where that \
                   fails for the eighth, sixteenth, …";

/// And where it is not looked for.
const LEFT_OUT: &str = "no record is looked for: nearly all packets before it were of new flows, so that three of four are \
                        left out";

impl Compiled {
    /// Processes a packet as [`Engine::packet`] does, and tells its path, if records are made.
    pub fn packet_by_path(
        &mut self,
        ingress: u16,
        packet: Packet,
        out: &mut dyn Outputs,
    ) -> Option<Path> {
        let foreseen = self.flows().map(|before| (before, self.foresee(ingress, &packet, out)));
        self.packet(ingress, packet, out);
        let (before, path) = foreseen?;
        let after = self.flows()?;
        let taken = match after.hits > before.hits {
            true => Taken::Hit,
            false if after.misfits > before.misfits => Taken::Misfit,
            false => Taken::Miss,
        };
        // What only shows when it is tried.
        let why = match taken {
            _ if taken == path.taken => path.why,
            Taken::Misfit => "its record can count no more until that is worked out".into(),
            _ if after.records.contended > before.records.contended => {
                "no record can be made: other records look at state that it would change, or change what it would \
                 look at"
                    .into()
            }
            _ => "no record can be made: there are too many".into(),
        };
        Some(Path { taken, why })
    }

    /// The path that a packet would take now.
    fn foresee(&mut self, ingress: u16, packet: &Packet, out: &mut dyn Outputs) -> Path {
        let (mut packet, mut layout) = (packet.clone(), Layout::default());
        packet.parse_to(&mut layout);
        packet.ingress = ingress;
        let At::Point(point) = self.entry(ingress) else {
            return miss("no function is where it enters");
        };
        if !self.started {
            return miss("it is the first packet of all");
        }
        let Some(fused) = &self.fused else { return miss("no records are made") };
        if !fused.sampled(1).0 {
            return miss(LEFT_OUT);
        }
        self.find_flows(point, std::slice::from_ref(&packet), std::slice::from_ref(&layout));
        let Some(fused) = &self.fused else { return miss("no records are made") };
        let flow = fused.flows[0];
        if flow.kind == NONE {
            return miss(self.without_flow(point, &layout));
        }
        let due = self.wake.min(self.functions.store.next_due());
        let is_due = packet.time_ns.max(self.functions.now) >= due;
        let (misfit, is_outdated) = match self.with_records(flow, is_due, &packet, &layout) {
            Some((path, _)) if path.taken == Taken::Hit || is_due => return path,
            Some((misfit, is_outdated)) => (Some(misfit), is_outdated),
            None => (None, false),
        };
        let Some(fused) = &mut self.fused else { return miss("no records are made") };
        let is_left_out = fused.plan_of(flow).is_some_and(|plan| plan.is_left_out());
        let met = if misfit.is_some() { !flow.hash } else { flow.hash };
        let admitted = fused.filter.would_admit(met);
        let tried = self.try_record(flow, is_due, (&packet, &layout), out);
        match (admitted, tried, misfit) {
            (_, Ok(()), _) if is_outdated => path(Taken::Hit, RENEWED),
            (true, Ok(()), None) if is_left_out => {
                miss("no record is tried: many like it would have saved no time")
            }
            (true, Ok(()), _) => path(Taken::Hit, MADE),
            (_, Err(why), Some(misfit)) if is_outdated => path(
                Taken::Misfit,
                format!("{misfit}, and no other one can be made: {why}", misfit = misfit.why),
            ),
            (_, _, Some(misfit)) => misfit,
            (false, Ok(()), None) => miss(YET),
            (_, Err(why), None) => miss(format!("no record can be made: {why}")),
        }
    }

    /// Whether a packet fits one of its flow's records, and if not, whether one of those is outdated; `None` if there
    /// are none.
    fn with_records(
        &mut self,
        flow: Flow,
        is_due: bool,
        packet: &Packet,
        layout: &Layout,
    ) -> Option<(Path, bool)> {
        let mut misfit: Option<(Path, bool)> = None;
        for variant in 0..VARIANTS {
            let fused = self.fused.as_mut()?;
            fused.flows[0].kind = flow.kind + variant;
            let record = match fused.find(&self.functions.store, 0) {
                NONE if variant == 0 => return None,
                NONE => continue,
                record => record,
            };
            let class = self.functions.store.record_class(record);
            if is_due {
                return Some((path(Taken::Misfit, "something is due"), false));
            }
            if self.functions.store.is_class_outdated(class) {
                misfit = misfit.filter(|(_, is_outdated)| *is_outdated);
                misfit.get_or_insert_with(|| (path(Taken::Misfit, self.outdated(class)), true));
                continue;
            }
            let path = self.with_record(record, class, packet, layout);
            if path.taken == Taken::Hit {
                return Some((path, false));
            }
            misfit.get_or_insert((path, false));
        }
        misfit
    }

    /// That a record of a class is outdated.
    fn outdated(&self, class: u32) -> String {
        let way = self.fused.as_ref().and_then(|fused| fused.classes.ways.get(class as usize));
        let name = |basis: &Basis| {
            let model = &self.functions.instances[usize::from(basis.node)].model;
            format!("{}.{}", self.name(basis.node), model.params[basis.param.index()].name)
        };
        let names: BTreeSet<String> =
            way.into_iter().flat_map(|way| &way.bases).map(name).collect();
        let names: Vec<String> = names.into_iter().collect();
        format!("its record is outdated: {} changed, on which it rested", names.join(" or "))
    }

    /// Whether a packet fits a record of its flow, which is of this class.
    fn with_record(&self, record: u32, class: u32, packet: &Packet, layout: &Layout) -> Path {
        let known = self.fused.as_ref().and_then(|fused| fused.classes.get(class));
        let Some((class, way)) = known else {
            return path(Taken::Misfit, "its record means nothing");
        };
        let data = packet.data();
        if !class.link.holds(data) {
            return path(
                Taken::Misfit,
                "its link addresses are not those that its record takes for granted",
            );
        }
        let fails = way.guards.iter().find(|guard| !guard.holds(data, packet.wire_len));
        if let Some(guard) = fails {
            let words = self.in_words(way, guard);
            let is = guard.number.of(data, packet.wire_len) >> words.shift;
            let is = if words.mask.is_some() { format!("{is:#x}") } else { is.to_string() };
            return path(Taken::Misfit, format!("guard {words} does not hold: it is {is}"));
        }
        if let Some((node, why)) = self.unready(record, packet, layout) {
            return path(Taken::Misfit, format!("{} {why}", self.name(node)));
        }
        let chain = &self.functions.chain;
        let mut searches = class.more.iter().flat_map(|more| &more.searches);
        match searches.find(|search| !search.finds_nothing(chain, packet, layout)) {
            Some(search) => {
                let name = self.name(search.node);
                path(Taken::Misfit, format!("{name} finds something in the payload"))
            }
            None => path(Taken::Hit, ""),
        }
    }

    /// Why a packet belongs to no flow.
    fn without_flow(&self, point: Point, layout: &Layout) -> String {
        if self.graph.group(point.node).len() > 1 {
            return "functions under Priority have no records".into();
        }
        let Some(fused) = &self.fused else { return "no records are made".into() };
        let program = self.programs.points.known(point, layout.presence());
        if program.is_none() && !fused.is_open {
            return "no packet with such headers has run yet".into();
        }
        if let Some(reason) = layout.malformed() {
            return format!("the packet is malformed: {reason}");
        }
        let plan = program.and_then(|program| fused.plans.get(program)?.as_ref());
        match (plan, Outline::of(layout)) {
            (None, _) if !fused.is_open => "nothing is looked up on its way but routes: a record would save no time".into(),
            (_, None) => {
                "only IP over Ethernet, with up to two tags, without options or extension headers, has records".into()
            }
            (_, Some(_)) => "it belongs to no flow: its worker hangs on more than its key can have".into(),
        }
    }

    /// Whether a record can be made for a packet.
    fn try_record(
        &mut self,
        flow: Flow,
        is_due: bool,
        (packet, layout): (&Packet, &Layout),
        out: &mut dyn Outputs,
    ) -> Result<(), String> {
        if is_due {
            return Err("something is due".into());
        }
        let worker = worker(packet, self.workers);
        let elsewhere = || "its headers are elsewhere".to_owned();
        let start = self.fused.as_ref().and_then(|fused| fused.start(flow));
        let start = start.ok_or_else(elsewhere)?;
        let (at_hand, mut notes) = ((packet, layout), Notes::new());
        let Self { programs, functions, graph, .. } = self;
        let Programs { all, points, words, .. } = programs;
        let world = World { programs: all, points, graph };
        let probe = Probe::new(flow.program(), functions, worker, out, at_hand, &mut notes);
        let found = probe.ok_or_else(elsewhere)?.run(start, &world, words);
        let eager = self.fused.as_ref().is_some_and(|fused| fused.eager);
        match found {
            Ok(_) if let Some(why) = notes.loss().filter(|_| !eager) => {
                Err(format!("{why}: a record would save no time"))
            }
            Ok(_) if flow.is_narrow() && !notes.way.blend.is_narrow() => Err(
                "it needs a longer record than others of its kind: one is tried for later packets"
                    .into(),
            ),
            Ok(_) => Ok(()),
            Err(stop) => Err(self.why(worker, stop, &notes)),
        }
    }

    /// Why a run came to no end.
    fn why(&self, worker: u16, stop: Stop, notes: &Notes) -> String {
        let program = self.programs.all.get(stop.program as usize);
        match (stop.why, program.map(|program| &program.residual)) {
            (Why::Step, Some(residual)) => self.reason(residual, worker, stop, notes),
            (Why::GoesOn, Some(residual)) => self.goes_on(residual, stop.block),
            (Why::Step | Why::GoesOn, None) => "it goes nowhere".into(),
            (Why::Uneven, _) => {
                "the number of functions on the packet's way hangs on more than where it ends"
                    .into()
            }
            (Why::Unknown(node), _) => {
                format!("no packet with such headers has gone on at {} yet", self.name(node))
            }
            (Why::Beside, _) => {
                "tags, events and copies would come out of order with what native functions do"
                    .into()
            }
            (Why::Headers, _) => "its headers are elsewhere".into(),
            (Why::Native(node, why), _) => format!("{} {why}", self.name(node)),
        }
    }

    fn name(&self, node: u16) -> &str {
        &self.functions.chain.nodes[usize::from(node)].name
    }

    /// `nat.map`
    fn table(&self, node: u16, state: StateId) -> String {
        let model = &self.functions.instances[usize::from(node)].model;
        format!("{}.{}", self.name(node), model.state[state.index()].name)
    }

    /// Why the end of a block is not the end of a packet's walk.
    fn goes_on(&self, residual: &Residual, block: usize) -> String {
        let End::Exit(exit) = &residual.blocks[block].end else { return "it waits".into() };
        match &exit.fate {
            Fate::Go(point) => {
                format!("it goes on at {}, by another program", self.name(point.node))
            }
            Fate::Output { node, .. } => {
                format!("{} sends it or copies on to other functions", self.name(*node))
            }
            Fate::Resubmit { node } => format!("{} runs on it anew", self.name(*node)),
            Fate::Leave { .. } | Fate::Drop { .. } | Fate::Fault { .. } | Fate::Consume { .. } => {
                "it sends packets".into()
            }
        }
    }

    /// What a record could not say.
    fn reason(&self, residual: &Residual, worker: u16, stop: Stop, notes: &Notes) -> String {
        let block = &residual.blocks[stop.block];
        let Some(step) = stop.step.map(|step| &block.steps[step]) else {
            return match &block.end {
                End::Hold { node, .. } => format!("{} lets it wait", self.name(*node)),
                End::Branch { cond, .. } => {
                    format!("what is done hangs on {}", hung(residual, notes, &[*cond]))
                }
                _ => "it would change what it takes for granted, or what it sent a copy of".into(),
            };
        };
        let node = step.site.node;
        let name = self.name(node);
        match &step.what {
            What::Op(op) => self.op_reason(residual, (node, worker), op, step, notes),
            What::Write(fields) => {
                let names: Vec<_> = fields.iter().map(|(field, _)| field.info().name).collect();
                let values: Vec<_> = fields.iter().map(|(_, value)| *value).collect();
                let on = hung(residual, notes, &values);
                format!("what {name} assigns to {} hangs on {on}", names.join(", "))
            }
            _ => format!("what {name} does hangs on {}", hung(residual, notes, &step.what.uses())),
        }
    }

    fn op_reason(
        &self,
        residual: &Residual,
        (node, worker): (u16, u16),
        op: &Op,
        step: &Step,
        notes: &Notes,
    ) -> String {
        let name = self.name(node);
        let model = &self.functions.instances[usize::from(node)].model;
        match op {
            Op::StateSet { state, .. } | Op::StatePut { state, .. } => {
                let shard = self.functions.instances[usize::from(node)].shard(worker);
                let table = self.functions.store.table(node, *state, shard);
                match notes.absent.last() == Some(table) {
                    true => format!("it changes state: new entry {}", self.table(node, *state)),
                    false => format!("it changes state: {}", self.table(node, *state)),
                }
            }
            Op::StateDelete { state, .. } => {
                format!("it changes state: removes {}", self.table(node, *state))
            }
            Op::StateLen { state, .. } => {
                format!(
                    "what is done hangs on the number of entries of {}",
                    self.table(node, *state)
                )
            }
            Op::Take { pool, .. } | Op::TakeThis { pool, .. } | Op::Release { pool, .. } => {
                format!("it changes state: {name}'s pool {}", model.params[pool.index()].name)
            }
            Op::Emit { event, .. } => {
                let (event, on) =
                    (&model.events[event.index()].name, hung(residual, notes, &step.what.uses()));
                format!("what {name} says in the event {event} hangs on {on}")
            }
            Op::Create { .. } => format!("{name} sends a packet"),
            Op::PushVlan { .. } => format!("{name} adds a ninth VLAN tag"),
            Op::Patterns { .. } => format!("{name} looks into the payload"),
            Op::Extern { name: of, .. } => format!("{name} calls {of}"),
            Op::Load { field, .. } => {
                format!(
                    "{name} reads {} after it was assigned, or it is not there",
                    field.info().name
                )
            }
            _ => format!("what {name} does hangs on {}", hung(residual, notes, &step.what.uses())),
        }
    }
}

/// What values hung on when a run stopped: fields that are not in the key, slots, the time.
fn hung(residual: &Residual, notes: &Notes, values: &[ValueId]) -> String {
    let is_open =
        |id: &ValueId| notes.hangs.get(id.index()).is_some_and(|hang| *hang != Hang::Fixed);
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
