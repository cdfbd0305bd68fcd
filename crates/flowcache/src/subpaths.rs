//! Runs a specialisation subpath by subpath: through the programs and native functions on a
//! packet's path, up to the place where the packet leaves or ends.
#![expect(
    clippy::cast_possible_truncation,
    reason = "there are fewer programs, blocks and steps than 2^32"
)]
#![expect(
    clippy::indexing_slicing,
    reason = "points name functions of the chain, and jumps name blocks of the program"
)]

use crate::bindings::HeaderChange;
use crate::extractors::Start;
use crate::fast_path::MOST_BEFORE;
use crate::findings::Findings;
use crate::goal::{Goal, PathEnd};
use crate::guard::Number;
use crate::host::{Cut, Functions, Programs};
use crate::key::{LENGTH, OPEN};
use crate::mutants::RecordMutant;
use crate::native_calls::ask;
use crate::obstacle::{NoRecording, Stopped};
use crate::path::{Path, Search};
use crate::prefix::Met;
use crate::recording::Source;
use crate::script::Step as ScriptStep;
use crate::specialiser::{Specialiser, Tunnels};
use crate::tunnel_end;
use crate::value_dependency::ValueDependency;
use crate::wrapped::{Depends, Wrapped};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Dest, Haystack, Op, PortId, ValueId, Word};
use braid_ir::residual::{End, Exit, Fate, HeaderMask, Point, Residual, What};
use braid_ir::values::Values;
use braid_ir::walk::{At, ENDED, fits, onward};
use braid_native::Verdict;
use braid_packet::rewrite::Retag;
use braid_packet::tunnel::Inner;
use braid_packet::{Bits, Field, Header};

/// The programs that a packet can run, and the links between functions.
pub(crate) type World<'a, P> = (&'a P, &'a Graph);

/// Fields that have nothing to do with headers.
const OF_WALK: [Field; 4] = [Field::PktLen, Field::PktTime, Field::PktBackward, Field::PktHeld];

/// The place where a specialisation met something that a record cannot express.
#[derive(Clone, Copy)]
pub(crate) struct Stop {
    pub(crate) why: Stopped,
    /// The last program.
    pub(crate) program: u32,
    pub(crate) block: usize,
    /// The step. `None` stands for the end of the block.
    pub(crate) step: Option<usize>,
    /// A record can end in front of this function: the run met it where a program or a function
    /// begins.
    before: Option<u16>,
}

impl<'a, F: Functions> Specialiser<'a, F> {
    /// Runs the specialisation to the end of the packets' path, or up to a function that does what
    /// no record contains. Returns the goal of the path. The error says where the run met something
    /// that a record cannot express. Everything else is in the findings.
    pub(crate) fn run<P: Programs>(
        &mut self,
        start: Start,
        world: World<'a, P>,
        memory: &mut [Word],
    ) -> Result<Goal, Stop> {
        let whole = self.run_settled(start, world, memory);
        let Err(stop) = whole else { return whole };
        if let Tunnels::Ends(_) = self.tunnels {
            return Err(stop);
        }
        // A record cannot end in a tunnel, but where the tunnel begins.
        let end = match self.headers.wrapped {
            Some(_) => None,
            None => self.end_before(&stop, world.0),
        };
        if self.tunnels == Tunnels::Met {
            if self.headers.lacks_key.get() {
                self.tunnels = Tunnels::Unkeyed;
                return Err(stop);
            }
            if end.is_some() || self.is_kept_out(&stop) {
                self.tunnels = Tunnels::Closed;
                self.again();
                return self.run(start, world, memory);
            }
        }
        let Some(end) = end else { return Err(stop) };
        let mut guards = Vec::new();
        self.findings.guards.needed(&mut guards);
        let met = Met { node: end.node, guards: guards.into() };
        // The guards of a packet inside a tunnel say nothing about the packet that comes.
        let prefix = self.findings.recording.prefix(met);
        self.findings.prefix = prefix.filter(|_| self.findings.path.front.is_none());
        self.again();
        if self.findings.prefix.is_none() {
            self.findings.recording.give_up();
        }
        self.run_up_to(end, start, world, memory)
    }

