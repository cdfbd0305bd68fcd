//! Options of the compiled engines.

/// How a compiled engine runs its programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// When programs are compiled to machine code.
    pub jit: Jit,
    /// The largest number of flow records. With 0, the engine makes none.
    pub records: usize,
    /// For tests: makes a record at a flow's second packet instead of its fourth, even where a
    /// record saves no time.
    pub eager: bool,
    /// The hash that finds entries and records.
    pub hash: Hashing,
    /// Whether a separate thread compiles. If so, packets never wait for the compiler: the models
    /// are interpreted until the compiled program is ready. If not, packets wait while their
    /// program is compiled.
    pub workshop: bool,
}

/// The hash that finds entries and records. It affects only how long searches take, and which flows
/// the admission filter confuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hashing {
    /// A random hash for each engine, so that senders of packets cannot know which packets collide.
    #[default]
    Drawn,
    /// The hash with this seed, for runs that must repeat exactly.
    Seeded(u64),
    /// For tests: the same hash for all keys.
    Colliding,
}

impl Options {
    /// Options for the engine `fused`: at most 2^20 flow records, otherwise the defaults.
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
    /// After this number of packets. Never if there is no code generator for this machine.
    After(u32),
}

impl Default for Jit {
    /// After as many packets as can be interpreted in the time of a compilation.
    fn default() -> Self {
        Jit::After(500)
    }
}
