//! Bytes on their way to an endpoint.

/// The most bytes that wait before nothing more is taken from the other side. An application may go
/// beyond by what it makes of the bytes that it has taken.
pub const MOST: usize = 64 << 10;

/// Bytes that an application has given for a side.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Queue {
    bytes: Vec<u8>,
    /// How many of them the endpoint has taken.
    taken: usize,
}

impl Queue {
    /// Adds bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The bytes that wait.
    #[must_use]
    pub fn waiting(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// Whether nothing more should be added now.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.waiting().len() >= MOST
    }

    /// Its memory besides its own size (bytes).
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// The endpoint has taken this many bytes.
    pub(crate) fn take(&mut self, count: usize) {
        self.taken += count;
        if self.waiting().is_empty() {
            self.bytes.clear();
            self.taken = 0;
            // Idle connections keep no memory.
            self.bytes.shrink_to(0);
        } else if self.taken > MOST {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }
}
