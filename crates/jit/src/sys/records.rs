//! Memory in which generated code keeps records.

/// Words in which generated code keeps records, all 0 at first.
#[derive(Debug)]
pub(crate) struct Records {
    start: *mut u64,
    words: usize,
}

// SAFETY: The words belong to this and move with it; what reads and writes them is generated code, which
// runs where its `Code` is.
unsafe impl Send for Records {}

impl Records {
    /// So many, from [`Self::start`] on.
    pub(crate) fn new(words: usize) -> Self {
        // Pages that nobody writes to take no memory.
        let all = vec![0_u64; words + LINE / 8].into_boxed_slice();
        Records { words: all.len(), start: Box::into_raw(all).cast() }
    }

    /// Where they start, for generated code: at the start of a cache line.
    pub(crate) fn start(&self) -> u64 {
        (self.start as u64).next_multiple_of(LINE as u64)
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        let all = std::ptr::slice_from_raw_parts_mut(self.start, self.words);
        // SAFETY: This is the slice that `new` made, and no code runs that has its address: that is
        // dropped with it.
        drop(unsafe { Box::from_raw(all) });
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;
