//! Mutants: deliberate mistakes in flow records. With them, tests show that such mistakes would be
//! found. A mutant can be active only with the feature `mutants`.

/// A mutant of flow records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "mutants"), allow(dead_code, reason = "no mutant is active then"))]
pub enum RecordMutant {
    /// A record lacks its last guard.
    GuardForgotten,
    /// A guard's interval is too large by one.
    GuardTooWide,
    /// A record does not depend on the absence of entries.
    AbsenceForgotten,
    /// A record does not depend on the values of slots.
    ReadForgotten,
    /// Records stay when an entry ends on which they depend, also within a batch.
    StaleEntry,
    /// Records stay when a slot is assigned whose value they depend on.
    StaleSlot,
    /// Records stay when a slot gets a later time than theirs.
    StaleTime,
    /// Records are made that change slots that others read, or that read slots that others change.
    ContentionIgnored,
    /// Records stay when the configuration changes.
    ControlIgnored,
    /// The last of the templates that depend on the changed parameter is not marked as outdated.
    ClassNotOutdated,
    /// Records do not depend on the backend that was chosen.
    BackendIgnored,
    /// The counts of outdated records go to rules by the numbers that the rules had before.
    RulesNotMoved,
    /// A template's counts are lost when another template gets its number.
    OutdatedCountsLost,
    /// A transport checksum changes by too much.
    WrongDelta,
    /// A transport checksum does not follow addresses.
    PseudoHeaderForgotten,
    /// The TTL does not go down.
    TtlKept,
    /// A record takes packets for which something is due.
    DueIgnored,
    /// A record takes packets at their own time, even if it is later already.
    TimeGoesBack,
    /// When an entry is due, the times at which its records were taken are ignored.
    LivenessLost,
    /// When a record ends, its entries do not get the time at which it was last taken.
    LivenessLostAtEnd,
    /// A program finds entries without the counts of records.
    CountersUnsettled,
    /// State is shown without the counts of records.
    ReportUnsettled,
    /// Bytes are not added to counters in state.
    BytesForgotten,
    /// A record's counts are lost when the record hands them over.
    CountsLost,
    /// The counts of records are added again each time that somebody reads the counters.
    CountsRepeated,
    /// Records are found by the hash of their keys alone.
    HashOnly,
    /// Records of one program are found for another program.
    ProgramIgnored,
    /// The rules that decide are not part of a path. Paths that differ only in rules share a
    /// template.
    RulesForgotten,
    /// A flow's key lacks the fields that determine its worker.
    WorkerIgnored,
    /// Counters behind a change of VLAN tags count bytes as if the tags had not changed.
    TagsUncounted,
    /// Events report fields of the packet that the record was made for.
    EventFixed,
    /// The result of the first lookup in a table is taken for all lookups in it.
    LookupConfused,
    /// When a record on an entry takes the rank of another one, it does not learn its new rank.
    RankForgotten,
    /// Records count without end, whatever their bounds are.
    FuelEndless,
    /// A record's fuel is not computed again when anyone else has found the entry.
    FuelKept,
    /// Records use fuel that belongs to others.
    FuelSpentTwice,
    /// Records count beyond the bounds of other records that may still count.
    OtherBoundsIgnored,
    /// A sum that wraps is compared as if it stopped at its largest value.
    WrapForgotten,
    /// The lower bound of a slot is not tested.
    LeastForgotten,
    /// Records stay when something changes that functions keep outside the state: the recordings of
    /// native functions.
    StaleElsewhere,
    /// A record takes packets for which something is due in a native function.
    NativeDueIgnored,
    /// A packet that takes a record does not mark the native function's flow as seen.
    NativeUnseen,
}

/// All mutants.
#[cfg(feature = "mutants")]
pub const RECORD_MUTANTS: [RecordMutant; 42] = [
    RecordMutant::GuardForgotten,
    RecordMutant::GuardTooWide,
    RecordMutant::AbsenceForgotten,
    RecordMutant::ReadForgotten,
    RecordMutant::StaleEntry,
    RecordMutant::StaleSlot,
    RecordMutant::StaleTime,
    RecordMutant::ContentionIgnored,
    RecordMutant::ControlIgnored,
    RecordMutant::ClassNotOutdated,
    RecordMutant::BackendIgnored,
    RecordMutant::RulesNotMoved,
    RecordMutant::OutdatedCountsLost,
    RecordMutant::WrongDelta,
    RecordMutant::PseudoHeaderForgotten,
    RecordMutant::TtlKept,
    RecordMutant::DueIgnored,
    RecordMutant::TimeGoesBack,
    RecordMutant::LivenessLost,
    RecordMutant::LivenessLostAtEnd,
    RecordMutant::CountersUnsettled,
    RecordMutant::ReportUnsettled,
    RecordMutant::BytesForgotten,
    RecordMutant::CountsLost,
    RecordMutant::CountsRepeated,
    RecordMutant::HashOnly,
    RecordMutant::ProgramIgnored,
    RecordMutant::RulesForgotten,
    RecordMutant::WorkerIgnored,
    RecordMutant::TagsUncounted,
    RecordMutant::EventFixed,
    RecordMutant::LookupConfused,
    RecordMutant::RankForgotten,
    RecordMutant::FuelEndless,
    RecordMutant::FuelKept,
    RecordMutant::FuelSpentTwice,
    RecordMutant::OtherBoundsIgnored,
    RecordMutant::WrapForgotten,
    RecordMutant::LeastForgotten,
    RecordMutant::StaleElsewhere,
    RecordMutant::NativeDueIgnored,
    RecordMutant::NativeUnseen,
];

/// The mutant that records have, if any.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mutants {
    #[cfg(feature = "mutants")]
    active: Option<RecordMutant>,
}

impl Mutants {
    /// Whether records have this mutant.
    #[cfg(feature = "mutants")]
    #[inline(always)]
    pub(crate) fn has(self, mutant: RecordMutant) -> bool {
        self.active == Some(mutant)
    }

    /// Whether records have this mutant. Without the feature they have none.
    #[cfg(not(feature = "mutants"))]
    #[inline(always)]
    pub(crate) fn has(self, _: RecordMutant) -> bool {
        false
    }

    /// Gives records this mutant.
    #[cfg(feature = "mutants")]
    pub(crate) fn plant(&mut self, mutant: RecordMutant) {
        self.active = Some(mutant);
    }
}
