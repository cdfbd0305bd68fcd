//! A burst that enters.

/// What happens to a packet that enters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Enters {
    /// It takes the route of this number.
    Route(usize),
    /// It leaves by this interface at once.
    Leaves(u16),
    Lost,
}

/// A burst that is being processed.
#[derive(Default)]
pub(super) struct Entering {
    pub(super) packets: Vec<Enters>,
    /// The time at which each packet enters (ns).
    pub(super) times: Vec<u64>,
    /// The places before which all stages must have the same time.
    pub(super) cuts: Vec<usize>,
}
