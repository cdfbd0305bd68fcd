//! Mutants: deliberate mistakes in flow records. Tests show that the comparison of engines finds
//! each of them. A mutant can be active only with the feature `mutants`.

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
    /// Records do not end when an entry that they depend on ends, not even within a batch.
    StaleEntry,
    /// Records do not end when a slot is assigned whose value they depend on.
    StaleSlot,
    /// Records do not end when a slot is assigned a later time than the time that they assign to
    /// it.
    StaleTime,
    /// Records are made although they change slots that other records read, or read slots that
    /// other records change.
    ContentionIgnored,
    /// Records do not end when the configuration changes.
    ControlIgnored,
    /// The last of the templates that depend on the changed parameter is not marked as outdated.
    TemplateNotOutdated,
    /// Records do not depend on the backend that was chosen.
    BackendIgnored,
    /// After a change of rules, the counts of outdated records go to the old numbers of rules.
    RulesNotMoved,
    /// A template's counts are lost when another template gets its number.
    OutdatedCountsLost,
    /// A transport checksum changes by one too much.
    WrongDelta,
    /// An amount is added twice.
    AmountTwice,
    /// No checksum follows a number to which an amount is added.
    AmountUnsummed,
    /// A transport checksum does not follow addresses.
    PseudoHeaderForgotten,
    /// The TTL does not go down.
    TtlKept,
    /// Packets end behind a record for a part of their path.
    OnwardLost,
    /// A record takes packets for which something is due.
    DueIgnored,
    /// A record takes a packet at the packet's own time, even if the engine's clock is already
    /// later.
    TimeGoesBack,
    /// When an entry is due, the store ignores the time at which its records were last taken.
    LivenessLost,
    /// When a record ends, its entries do not get the time at which it was last taken.
    LivenessLostAtEnd,
    /// A program finds entries to which the counts of records have not been added.
    CountersUnsettled,
    /// Reports show entries to which the counts of records have not been added.
    ReportUnsettled,
    /// Bytes are not added to counters in state.
    BytesForgotten,
    /// A record's counts are lost when the record hands them over.
    CountsLost,
    /// The counts of records are added again each time that the counters are read.
    CountsRepeated,
    /// Records are found by the hash of their keys alone.
    HashOnly,
    /// Records of one program are found for another program.
    ProgramIgnored,
    /// Paths do not contain the deciding rules. Paths that differ only in rules share a template.
    RulesForgotten,
    /// A flow's key lacks the fields that determine its worker.
    WorkerIgnored,
    /// Counters after a change of VLAN tags count bytes as if the tags had not changed.
    TagsUncounted,
    /// Events report the fields of the packet for which the record was made.
    EventFixed,
    /// All lookups in a table get the result of the first one.
    LookupConfused,
    /// When a record moves to another rank in the list of records on an entry, its link keeps the
    /// old rank.
    RankForgotten,
    /// Records count without end, whatever their bounds are.
    FuelEndless,
    /// A record keeps its fuel after a program has found the entry.
    FuelKept,
    /// Records use fuel that other records hold.
    FuelSpentTwice,
    /// Records count beyond the bounds of other records that may still count.
    OtherBoundsIgnored,
    /// Records of different kinds of changes count in one slot.
    KindsMixed,
    /// A sum that wraps is compared as if it stopped at its largest value.
    WrapForgotten,
    /// The lower bound of a slot is not tested.
    LeastForgotten,
    /// Records do not end when a native function changes a recording on which they depend.
    StaleElsewhere,
    /// A record takes packets although a native function has due work.
    NativeDueIgnored,
    /// A packet that takes a record does not mark the native function's flow as seen.
    NativeUnseen,
    /// Scripts do not test the values that decide about the path.
    PinForgotten,
    /// Scripts take the slots of the recorded flow's entries for constants.
    SlotConstant,
    /// Scripts stay when a parameter changes.
    StaleScript,
    /// Scripts take the outer headers of the recorded flow for constants.
    OuterConstant,
    /// Records take the lengths in the outer headers of a tunnel for constants. A test of its own
    /// finds this mutant.
    OuterLength,
    /// Behind a tunnel, records depend on bits that their keys lack. A test of its own finds this
    /// mutant.
    KeyTooNarrow,
    /// Records that leave a tunnel do not test the outer headers. A test of its own finds this
    /// mutant.
    OuterUntested,
    /// Records that leave a tunnel do not test which headers the packet inside has. A test of its
    /// own finds this mutant.
    InsideUntested,
    /// Records that leave a tunnel count the outer headers' bytes nowhere. A test of its own finds
    /// this mutant.
    OuterUncounted,
    /// Packets take records for the rest of their paths although one engine acts as several
    /// workers. Where a tunnel ends, the inner headers would lead to another worker.
    RestSteered,
    /// Records end while a packet takes a record for the rest of its path, and later packets of the
    /// batch still take them. A test of its own finds this mutant.
    RestEndsMissed,
}

/// All mutants, for tests that try each of them.
#[cfg(feature = "mutants")]
pub const RECORD_MUTANTS: [RecordMutant; 51] = [
    RecordMutant::GuardForgotten,
    RecordMutant::GuardTooWide,
    RecordMutant::AbsenceForgotten,
    RecordMutant::ReadForgotten,
    RecordMutant::StaleEntry,
    RecordMutant::StaleSlot,
    RecordMutant::StaleTime,
    RecordMutant::ContentionIgnored,
    RecordMutant::ControlIgnored,
    RecordMutant::TemplateNotOutdated,
    RecordMutant::BackendIgnored,
    RecordMutant::RulesNotMoved,
    RecordMutant::OutdatedCountsLost,
    RecordMutant::WrongDelta,
    RecordMutant::AmountTwice,
    RecordMutant::AmountUnsummed,
    RecordMutant::PseudoHeaderForgotten,
    RecordMutant::TtlKept,
    RecordMutant::OnwardLost,
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
    RecordMutant::KindsMixed,
    RecordMutant::WrapForgotten,
    RecordMutant::LeastForgotten,
    RecordMutant::StaleElsewhere,
    RecordMutant::NativeDueIgnored,
    RecordMutant::NativeUnseen,
    RecordMutant::PinForgotten,
    RecordMutant::SlotConstant,
    RecordMutant::StaleScript,
    RecordMutant::OuterConstant,
    RecordMutant::RestSteered,
];

/// A text that stays in each program with mutants. `scripts/check-no-mutants.sh` looks for it.
#[cfg(feature = "mutants")]
const MARK: &str = "built with mutants of flow records";

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

    /// Whether records may be made by scripts. Scripts would hide mutants of the specialiser.
    pub(crate) fn allow_scripts(self) -> bool {
        let of_scripts = [
            RecordMutant::PinForgotten,
            RecordMutant::SlotConstant,
            RecordMutant::StaleScript,
            RecordMutant::OuterConstant,
        ];
        self.is_none() || of_scripts.into_iter().any(|one| self.has(one))
    }

    /// Whether there is no mutant.
    #[cfg(feature = "mutants")]
    pub(crate) fn is_none(self) -> bool {
        std::hint::black_box(MARK);
        self.active.is_none()
    }

    /// Whether there is no mutant. Without the feature there is none.
    #[cfg(not(feature = "mutants"))]
    pub(crate) fn is_none(self) -> bool {
        true
    }

    /// Gives records this mutant.
    #[cfg(feature = "mutants")]
    pub(crate) fn use_mutant(&mut self, mutant: RecordMutant) {
        self.active = Some(mutant);
    }
}
