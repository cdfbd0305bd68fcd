//! A call in shared memory: what is asked, and what is answered, in a few words.

use crate::sys::WORDS;
use braid_packet::{Link, Packet};

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
    /// To go on with the calls that were handed over ahead.
    GoOn,
    /// To end the process.
    End,
}

const OPS: [Op; 6] = [Op::Packet, Op::Connection, Op::Advance, Op::Talk, Op::GoOn, Op::End];
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
    /// Whether the packet's bytes come back.
    pub(super) gives_back: bool,
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
            gives_back: false,
        }
    }

    /// The call for a packet at a time (ns).
    pub(super) fn of_packet(packet: &Packet, now: u64) -> Self {
        Self {
            time_ns: packet.time_ns,
            wire_len: packet.wire_len,
            ingress: packet.ingress,
            link: packet.link,
            backward: packet.backward,
            held: packet.held,
            ..Self::new(Op::Packet, now)
        }
    }

    pub(super) fn words(&self) -> [u64; WORDS] {
        let bit = |flag: bool, at: u32| u64::from(flag) << at;
        let op = OPS.iter().position(|op| *op == self.op).unwrap_or(0) as u64;
        let link = LINKS.iter().position(|link| *link == self.link).unwrap_or(0) as u64;
        let flags = bit(self.backward, 8) | bit(self.held, 9) | bit(self.gives_back, 10);
        let first = op | flags | link << 11 | u64::from(self.ingress) << 16;
        let lengths = u64::from(self.length) | u64::from(self.wire_len) << 32;
        [first, self.now, self.time_ns, lengths]
    }

    pub(super) fn of([first, now, time_ns, lengths]: [u64; WORDS]) -> Self {
        let has = |at: u32| first >> at & 1 == 1;
        let [op, second, ingress @ .., _, _, _, _] = first.to_le_bytes();
        Self {
            op: OPS.get(usize::from(op)).copied().unwrap_or(Op::End),
            now,
            time_ns,
            length: low(lengths),
            wire_len: high(lengths),
            ingress: u16::from_le_bytes(ingress),
            link: LINKS.get(usize::from(second >> 3)).copied().unwrap_or(Link::Ethernet),
            backward: has(8),
            held: has(9),
            gives_back: has(10),
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
    /// Whether they do not fit in the place of a call that was handed over ahead. Then they are in
    /// the place of calls that run alone.
    pub(super) is_long: bool,
    /// Whether outputs wait.
    pub(super) has_outputs: bool,
    /// The earliest time at which something may be due.
    pub(super) wake: u64,
}

impl Reply {
    pub(super) fn words(&self) -> [u64; WORDS] {
        let bit = |flag: bool, at: u32| u64::from(flag) << at;
        let code = self.code.map_or(0, i32::unsigned_abs);
        let flags = bit(self.code.is_some(), 32) | bit(self.fits, 33) | bit(self.has_outputs, 34);
        let first = u64::from(code) | flags | bit(self.is_long, 35);
        [first, self.wake, self.length.into(), 0]
    }

    pub(super) fn of([first, wake, length, _]: [u64; WORDS]) -> Self {
        let has = |at: u32| first >> at & 1 == 1;
        Self {
            code: has(32).then(|| i32::try_from(low(first)).unwrap_or(i32::MIN)),
            length: low(length),
            fits: has(33),
            has_outputs: has(34),
            is_long: has(35),
            wake,
        }
    }

    /// Whether the process waits for a call that runs alone before it goes on with the calls that
    /// were handed over ahead.
    pub(super) fn waits(&self) -> bool {
        self.has_outputs || self.is_long
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

    #[test]
    fn calls_and_replies_are_read_as_they_are_written() {
        for (at, op) in (0..).zip(OPS) {
            let call = Call {
                time_ns: u64::MAX - at,
                length: 0x8000_0001,
                wire_len: 0xffff_fffe,
                ingress: 0xabcd,
                link: LINKS[usize::try_from(at).unwrap() % LINKS.len()],
                backward: at & 2 == 2,
                held: at == 3,
                gives_back: at == 4,
                ..Call::new(op, 1 << 63 | at)
            };
            assert_eq!(Call::of(call.words()), call);
        }
        for code in [None, Some(0), Some(7 << 8 | 4), Some(i32::MAX)] {
            let reply = Reply {
                code,
                length: u32::MAX,
                fits: code.is_some(),
                has_outputs: code.is_none(),
                is_long: code == Some(0),
                wake: u64::MAX,
            };
            assert_eq!(Reply::of(reply.words()), reply);
        }
    }
}