    /// As [`Self::run`], for a path that ends in front of a function.
    pub(crate) fn run_up_to<P: Programs>(
        &mut self,
        end: PathEnd,
        start: Start,
        world: World<'a, P>,
        memory: &mut [Word],
    ) -> Result<Goal, Stop> {
        self.end = Some(end);
        self.run_settled(start, world, memory)
    }

    /// Whether what stopped the run in a tunnel, or behind one, stops further runs, too.
    fn is_kept_out(&self, stop: &Stop) -> bool {
        let is_inside = self.headers.wrapped.is_some();
        let step = stop.step.and_then(|step| self.blocks.get(stop.block)?.steps.get(step));
        match (stop.why, step.map(|step| &step.what)) {
            (Stopped::Headers, _) => true,
            (Stopped::Unknown(_), _) => false,
            // The key may lack what a program behind the tunnel reads.
            (_, Some(What::Op(Op::Load { .. }) | What::Write(_))) => true,
            _ => is_inside,
        }
    }

    /// Where a path can end in front of what stopped the run.
    fn end_before<P: Programs>(&mut self, stop: &Stop, programs: &P) -> Option<PathEnd> {
        if self.functions.chain().steers() {
            return None;
        }
        let has_begun = !self.findings.path.subpaths.is_empty();
        if let Some(node) = stop.before {
            return has_begun.then_some(PathEnd { node, program: None });
        }
        let step = stop.step.filter(|_| stop.why == Stopped::Step)?;
        let step = &self.blocks[stop.block].steps[step];
        let node = step.site.node;
        if !matches!(&step.what, What::Op(op) if op.is_beyond_records()) {
            return None;
        }
        if node == self.point.node {
            return has_begun.then_some(PathEnd { node, program: None });
        }
        let cut = self.cut(node);
        if programs.cut(&cut).is_none() {
            self.findings.wanted = Some(cut).filter(|_| self.findings.may_want);
            return None;
        }
        Some(PathEnd { node, program: Some(self.number) })
    }

    /// The part of the current program in front of a function.
    fn cut(&self, node: u16) -> Cut {
        Cut { point: self.point, present: self.headers.shape.present, node }
    }

    /// Runs the specialisation again if it has learned which slots count.
    fn run_settled<P: Programs>(
        &mut self,
        start: Start,
        world: World<'a, P>,
        memory: &mut [Word],
    ) -> Result<Goal, Stop> {
        let first = self.run_once(start, world, memory);
        if first.is_ok() || !self.findings.counters.knows_more(&self.findings.depends_on) {
            return first;
        }
        self.again();
        self.run_once(start, world, memory)
    }

    fn run_once<P: Programs>(
        &mut self,
        start: Start,
        world: World<'a, P>,
        memory: &mut [Word],
    ) -> Result<Goal, Stop> {
        let at = match start {
            Start::Program(number) => {
                let mut at = self.by_program(number, world, memory)?;
                let goes_on = |one: &Self, at| one.goes_through_tunnel() && !one.ends_at(at);
                while let Some(At::Point(point)) = at.filter(|at| goes_on(self, *at)) {
                    at = self.go_on(point, world, memory)?;
                }
                at
            }
            Start::Point(point) => {
                let mut at = Some(At::Point(point));
                while let Some(At::Point(point)) = at.filter(|at| !self.ends_at(*at)) {
                    at = self.go_on(point, world, memory)?;
                }
                at
            }
        };
        let last = self.findings.path.programs().last().map_or(0, |(last, _)| last.block as usize);
        if self.headers.wrapped.is_some()
            && let End::Exit(Exit { fate: Fate::Drop { .. }, .. }) = &self.blocks[last].end
        {
            // Nobody sees the outer headers of a packet that a function drops in a tunnel.
            self.forget_tunnel();
        }
        self.found().map_err(|why| self.stop(why, last, None))?;
        // One engine for several workers chooses a packet's worker where the packet enters.
        let stays = self.functions.chain().steers() && matches!(at, Some(At::Point(_)));
        let place = (at.filter(|_| !stays), self.hops - MOST_BEFORE, self.end.is_none());
        let goal = Goal::of(&self.findings.path, place, world);
        self.findings.is_part = goal.as_ref().is_some_and(|goal| goal.onward.is_some());
        goal.ok_or_else(|| self.stop(Stopped::GoesOn, last, None))
    }

