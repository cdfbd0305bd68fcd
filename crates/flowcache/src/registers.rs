//! The registers of scripts.

use braid_ir::model::{ValueId, Word};

/// The largest number of registers of a script.
pub(crate) const MOST_REGISTERS: usize = 1 << 10;

/// The registers of the script that runs.
pub(crate) struct Registers(Box<[Word; MOST_REGISTERS]>);

impl Default for Registers {
    fn default() -> Self {
        Self(Box::new([0; MOST_REGISTERS]))
    }
}

#[expect(clippy::indexing_slicing, reason = "the remainder is below the number of registers")]
impl Registers {
    /// The content of a register.
    #[inline(always)]
    pub(crate) fn get(&self, id: ValueId) -> Word {
        self.0[id.index() % MOST_REGISTERS]
    }

    /// Assigns a register.
    #[inline(always)]
    pub(crate) fn set(&mut self, id: ValueId, value: Word) {
        self.0[id.index() % MOST_REGISTERS] = value;
    }

    /// All registers, by number.
    pub(crate) fn all(&mut self) -> &mut [Word] {
        &mut *self.0
    }
}
