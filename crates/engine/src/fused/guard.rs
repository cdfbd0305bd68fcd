//! Guards: what a record takes for granted of bits of the packet that are not in its key.

/// Where the number of bytes on the wire is looked for.
pub(super) const WIRE: u8 = u8::MAX;

/// A number in the packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Number {
    /// Offset of its first byte, or [`WIRE`].
    pub(super) at: u8,
    /// Bytes: 1, 2 or 4.
    pub(super) len: u8,
    /// Bits of it that matter.
    pub(super) mask: u32,
}

/// That a number is in an interval.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Guard {
    pub(super) number: Number,
    pub(super) least: u32,
    pub(super) most: u32,
}

impl Number {
    /// Its value in a packet that begins like this.
    #[inline(always)]
    pub(super) fn of(self, head: &[u8], wire_len: u32) -> u32 {
        if self.at == WIRE {
            return wire_len & self.mask;
        }
        let number = match head.get(usize::from(self.at)..).and_then(|bytes| bytes.first_chunk()) {
            Some(bytes) => u32::from_be_bytes(*bytes) >> (32 - 8 * u32::from(self.len)),
            None => self.at_end(head),
        };
        number & self.mask
    }

    /// The same near the packet's end, or behind it.
    #[cold]
    fn at_end(self, head: &[u8]) -> u32 {
        let byte = |at: u8| u32::from(head.get(usize::from(at)).copied().unwrap_or(0));
        (0..self.len).fold(0, |number, offset| number << 8 | byte(self.at + offset))
    }
}

impl Guard {
    /// Whether it holds for a packet that begins like this.
    #[inline(always)]
    pub(super) fn holds(&self, head: &[u8], wire_len: u32) -> bool {
        let value = self.number.of(head, wire_len);
        self.least <= value && value <= self.most
    }
}

/// Guards that are asked for one after the other.
#[derive(Debug, Default)]
pub(super) struct Guards(pub(super) Vec<Guard>);

impl Guards {
    /// Adds one.
    pub(super) fn add(&mut self, guard: Guard) {
        match self.0.iter_mut().find(|one| one.number == guard.number) {
            Some(one) => {
                one.least = one.least.max(guard.least);
                one.most = one.most.min(guard.most);
            }
            None => self.0.push(guard),
        }
    }

    /// Those that do not follow from others: that bits are these says all about some of them.
    pub(super) fn needed(&mut self) -> Vec<Guard> {
        let all = std::mem::take(&mut self.0);
        let follows = |one: &Guard| {
            all.iter().any(|other| {
                let (a, b) = (one.number, other.number);
                let is_part = (a.at, a.len) == (b.at, b.len) && a.mask & !b.mask == 0;
                is_part && a.mask != b.mask && other.least == other.most
            })
        };
        all.iter().filter(|guard| !follows(guard)).copied().collect()
    }
}
