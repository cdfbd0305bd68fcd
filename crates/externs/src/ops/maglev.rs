//! `maglev(BACKENDS, h)`: consistent hashing with a lookup table (Eisenbud et al., Maglev, NSDI'16, §3.4).
//!
//! Each backend that is up has a preference list of all table positions, a permutation made from two
//! hashes of its name. Backends take turns to claim the next position of their list that is still
//! free, until all positions are taken. A packet's hash, modulo the size, is looked up in the table.
//! Shares differ by at most one position, and few positions change hands when a backend comes or goes.

use super::hash::{Fnv, fmix64};
use crate::call::{Backends, CallCtx, Results};
use crate::signature::{
    ArgSpec, Example, Extern, ParamKind, Profile, ResultKind, ResultSpec, Signature, Touch, Width,
};

/// The operator.
pub static MAGLEV: Extern = Extern {
    signature: Signature {
        name: "maglev",
        args: &[ArgSpec { name: "hash", width: Width::Bits(32) }],
        variadic: false,
        takes_param: Some(ParamKind::Backends),
        results: &[
            ResultSpec { name: "found", kind: ResultKind::Found },
            ResultSpec { name: "index", kind: ResultKind::Index },
        ],
        profile: Profile { payload: Touch::No, state: Touch::Reads },
        doc: "The backend that consistent hashing gives to this hash (Maglev, NSDI'16, §3.4), among \
              those that are up. No answer when none is up. Shares are equal within 1 %. When one of n \
              backends fails, its flows spread over the others, and few other flows move. A backend \
              is known by its first column, so the order of the list does not matter; give each \
              backend another value there. The table has 65,537 positions for up to 655 backends and \
              655,373 above.",
        examples: &[
            Example {
                call: "maglev(servers, 12345)  -- with the second of two down",
                args: &[(12345, 32)],
                payload: &[],
                backends: &[(0x0a00_0001, true), (0x0a00_0002, false)],
                seed: 0,
                results: &[1, 0],
            },
            Example {
                call: "maglev(servers, 12345)  -- with none up",
                args: &[(12345, 32)],
                payload: &[],
                backends: &[(0x0a00_0001, false), (0x0a00_0002, false)],
                seed: 0,
                results: &[0, 0],
            },
        ],
    },
    run,
};

/// Positions for up to [`SMALL_BACKENDS`] backends: the paper's small table size (§5.3). A prime, so
/// that every skip visits every position.
const SMALL: u32 = 65_537;
/// Positions for more backends: the paper's large table size. A prime.
const LARGE: u32 = 655_373;
/// At most this many have 100 positions each in the small table, which keeps shares within 1 %.
const SMALL_BACKENDS: usize = SMALL as usize / 100;

/// A table and what it was made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Name and health of each backend when the table was made.
    made_from: Vec<(u128, bool)>,
    /// Backend by position; empty when none is up.
    entries: Vec<u32>,
}

fn run(ctx: &mut CallCtx<'_>) -> Results {
    let hash = ctx.arg(0);
    let Some(backends) = ctx.backends else { return [0, 0] };
    let table = match &mut ctx.cache.maglev {
        Some(table) if table.is_current(backends) => table,
        stale => stale.insert(Table::new(backends)),
    };
    match table.lookup(hash) {
        Some(index) => [1, u128::from(index)],
        None => [0, 0],
    }
}

impl Table {
    /// The table for these backends.
    #[must_use]
    pub fn new(backends: &dyn Backends) -> Self {
        let made_from: Vec<_> =
            (0..backends.count()).map(|i| (backends.name(i), backends.is_up(i))).collect();
        // The size follows from all backends, so that a failure never changes it.
        let size = if made_from.len() <= SMALL_BACKENDS { SMALL } else { LARGE };
        let entries = populate(&made_from, size);
        Self { made_from, entries }
    }

    /// Whether it is the table for these backends.
    #[must_use]
    pub fn is_current(&self, backends: &dyn Backends) -> bool {
        self.made_from.len() == backends.count()
            && self
                .made_from
                .iter()
                .enumerate()
                .all(|(i, &entry)| entry == (backends.name(i), backends.is_up(i)))
    }

    /// The backend for a hash; `None` when none is up.
    #[must_use]
    pub fn lookup(&self, hash: u128) -> Option<u32> {
        let position = hash.checked_rem(self.entries.len() as u128)?;
        self.entries.get(usize::try_from(position).ok()?).copied()
    }
}

/// A backend's walk through its preference list.
struct Walk {
    index: u32,
    next: u32,
    skip: u32,
}

impl Walk {
    fn new(index: u32, name: u128, size: u32) -> Self {
        let modulo = |salt, n: u32| salted(salt, name).checked_rem(u64::from(n)).unwrap_or(0);
        // Both are below `size`, a u32.
        let next = u32::try_from(modulo(0, size)).unwrap_or(0);
        let skip = u32::try_from(modulo(1, size - 1)).unwrap_or(0) + 1;
        Self { index, next, skip }
    }

    /// The next position in the backend's order of preference.
    fn step(&mut self, size: u32) -> usize {
        let position = self.next;
        self.next = (self.next + self.skip) % size;
        position as usize
    }
}

/// One of two hashes of a name.
fn salted(salt: u8, name: u128) -> u64 {
    let mut state = Fnv::new();
    state.write(&[salt]);
    state.write(&name.to_be_bytes());
    fmix64(state.0)
}

/// The paper's pseudocode 1. Backends take turns in the order of their names, so that a list in
/// another order gives the same table.
fn populate(backends: &[(u128, bool)], size: u32) -> Vec<u32> {
    let mut up: Vec<(u128, u32)> =
        (0..).zip(backends).filter(|(_, b)| b.1).map(|(index, b)| (b.0, index)).collect();
    if up.is_empty() {
        return Vec::new();
    }
    up.sort_unstable();
    let mut walks: Vec<Walk> =
        up.iter().map(|&(name, index)| Walk::new(index, name, size)).collect();
    let mut entries: Vec<Option<u32>> = vec![None; size as usize];
    let mut free = entries.len();
    for turn in (0..walks.len()).cycle() {
        if free == 0 {
            break;
        }
        let walk = &mut walks[turn];
        // Ends: a walk visits all positions, and one of them is free.
        loop {
            let slot = &mut entries[walk.step(size)];
            if slot.is_none() {
                *slot = Some(walk.index);
                break;
            }
        }
        free -= 1;
    }
    entries.into_iter().flatten().collect()
}
