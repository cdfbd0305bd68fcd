//! Trains: packets that repeat, so that records of their flow are used. Some packets in a train are
//! changed, and other stimuli in between change what the records depend on.

use super::mangle;
use crate::generate::{Boundaries, Rng};
use crate::packet::Spec;

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

impl Train {
    /// A train of this packet.
    pub(super) fn draw(
        rng: &mut Rng,
        boundaries: &Boundaries,
        interface: u16,
        spec: &Spec,
    ) -> Self {
        let gap = Gap::draw(rng, boundaries);
        Self { more: 1 + rng.below(12), interface, spec: spec.clone(), gap }
    }

    /// The next packet: the time since the packet before it, the interface where it enters, and the
    /// packet.
    pub(super) fn packet(&mut self, rng: &mut Rng, boundaries: &Boundaries) -> (u64, u16, Spec) {
        let gap = match self.gap {
            Gap::Below(most) => rng.range(0, most),
            Gap::Just(gap) => gap,
        };
        let mut spec = self.spec.clone();
        if rng.one_in(5) {
            mangle::field(rng, boundaries, &mut spec);
        }
        self.more -= 1;
        (gap, self.interface, spec)
    }

    /// Whether no packet is left.
    pub(super) fn is_over(&self) -> bool {
        self.more == 0
    }
}
