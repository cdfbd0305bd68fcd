//! From leg to leg of a packet's way: a run without effect goes through programs and native functions, one behind the
//! other, up to where the packet leaves.

use super::aside::Goal;
use super::natives::Change;
use super::probe::Probe;
use crate::act::Values;
use crate::program::Program;
use crate::programs::Points;
use crate::walk::{At, fits};
use braid_ir::graph::Graph;
use braid_ir::model::Word;
use braid_ir::residual::{End, Point, Residual};
use braid_state::RecordBug;

/// Where packets can go.
#[derive(Clone, Copy)]
pub(super) struct World<'a> {
    pub(super) programs: &'a [Program],
    pub(super) points: &'a Points,
    pub(super) graph: &'a Graph,
}

/// Where a run begins.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// With a program, in which it must end: the key has no more than that looks at.
    Program(usize),
    /// In front of a function. The key has all that anyone may look at.
    Point(Point),
}

/// Where a run came to what a record cannot say.
#[derive(Clone, Copy)]
pub(super) struct Stop {
    pub(super) why: Why,
    /// The last program.
    pub(super) program: u32,
    pub(super) block: usize,
    /// The step; `None`: the block's end.
    pub(super) step: Option<usize>,
}

/// Why a run goes no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// What a step, or the end of a block, does or hangs on.
    Step,
    /// The end of a block is not the end of the packets' walk.
    GoesOn,
    /// How many functions are on the packets' way hangs on more than where it ends.
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

impl<'a> Probe<'a> {
    /// Runs, up to the end of the packets' walk, or to where a record cannot say what is done. What it finds is in the
    /// notes, but where packets go.
    pub(super) fn run(
        &mut self,
        start: Start,
        world: &World<'a>,
        memory: &mut [Word],
    ) -> Result<Goal, Stop> {
        let first = self.run_once(start, world, memory);
        if first.is_ok() || !self.knows_more_counters() {
            return first;
        }
        self.again();
        self.run_once(start, world, memory)
    }

    fn run_once(
        &mut self,
        start: Start,
        world: &World<'a>,
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
        let last = self.notes.way.programs().last().map_or(0, |(last, _)| last.block as usize);
        self.found().map_err(|why| self.stop(why, last, None))?;
        let goal = Goal::of(&self.notes.way, at, world);
        goal.ok_or_else(|| self.stop(Why::GoesOn, last, None))
    }

    /// It goes no further.
    fn stop(&self, why: Why, block: usize, step: Option<usize>) -> Stop {
        Stop { why, program: self.number, block, step }
    }

    /// Goes on in front of a function: where the packet is then.
    fn go_on(
        &mut self,
        point: Point,
        world: &World<'a>,
        memory: &mut [Word],
    ) -> Result<Option<At>, Stop> {
        let aside = &self.notes.way.aside;
        if aside.is_of_programs() {
            return Err(self.stop(Why::Beside, 0, None));
        }
        if !aside.splices.is_empty() {
            return Err(self.stop(Why::Headers, 0, None));
        }
        self.renew().ok_or_else(|| self.stop(Why::Headers, 0, None))?;
        let node = usize::from(point.node);
        let is_native = self.functions.instances[node].model.native.is_some();
        if is_native && world.graph.group(point.node).len() == 1 {
            if !fits(self.hops, 1) {
                return Err(self.stop(Why::Uneven, 0, None));
            }
            let verdict = self.ask(point);
            let verdict =
                verdict.map_err(|why| self.stop(Why::Native(point.node, why), 0, None))?;
            return Ok(Some(self.decided(point, verdict, world.graph)));
        }
        let number = world.points.known(point, self.layout.presence());
        let number = number.ok_or_else(|| self.stop(Why::Unknown(point.node), 0, None))?;
        self.by_program(number, world, memory)
    }

    /// Runs a program: where the packet is then, if it is in one place.
    fn by_program(
        &mut self,
        number: usize,
        world: &World<'a>,
        memory: &mut [Word],
    ) -> Result<Option<At>, Stop> {
        let program = &world.programs[number];
        let Residual { blocks, point, shape, values, .. } = &program.residual;
        (self.number, self.blocks) = (number as u32, blocks);
        (self.point, self.shape) = (*point, *shape);
        if !program.is_even(self.hops) {
            return Err(self.stop(Why::Uneven, 0, None));
        }
        self.notes.enter(values.len());
        self.notes.care |= shape.care;
        let block = self.through(&mut Values { words: memory, types: values })?;
        self.notes.way.pass(self.number, block as u32);
        let end = &program.ends[block];
        self.hops += end.visits.unwrap_or(0);
        Ok(end.next)
    }

    /// Runs the program: the block in which it ends.
    fn through(&mut self, values: &mut Values<'_>) -> Result<usize, Stop> {
        let mut at = 0;
        loop {
            let block = &self.blocks[at];
            self.notes.steps += block.steps.len() as u32;
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
        if self.notes.way.aside.is_of_programs() && self.notes.way.natives().next().is_some() {
            return Err(Why::Beside);
        }
        self.count_live().ok_or(Why::Step)?;
        self.settle_bounds().ok_or(Why::Step)?;
        let entries = &self.notes.rests_on;
        let (count, is_sound) = (entries.len(), entries.iter().all(|(_, how)| how.is_consistent()));
        if !is_sound || !self.copies_are_alike() {
            return Err(Why::Step);
        }
        self.notes.way.live.rests_on(count).ok_or(Why::Step)?;
        self.forget_lost();
        let Change { blend, bytes, sums } = self.change().ok_or(Why::Step)?;
        let notes = &mut *self.notes;
        (notes.way.blend, notes.bytes, notes.sums) = (blend, bytes, sums);
        notes.guards.needed(&mut notes.way.guards);
        self.plant();
        Ok(())
    }

    /// Bugs of what was found.
    fn plant(&mut self) {
        let bug = |bug| self.functions.store.has_bug(bug);
        let notes = &mut *self.notes;
        if bug(RecordBug::GuardForgotten) {
            notes.way.guards.pop();
        }
        if bug(RecordBug::WrongDelta) {
            notes.sums[1] = notes.sums[1].wrapping_add(1);
        }
        if bug(RecordBug::TtlKept) {
            notes.way.blend.ttl = 0;
        }
        if bug(RecordBug::ReadForgotten) {
            notes.rests_on.iter_mut().for_each(|(_, how)| how.reads = 0);
        }
    }
}
