//! The order in which the entries of a table that evicts were created.

use crate::memory::{NONE, lengthen};

/// Entries in the order of their creation, as a doubly linked list of their numbers.
#[derive(Debug)]
pub(crate) struct Order {
    /// For each number: the number before it and the number after it.
    links: Vec<(u32, u32)>,
    pub(crate) first: u32,
    last: u32,
}

impl Default for Order {
    fn default() -> Self {
        Self { links: Vec::new(), first: NONE, last: NONE }
    }
}

#[expect(clippy::indexing_slicing, reason = "`links` has an element for each number in the list")]
impl Order {
    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.links)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a place has 32 bits, so its number has no more"
    )]
    pub(crate) fn append(&mut self, at: usize) {
        lengthen(&mut self.links, at + 1, (NONE, NONE));
        self.links[at] = (self.last, NONE);
        match self.links.get_mut(self.last as usize) {
            Some(last) => last.1 = at as u32,
            None => self.first = at as u32,
        }
        self.last = at as u32;
    }

    pub(crate) fn remove(&mut self, at: usize) {
        let (before, behind) = self.links[at];
        match self.links.get_mut(before as usize) {
            Some(link) => link.1 = behind,
            None => self.first = behind,
        }
        match self.links.get_mut(behind as usize) {
            Some(link) => link.0 = before,
            None => self.last = before,
        }
    }
}
