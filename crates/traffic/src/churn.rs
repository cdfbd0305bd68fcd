//! Flows that come and go: a fixed number of flows is active at any time, and where a flow ends,
//! another one begins. This module chooses the flow of each packet; it makes no packets.

use crate::permutation::Permutation;
use crate::random::{Random, exp, hash, ln};

/// The most packets of a flow.
pub const MOST_PACKETS: u32 = 10_000;
/// The size of flows that do not end.
pub const ENDLESS: u32 = u32::MAX;
/// Number of sizes that are drawn to find the flows that are under way at the start.
const SAMPLE: u64 = 1 << 14;
/// Number of halvings that find the scale of a Pareto distribution.
const HALVINGS: u32 = 60;

/// The distribution of the packets of a flow.
#[derive(Clone, PartialEq, Debug)]
pub enum Sizes {
    /// Flows do not end.
    Endless,
    /// Evenly distributed from 1 to about twice this mean.
    Even(f64),
    /// A Pareto tail with this mean and this index, up to [`MOST_PACKETS`].
    Pareto {
        /// The mean number of packets, at least 1.
        mean: f64,
        /// The index of the tail. The smaller, the heavier.
        index: f64,
    },
    /// Quantiles: a share of the flows (0 to 1), and the most packets of these flows. Between two
    /// of them, the logarithm of the size is evenly distributed.
    Quantiles(Vec<(f64, u32)>),
}

/// A kind of flows.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// Number of flows of this kind that are active at any time.
    pub active: u64,
    /// How many packets they have.
    pub sizes: Sizes,
}

/// The next packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The number of the flow's kind.
    pub part: usize,
    /// The number of the flow among all flows of its kind.
    pub flow: u64,
    /// The number of the packet in its flow, from 0.
    pub nth: u32,
    /// The number of packets that the flow has, or [`ENDLESS`].
    pub size: u32,
}

/// A flow under way.
#[derive(Clone, Copy, Debug)]
struct Slot {
    flow: u64,
    sent: u32,
    size: u32,
}

/// Flows that come and go. All active flows send one packet each, in random order; then all send
/// their next packet, in another order. So at most twice as many packets as there are active flows
/// lie between two packets of a flow.
///
/// The flows of the start are as long as what is left of flows that are under way, so that flows
/// end and begin at the same rate from then on.
#[derive(Clone, Debug)]
pub struct Churn {
    parts: Vec<Part>,
    slots: Vec<Slot>,
    /// Number of flows of each kind so far.
    flows: Vec<u64>,
    scales: Vec<f64>,
    order: Permutation,
    at: u64,
    round: u64,
    seed: u64,
    random: Random,
}

impl Churn {
    /// Flows of these kinds. The same seed gives the same flows.
    #[must_use]
    pub fn new(parts: Vec<Part>, seed: u64) -> Self {
        let mut random = Random::new(seed, 0);
        let scales: Vec<f64> = parts.iter().map(|part| part.sizes.scale()).collect();
        let mut slots = Vec::new();
        for (part, scale) in parts.iter().zip(&scales) {
            let under_way = UnderWay::new(&part.sizes, *scale, &mut random);
            slots.extend((0..part.active).map(|flow| {
                let size = under_way.left(&mut random);
                Slot { flow, sent: 0, size }
            }));
        }
        let flows = parts.iter().map(|part| part.active).collect();
        let order = Permutation::new(slots.len() as u64, hash(seed, 1));
        Self { parts, slots, flows, scales, order, at: 0, round: 0, seed, random }
    }

    /// The next packet. `None` if no flow is ever active.
    pub fn next_step(&mut self) -> Option<Step> {
        if self.at == self.slots.len() as u64 {
            (self.at, self.round) = (0, self.round + 1);
            self.order = Permutation::new(self.slots.len() as u64, hash(self.seed, self.round + 1));
        }
        let number = if self.slots.is_empty() { 0 } else { self.order.at(self.at) };
        self.at += 1;
        let slot = self.slots.get_mut(usize::try_from(number).ok()?)?;
        let part = part_of(&self.parts, number);
        if slot.sent == slot.size && slot.size != ENDLESS {
            let scale = self.scales[part];
            let size = self.parts[part].sizes.draw(scale, &mut self.random);
            *slot = Slot { flow: self.flows[part], sent: 0, size };
            self.flows[part] += 1;
        }
        let step = Step { part, flow: slot.flow, nth: slot.sent, size: slot.size };
        slot.sent = slot.sent.saturating_add(1);
        Some(step)
    }
}

