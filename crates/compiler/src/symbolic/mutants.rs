//! Mutants of the synthesis. Tests build them to show that such mistakes are found. Only with the
//! feature `mutants`.

/// A mutant of the synthesis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "mutants"), allow(dead_code, reason = "no mutant is active then"))]
pub enum SynthMutant {
    /// A field that was assigned still has the value with which it arrived.
    StaleBinding,
    /// Only the first of several decrements of a value happens.
    LostDecrement,
    /// Where paths meet, a field takes the value of one of them.
    WrongMerge,
    /// A field whose value did not change is not written, so its checksums stay as they are.
    ForgottenCanonical,
    /// A fact about a field's old value is applied to the newly assigned value.
    FactKept,
    /// A read of a field's value on entry gives the current value.
    EntryIsCurrent,
    /// Where paths meet, the counts of only some of them are lost.
    CountDropped,
    /// A comparison is decided although its bound can just be reached.
    BoundOffByOne,
    /// The result of a lookup is used again after an assignment to the table.
    FindReused,
    /// The ports in flow keys are swapped.
    KeyPartsSwapped,
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
pub const SYNTH_MUTANTS: [SynthMutant; 10] = [
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
];
