//! Finds the k-th lowest free rank, by counts of taken ranks (Fenwick: A new data structure for
//! cumulative frequency tables, 1994) over blocks of 512.

/// The number of ranks in a block.
const BLOCK: u32 = 512;

/// The element with the number n (from 1) is the number of taken ranks in the last b blocks up to
/// block n, where b is the value of n's lowest set bit.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    taken: Vec<u32>,
}

impl Counts {
    /// Creates the counts for `count` ranks, all free.
    pub(super) fn new(count: u32) -> Self {
        Self { taken: vec![0; count.div_ceil(BLOCK) as usize + 1] }
    }

    /// The free rank with `skip` free ranks below it, which must exist. `taken` has a bit for each
    /// rank.
    #[expect(
        clippy::indexing_slicing,
        reason = "`skip` is below the number of free ranks, so one of them is found"
    )]
    #[expect(clippy::cast_possible_truncation, reason = "a pool has at most `MOST` ranks")]
    pub(super) fn free_one(&self, taken: &[u64], mut skip: u32) -> u32 {
        let mut block = 0;
        let mut step = self.taken.len().next_power_of_two();
        // Ranks past the last one count as free. They are above all others, so they are never the
        // result.
        while step > 0 {
            if let Some(count) = self.taken.get(block + step) {
                let free = step as u32 * BLOCK - count;
                if free <= skip {
                    skip -= free;
                    block += step;
                }
            }
            step /= 2;
        }
        let mut word = block * (BLOCK / 64) as usize;
        loop {
            let free = !taken[word];
            match skip.checked_sub(free.count_ones()) {
                Some(rest) => skip = rest,
                None => return word as u32 * 64 + set_bit(free, skip),
            }
            word += 1;
        }
    }

    pub(super) fn remove(&mut self, rank: u32) {
        self.add(rank, 1);
    }

    pub(super) fn insert(&mut self, rank: u32) {
        self.add(rank, u32::MAX);
    }

    /// Adds `by` to the count of a rank's block, modulo 2^32. This also subtracts.
    fn add(&mut self, rank: u32, by: u32) {
        let mut at = (rank / BLOCK) as usize + 1;
        while let Some(count) = self.taken.get_mut(at) {
            *count = count.wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }
}

/// The set bit of a word with `skip` other set bits below it.
fn set_bit(mut word: u64, mut skip: u32) -> u32 {
    let mut at = 0;
    let mut half = 32;
    while half > 0 {
        let below = (word & ((1 << half) - 1)).count_ones();
        if skip >= below {
            skip -= below;
            word >>= half;
            at += half;
        }
        half /= 2;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::set_bit;

    #[test]
    fn set_bit_skips_the_bits_below() {
        let word = 1 << 63 | 1 << 62 | 1 << 33 | 1 << 31 | 1;
        let found: Vec<u32> = (0..5).map(|skip| set_bit(word, skip)).collect();
        assert_eq!(found, [0, 31, 33, 62, 63]);
        assert!((0..64).all(|skip| set_bit(u64::MAX, skip) == skip));
    }
}
