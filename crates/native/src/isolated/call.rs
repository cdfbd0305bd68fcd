//! A call in shared memory: what is asked, and what is answered, in a few words.

use crate::sys::{Shared, WORDS};
use braid_packet::Link;

/// What a call asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    /// To run a packet.
    Packet,
    /// To run what a connection brings.
    Connection,
    /// To process what is due.
    Advance,
    /// To answer a message on the socket.
    Talk,
    /// To end the process.
    End,
}

const OPS: [Op; 5] = [Op::Packet, Op::Connection, Op::Advance, Op::Talk, Op::End];
const LINKS: [Link; 4] = [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2];

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub(super) op: Op,
    /// The time (ns).
    pub(super) now: u64,
    /// The number of bytes in the memory.
    pub(super) length: u32,
    /// Of a packet: its time (ns), the number of its bytes on the wire, and its attributes.
    pub(super) time_ns: u64,
    pub(super) wire_len: u32,
    pub(super) ingress: u16,
    pub(super) link: Link,
    pub(super) backward: bool,
    pub(super) held: bool,
}

impl Call {
    /// A call without a packet.
    pub(super) fn new(op: Op, now: u64) -> Self {
        Self {
            op,
            now,
            time_ns: 0,
            length: 0,
            wire_len: 0,
            ingress: 0,
            link: Link::Ethernet,
            backward: false,
            held: false,
        }
    }

    pub(super) fn write(&self, memory: &Shared) {
        let bit = |flag: bool, at: u32| u64::from(flag) << at;
        let op = OPS.iter().position(|op| *op == self.op).unwrap_or(0) as u64;
        let link = LINKS.iter().position(|link| *link == self.link).unwrap_or(0) as u64;
        let flags = bit(self.backward, 8) | bit(self.held, 9) | link << 10;
        let mut words = [0; WORDS];
        words[0] = op | flags | u64::from(self.ingress) << 16;
        words[1] = self.now;
        words[2] = self.time_ns;
        words[3] = u64::from(self.length) | u64::from(self.wire_len) << 32;
        memory.set(words);
    }

    pub(super) fn read(memory: &Shared) -> Self {
        let (first, lengths) = (memory.word(0), memory.word(3));
        let has = |at: u32| first >> at & 1 == 1;
        let [op, second, ingress @ .., _, _, _, _] = first.to_le_bytes();
        Self {
            op: OPS.get(usize::from(op)).copied().unwrap_or(Op::End),
            now: memory.word(1),
            time_ns: memory.word(2),
            length: low(lengths),
            wire_len: high(lengths),
            ingress: u16::from_le_bytes(ingress),
            link: LINKS.get(usize::from(second >> 2)).copied().unwrap_or(Link::Ethernet),
            backward: has(8),
            held: has(9),
        }
    }
}

/// What is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reply {
    /// The code of the verdict on a packet, or of the decision about a connection. `None` if the
    /// function failed.
    pub(super) code: Option<i32>,
    /// The number of the packet's captured bytes.
    pub(super) length: u32,
    /// Whether the packet's bytes fit in the shared memory.
    pub(super) fits: bool,
    /// Whether outputs wait.
    pub(super) has_outputs: bool,
    /// The earliest time at which something may be due.
    pub(super) wake: u64,
}

impl Reply {
    pub(super) fn write(&self, memory: &Shared) {
        let bit = |flag: bool, at: u32| u64::from(flag) << at;
        let code = self.code.map_or(0, i32::unsigned_abs);
        let flags = bit(self.code.is_some(), 32) | bit(self.fits, 33) | bit(self.has_outputs, 34);
        let mut words = [0; WORDS];
        words[0] = u64::from(code) | flags;
        words[1] = self.wake;
        words[2] = u64::from(self.length);
        memory.set(words);
    }

    /// Reads an answer.
    pub(super) fn read(memory: &Shared) -> Self {
        let first = memory.word(0);
        let has = |at: u32| first >> at & 1 == 1;
        Self {
            code: has(32).then(|| i32::try_from(low(first)).unwrap_or(i32::MIN)),
            length: low(memory.word(2)),
            fits: has(33),
            has_outputs: has(34),
            wake: memory.word(1),
        }
    }
}

fn low(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

fn high(word: u64) -> u32 {
    low(word >> 32)
}

#[cfg(test)]
mod tests {
    use super::{Call, LINKS, OPS, Reply};
    use crate::sys::Shared;

    #[test]
    fn calls_and_replies_are_read_as_they_are_written() {
        let (memory, _) = Shared::new().unwrap();
        for (at, op) in (0..).zip(OPS) {
            let call = Call {
                time_ns: u64::MAX - at,
                length: 0x8000_0001,
                wire_len: 0xffff_fffe,
                ingress: 0xabcd,
                link: LINKS[usize::try_from(at).unwrap() % LINKS.len()],
                backward: at & 2 == 2,
                held: at == 3,
                ..Call::new(op, 1 << 63 | at)
            };
            call.write(&memory);
            assert_eq!(Call::read(&memory), call);
        }
        for code in [None, Some(0), Some(7 << 8 | 4), Some(i32::MAX)] {
            let reply = Reply {
                code,
                length: u32::MAX,
                fits: code.is_some(),
                has_outputs: code.is_none(),
                wake: u64::MAX,
            };
            reply.write(&memory);
            assert_eq!(Reply::read(&memory), reply);
        }
    }
}
