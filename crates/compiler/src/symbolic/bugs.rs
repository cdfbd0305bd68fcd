//! Bugs that synthesis can be told to have, so that tests can show that they would be found. Only with
//! the feature `planted-bugs`.

/// A bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "planted-bugs"), allow(dead_code, reason = "none is planted then"))]
pub enum Bug {
    /// A field that was assigned still reads as it arrived.
    StaleBinding,
    /// Of several decrements of a value only the first is done.
    LostDecrement,
    /// Where ways meet, a field has the value of one of them.
    WrongMerge,
    /// A field that comes out as it was is not written, so its checksums stay as they are.
    ForgottenCanonical,
    /// What was known of a field's value before it was assigned is believed of the new one.
    FactKept,
    /// Fields as on entry are read as they are now.
    EntryIsCurrent,
    /// Where ways meet, what only some of them have counted is lost.
    TallyDropped,
    /// A comparison is decided although its bound may just be reached.
    BoundOffByOne,
    /// A look-up's outcome is used again after an assignment to the table.
    FindReused,
    /// Ports in the keys of flows are exchanged.
    KeyPartsSwapped,
}

#[cfg(feature = "planted-bugs")]
impl std::str::FromStr for Bug {
    type Err = String;

    /// The bug of this name, as in the source.
    fn from_str(name: &str) -> Result<Self, String> {
        let mut all = BUGS.into_iter();
        all.find(|bug| format!("{bug:?}") == name).ok_or_else(|| format!("there is no bug {name}"))
    }
}

/// All of them.
#[cfg(feature = "planted-bugs")]
pub const BUGS: [Bug; 10] = [
    Bug::StaleBinding,
    Bug::LostDecrement,
    Bug::WrongMerge,
    Bug::ForgottenCanonical,
    Bug::FactKept,
    Bug::EntryIsCurrent,
    Bug::TallyDropped,
    Bug::BoundOffByOne,
    Bug::FindReused,
    Bug::KeyPartsSwapped,
];