    /// Whether the path of the record ends at a place.
    fn ends_at(&self, at: At) -> bool {
        let has_begun = !self.findings.path.subpaths.is_empty();
        let is_end = |end: PathEnd| matches!(at, At::Point(point) if point.node == end.node);
        has_begun && self.end.is_some_and(is_end)
    }

    /// A stop in the current program.
    fn stop(&self, why: Stopped, block: usize, step: Option<usize>) -> Stop {
        Stop { why, program: self.number, block, step, before: None }
    }

    /// A stop where the packet enters a function. A record can end in front of it.
    fn stop_before(&self, why: Stopped, point: Point) -> Stop {
        Stop { before: Some(point.node), ..self.stop(why, 0, None) }
    }

    /// Runs the function or program at a point. Returns the packet's place afterwards.
    fn go_on<P: Programs>(
        &mut self,
        point: Point,
        world: World<'a, P>,
        memory: &mut [Word],
    ) -> Result<Option<At>, Stop> {
        if self.has_effects_of_programs() {
            return Err(self.stop_before(Stopped::Beside, point));
        }
        if !self.findings.path.effects.splices.is_empty() {
            return Err(self.stop_before(Stopped::Headers, point));
        }
        self.headers.renew().ok_or_else(|| self.stop_before(Stopped::Headers, point))?;
        self.enter_tunnel().ok_or_else(|| self.stop_before(Stopped::Headers, point))?;
        let (node, presence) = (usize::from(point.node), self.headers.presence());
        if world.1.goes_to_stack(point.node, presence) {
            let why = Stopped::Function(point.node, NoRecording::Stack);
            return Err(self.stop_before(why, point));
        }
        let is_native = self.functions.chain().nodes[node].model.is_native_on_packets();
        if is_native && self.headers.wrapped.is_some() {
            return Err(self.stop_before(Stopped::Headers, point));
        }
        if is_native && world.1.group(point.node).len() == 1 {
            if !fits(self.hops, 1) {
                return Err(self.stop(Stopped::Uneven, 0, None));
            }
            let at_hand = (&mut *self.findings, &mut self.headers);
            let place = (point, self.worker, self.now);
            let verdict = ask(at_hand, &*self.functions, place);
            let verdict = verdict.map_err(|why| {
                let stopped = Stopped::Function(point.node, why);
                let shard = self.functions.shard(point.node, self.worker);
                let function = self.functions.native(point.node, shard);
                let lasts = match why {
                    NoRecording::Due | NoRecording::Cut | NoRecording::Fragment => false,
                    NoRecording::Nothing => function.is_some_and(|one| !one.has_recorded()),
                    _ => true,
                };
                match lasts {
                    true => self.stop_before(stopped, point),
                    false => self.stop(stopped, 0, None),
                }
            })?;
            return Ok(Some(self.decided(point, verdict, world.1)));
        }
        let number = world.0.known(point, presence);
        let number = number.ok_or_else(|| {
            let stopped = Stopped::Unknown(point.node);
            match world.1.has_programs(point.node) {
                true => self.stop(stopped, 0, None),
                false => self.stop_before(stopped, point),
            }
        })?;
        self.by_program(number, world, memory)
    }

    /// Whether a path that begins with a program goes on behind it: into a tunnel, or behind one.
    fn goes_through_tunnel(&self) -> bool {
        let begins = || match &self.findings.path.effects.outer[..] {
            [outer] => Wrapped::new(&self.headers.packet, outer).is_some(),
            _ => false,
        };
        !self.has_effects_of_programs()
            && match self.tunnels {
                Tunnels::Open => begins(),
                Tunnels::Met | Tunnels::Left => true,
                Tunnels::Closed | Tunnels::Unkeyed | Tunnels::Ends(_) => false,
            }
    }

