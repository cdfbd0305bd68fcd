//! Mutants of the synthesis: deliberate mistakes. Tests show that the comparison of engines finds
//! each of them. A mutant can be active only with the feature `mutants`.

/// A mutant of the synthesis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "mutants"), allow(dead_code, reason = "no mutant is active then"))]
pub enum SynthMutant {
    /// A read of an assigned field gives the value on arrival.
    StaleBinding,
    /// Of several decrements of a value, only the first one happens.
    LostDecrement,
    /// Where paths meet, a field takes the value of one of them.
    WrongMerge,
    /// A field with an unchanged value is not written, so its checksums are not made canonical.
    ForgottenCanonical,
    /// A fact about a field's old value is applied to its new value.
    FactKept,
    /// A read of a field's value on entry gives the current value.
    EntryIsCurrent,
    /// Where paths meet, counts that only some of them have are lost.
    CountDropped,
    /// A comparison counts as decided although its bound can just be reached.
    BoundOffByOne,
    /// The result of a lookup is reused after an assignment to the table.
    FindReused,
    /// The ports in flow keys are swapped.
    KeyPartsSwapped,
    /// The checksum of TCP or UDP counts as unchanged after a write to the payload.
    PayloadSumKept,
    /// Bytes that are written to the payload never count as the header of a tunnel.
    PayloadTunnelMissed,
    /// A packet that gets a TCP option counts as one without it.
    OptionMissed,
    /// Lengths count as unchanged after a packet has got a TCP option.
    OptionLengthsKept,
    /// A packet that loses a TCP option never has another one of this form.
    SecondOptionMissed,
    /// Lengths count as unchanged after bytes of the payload were replaced.
    PayloadLengthsKept,
    /// A packet whose payload gets another length is counted with the new length before that.
    CountedLater,
    /// A packet has the same headers after outer headers were added or removed.
    TunnelMissed,
    /// Fields have the same values after outer headers were added or removed.
    TunnelFieldsKept,
    /// The end of a pattern's match counts as its beginning.
    PlaceSwapped,
    /// A string that is looked up counts as long as its words.
    LengthLost,
    /// The handlers of an event run in the opposite order of their functions.
    HandlersReversed,
    /// The events of handlers are handled after all handlers of the event before.
    NestedLater,
    /// The fault of a handler drops the packet.
    HandlerFaultDrops,
    /// A handler works on the state of another instance of its function.
    OtherInstance,
}

/// A text that stays in each program with mutants. `scripts/check-no-mutants.sh` looks for it.
#[cfg(feature = "mutants")]
const MARK: &str = "built with mutants of synthesis";

/// Whether this mutant is active. Without the feature `mutants`, none is.
pub(super) fn is(bug: Option<SynthMutant>, this: SynthMutant) -> bool {
    #[cfg(feature = "mutants")]
    std::hint::black_box(MARK);
    cfg!(feature = "mutants") && bug == Some(this)
}

#[cfg(feature = "mutants")]
impl std::str::FromStr for SynthMutant {
    type Err = String;

    /// The mutant with this name, as in the source.
    fn from_str(name: &str) -> Result<Self, String> {
        let mut all = SYNTH_MUTANTS.into_iter();
        all.find(|bug| format!("{bug:?}") == name).ok_or_else(|| format!("there is no bug {name}"))
    }
}

/// All mutants.
#[cfg(feature = "mutants")]
pub const SYNTH_MUTANTS: [SynthMutant; 25] = [
    SynthMutant::StaleBinding,
    SynthMutant::LostDecrement,
    SynthMutant::WrongMerge,
    SynthMutant::ForgottenCanonical,
    SynthMutant::FactKept,
    SynthMutant::EntryIsCurrent,
    SynthMutant::CountDropped,
    SynthMutant::BoundOffByOne,
    SynthMutant::FindReused,
    SynthMutant::KeyPartsSwapped,
    SynthMutant::PayloadSumKept,
    SynthMutant::PayloadTunnelMissed,
    SynthMutant::OptionMissed,
    SynthMutant::OptionLengthsKept,
    SynthMutant::SecondOptionMissed,
    SynthMutant::PayloadLengthsKept,
    SynthMutant::CountedLater,
    SynthMutant::TunnelMissed,
    SynthMutant::TunnelFieldsKept,
    SynthMutant::PlaceSwapped,
    SynthMutant::LengthLost,
    SynthMutant::HandlersReversed,
    SynthMutant::NestedLater,
    SynthMutant::HandlerFaultDrops,
    SynthMutant::OtherInstance,
];
