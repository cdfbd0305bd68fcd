//! The inspection of packets that belong to no connection, one by one.

use crate::flowbits::Bits;
use crate::outcome::{Context, Done, Rules};
use crate::packet::Packet;

/// What the inspection of datagrams keeps of their flow: the bits that rules have set. For packets
/// without a flow, nothing is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Datagrams(Bits);

impl Datagrams {
    /// A packet of the flow has come.
    pub fn packet(&mut self, rules: &mut Rules<'_>, packet: &Packet<'_>) {
        let (flow, done, bits) = (packet.flow, &mut Done::default(), &mut self.0);
        packet.inspect(&mut Context { rules, flow, done, bits, before: [0; 2] });
    }

    /// Its memory beside its own size (bytes).
    #[must_use]
    pub fn memory(&self) -> usize {
        self.0.memory()
    }

    /// What is kept as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.0.put(&mut out);
        out
    }

    /// Reads the bytes of what is kept. `None` if they are damaged.
    #[must_use]
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let read = Bits::read(&mut bytes)?;
        bytes.is_empty().then_some(Self(read))
    }
}