    /// Takes the outer headers off a packet in a tunnel.
    pub(crate) fn forget_tunnel(&mut self) {
        let Some(wrapped) = self.headers.wrapped.take() else { return };
        let stored: Vec<Bits> = wrapped.outer.stored.iter().map(|one| one.from).collect();
        self.findings.recording.forget_stored(&stored);
        self.findings.path.effects.outer.clear();
        let care = self.findings.care;
        let present = self.headers.layout.presence() & care;
        self.headers.unseal(HeaderMask { care, present }, &stored);
    }

    /// Takes note that a program is only for packets with some of these headers. `None` if the key
    /// does not tell whether a packet has them.
    fn care_for(&mut self, headers: u128) -> Option<()> {
        // Where packets may meet native functions, a record is for packets of one shape.
        let is_known = self.findings.path.entry >= OPEN || self.tunnels != Tunnels::Met;
        if !is_known && headers & !self.findings.care != 0 {
            return None;
        }
        self.findings.care |= headers;
        Some(())
    }

    /// Takes a packet with outer headers into the next function. `None` if the path must end in
    /// front of it.
    fn enter_tunnel(&mut self) -> Option<()> {
        let outer = match &self.findings.path.effects.outer[..] {
            [] => return Some(()),
            [outer] if matches!(self.tunnels, Tunnels::Open | Tunnels::Met) => outer,
            _ => return None,
        };
        if self.headers.wrapped.is_none() {
            self.headers.wrapped = Some(Box::new(Wrapped::new(&self.headers.packet, outer)?));
            self.headers.covered = self.covered;
            self.headers.parse();
            self.tunnels = Tunnels::Met;
        }
        Some(())
    }

    /// Executes an operation on a packet that is in a tunnel. `None` if it has nothing to do with
    /// the outer headers. The inner `None` stands for an operation that no record can contain.
    pub(crate) fn in_tunnel(&mut self, values: &mut Values<'_>, op: &Op) -> Option<Option<()>> {
        let wrapped = self.headers.wrapped.as_ref()?;
        Some(match op {
            Op::Load { out, field } if !OF_WALK.contains(field) && wrapped.has(*field) => {
                self.load_outer(values, *out, *field)
            }
            Op::Has { out, header } => {
                let has = wrapped.layout.has(*header);
                self.findings.know(values, *out, has.into());
                Some(())
            }
            Op::Decapsulate { ok, inner, last, offset, association: None } => self
                .leave_tunnel(values, (*inner, *last), *offset)
                .map(|()| self.findings.know(values, *ok, 1)),
            // All flows in the tunnel share such an entry. Only some records may count in it.
            Op::StateSet { .. } | Op::StatePut { .. } | Op::StateDelete { .. } => None,
            Op::PushVlan { .. } | Op::PopVlan => None,
            op if op.rewraps() => None,
            _ => return None,
        })
    }

    /// Loads a field of the outer headers.
    fn load_outer(&mut self, values: &mut Values<'_>, id: ValueId, field: Field) -> Option<()> {
        let (headers, findings) = (&self.headers, &mut *self.findings);
        let wrapped = headers.wrapped.as_ref()?;
        let value = wrapped.packet.get(&wrapped.layout, field)?;
        let is_ignored = findings.mutants.has(RecordMutant::OuterLength);
        let dependency = match wrapped.depends(field) {
            depends if is_ignored || depends == Depends::Nothing => {
                findings.recording.set_source(id, Source::Constant);
                ValueDependency::Fixed
            }
            Depends::WireLength => {
                let add = i64::try_from(value).ok()? - i64::from(headers.origin.wire_len);
                findings.recording.define(id, |out| ScriptStep::Length { out, longer: add });
                ValueDependency::Number { number: LENGTH, shift: 0, add }
            }
            Depends::InnerLength => {
                let inner = if headers.outline.is_ip6 { Field::Ip6Len } else { Field::IpLen };
                let bits =
                    Bits::of(inner, headers.outline, &|header| Some(headers.layout.has(header)))?;
                let add = u16::try_from(value - headers.packet.get(headers.layout, inner)?).ok()?;
                findings.recording.sum(id, bits, add);
                ValueDependency::Number {
                    number: Number::of_bits(bits)?,
                    shift: 0,
                    add: add.into(),
                }
            }
            // Perhaps nothing on this path uses the value.
            _ => {
                findings.recording.set_source(id, Source::Unknown);
                ValueDependency::Packet
            }
        };
        values.set(id, value);
        findings.set_dependency(id, dependency);
        Some(())
    }