/// The kind of the flows in a slot. The slots of each kind follow each other.
fn part_of(parts: &[Part], slot: u64) -> usize {
    let mut end = 0;
    let found = parts.iter().position(|part| {
        end += part.active;
        slot < end
    });
    found.unwrap_or(0)
}

impl Sizes {
    /// The scale of a Pareto distribution with this mean. 0 for the others.
    fn scale(&self) -> f64 {
        let Sizes::Pareto { mean, index } = self else { return 0.0 };
        // A flow has 1 + x packets, where x is above 0 and at most `most`.
        let (wanted, most) = ((mean - 1.0).max(0.0), f64::from(MOST_PACKETS - 1));
        let (mut low, mut high) = (0.0, most * 64.0);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if lomax_mean(middle, *index, most) < wanted { low = middle } else { high = middle }
        }
        low
    }

    fn draw(&self, scale: f64, random: &mut Random) -> u32 {
        let unit = random.unit();
        self.at(unit, scale, random)
    }

    /// The size for a number from (0, 1].
    fn at(&self, unit: f64, scale: f64, random: &mut Random) -> u32 {
        match self {
            Sizes::Endless => ENDLESS,
            Sizes::Even(mean) => 1 + rounded(unit * 2.0 * (mean - 1.0).max(0.0), random),
            Sizes::Pareto { index, .. } => {
                let most = f64::from(MOST_PACKETS - 1);
                let more = scale * (exp(-ln(unit) / index) - 1.0);
                1 + rounded(more.min(most), random)
            }
            Sizes::Quantiles(points) => quantile(points, unit),
        }
    }
}

/// The mean of a Lomax distribution (a Pareto distribution that begins at 0), cut off at `most`.
fn lomax_mean(scale: f64, index: f64, most: f64) -> f64 {
    if scale <= 0.0 {
        return 0.0;
    }
    let logarithm = ln(1.0 + most / scale);
    // The mean is the integral of (1 + x / scale) ^ -index from 0 to `most`.
    if (index - 1.0).abs() < 1e-9 {
        return scale * logarithm;
    }
    scale / (index - 1.0) * (1.0 - exp(-(index - 1.0) * logarithm))
}

/// The number, rounded up or down at random so that the mean stays.
fn rounded(number: f64, random: &mut Random) -> u32 {
    let whole = number as u32;
    whole + u32::from(random.unit() <= number - f64::from(whole))
}

fn quantile(points: &[(f64, u32)], share: f64) -> u32 {
    let (mut below, mut least) = (0.0, 1);
    for (until, most) in points {
        if share <= *until {
            // Among the sizes from the last point's (not included) to this one's.
            let low = if below > 0.0 { least + 1 } else { least };
            let place = (share - below) / (until - below).max(f64::MIN_POSITIVE);
            let (low, most) = (f64::from(low.min(*most)), f64::from(*most));
            return (low * exp(place * ln((most + 1.0) / low))).min(most) as u32;
        }
        (below, least) = (*until, *most);
    }
    least
}

/// Flows that are under way at any time: the longer a flow, the more likely it is among them.
struct UnderWay {
    /// Sizes, and the packets of all sizes up to each of them.
    sizes: Vec<(u64, u32)>,
}

impl UnderWay {
    fn new(sizes: &Sizes, scale: f64, random: &mut Random) -> Self {
        if *sizes == Sizes::Endless {
            return Self { sizes: Vec::new() };
        }
        let mut sum = 0;
        // Large sizes are rare but matter most, so each part of the distribution gives one size.
        let drawn = (0..SAMPLE).map(|part| {
            let unit = (part as f64 + random.unit()) / SAMPLE as f64;
            let size = sizes.at(unit, scale, random);
            sum += u64::from(size);
            (sum, size)
        });
        Self { sizes: drawn.collect() }
    }

