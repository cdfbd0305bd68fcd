//! Counts processor cycles and instructions, if the kernel and the processor allow it.

use perf_event::events::Hardware;
use perf_event::{Builder, Counter, Group};

/// The counts of a piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Processor cycles in user mode.
    pub cycles: u64,
    /// Instructions in user mode.
    pub instructions: u64,
}

/// Two hardware counters that count the same work.
pub struct Counters {
    group: Group,
    cycles: Counter,
    instructions: Counter,
}

impl Counters {
    /// Opens the counters. `None` if the machine has none, or if they are not allowed.
    #[must_use]
    pub fn open() -> Option<Self> {
        let mut group = Group::new().ok()?;
        let cycles = group.add(&Builder::new(Hardware::CPU_CYCLES)).ok()?;
        let instructions = group.add(&Builder::new(Hardware::INSTRUCTIONS)).ok()?;
        let mut counters = Self { group, cycles, instructions };
        // On some machines counters can be opened but never count.
        let counts =
            counters.count(|| (0..10_000_u32).fold(0, |sum, x| std::hint::black_box(sum ^ x)));
        counts.1.filter(|counts| counts.cycles > 0 && counts.instructions > 0)?;
        Some(counters)
    }

    /// Does some work, and returns its result and its counts. The counts are `None` if they could
    /// not be read.
    pub fn count<T>(&mut self, work: impl FnOnce() -> T) -> (T, Option<Counts>) {
        let started = self.group.reset().and_then(|()| self.group.enable()).is_ok();
        let done = work();
        let stopped = self.group.disable().is_ok();
        (done, if started && stopped { self.read() } else { None })
    }

    fn read(&mut self) -> Option<Counts> {
        let counts = self.group.read().ok()?;
        let cycles = counts.get(&self.cycles)?.value();
        let instructions = counts.get(&self.instructions)?.value();
        Some(Counts { cycles, instructions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_work_counts_more_where_there_are_counters() {
        let Some(mut counters) = Counters::open() else { return };
        let mut work = |n: u64| {
            let (_, counts) =
                counters.count(|| (0..n).fold(0, |sum, x| std::hint::black_box(sum ^ x)));
            counts.map_or(0, |counts| counts.instructions)
        };
        let (few, many) = (work(1_000), work(1_000_000));
        assert!(many > few * 10, "{few} {many}");
    }
}
