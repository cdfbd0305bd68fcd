//! From segment to segment of a packet's path: a specialisation goes through programs and native functions, one
//! behind the other, up to where the packet leaves.

use crate::bindings::HeaderChange;
use crate::extractors::Start;
use crate::goal::Goal;
use crate::host::{Functions, Programs};
use crate::mutants::RecordMutant;
use crate::specialiser::Specialiser;
use braid_ir::graph::Graph;
use braid_ir::model::Word;
use braid_ir::residual::{End, Point, Residual};
use braid_ir::values::Values;
use braid_ir::walk::{At, fits};

/// The programs that a packet can run by, and the links between functions.
pub(crate) type World<'a, P> = (&'a P, &'a Graph);

/// Where a run came to what a record cannot publish.
#[derive(Clone, Copy)]
pub(crate) struct Stop {
    pub(crate) why: Why,
    /// The last program.
    pub(crate) program: u32,
    pub(crate) block: usize,
    /// The step; `None`: the block's end.
    pub(crate) step: Option<usize>,
}

/// Why a run goes no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// What a step, or the end of a block, does or depend on.
    Step,
    /// The end of a block is not the end of the packets' walk.
    GoesOn,
    /// How many functions are on the packets' path depend on more than where it ends.
    Uneven,
    /// There is no program for the packet in front of a function.
    Unknown(u16),
    /// Tags, events or copies would come out of order with what native functions, or other programs behind, do.
    Beside,
    /// The packet's headers are elsewhere than they are in packets that may have records, or become other ones.
    Headers,
    /// What is up with a native function.
    Native(u16, &'static str),
}

impl<'a, F: Functions> Specialiser<'a, F> {
    /// Runs, up to the end of the packets' walk, or to where a record cannot publish what is done. What it finds is in the
    /// findings, but where packets go.
    pub(crate) fn run<P: Programs>(
        &mut self,
        start: Start,
        world: World<'a, P>,
        memory: &mut [Word],
    ) -> Result<Goal, Stop> {
        let first = self.run_once(start, world, memory);
        if first.is_ok() || !self.knows_more_counters() {
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
            Start::Program(number) => self.by_program(number, world, memory)?,
            Start::Point(point) => {
                let mut at = Some(At::Point(point));
                while let Some(At::Point(point)) = at {
                    at = self.go_on(point, world, memory)?;
                }
                at
            }
        };
        let last = self.findings.path.programs().last().map_or(0, |(last, _)| last.block as usize);
        self.found().map_err(|why| self.stop(why, last, None))?;
        let goal = Goal::of(&self.findings.path, at, world);
        goal.ok_or_else(|| self.stop(Why::GoesOn, last, None))
    }

    /// It goes no further.
    fn stop(&self, why: Why, block: usize, step: Option<usize>) -> Stop {
        Stop { why, program: self.number, block, step }
    }

    /// Goes on in front of a function: where the packet is then.
    fn go_on<P: Programs>(
        &mut self,
        point: Point,
        world: World<'a, P>,
        memory: &mut [Word],
    ) -> Result<Option<At>, Stop> {
        let effects = &self.findings.path.effects;
        if effects.is_of_programs() {
            return Err(self.stop(Why::Beside, 0, None));
        }
        if !effects.splices.is_empty() {
            return Err(self.stop(Why::Headers, 0, None));
        }
        self.renew().ok_or_else(|| self.stop(Why::Headers, 0, None))?;
        let node = usize::from(point.node);
        let is_native = self.functions.chain().nodes[node].model.native.is_some();
        if is_native && world.1.group(point.node).len() == 1 {
            if !fits(self.hops, 1) {
                return Err(self.stop(Why::Uneven, 0, None));
            }
            let verdict = self.ask(point);
            let verdict =
                verdict.map_err(|why| self.stop(Why::Native(point.node, why), 0, None))?;
            return Ok(Some(self.decided(point, verdict, world.1)));
        }
        let number = world.0.known(point, self.layout.presence());
        let number = number.ok_or_else(|| self.stop(Why::Unknown(point.node), 0, None))?;
        self.by_program(number, world, memory)
    }

