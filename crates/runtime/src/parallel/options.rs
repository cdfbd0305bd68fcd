//! Options of the engine, among them mutants (deliberate mistakes) and delays, for tests. Only
//! builds with the feature `stalls` have delays, and only builds with the feature `mutants` have
//! mutants.

/// How an engine with stages runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The most packets in a bundle.
    pub bundle: usize,
    /// The number of times that a thread looks for work before it sleeps.
    pub spins: u32,
    /// The number of cores. If they are fewer than threads and processes of isolated functions, the
    /// hub runs the stages of the latter.
    pub cores: usize,
    /// The seed of delays between stages, for tests.
    #[cfg(feature = "stalls")]
    pub stalls: Option<u64>,
    /// A mutant, for tests.
    #[cfg(feature = "mutants")]
    pub mutant: Option<Mutant>,
}

impl Default for Options {
    /// Bundles of 8 packets, so that stages in sequence begin soon, and some ten microseconds
    /// before a thread sleeps.
    fn default() -> Self {
        Self {
            bundle: 8,
            spins: 500,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            #[cfg(feature = "stalls")]
            stalls: None,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}

/// A mutant.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A merger does not notice nil packets.
    LostNil,
    /// A merger carries out its operations in the opposite order.
    OppositeOrder,
    /// A merger does not ask whether a part was written.
    UnaskedLog,
    /// A stage takes bundles as they come.
    NoTurns,
    /// Time does not go on in stages that a packet does not reach.
    NoCatchUp,
}

/// All mutants.
#[cfg(feature = "mutants")]
pub const MUTANTS: [Mutant; 5] = [
    Mutant::LostNil,
    Mutant::OppositeOrder,
    Mutant::UnaskedLog,
    Mutant::NoTurns,
    Mutant::NoCatchUp,
];

/// A text that stays in each program with mutants. `scripts/check-no-mutants.sh` looks for it.
#[cfg(feature = "mutants")]
const MARK: &str = "built with mutants of stages";

#[cfg(feature = "stalls")]
impl Options {
    /// Delays a stage before a bundle.
    pub(super) fn stall(self, stage: usize, turn: u64) {
        use std::time::Duration;
        let Some(seed) = self.stalls else { return };
        let mixed = (seed ^ turn).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (stage as u64) << 17;
        match (mixed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 59) & 15 {
            0 => std::thread::sleep(Duration::from_micros(200)),
            1..4 => std::thread::yield_now(),
            _ => {}
        }
    }
}

#[cfg(not(feature = "stalls"))]
impl Options {
    #[expect(clippy::unused_self, reason = "only options of tests have delays")]
    pub(super) fn stall(self, _: usize, _: u64) {}
}

#[cfg(feature = "mutants")]
impl Options {
    fn has(self, mutant: Mutant) -> bool {
        std::hint::black_box(MARK);
        self.mutant == Some(mutant)
    }

    /// The operation that a merger carries out as the one with this number.
    pub(super) fn nth(self, at: usize, count: usize) -> usize {
        if self.has(Mutant::OppositeOrder) { count - 1 - at } else { at }
    }

    /// Whether a merger takes a part, if a function has written it or not.
    pub(super) fn counts_as_written(self, is_written: bool) -> bool {
        is_written || self.has(Mutant::UnaskedLog)
    }

    /// Whether a merger drops a packet, if a version is nil or not.
    pub(super) fn drops(self, is_nil: bool) -> bool {
        is_nil && !self.has(Mutant::LostNil)
    }

    /// The bundle that a stage takes from the waiting ones, if it is this one's turn.
    pub(super) fn turn(self, next: Option<usize>, waiting: usize) -> Option<usize> {
        if self.has(Mutant::NoTurns) { waiting.checked_sub(1) } else { next }
    }

    /// Whether stages learn the times of packets that do not reach them.
    pub(super) fn catches_up(self) -> bool {
        !self.has(Mutant::NoCatchUp)
    }
}

#[cfg(not(feature = "mutants"))]
#[expect(clippy::unused_self, reason = "only options of tests have mutants")]
impl Options {
    pub(super) fn nth(self, at: usize, _: usize) -> usize {
        at
    }

    pub(super) fn counts_as_written(self, is_written: bool) -> bool {
        is_written
    }

    pub(super) fn drops(self, is_nil: bool) -> bool {
        is_nil
    }

    pub(super) fn turn(self, next: Option<usize>, _: usize) -> Option<usize> {
        next
    }

    pub(super) fn catches_up(self) -> bool {
        true
    }
}
