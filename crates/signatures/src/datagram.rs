//! The inspection of datagrams, one by one.

use crate::flow::Flow;
use crate::flowbits::Bits;
use crate::limits::DATAGRAM_WORK;
use crate::outcome::{Context, Done, Rules};
use crate::rule::Buffer;
use crate::whole;
use crate::work::Work;

/// What the inspection of datagrams keeps of their flow: the bits that rules have set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Datagrams(Bits);

impl Datagrams {
    /// A datagram with these bytes has come. `flow` is from its sender. `from_client`: its sender
    /// has also sent the first one. `is_answered`: both ends have sent one.
    pub fn datagram(
        &mut self,
        rules: &mut Rules<'_>,
        (flow, from_client, is_answered): (Flow, bool, bool),
        bytes: &[u8],
    ) {
        let set = rules.set;
        let (done, bits) = (&mut Done::default(), &mut self.0);
        let context = &mut Context { rules, flow, done, bits, before: [0; 2] };
        let ends = (from_client, is_answered);
        let seen = [(Buffer::Raw, bytes.into())];
        whole::evaluate(set.datagrams(), &seen, ends, Work(DATAGRAM_WORK), context);
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
