//! Trains: packets that repeat, so that records of their flow are used. Some packets in a train are
//! changed, and other stimuli in between change what the records depend on.

use super::{Traffic, mangle};
use crate::convert::packet_of;
use crate::generate::{Boundaries, Rng};
use crate::packet::Spec;
use crate::record::Stimulus;

/// The current train.
pub(super) struct Train {
    /// Number of further repetitions of the packet.
    more: usize,
    interface: u16,
    spec: Spec,
    gap: Gap,
}

/// The time from one packet to the next (ns).
#[derive(Clone, Copy)]
enum Gap {
    /// At most this time.
    Below(u64),
    /// Exactly this time. It is a fraction of a time-out, which then never expires.
    Just(u64),
}

impl Gap {
    fn draw(rng: &mut Rng, boundaries: &Boundaries) -> Self {
        let durations: Vec<u64> = boundaries.durations.iter().copied().collect();
        match rng.below(4) {
            0 => Gap::Below(2_000_000),
            1 if !durations.is_empty() => Gap::Just(rng.pick(&durations) / 5 * 3),
            _ => Gap::Below(300),
        }
    }
}

impl Traffic<'_> {
    /// May start a train of this packet, if there is none.
    pub(super) fn start_train(&mut self, interface: u16, spec: &Spec) {
        if self.trains && self.train.is_none() && self.rng.one_in(3) {
            let gap = Gap::draw(&mut self.rng, &self.boundaries);
            let more = 1 + self.rng.below(12);
            self.train = Some(Train { more, interface, spec: spec.clone(), gap });
        }
    }

    /// The next packet of the train. `None` if there is no train, or if another stimulus comes
    /// first.
    pub(super) fn next_of_train(&mut self) -> Option<Stimulus> {
        if self.rng.one_in(5) {
            return None;
        }
        let mut train = self.train.take()?;
        let gap = match train.gap {
            Gap::Below(most) => self.rng.range(0, most),
            Gap::Just(gap) => gap,
        };
        self.now = self.now.saturating_add(gap);
        let mut spec = train.spec.clone();
        if self.rng.one_in(5) {
            mangle::field(&mut self.rng, &self.boundaries, &mut spec);
        }
        let interface = train.interface;
        train.more -= 1;
        self.train = (train.more > 0).then_some(train);
        Some(Stimulus::Packet(interface, packet_of(&spec.frame(), self.now)))
    }
}
