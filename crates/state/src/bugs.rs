//! Bugs that flow records can be told to have, so that tests can show that they would be found. Only with
//! the feature `planted-bugs`.

use crate::records::Records;
use crate::store::Store;

/// A bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "planted-bugs"), allow(dead_code, reason = "none is planted then"))]
pub enum RecordBug {
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
    /// What a class has counted is lost when another one gets its number.
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
    /// Rules that decide are not part of a way: ways that differ in them share a class.
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
    /// A sum that goes round is compared as if it stopped at its largest value.
    RoundForgotten,
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
pub const RECORD_BUGS: [RecordBug; 42] = [
    RecordBug::GuardForgotten,
    RecordBug::GuardTooWide,
    RecordBug::AbsenceForgotten,
    RecordBug::ReadForgotten,
    RecordBug::StaleEntry,
    RecordBug::StaleSlot,
    RecordBug::StaleTime,
    RecordBug::ContentionIgnored,
    RecordBug::ControlIgnored,
    RecordBug::ClassNotOutdated,
    RecordBug::BackendIgnored,
    RecordBug::RulesNotMoved,
    RecordBug::OutdatedCountsLost,
    RecordBug::WrongDelta,
    RecordBug::PseudoHeaderForgotten,
    RecordBug::TtlKept,
    RecordBug::DueIgnored,
    RecordBug::TimeGoesBack,
    RecordBug::LivenessLost,
    RecordBug::LivenessLostAtEnd,
    RecordBug::CountersUnsettled,
    RecordBug::ReportUnsettled,
    RecordBug::BytesForgotten,
    RecordBug::CountsLost,
    RecordBug::CountsRepeated,
    RecordBug::HashOnly,
    RecordBug::ProgramIgnored,
    RecordBug::RulesForgotten,
    RecordBug::WorkerIgnored,
    RecordBug::TagsUncounted,
    RecordBug::EventFixed,
    RecordBug::LookupConfused,
    RecordBug::RankForgotten,
    RecordBug::FuelEndless,
    RecordBug::FuelKept,
    RecordBug::FuelSpentTwice,
    RecordBug::OtherBoundsIgnored,
    RecordBug::RoundForgotten,
    RecordBug::LeastForgotten,
    RecordBug::StaleElsewhere,
    RecordBug::NativeDueIgnored,
    RecordBug::NativeUnseen,
];

impl Records {
    /// Whether they have this bug.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn has_bug(&self, bug: RecordBug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether they have this bug: they have none.
    #[cfg(not(feature = "planted-bugs"))]
    #[inline(always)]
    pub(crate) fn has_bug(&self, _: RecordBug) -> bool {
        false
    }
}

impl Store {
    /// Whether records have this bug.
    #[doc(hidden)]
    #[must_use]
    #[inline(always)]
    pub fn has_bug(&self, bug: RecordBug) -> bool {
        self.records.has_bug(bug)
    }

    /// From now on they have it.
    #[cfg(feature = "planted-bugs")]
    pub fn plant(&mut self, bug: RecordBug) {
        self.records.bug = Some(bug);
    }
}
