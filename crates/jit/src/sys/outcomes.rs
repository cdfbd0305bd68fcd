//! Memory in which generated code keeps the outcomes of regions.

/// Memory for outcomes, initially 0.
#[derive(Debug)]
pub(crate) struct OutcomeMemory {
    start: *mut u64,
    words: usize,
}

// SAFETY: The memory belongs to this value and moves with it. Only generated code reads and writes
// it, and generated code runs where its `Code` is.
unsafe impl Send for OutcomeMemory {}

impl OutcomeMemory {
    /// Allocates `words` words that start at a cache line.
    pub(crate) fn new(words: usize) -> Self {
        // Pages that nobody writes to take no physical memory.
        let all = vec![0_u64; words + LINE / 8].into_boxed_slice();
        OutcomeMemory { words: all.len(), start: Box::into_raw(all).cast() }
    }

    /// The address of the first word, for generated code. It is the start of a cache line.
    pub(crate) fn start(&self) -> u64 {
        (self.start as u64).next_multiple_of(LINE as u64)
    }
}

impl Drop for OutcomeMemory {
    fn drop(&mut self) {
        let all = std::ptr::slice_from_raw_parts_mut(self.start, self.words);
        // SAFETY: This is the slice that `new` made. The code that contains its address is dropped
        // together with it, so the code no longer runs.
        drop(unsafe { Box::from_raw(all) });
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;
