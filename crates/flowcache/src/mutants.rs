//! Mutants: bugs that flow records can be told to have, so that tests can show that they would be
//! found. Only with the feature `planted-bugs`.

/// A bug in flow records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "planted-bugs"), allow(dead_code, reason = "none is planted then"))]
pub enum RecordMutant {
    /// Of a record's guards the last one is left out.
    GuardForgotten,
    /// A guard's interval is too large by one.
    GuardTooWide,
    /// A record does not say that an entry must not be there.
    AbsenceForgotten,
    /// A record does not say that it takes slots for granted.
    ReadForgotten,
    /// Records stay when an entry that they rest on ends, also within a batch.
    StaleEntry,
    /// Records stay when a slot that they take for granted is assigned to.
    StaleSlot,
    /// Records stay when a slot gets a later time than theirs.
    StaleTime,
    /// Records are made that change what others look at, or look at what others change.
    ContentionIgnored,
    /// Records stay when the configuration changes.
    ControlIgnored,
    /// Of the classes that rest on what has changed the last one is not outdated.
    ClassNotOutdated,
    /// Records do not say on which backend they rest.
    BackendIgnored,
    /// What outdated records have counted is counted by the numbers that rules had before.
    RulesNotMoved,
    /// What a template has counted is lost when another one gets its number.
    OutdatedCountsLost,
    /// A transport checksum changes by too much.
    WrongDelta,
    /// A transport checksum does not follow addresses.
    PseudoHeaderForgotten,
    /// The TTL is not counted down.
    TtlKept,
    /// A record takes packets for which something is due.
    DueIgnored,
    /// A record takes packets at their own time, also when it is later already.
    TimeGoesBack,
    /// Entries are not as lately seen as their records when they are due.
    LivenessLost,
    /// Nor when their records end.
    LivenessLostAtEnd,
    /// What a program finds is without what records have counted.
    CountersUnsettled,
    /// So is state that is shown.
    ReportUnsettled,
    /// Bytes are not added to counters in state.
    BytesForgotten,
    /// What a record has counted is lost when it gives it away.
    CountsLost,
    /// What records have counted is counted anew each time that counters are looked at.
    CountsRepeated,
    /// Records are found by the hash of their keys.
    HashOnly,
    /// Records of one program are taken for another's.
    ProgramIgnored,
    /// Rules that decide are not part of a way: ways that differ in them share a template.
    RulesForgotten,
    /// A flow's key lacks what tells its worker.
    WorkerIgnored,
    /// Counters behind a change of tags count bytes as if there had been none.
    TagsUncounted,
    /// Events say what is in the packet that the record was made for.
    EventFixed,
    /// What was looked up first in a table is taken for all that is looked up in it.
    LookupConfused,
    /// Of several records on an entry the one that takes another's place there does not know its own.
    RankForgotten,
    /// Records count without end, whatever their bounds are.
    FuelEndless,
    /// What a record may still count is not looked at again when others have found the entry.
    FuelKept,
    /// Records count what others may count.
    FuelSpentTwice,
    /// Records count past what other records may still count against.
    OtherBoundsIgnored,
    /// A sum that wraps is compared as if it stopped at its largest value.
    WrapForgotten,
    /// What a slot holds at least is not asked for.
    LeastForgotten,
    /// Records stay when what they rest on changes that is not kept in state: what native functions have recorded.
    StaleElsewhere,
    /// A record takes packets for which something is due in a native function.
    NativeDueIgnored,
    /// A native function's flow is not seen by packets that take a record.
    NativeUnseen,
}

/// All of them.
#[cfg(feature = "planted-bugs")]
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
    #[cfg(feature = "planted-bugs")]
    active: Option<RecordMutant>,
}

impl Mutants {
    /// Whether records have this mutant.
    #[cfg(feature = "planted-bugs")]
    #[inline(always)]
    pub(crate) fn has(self, mutant: RecordMutant) -> bool {
        self.active == Some(mutant)
    }

    /// Whether records have this mutant: they have none.
    #[cfg(not(feature = "planted-bugs"))]
    #[inline(always)]
    pub(crate) fn has(self, _: RecordMutant) -> bool {
        false
    }

    /// Records have this mutant from now on.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn plant(&mut self, mutant: RecordMutant) {
        self.active = Some(mutant);
    }
}
