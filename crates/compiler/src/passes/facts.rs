//! Facts about a program that passes get besides the program itself.

/// Facts about a program that its blocks do not show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Whether the branch at the end of block 0 leads to the main path (`yes`) and to the general
    /// part (`no`).
    pub guarded: bool,
}
