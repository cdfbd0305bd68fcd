//! Finds the lowest free rank, by bits in levels: each bit of a level stands for a word of 64 bits
//! in the level below it.

/// The lowest level has a bit for each rank that is not free. Each higher level has a bit for each
/// full word of the level below it. The highest level is a single word.
#[derive(Clone, Debug)]
pub(super) struct First {
    lowest: Vec<u64>,
    /// The higher levels, from the second lowest up.
    higher: Vec<Vec<u64>>,
    /// The first word of the lowest level that is not full. If all are full, any word.
    word: usize,
}

#[expect(
    clippy::indexing_slicing,
    reason = "a level has a bit for each rank, or for each word of the level below"
)]
impl First {
    /// Creates the levels for `count` ranks, all free.
    pub(super) fn new(count: u32) -> Self {
        let mut levels = Vec::new();
        let mut bits = count as usize;
        loop {
            let words = bits.div_ceil(64).max(1);
            let mut level = vec![0_u64; words];
            // Marks ranks past the last one as not free.
            for bit in bits..words * 64 {
                level[bit / 64] |= 1 << (bit % 64);
            }
            levels.push(level);
            if words == 1 {
                let lowest = levels.remove(0);
                return Self { lowest, higher: levels, word: 0 };
            }
            bits = words;
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "ranks have 32 bits")]
    pub(super) fn first(&self) -> Option<u32> {
        let word = self.lowest[self.word];
        let rank = self.word.wrapping_mul(64).wrapping_add(word.trailing_ones() as usize);
        (word != u64::MAX).then_some(rank as u32)
    }

    /// Removes a rank from the free ranks.
    #[inline]
    pub(super) fn remove(&mut self, rank: u32) {
        let at = rank as usize;
        let word = &mut self.lowest[at / 64];
        *word |= 1 << (at % 64);
        if *word == u64::MAX {
            self.fill(at / 64);
        }
    }

    /// Marks a word of the lowest level as full, and finds the first one that is not.
    #[cold]
    fn fill(&mut self, mut at: usize) {
        for level in &mut self.higher {
            let word = &mut level[at / 64];
            *word |= 1 << (at % 64);
            if *word != u64::MAX {
                break;
            }
            at /= 64;
        }
        let mut first = 0;
        for level in self.higher.iter().rev() {
            let word = level[first];
            if word == u64::MAX {
                return;
            }
            first = first * 64 + word.trailing_ones() as usize;
        }
        self.word = first;
    }

    /// Adds a rank to the free ranks. Returns false if it is free already.
    #[inline(always)]
    pub(super) fn insert(&mut self, rank: u32) -> bool {
        let (at, bit) = (rank as usize / 64, 1 << (rank % 64));
        let word = &mut self.lowest[at];
        let was = *word;
        *word &= !bit;
        // Words before `self.word` are full, so only a full word can come before it.
        if was == u64::MAX {
            self.unfill(at);
        }
        was & bit != 0
    }

    /// Marks a word of the lowest level as no longer full.
    #[cold]
    fn unfill(&mut self, mut at: usize) {
        if at < self.word || self.lowest[self.word] == u64::MAX {
            self.word = at;
        }
        for level in &mut self.higher {
            let word = &mut level[at / 64];
            let was_full = *word == u64::MAX;
            *word &= !(1 << (at % 64));
            if !was_full {
                return;
            }
            at /= 64;
        }
    }

    /// Whether a rank is free.
    #[inline]
    pub(super) fn has(&self, rank: u32) -> bool {
        self.lowest[rank as usize / 64] >> (rank % 64) & 1 == 0
    }
}
