//! What passes are told about a program beside its text.

/// Facts about a program that its blocks don't tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Whether the branch at the end of block 0 decides between the main path (`yes`) and the general
    /// part (`no`).
    pub guarded: bool,
}
