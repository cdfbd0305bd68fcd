//! Buffers of bytes that grow as they are used, and use no memory when they are empty.

use std::collections::VecDeque;

/// A buffer of bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Buffer(VecDeque<u8>);

impl Buffer {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes from `from` on, `len` of them as far as they are there.
    pub fn slices(&self, from: usize, len: usize) -> (&[u8], &[u8]) {
        let (front, back) = self.0.as_slices();
        let first = front.get(from..).unwrap_or_default();
        let first = first.get(..len).unwrap_or(first);
        let rest = back.get(from.saturating_sub(front.len())..).unwrap_or_default();
        let second = rest.get(..len - first.len()).unwrap_or(rest);
        (first, second)
    }

    /// Drops bytes at the front.
    pub fn drop_front(&mut self, count: usize) {
        self.0.drain(..count.min(self.0.len()));
        if self.0.is_empty() {
            self.0 = VecDeque::new();
        }
    }

    /// Puts bytes at an index. Zeros fill the way to it.
    pub fn put_at(&mut self, index: usize, bytes: &[u8]) {
        if self.0.len() < index {
            self.0.resize(index, 0);
        }
        let inside = bytes.len().min(self.0.len() - index);
        let (over, behind) = bytes.split_at(inside);
        for (slot, byte) in self.0.range_mut(index..index + inside).zip(over) {
            *slot = *byte;
        }
        self.extend(behind);
    }

    /// Puts bytes behind the others.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// The memory besides the structure (bytes).
    pub fn memory(&self) -> usize {
        self.0.capacity()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::Buffer;

    #[test]
    fn bytes_are_put_over_and_behind_others() {
        let mut buffer = Buffer::default();
        buffer.put_at(3, &[4, 5]);
        buffer.put_at(0, &[1, 2, 3]);
        buffer.put_at(4, &[6, 7]);
        assert_eq!(buffer.0, [1, 2, 3, 4, 6, 7]);
        buffer.drop_front(9);
        assert_eq!(buffer.memory(), 0);
    }

    #[test]
    fn slices_join_both_parts_of_a_ring() {
        let mut buffer = Buffer(VecDeque::with_capacity(8));
        buffer.extend(&[0; 6]);
        buffer.drop_front(5);
        buffer.extend(&[1, 2, 3, 4, 5, 6]);
        for from in 0..9 {
            for len in 0..9 {
                let (first, second) = buffer.slices(from, len);
                let wanted: Vec<u8> = (0..7).skip(from).take(len).collect();
                assert_eq!([first, second].concat(), wanted);
            }
        }
    }
}
