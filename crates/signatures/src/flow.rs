//! The addresses and ports of a direction of a connection.

/// Where bytes come from, and where they go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// 4 or 6.
    pub version: u8,
    /// The source's address. IPv4 addresses are in the low 32 bits.
    pub src: u128,
    /// The destination's address.
    pub dst: u128,
    /// The source's port.
    pub sport: u16,
    /// The destination's port.
    pub dport: u16,
}

impl Flow {
    /// The other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        let Self { version, src, dst, sport, dport } = self;
        Self { version, src: dst, dst: src, sport: dport, dport: sport }
    }
}