    /// Runs a program: where the packet is then, if it is in one place.
    fn by_program<P: Programs>(
        &mut self,
        number: usize,
        world: World<'a, P>,
        memory: &mut [Word],
    ) -> Result<Option<At>, Stop> {
        let programs = world.0;
        let residual = programs.residual(number);
        let residual = residual.ok_or_else(|| self.stop(Why::Uneven, 0, None))?;
        let Residual { blocks, point, shape, values, .. } = residual;
        (self.number, self.blocks) = (number as u32, blocks);
        (self.point, self.shape) = (*point, *shape);
        if !programs.is_even(number, self.hops) {
            return Err(self.stop(Why::Uneven, 0, None));
        }
        self.findings.enter(values.len());
        self.findings.care |= shape.care;
        let block = self.through(&mut Values { words: memory, types: values })?;
        self.findings.path.pass(self.number, block as u32);
        let end = programs.end(number, block);
        self.hops += end.visits.unwrap_or(0);
        Ok(end.next)
    }

    /// Runs the program: the block in which it ends.
    fn through(&mut self, values: &mut Values<'_>) -> Result<usize, Stop> {
        let mut at = 0;
        loop {
            let block = &self.blocks[at];
            self.findings.steps += block.steps.len() as u32;
            for (number, step) in block.steps.iter().enumerate() {
                if !self.computes(values, step) {
                    let done = self.step(values, step);
                    done.ok_or_else(|| self.stop(Why::Step, at, Some(number)))?;
                }
            }
            let next = match &block.end {
                End::Jump(target) => target,
                End::Branch { cond, yes, no } => {
                    let fixed = self.fix(values, *cond);
                    fixed.ok_or_else(|| self.stop(Why::Step, at, None))?;
                    if values.truth(*cond) { yes } else { no }
                }
                End::Exit(exit) => {
                    self.tally(exit.tally);
                    return Ok(at);
                }
                End::Hold { .. } => return Err(self.stop(Why::Step, at, None)),
            };
            self.pass(values, next);
            at = next.block.index();
        }
    }

    /// What a record is made of, once the packet's walk is over.
    fn found(&mut self) -> Result<(), Why> {
        if self.findings.path.effects.is_of_programs()
            && self.findings.path.natives().next().is_some()
        {
            return Err(Why::Beside);
        }
        self.count_dynamic().ok_or(Why::Step)?;
        self.settle_bounds().ok_or(Why::Step)?;
        let entries = &self.findings.depends_on;
        let (count, is_sound) = (entries.len(), entries.iter().all(|(_, how)| how.is_consistent()));
        if !is_sound || !self.copies_are_alike() {
            return Err(Why::Step);
        }
        self.findings.path.dynamic.depends_on(count).ok_or(Why::Step)?;
        self.forget_lost();
        let HeaderChange { blend, bytes, sums } = self.change().ok_or(Why::Step)?;
        let findings = &mut *self.findings;
        (findings.path.blend, findings.bytes, findings.sums) = (blend, bytes, sums);
        findings.guards.needed(&mut findings.path.guards);
        self.plant();
        Ok(())
    }

    /// Bugs of what was found.
    fn plant(&mut self) {
        let records = self.functions.state().dependents();
        let bug = |bug| records.has_mutant(bug);
        let findings = &mut *self.findings;
        if bug(RecordMutant::GuardForgotten) {
            findings.path.guards.pop();
        }
        if bug(RecordMutant::WrongDelta) {
            findings.sums[1] = findings.sums[1].wrapping_add(1);
        }
        if bug(RecordMutant::TtlKept) {
            findings.path.blend.ttl = 0;
        }
        if bug(RecordMutant::ReadForgotten) {
            findings.depends_on.iter_mut().for_each(|(_, how)| how.reads = 0);
        }
    }
}