    /// Removes everything up to `offset` bytes behind a header. `None` if these are not exactly the
    /// outer headers.
    fn leave_tunnel(
        &mut self,
        values: &Values<'_>,
        outer: (Inner, Header),
        offset: ValueId,
    ) -> Option<()> {
        self.findings.fix(values, offset)?;
        self.findings.pin(values, offset);
        let wrapped = self.headers.wrapped.as_ref()?;
        if !wrapped.ends(&self.headers.packet, outer, values.get(offset)) {
            return None;
        }
        self.forget_tunnel();
        Some(())
    }

    /// Runs a program without effect. Returns the packet's place afterwards, or `None` if the
    /// program's end does not determine one.
    fn by_program<P: Programs>(
        &mut self,
        number: usize,
        world: World<'a, P>,
        memory: &mut [Word],
    ) -> Result<Option<At>, Stop> {
        let programs = world.0;
        self.enter(number, programs)?;
        let part = self.end.filter(|end| end.program == Some(self.number));
        let part = part.and_then(|end| programs.cut(&self.cut(end.node)));
        if let Some(part) = part {
            self.enter(part, programs)?;
        }
        let number = self.number as usize;
        let residual = programs.residual(number);
        let Residual { shape, values, .. } =
            &**residual.ok_or_else(|| self.stop(Stopped::Uneven, 0, None))?;
        if !shape.fits(self.headers.presence()) {
            return Err(self.stop(Stopped::Headers, 0, None));
        }
        if !programs.is_even(number, self.hops) {
            return Err(self.stop(Stopped::Uneven, 0, None));
        }
        self.findings.enter(values.len());
        if self.headers.wrapped.is_none() {
            self.care_for(shape.care).ok_or_else(|| self.stop(Stopped::Headers, 0, None))?;
        }
        let block = self.through(&mut Values { words: memory, types: values })?;
        self.findings.path.pass(self.number, block as u32);
        let end = programs.end(number, block);
        self.hops += end.visits.unwrap_or(0);
        Ok(end.next)
    }

    /// Makes a program the current one.
    fn enter<P: Programs>(&mut self, number: usize, programs: &'a P) -> Result<(), Stop> {
        let residual = programs.residual(number);
        let residual = residual.ok_or_else(|| self.stop(Stopped::Uneven, 0, None))?;
        (self.number, self.blocks) = (number as u32, &residual.blocks);
        (self.point, self.headers.shape) = (residual.point, residual.shape);
        Ok(())
    }

    /// Runs the blocks of the current program. Returns the block in which the program ends.
    fn through(&mut self, values: &mut Values<'_>) -> Result<usize, Stop> {
        let mut at = 0;
        loop {
            let block = &self.blocks[at];
            self.findings.steps += block.steps.len() as u32;
            for (number, step) in block.steps.iter().enumerate() {
                if !self.computes(values, step) {
                    let done = self.step(values, step);
                    done.ok_or_else(|| self.stop(Stopped::Step, at, Some(number)))?;
                }
            }
            let next = match &block.end {
                End::Jump(target) => target,
                End::Branch { cond, yes, no } => {
                    let fixed = self.findings.fix(values, *cond);
                    fixed.ok_or_else(|| self.stop(Stopped::Step, at, None))?;
                    self.findings.pin(values, *cond);
                    if values.truth(*cond) { yes } else { no }
                }
                End::Exit(exit) => {
                    self.counters(exit.counters);
                    return Ok(at);
                }
                End::Hold { .. } => return Err(self.stop(Stopped::Step, at, None)),
            };
            self.pass(values, next);
            at = next.block.index();
        }
    }

