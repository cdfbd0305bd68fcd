//! Options of the compiled engines.

/// How a compiled engine runs its programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// When programs are compiled to machine code.
    pub jit: Jit,
    /// The most flow records. With 0, the engine makes none.
    pub records: usize,
    /// For tests: makes a record at a flow's second packet instead of its fourth, even where
    /// records do not pay.
    pub eager: bool,
    /// The hash that finds entries and records.
    pub hash: Hashing,
}

/// The hash that finds entries and records. It affects only the duration of searches and which
/// flows the admission filter confuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hashing {
    /// A random hash for each engine. Senders of packets cannot know which packets collide.
    #[default]
    Drawn,
    /// The hash with this seed, for runs that must repeat exactly.
    Seeded(u64),
    /// A hash that is equal for all keys: for tests.
    Colliding,
}

impl Options {
    /// Options with flow records, enough for the usual number of flows.
    #[must_use]
    pub fn fused() -> Self {
        Self { records: 1 << 20, ..Self::default() }
    }
}

/// When programs are compiled to machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Jit {
    /// Never. Programs are interpreted.
    Off,
    /// After this number of packets. If the machine has no code generator, never.
    After(u32),
}

impl Default for Jit {
    /// The number of packets whose interpretation takes about as long as the compilation.
    fn default() -> Self {
        Jit::After(500)
    }
}