    /// The packets that are left of a flow.
    fn left(&self, random: &mut Random) -> u32 {
        let Some((all, _)) = self.sizes.last() else { return ENDLESS };
        let packet = random.below(*all);
        let at = self.sizes.partition_point(|(until, _)| *until <= packet);
        let left = self.sizes.get(at).map_or(1, |(until, _)| until - packet);
        u32::try_from(left).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn churn(active: u64, sizes: Sizes) -> Churn {
        Churn::new(vec![Part { active, sizes }], 7)
    }

    fn steps(churn: &mut Churn, count: usize) -> Vec<Step> {
        (0..count).map(|_| churn.next_step().unwrap()).collect()
    }

    #[test]
    fn share_of_first_packets_is_one_over_the_mean_from_the_start() {
        for mean in [1.0, 4.0, 38.5] {
            for sizes in [Sizes::Even(mean), Sizes::Pareto { mean, index: 1.2 }] {
                let mut churn = churn(2_000, sizes.clone());
                // Every flow of the start sends its first packet.
                assert!(steps(&mut churn, 2_000).iter().all(|step| step.nth == 0));
                for part in 0..3 {
                    let taken = steps(&mut churn, 40_000);
                    let first = taken.iter().filter(|step| step.nth == 0).count() as f64;
                    let share = first / 40_000.0 * mean;
                    assert!((0.8..1.2).contains(&share), "{sizes:?} {part}: {share}");
                }
            }
        }
    }

    #[test]
    fn packets_of_a_flow_are_counted_up_to_its_size_and_flows_are_numbered() {
        let mut churn = churn(50, Sizes::Pareto { mean: 6.0, index: 1.1 });
        let mut sent: HashMap<u64, u32> = HashMap::new();
        for step in steps(&mut churn, 5_000) {
            let known = sent.insert(step.flow, step.nth);
            assert!(step.nth < step.size && step.size <= MOST_PACKETS);
            assert!(known.map_or(step.nth == 0, |nth| nth + 1 == step.nth));
        }
        let flows = sent.len() as u64;
        assert!((0..flows).all(|flow| sent.contains_key(&flow)));
    }

    #[test]
    fn endless_flows_stay_and_each_sends_once_a_round() {
        let mut churn = churn(100, Sizes::Endless);
        for round in 0..5 {
            let taken = steps(&mut churn, 100);
            let mut flows: Vec<u64> = taken.iter().map(|step| step.flow).collect();
            assert!(!flows.is_sorted() && taken.iter().all(|step| step.nth == round));
            flows.sort_unstable();
            assert_eq!(flows, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn kinds_have_their_share_of_the_packets() {
        let part = |active, mean| Part { active, sizes: Sizes::Even(mean) };
        let mut churn = Churn::new(vec![part(90, 20.0), part(10, 1.0)], 1);
        let taken = steps(&mut churn, 10_000);
        let second: Vec<&Step> = taken.iter().filter(|step| step.part == 1).collect();
        assert!(second.len() == 1_000 && second.iter().all(|step| step.nth == 0));
        assert_eq!(Churn::new(Vec::new(), 1).next_step(), None);
    }

    #[test]
    fn quantiles_are_those_given() {
        let sizes = Sizes::Quantiles(vec![(0.5, 1), (0.9, 10), (1.0, 1000)]);
        let mut random = Random::new(3, 0);
        let drawn: Vec<u32> = (0..20_000).map(|_| sizes.draw(0.0, &mut random)).collect();
        let share = |most: u32| {
            drawn.iter().filter(|size| **size <= most).count() as f64 / drawn.len() as f64
        };
        for (found, expected) in [(share(1), 0.5), (share(10), 0.9), (share(1000), 1.0)] {
            assert!((found - expected).abs() < 0.02, "{found} {expected}");
        }
        assert!(share(4) > 0.6 && share(4) < 0.85 && share(100) > 0.93, "{}", share(4));
    }
}