    /// Searches the payload for patterns. A record can express only a search without a match: it
    /// then searches the payload of each packet.
    pub(crate) fn search(&mut self, values: &mut Values<'_>, node: u16, op: &Op) -> Option<()> {
        let (Op::Patterns { param, .. } | Op::FindPatterns { param, of: Haystack::Payload, .. }) =
            op
        else {
            return None;
        };
        let search = Search { node, param: *param };
        let chain = self.functions.chain();
        if self.headers.sealed
            || !search.finds_nothing(chain, &self.headers.packet, self.headers.layout)
        {
            return None;
        }
        let searches = &mut self.findings.path.searches;
        if !searches.contains(&search) {
            searches.push(search);
        }
        // Packets that take the record are searched, too, so the search has no weight.
        self.findings.looks_up(0);
        self.findings.recording.test(ScriptStep::Search(search));
        op.outs().iter().for_each(|out| self.findings.know(values, *out, 0));
        Some(())
    }

    /// Whether programs have had effects that would be out of order with native functions.
    fn has_effects_of_programs(&self) -> bool {
        self.findings.path.effects.is_of_programs() || self.headers.vlans != Retag::default()
    }

    /// The packet's place after a native function's verdict.
    fn decided(&mut self, point: Point, verdict: Verdict, graph: &Graph) -> At {
        self.hops += 1;
        let to = |dest| onward(graph.next(point.node, port(dest, point.backward)));
        match verdict {
            Verdict::Forward => to(Dest::Onward),
            Verdict::Port(number) => to(Dest::Port(PortId(number + 2))),
            Verdict::Back => to(Dest::Back),
            Verdict::Drop(_) | Verdict::Consume => ENDED,
        }
    }

    /// Completes the findings at the end of the packets' path, so that a record can be made from
    /// them.
    fn found(&mut self) -> Result<(), Stopped> {
        if self.headers.wrapped.is_some() {
            return Err(Stopped::Headers);
        }
        if self.has_effects_of_programs() && self.findings.path.natives().next().is_some() {
            return Err(Stopped::Beside);
        }
        let state = self.functions.state();
        self.findings.count_dynamic(state).ok_or(Stopped::Step)?;
        let Findings { counters, depends_on, .. } = &mut *self.findings;
        let wire_len = self.headers.origin.wire_len;
        counters.settle(state, depends_on, wire_len).ok_or(Stopped::Step)?;
        let entries = &self.findings.depends_on;
        let (count, is_sound) = (entries.len(), entries.iter().all(|(_, how)| how.is_consistent()));
        if !is_sound || !self.copies_are_alike() {
            return Err(Stopped::Step);
        }
        self.findings.path.dynamic.depends_on(count).ok_or(Stopped::Step)?;
        self.headers.forget_lost();
        let HeaderChange { rewrite, bytes, sums } = self.headers.change().ok_or(Stopped::Step)?;
        let findings = &mut *self.findings;
        (findings.path.rewrite, findings.bytes, findings.sums) = (rewrite, bytes, sums);
        findings.path.effects.vlans = std::mem::take(&mut self.headers.vlans);
        let Path { effects, dynamic, .. } = &mut findings.path;
        if self.headers.origin.tags.is_empty() && effects.forget_zero_tags() {
            dynamic.lack(None);
        }
        findings.guards.needed(&mut findings.path.guards);
        if self.arrived.inside.is_some() {
            tunnel_end::finish(findings, &self.headers).ok_or(Stopped::Headers)?;
        }
        self.apply_mutant();
        Ok(())
    }

    /// Changes the findings according to the active mutant.
    fn apply_mutant(&mut self) {
        let findings = &mut *self.findings;
        let mutants = findings.mutants;
        let bug = |bug| mutants.has(bug);
        if bug(RecordMutant::GuardForgotten) {
            findings.path.guards.pop();
        }
        if bug(RecordMutant::WrongDelta) {
            findings.sums[1] = findings.sums[1].wrapping_add(1);
        }
        if bug(RecordMutant::TtlKept) {
            findings.path.rewrite.ttl = 0;
        }
        if bug(RecordMutant::ReadForgotten) {
            findings.depends_on.iter_mut().for_each(|(_, how)| how.reads = 0);
        }
    }
}
