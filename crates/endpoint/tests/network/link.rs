//! One direction of a path: rate, delay, loss, duplicates, a new order.

use braid_endpoint::{Incoming, Outgoing};
use braid_externs::rng::Rng;
use braid_tcp::{Flags, Seq};

/// A segment on its way.
#[derive(Clone, Debug)]
pub struct Segment {
    pub seq: Seq,
    pub ack: Seq,
    pub flags: Flags,
    pub window: u16,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Segment {
    pub fn of(outgoing: &Outgoing<'_>) -> Self {
        let Outgoing { seq, ack, flags, window, .. } = *outgoing;
        let payload = [outgoing.payload.0, outgoing.payload.1].concat();
        Self { seq, ack, flags, window, options: outgoing.options.to_vec(), payload }
    }

    pub fn incoming(&self) -> Incoming<'_> {
        let Segment { seq, ack, flags, window, .. } = *self;
        Incoming { seq, ack, flags, window, options: &self.options, payload: &self.payload }
    }

    /// The length on the wire, with Ethernet and IPv4.
    fn wire_len(&self) -> u64 {
        14 + 20 + 20 + (self.options.len() + self.payload.len()) as u64
    }
}

/// A number below a limit.
pub fn below(random: &mut Rng, limit: u64) -> u64 {
    u64::try_from(random.below(limit.into())).unwrap()
}

/// What a path does.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Bits in a second; 0 for no limit.
    pub rate: u64,
    /// Nanoseconds.
    pub delay: u64,
    /// The most that is added to the delay, at random.
    pub jitter: u64,
    /// Per thousand.
    pub loss: u64,
    /// Per thousand.
    pub duplicates: u64,
    /// The most segments that wait for the rate.
    pub queue: u64,
}

/// How many segments in a row are lost at the most, so that no connection fails.
const MOST_LOST: u32 = 3;

/// One direction.
pub struct Link {
    path: Path,
    random: Rng,
    free_at: u64,
    lost: u32,
}

impl Link {
    pub fn new(path: Path, seed: u64) -> Self {
        Self { path, random: Rng::new(seed), free_at: 0, lost: 0 }
    }

    /// The times at which a segment arrives: none, one or two.
    pub fn arrivals(&mut self, segment: &Segment, now: u64) -> Vec<u64> {
        let Path { rate, delay, jitter, loss, duplicates, queue } = self.path;
        let time = (segment.wire_len() * 8 * 1_000_000_000).checked_div(rate).unwrap_or(0);
        let start = self.free_at.max(now);
        if time > 0 && start - now > queue * time {
            return Vec::new();
        }
        self.free_at = start + time;
        if self.lost < MOST_LOST && below(&mut self.random, 1000) < loss {
            self.lost += 1;
            return Vec::new();
        }
        self.lost = 0;
        let copies = 1 + u64::from(below(&mut self.random, 1000) < duplicates);
        (0..copies).map(|_| start + time + delay + below(&mut self.random, jitter + 1)).collect()
    }
}
