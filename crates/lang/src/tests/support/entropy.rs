//! Draws choices from bytes. When the bytes are used up, every choice is the first one. So fewer
//! bytes give a smaller tree, and proptest can shrink.

/// A source of choices.
pub struct Entropy {
    bytes: Vec<u8>,
    pos: usize,
}

impl Entropy {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, pos: 0 }
    }

    pub fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.pos).copied().unwrap_or(0);
        self.pos += 1;
        byte
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    pub fn coin(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// Makes up to `most` values.
    pub fn some<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(most + 1);
        (0..count).map(|_| make(self)).collect()
    }

    /// Makes one to `most` values.
    pub fn many<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = 1 + self.below(most);
        (0..count).map(|_| make(self)).collect()
    }

    pub fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.coin() { Some(make(self)) } else { None }
    }

    /// An unsigned number, often near a power of two.
    pub fn number(&mut self) -> u128 {
        let small = u128::from(self.byte());
        match self.below(4) {
            0 | 1 => small,
            2 => small << self.below(120),
            _ => u128::MAX - small,
        }
    }
}
