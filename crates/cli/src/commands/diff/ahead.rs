//! The packets of a capture that are read in advance.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use braid_io::{PacketSource, ReadError};
use braid_packet::{Field, Packet};

/// The most packets of a capture that are read ahead.
pub const MOST_PACKETS: usize = 1 << 15;
/// The most bytes that are read ahead.
const MOST_BYTES: usize = 64 << 20;

/// A packet, with what it is found by.
pub struct Held {
    pub packet: Packet,
    /// The hash of all its bytes and its time.
    pub timed: u64,
    /// The hash of all its bytes.
    pub exact: u64,
    /// The hash of what functions on its way hardly ever change.
    pub kept: u64,
}

/// A capture with the packets that are read ahead.
pub struct Lookahead<'a> {
    source: &'a mut dyn PacketSource,
    held: VecDeque<Held>,
    bytes: usize,
    ended: bool,
    /// The packets that were taken.
    taken: u64,
}

impl<'a> Lookahead<'a> {
    pub fn new(source: &'a mut dyn PacketSource) -> Self {
        Self { source, held: VecDeque::new(), bytes: 0, ended: false, taken: 0 }
    }

    /// Takes the next packet.
    pub fn take(&mut self) -> Result<Option<Packet>, ReadError> {
        let next = match self.held.pop_front() {
            Some(held) => {
                self.bytes -= held.packet.data().len();
                Some(held.packet)
            }
            None if self.ended => None,
            None => self.source.next_packet()?,
        };
        match next {
            Some(_) => self.taken += 1,
            None => self.ended = true,
        }
        Ok(next)
    }

    /// Puts a packet back that was just taken.
    pub fn put_back(&mut self, packet: Packet) {
        self.taken -= 1;
        self.bytes += packet.data().len();
        self.held.push_front(held(packet));
    }

    /// Reads ahead as far as the limits allow.
    pub fn fill(&mut self) -> Result<(), ReadError> {
        while !self.ended && self.held.len() < MOST_PACKETS && self.bytes < MOST_BYTES {
            match self.source.next_packet()? {
                Some(packet) => {
                    self.bytes += packet.data().len();
                    self.held.push_back(held(packet));
                }
                None => self.ended = true,
            }
        }
        Ok(())
    }

    /// The packets that are read ahead.
    pub fn held(&mut self) -> &[Held] {
        self.held.make_contiguous()
    }

    /// Whether no packets come behind the ones that are read ahead.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The number of packets that were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

fn held(packet: Packet) -> Held {
    let (exact, kept) = (exact(&packet), kept(&packet));
    let mut hash = DefaultHasher::new();
    (exact, packet.time_ns).hash(&mut hash);
    Held { packet, timed: hash.finish(), exact, kept }
}

fn exact(packet: &Packet) -> u64 {
    let mut hash = DefaultHasher::new();
    (packet.link as u8, packet.wire_len, packet.data()).hash(&mut hash);
    hash.finish()
}

/// NATs and load balancers change addresses and ports, routers the TTL and link addresses. What is
/// left recognises a packet behind them.
fn kept(packet: &Packet) -> u64 {
    use Field::*;
    let layout = packet.parse();
    let mut hash = DefaultHasher::new();
    for field in [InetProto, IpId, IpFrag, TcpSeq, TcpAck, TcpFlags, IcmpType, Icmp6Type] {
        packet.get(&layout, field).hash(&mut hash);
    }
    packet.payload(&layout).hash(&mut hash);
    hash.finish()
}
