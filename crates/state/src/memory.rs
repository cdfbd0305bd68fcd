//! Memory in 64-bit words that starts at a cache line.

/// Stands for no place.
pub(crate) const NONE: u32 = u32::MAX;

/// Words in a cache line.
pub(crate) const LINE: usize = 8;

/// The number of words that are appended at a time.
const AHEAD: usize = 16 * LINE;

/// Arrays of this size and more are large (bytes).
const LARGE: usize = 1 << 20;
/// The address space that a large array reserves (bytes).
const ROOM: usize = 1 << 26;

/// Makes room for more elements in an array. A large array moves once, to a place with address
/// space for growth. Allocators give such an array pages of its own, so it grows without copies and
/// leaves no holes. The system provides only the memory that is used.
#[inline]
pub fn make_room<T>(all: &mut Vec<T>, more: usize) {
    if all.capacity() - all.len() < more {
        expand(all, more);
    }
}

#[inline(never)]
fn expand<T>(all: &mut Vec<T>, more: usize) {
    let bytes = (all.len() + more) * size_of::<T>();
    if (LARGE..ROOM).contains(&bytes) {
        all.reserve_exact(ROOM / size_of::<T>() - all.len());
    } else {
        all.reserve(more);
    }
}

/// Extends an array to at least this length. New elements get the value `value`.
pub fn lengthen<T: Clone>(all: &mut Vec<T>, len: usize, value: T) {
    if all.len() < len {
        make_room(all, len - all.len());
        all.resize(len, value);
    }
}

/// Starts to load the cache line where a value begins. Does nothing without a value.
#[inline(always)]
pub fn prefetch<T>(value: Option<&T>) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = value {
        safe_arch::prefetch_t0(value);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// A growing array of words that starts at a cache line. Parts whose size divides the size of a
/// line therefore do not straddle two lines.
#[derive(Debug, Default)]
pub(crate) struct Words {
    buffer: Vec<u64>,
    /// The number of unused words before the first line.
    lead: usize,
}

#[expect(clippy::indexing_slicing, reason = "callers use only positions that `grow` has added")]
impl Words {
    /// Appends words of value 0. The amortised cost is constant, because the array doubles (see
    /// [`make_room`]).
    fn grow(&mut self, count: usize) {
        let wanted = self.buffer.len() + count;
        if self.buffer.capacity() < wanted || self.buffer.is_empty() {
            make_room(&mut self.buffer, count + LINE);
            self.align();
        }
        self.buffer.resize(self.buffer.len() + count, 0);
    }

    /// Makes sure that there are this many words. Appends whole lines, and more than needed,
    /// because each extension is slow.
    pub(crate) fn cover(&mut self, count: usize) {
        let missing = count.saturating_sub(self.buffer.len() - self.lead);
        if missing > 0 {
            self.grow(missing.max(AHEAD).next_multiple_of(LINE));
        }
    }

    /// Moves the contents to the first line of a new buffer.
    fn align(&mut self) {
        let skip = self.buffer.as_ptr().addr() / size_of::<u64>() % LINE;
        let lead = (LINE - skip) % LINE;
        let (old, len) = (self.lead, self.buffer.len() - self.lead);
        if old == lead {
            return;
        }
        self.buffer.resize(self.buffer.len().max(lead + len), 0);
        self.buffer.copy_within(old..old + len, lead);
        self.buffer.truncate(lead + len);
        self.lead = lead;
    }

    /// The number of words, with the unused ones.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// A copy in this memory.
    pub(crate) fn copy(&self, mut room: Vec<u64>) -> Self {
        room.clone_from(&self.buffer);
        Self { buffer: room, lead: self.lead }
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.buffer)
    }

    /// The index in the buffer. The sum wraps, because every use of the index checks its bounds.
    #[inline]
    fn index(&self, at: usize) -> usize {
        self.lead.wrapping_add(at)
    }

    #[inline]
    pub(crate) fn get(&self, at: usize, len: usize) -> &[u64] {
        &self.buffer[self.index(at)..][..len]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize, len: usize) -> &mut [u64] {
        let index = self.index(at);
        &mut self.buffer[index..][..len]
    }

    #[inline]
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.buffer[self.index(at)]
    }

    #[inline]
    pub(crate) fn try_word(&self, at: usize) -> Option<u64> {
        self.buffer.get(self.index(at)).copied()
    }

    /// Starts to load the line of a word, if there is such a word.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: usize) {
        prefetch(self.buffer.get(self.index(at)));
    }

    #[inline(always)]
    pub(crate) fn try_get(&self, at: usize, len: usize) -> Option<&[u64]> {
        self.buffer.get(self.index(at)..)?.get(..len)
    }

    /// A cache line.
    #[inline(always)]
    pub(crate) fn try_line_mut(&mut self, line: usize) -> Option<&mut [u64; LINE]> {
        self.buffer.get_mut(self.lead..)?.as_chunks_mut().0.get_mut(line)
    }

    /// As [`Words::try_line_mut`], for a line that exists.
    #[inline(always)]
    pub(crate) fn line_mut(&mut self, line: usize) -> &mut [u64; LINE] {
        &mut self.buffer[self.lead..].as_chunks_mut().0[line]
    }

    #[inline]
    pub(crate) fn word_mut(&mut self, at: usize) -> &mut u64 {
        let index = self.index(at);
        &mut self.buffer[index]
    }

    #[inline]
    pub(crate) fn set(&mut self, at: usize, value: u64) {
        let index = self.index(at);
        self.buffer[index] = value;
    }
}
