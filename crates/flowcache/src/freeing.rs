//! Memory that is freed little by little.

/// The sizes of two pieces of memory (bytes). Allocators keep pieces of these sizes in lists that
/// are sorted, and sort freed memory first.
const SIZES: [usize; 2] = [2048, 3072];

/// Makes the allocator sort freed memory little by little, too.
///
/// glibc's allocator first only lists freed pieces, and joins and sorts all of them at the next
/// allocation of more than 1,024 bytes. After many thousand pieces, packets would wait for
/// milliseconds.
#[derive(Default)]
pub(crate) struct Freeing {
    /// The number of calls.
    calls: usize,
}

impl Freeing {
    /// Makes the allocator sort what was freed since the last call. The size differs from the last
    /// one, because the allocator stops where it finds a piece of the right size.
    #[cold]
    pub(crate) fn sort(&mut self) {
        self.calls = self.calls.wrapping_add(1);
        let size = SIZES.get(self.calls % 2).copied().unwrap_or_default();
        drop(std::hint::black_box(Vec::<u8>::with_capacity(size)));
    }
}
