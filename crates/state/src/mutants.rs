//! Mutants: deliberate mistakes in moving state, and in creating and ending entries. Tests show
//! that the comparison of engines finds each of them. A mutant can be active only with the feature
//! `mutants`.

/// A mutant of moving state, or of creating and ending entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "mutants"), allow(dead_code, reason = "no mutant is active then"))]
pub enum MoveMutant {
    /// The deadlines of entries do not move.
    DeadlinesLeft,
    /// New time-outs do not change the deadlines.
    DeadlinesKept,
    /// The order of eviction does not move.
    OrderLeft,
    /// The counters of tables do not move.
    CountersLeft,
    /// Lookups use another hash than the one under which entries were stored.
    HashKept,
    /// New entries count as older than moved entries.
    IdsRepeat,
    /// Pools do not move.
    PoolsLeft,
    /// Pools keep members that the chain no longer gives them.
    MembersKept,
    /// The counts of flow records are not added to entries that move.
    Unsettled,
    /// New entries get no deadlines.
    DeadlinesForgotten,
    /// The programs of expired entries do not run.
    ProgramsForgotten,
}

/// All mutants, for tests that try each of them.
#[cfg(feature = "mutants")]
pub const MOVE_MUTANTS: [MoveMutant; 11] = [
    MoveMutant::DeadlinesLeft,
    MoveMutant::DeadlinesKept,
    MoveMutant::OrderLeft,
    MoveMutant::CountersLeft,
    MoveMutant::HashKept,
    MoveMutant::IdsRepeat,
    MoveMutant::PoolsLeft,
    MoveMutant::MembersKept,
    MoveMutant::Unsettled,
    MoveMutant::DeadlinesForgotten,
    MoveMutant::ProgramsForgotten,
];

/// A text that stays in each program with mutants. `scripts/check-no-mutants.sh` looks for it.
#[cfg(feature = "mutants")]
const MARK: &str = "built with mutants of state";

/// The mutant that a store has, if any.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Mutants {
    #[cfg(feature = "mutants")]
    pub(crate) active: Option<MoveMutant>,
}

impl Mutants {
    /// The mutant that the store has. Without the feature it has none.
    pub(crate) fn active(self) -> Option<MoveMutant> {
        #[cfg(feature = "mutants")]
        std::hint::black_box(MARK);
        #[cfg(feature = "mutants")]
        return self.active;
        #[cfg(not(feature = "mutants"))]
        None
    }

    /// Whether the store has this mutant.
    pub(crate) fn has(self, mutant: MoveMutant) -> bool {
        self.active() == Some(mutant)
    }
}
