//! A secret on which initial sequence numbers depend.

use crate::wire::Ends;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::OnceLock;

/// The initial sequence numbers go up by one in this time (ns), as RFC 6528 §3 asks.
const ISN_TICK: u64 = 4_000;

/// On what initial sequence numbers and SYN cookies depend besides the ends of a connection and the
/// time.
#[derive(Clone, Debug)]
pub enum Secret {
    /// A number that nobody knows. It is that of the process, so that it outlives a reload.
    Random(RandomState),
    /// A configured number: all instances with it give the same numbers.
    Seed(u128),
}

impl Secret {
    /// The secret with this seed; without one, or with 0, the secret of the process.
    #[must_use]
    pub fn new(seed: Option<u128>) -> Self {
        static OF_PROCESS: OnceLock<RandomState> = OnceLock::new();
        match seed {
            Some(seed) if seed > 0 => Self::Seed(seed),
            _ => Self::Random(OF_PROCESS.get_or_init(RandomState::new).clone()),
        }
    }

    /// A hash that only those can compute who know the secret.
    #[must_use]
    pub fn hash(&self, of: impl Hash) -> u64 {
        match self {
            Self::Random(state) => state.hash_one(of),
            Self::Seed(seed) => {
                let mut hasher = DefaultHasher::new();
                (seed, of).hash(&mut hasher);
                hasher.finish()
            }
        }
    }

    /// The initial sequence number of a connection for segments with these ends (RFC 6528).
    #[must_use]
    pub fn isn(&self, ends: Ends, now: u64) -> u32 {
        let number = self.hash(ends).wrapping_add(now / ISN_TICK);
        let [a, b, c, d, ..] = number.to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}
