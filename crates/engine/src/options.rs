//! Options of the compiled engines.

/// How a compiled engine runs its programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// When programs become machine code.
    pub jit: Jit,
    /// Most flow records; 0: none are made.
    pub records: usize,
    /// Whether records are made at a flow's second packet, and also where they do not pay, rather than at the fourth
    /// and where they do: for tests.
    pub eager: bool,
    /// By which hash entries and records are found.
    pub hash: Hashing,
}

/// The hash by which entries and records are found. It decides how long a search takes, and which flows
/// the admission filter takes for others. It decides nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hashing {
    /// One of the engine's own: nobody who sends packets can know which of them share a place.
    #[default]
    Drawn,
    /// The one with this seed: for runs that must repeat in all respects.
    Seeded(u64),
    /// One by which all hashes are equal: for tests.
    Colliding,
}

impl Options {
    /// With flow records, as many as there are likely flows.
    #[must_use]
    pub fn fused() -> Self {
        Self { records: 1 << 20, ..Self::default() }
    }
}

/// When programs become machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Jit {
    /// Never: they are interpreted.
    Off,
    /// When so many packets have run by them. Where there is no code generator for the machine,
    /// never.
    After(u32),
}

impl Default for Jit {
    /// After as many packets as take about as long to interpret as the code takes to make.
    fn default() -> Self {
        Jit::After(500)
    }
}
