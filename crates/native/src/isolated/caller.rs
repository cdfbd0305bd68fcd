//! Braid's end of the memory that it shares with a process: calls that run alone, and calls that
//! are handed over ahead. The process takes the latter in order, while Braid writes more of them or
//! takes answers, which come in the same order. Nothing that the process writes is trusted.

use super::call::{Call, Op, Reply};
use super::launcher;
use crate::sys::{ALONE, SPINS, Shared, Side, Waited, place};
use braid_ir::engine::AHEAD;
use std::fmt;
use std::time::Duration;

/// How long a call may take while packets wait. A process that needs more is lost.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Why a process is of no use any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Lost {
    /// It has ended, in words.
    Ended(String),
    /// It does not answer.
    Late,
    /// It counts answers to calls that it did not get.
    Miscounts,
    /// It has run packets that then did not come. This is a mistake of Braid's.
    Strays,
    /// The packet does not fit in the shared memory. The process is well.
    TooLong,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(how) => write!(f, "{how}"),
            Self::Late => write!(f, "does not answer"),
            Self::Miscounts => write!(f, "answers calls that it did not get"),
            Self::Strays => write!(f, "has run packets that did not come"),
            Self::TooLong => write!(f, "gets a packet that is too long"),
        }
    }
}

/// Braid's end of the memory.
pub(super) struct Caller {
    pub(super) memory: Shared,
    /// The turn: even, because no call runs alone.
    turn: u32,
    /// The numbers of calls that were handed over ahead, of answers to them that are there, and of
    /// answers that were taken.
    given: u32,
    answered: u32,
    taken: u32,
    /// Whether the process waits for a call that runs alone before it goes on.
    waits: bool,
}

impl Caller {
    pub(super) fn new(memory: Shared) -> Self {
        Self { memory, turn: 0, given: 0, answered: 0, taken: 0, waits: false }
    }

    /// Whether the process waits for calls.
    pub(super) fn is_idle(&self) -> bool {
        self.turn.is_multiple_of(2) && !self.is_ahead()
    }

    /// Whether answers to calls that were handed over ahead are still to be taken.
    pub(super) fn is_ahead(&self) -> bool {
        self.given != self.taken
    }

    /// Runs a call alone.
    pub(super) fn call(&mut self, call: &Call) -> Result<Reply, Lost> {
        if self.is_ahead() && call.op != Op::GoOn {
            return Err(Lost::Strays);
        }
        self.begin(call);
        self.finish(PATIENCE)
    }

    /// Begins a call that runs alone. Its packet's bytes are in their place.
    pub(super) fn begin(&mut self, call: &Call) {
        self.waits = false;
        self.memory.set_call(ALONE, call.words());
        self.memory.pass(self.turn, Side::Caller);
        self.turn = self.turn.wrapping_add(1);
    }

    /// Waits for the answer to a call that runs alone.
    pub(super) fn finish(&mut self, patience: Duration) -> Result<Reply, Lost> {
        let turn = self.turn;
        let look = || (self.memory.turn() != turn).then_some(());
        found(self.memory.wait(Side::Caller, SPINS, Some(patience), look))?;
        self.turn = turn.wrapping_add(1);
        Ok(Reply::of(self.memory.reply(ALONE)))
    }

    /// The place of the next call that can be handed over ahead.
    pub(super) fn place(&self) -> Option<usize> {
        let is_free = (self.given.wrapping_sub(self.taken) as usize) < AHEAD;
        is_free.then(|| place(self.given))
    }

    /// Hands the call in [`Self::place`] over. Its packet's bytes are there.
    pub(super) fn give(&mut self, call: &Call) {
        self.memory.set_call(place(self.given), call.words());
        self.given = self.given.wrapping_add(1);
        self.memory.give(self.given);
    }

    /// Wakes the process if it sleeps, for the calls that were handed over.
    pub(super) fn wake(&self) {
        self.memory.ring(Side::Caller);
    }

    /// Waits for the next answer to a call that was handed over ahead, and takes it. It comes with
    /// the place of the call.
    pub(super) fn take(&mut self) -> Result<(usize, Reply), Lost> {
        if self.waits {
            self.call(&Call::new(Op::GoOn, 0))?;
        }
        if self.answered == self.taken {
            let before = self.answered;
            let look = || Some(self.memory.done()).filter(|done| *done != before);
            let done = found(self.memory.wait(Side::Caller, SPINS, Some(PATIENCE), look))?;
            if done.wrapping_sub(before) > self.given.wrapping_sub(before) {
                return Err(Lost::Miscounts);
            }
            self.answered = done;
        }
        let place = place(self.taken);
        self.taken = self.taken.wrapping_add(1);
        let reply = Reply::of(self.memory.reply(place));
        self.waits = reply.waits();
        Ok((place, reply))
    }
}

