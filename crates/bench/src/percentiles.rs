//! Times of whole flows: percentiles over all flows, and medians for flows of similar size.

use serde::{Deserialize, Serialize};

use crate::spread::Spread;

/// The percentiles that are reported.
pub const PERCENTS: [u32; 23] =
    [1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 98, 99, 100];
/// Groups of flows by their number of packets: the least number of each group. The last group has
/// no upper limit.
pub const SIZES: [u64; 7] = [1, 2, 4, 8, 16, 64, 256];

/// Times of the flows of a trace.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowTime {
    /// Number of flows.
    pub flows: u64,
    /// Number of packets of all flows.
    pub packets: u64,
    /// Mean time of a flow (ns).
    pub mean_ns: f64,
    /// Percentiles: a percentage, and the time (ns) that this percentage of flows does not exceed.
    pub percentiles_ns: Vec<(u32, f64)>,
    /// Medians by number of packets. Groups without flows are left out.
    pub by_packets: Vec<Size>,
}

/// A group of flows with about the same number of packets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Size {
    /// The fewest packets.
    pub least: u64,
    /// The most packets; `None` for the last group.
    pub most: Option<u64>,
    /// Number of flows.
    pub flows: u64,
    /// The median of their times (ns).
    pub median_ns: f64,
}

impl FlowTime {
    /// The statistics of flows, given as (number of packets, time in ns). `None` without flows.
    #[must_use]
    pub fn of(flows: &[(u64, f64)]) -> Option<Self> {
        let mut times: Vec<f64> = flows.iter().map(|(_, ns)| *ns).collect();
        times.sort_by(f64::total_cmp);
        let last = times.len().checked_sub(1)?;
        let percentile = |percent: u32| {
            let rank = (times.len() * percent as usize).div_ceil(100);
            (percent, tenths(times[rank.saturating_sub(1).min(last)]))
        };
        let ends = SIZES.iter().skip(1).map(|next| Some(next - 1)).chain([None]);
        let group = |(least, most): (u64, Option<u64>)| {
            let among = |packets| packets >= least && most.is_none_or(|most| packets <= most);
            let times: Vec<f64> =
                flows.iter().filter(|(packets, _)| among(*packets)).map(|(_, ns)| *ns).collect();
            let count = times.len() as u64;
            let median_ns = tenths(Spread::of(times)?.median);
            Some(Size { least, most, flows: count, median_ns })
        };
        Some(Self {
            flows: times.len() as u64,
            packets: flows.iter().map(|(packets, _)| packets).sum(),
            mean_ns: tenths(times.iter().sum::<f64>() / times.len() as f64),
            percentiles_ns: PERCENTS.map(percentile).to_vec(),
            by_packets: SIZES.into_iter().zip(ends).filter_map(group).collect(),
        })
    }

    /// The time (ns) of one of the percentages in `PERCENTS`. 0 for any other percentage.
    #[must_use]
    pub fn percentile(&self, percent: u32) -> f64 {
        let found = self.percentiles_ns.iter().find(|(known, _)| *known == percent);
        found.map_or(0.0, |(_, ns)| *ns)
    }
}

fn tenths(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_the_value_that_this_share_of_flows_does_not_exceed() {
        let flows: Vec<(u64, f64)> = (1..=200).rev().map(|n| (n, n as f64)).collect();
        let time = FlowTime::of(&flows).unwrap();
        assert_eq!((time.flows, time.packets, time.mean_ns), (200, 20_100, 100.5));
        for (percent, ns) in [(1, 2.0), (50, 100.0), (99, 198.0), (100, 200.0)] {
            assert_eq!(time.percentile(percent), ns);
        }
        assert_eq!(FlowTime::of(&[]), None);
    }

    #[test]
    fn flows_are_in_the_group_of_their_number_of_packets() {
        let flows = [(1, 5.0), (2, 6.0), (3, 8.0), (300, 1000.0), (256, 2000.0)];
        let found = FlowTime::of(&flows).unwrap().by_packets;
        let size = |least, most, flows, median_ns| Size { least, most, flows, median_ns };
        let expected =
            [size(1, Some(1), 1, 5.0), size(2, Some(3), 2, 7.0), size(256, None, 2, 1500.0)];
        assert_eq!(found, expected);
    }
}
