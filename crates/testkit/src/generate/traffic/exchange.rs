//! A few hosts exchange packets in bursts in both directions, with few other packets in between. So
//! the counters for these hosts reach their limits in every order.

use crate::generate::Rng;
use crate::packet::{Spec, packet};

/// The conversations, and the current burst.
pub(super) struct Exchange {
    /// For each conversation: a packet of each direction.
    talks: Vec<[Spec; 2]>,
    talk: usize,
    backward: bool,
    /// Number of packets that remain in the burst.
    more: usize,
    longest: usize,
}

impl Exchange {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let count = 1 + rng.below(3);
        // With the smallest packets, a record counts the most packets before its limits are checked
        // again.
        let size = if rng.one_in(2) { 0 } else { rng.below(60) };
        let talks = (0..count).map(|_| talk(rng, size)).collect();
        let longest = *rng.pick(&[1, 4, 10, 24]);
        Self { talks, talk: 0, backward: false, more: 0, longest }
    }

    /// The next packet, and the interface where it enters.
    pub(super) fn packet(&mut self, rng: &mut Rng) -> (u16, &Spec) {
        if self.more == 0 {
            self.talk = rng.below(self.talks.len());
            self.backward = rng.one_in(2);
            self.more = 1 + rng.below(self.longest);
        }
        self.more -= 1;
        (self.backward.into(), &self.talks[self.talk][usize::from(self.backward)])
    }
}

/// A conversation between addresses from a small set, so that several conversations share one.
fn talk(rng: &mut Rng, size: usize) -> [Spec; 2] {
    let a = format!("10.0.0.{}", 1 + rng.below(2));
    let b = match rng.below(6) {
        0 => format!("10.0.0.{}", 1 + rng.below(3)),
        _ => format!("192.0.2.{}", 1 + rng.below(2)),
    };
    let (proto, port) = (*rng.pick(&["udp", "tcp"]), 1000 + rng.below(3));
    let size = if rng.one_in(6) { rng.below(60) } else { size };
    [
        packet(&format!("{proto} {a}:{port} > {b}:80 bytes={size}")),
        packet(&format!("{proto} {b}:80 > {a}:{port} bytes={size}")),
    ]
}