fn found<T>(waited: Waited<T>) -> Result<T, Lost> {
    match waited {
        Waited::Found(found) => Ok(found),
        Waited::Ended(status) => Err(Lost::Ended(launcher::say(status))),
        Waited::Late => Err(Lost::Late),
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, Caller, Lost, Op, Reply};
    use crate::sys::{ALONE, Shared, Side, place};
    use braid_ir::engine::AHEAD;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    /// Braid's end, and the memory as the process sees it.
    fn ends() -> (Caller, Shared) {
        let (memory, file) = Shared::new().unwrap();
        (Caller::new(memory), Shared::of(&file).unwrap())
    }

    fn call(number: u32) -> Call {
        Call::new(Op::Packet, number.into())
    }

    /// Answers the first calls that were handed over ahead, each with its time.
    fn answer(worker: &Shared, numbers: std::ops::Range<u32>) {
        for number in numbers.clone() {
            let Call { now, .. } = Call::of(worker.call(place(number)));
            let reply = Reply { wake: now, fits: true, ..Reply::default() };
            worker.set_reply(place(number), reply.words());
        }
        worker.answer(numbers.end);
        worker.ring(Side::Worker);
    }

    #[test]
    fn answers_come_in_the_order_of_calls() {
        let (mut caller, worker) = ends();
        let at_work = std::thread::spawn(move || {
            let mut done = 0;
            while done < 10_000 {
                let look = || Some(worker.given()).filter(|given| *given != done);
                // Sleeps at once every other time, so that wakes are needed.
                worker.wait(Side::Worker, if done % 2 == 0 { 0 } else { 500 }, None, look);
                let some = worker.given().min(done + 1 + done % 3);
                answer(&worker, done..some);
                done = some;
            }
        });
        let (mut given, mut taken) = (0, 0);
        while taken < 10_000 {
            let most = 1 + given % (AHEAD as u32 + 5);
            while given < 10_000.min(taken + most) && caller.place().is_some() {
                caller.give(&call(given));
                given += 1;
            }
            assert!(given - taken <= AHEAD as u32);
            caller.wake();
            let until = given - (given - taken) / 3;
            while taken < until {
                let (at, reply) = caller.take().unwrap();
                assert_eq!((at, reply.wake), (place(taken), taken.into()));
                taken += 1;
            }
        }
        assert!(caller.is_idle());
        at_work.join().unwrap();
    }

    #[test]
    fn answers_to_calls_that_were_not_handed_over_are_a_failure() {
        for done in [3, 40, u32::MAX, 1 << 31] {
            let (mut caller, worker) = ends();
            caller.give(&call(0));
            caller.give(&call(1));
            worker.answer(done);
            assert_eq!(caller.take(), Err(Lost::Miscounts), "{done}");
        }
        // Backwards, later.
        let (mut caller, worker) = ends();
        (0..3).for_each(|number| caller.give(&call(number)));
        answer(&worker, 0..2);
        assert_eq!([caller.take().unwrap().1.wake, caller.take().unwrap().1.wake], [0, 1]);
        worker.answer(1);
        assert_eq!(caller.take(), Err(Lost::Miscounts));
    }

    #[test]
    fn answers_before_the_end_of_a_process_count() {
        let (mut caller, worker) = ends();
        (0..4).for_each(|number| caller.give(&call(number)));
        answer(&worker, 0..2);
        worker.end(11);
        assert_eq!([caller.take().unwrap().1.wake, caller.take().unwrap().1.wake], [0, 1]);
        assert_eq!(caller.take(), Err(Lost::Ended("crashed (SIGSEGV)".to_owned())));
        assert!(!caller.is_idle());
    }

    #[test]
    fn process_without_an_answer_is_late() {
        let (mut caller, worker) = ends();
        (0..2).for_each(|number| caller.give(&call(number)));
        answer(&worker, 0..1);
        let start = Instant::now();
        assert!(caller.take().is_ok());
        assert_eq!(caller.take(), Err(Lost::Late));
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn other_calls_do_not_come_between() {
        let (mut caller, _) = ends();
        caller.give(&call(0));
        assert_eq!(caller.call(&Call::new(Op::Advance, 0)), Err(Lost::Strays));
        assert_eq!(caller.turn, 0);
    }

    #[test]
    fn nonsense_in_the_memory_ends_calls() {
        let (mut caller, worker) = ends();
        let ends = AtomicBool::new(false);
        let mut seen = [0, 0];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = 1_u64;
                while !ends.load(Ordering::Relaxed) {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let (word, some) = (random >> 7, (random >> 40) as u32);
                    let at = some as usize % (ALONE + 1);
                    worker.set_reply(at, [word; 4].map(|word| word.rotate_left(some)));
                    worker.set_call(at, [!word; 4]);
                    worker.set_tags(at, std::iter::repeat(word.into()));
                    worker.put(at, &word.to_le_bytes());
                    worker.pass(some, Side::Worker);
                    worker.give(some);
                    // Sometimes what may be true.
                    worker.answer(if some % 2 == 0 { some >> 9 } else { some % 40 });
                    worker.ring(Side::Worker);
                }
            });
            for round in 0..3_000 {
                caller = Caller::new(caller.memory);
                (0..5).for_each(|number| caller.give(&call(number)));
                caller.waits = round % 2 == 0;
                for _ in 0..5 {
                    let taken = caller.take();
                    seen[usize::from(taken.is_ok())] += 1;
                    match taken {
                        Ok((at, _)) => assert!(at < AHEAD),
                        Err(lost) => {
                            assert_eq!(lost, Lost::Miscounts);
                            break;
                        }
                    }
                }
            }
            ends.store(true, Ordering::Relaxed);
        });
        assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
    }
}
