//! Information about a program that passes get beside its text.

/// Facts about a program that its blocks do not show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Whether the branch at the end of block 0 decides between the main path (`yes`) and the
    /// general part (`no`).
    pub guarded: bool,
}
