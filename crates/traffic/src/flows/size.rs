//! Sizes of frames and of flows.

use crate::random::{Random, exp, ln};
use std::str::FromStr;

/// Smallest frame, without its FCS.
pub const LEAST: u16 = 60;
/// Largest frame.
pub const MOST: u16 = 9014;

/// Frame sizes: bytes on the wire, with the Ethernet header and without the FCS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameSize {
    /// Evenly distributed from the first to the last size.
    Range(u16, u16),
    /// The simple Internet mix: 7 frames of 60 bytes, 4 of 590, 1 of 1514.
    Imix,
}

impl Default for FrameSize {
    fn default() -> Self {
        FrameSize::Range(LEAST, LEAST)
    }
}

impl FrameSize {
    /// The size of the next frame.
    pub fn draw(self, random: &mut Random) -> u16 {
        match self {
            FrameSize::Range(first, last) => {
                first + random.below(u64::from(last.saturating_sub(first)) + 1) as u16
            }
            FrameSize::Imix => match random.below(12) {
                0..7 => 60,
                7..11 => 590,
                _ => 1514,
            },
        }
    }
}

impl FromStr for FrameSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "imix" {
            return Ok(FrameSize::Imix);
        }
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let size = |text: &str| text.parse().ok().filter(|size| (LEAST..=MOST).contains(size));
        let range = size(first).zip(size(last)).filter(|(first, last)| first <= last);
        range.map(|(first, last)| FrameSize::Range(first, last)).ok_or_else(|| {
            format!(
                "expected imix, a size or a range from {LEAST} to {MOST} bytes, such as 64..1500; \
                 found `{text}`"
            )
        })
    }
}

/// Divides packets among flows. Each flow gets one packet. The others are divided evenly or, with a
/// tail index a, in proportion to r^(-1/a) for the flow of rank r (Zipf), so that sizes have a
/// Pareto tail of index a. The first flow is the largest. `packets` must not be less than `flows`.
pub fn flow_sizes(flows: u64, packets: u64, tail: Option<f64>) -> Vec<u32> {
    let size = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
    let Some(index) = tail else {
        let (each, more) = (packets / flows.max(1), packets % flows.max(1));
        return (0..flows).map(|flow| size(each + u64::from(flow < more))).collect();
    };
    let weight = |rank: u64| exp(-ln((rank + 1) as f64) / index);
    let whole: f64 = (0..flows).map(weight).sum();
    let rest = packets.saturating_sub(flows);
    // The running sum is rounded instead of each share, so that the total is exact.
    let (mut sum, mut before) = (0.0, 0);
    let share = |rank: u64| {
        sum += weight(rank);
        let part = (rest as f64 * (sum / whole)) as u64;
        let until = if rank + 1 == flows { rest } else { part.clamp(before, rest) };
        let share = until - before;
        before = until;
        size(1 + share)
    };
    (0..flows).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(sizes: &[u32]) -> u64 {
        sizes.iter().map(|size| u64::from(*size)).sum()
    }

    #[test]
    fn flows_without_a_tail_have_equal_sizes() {
        assert_eq!(flow_sizes(4, 20, None), [5, 5, 5, 5]);
        assert_eq!(flow_sizes(50, 5_000, None), [100; 50]);
        assert_eq!(flow_sizes(3, 11, None), [4, 4, 3]);
        assert_eq!(flow_sizes(3, 3, Some(1.2)), [1, 1, 1]);
    }

    #[test]
    fn tail_follows_zipf() {
        // Weights 1, 1/2, 1/3, 1/4 (index 1): of 2,500 packets 1,200, 600, 400 and 300, and one
        // more for each flow.
        let sizes = flow_sizes(4, 2_504, Some(1.0));
        let expected = [1_201_u32, 601, 401, 301];
        assert!(sizes.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 1), "{sizes:?}");
    }

    #[test]
    fn top_hundredth_of_a_heavy_tail_has_a_third_of_all_packets() {
        // With index 1.2 the weights are r^(-5/6). By Euler and Maclaurin, the first 100 weights
        // sum to 6 (100^(1/6) - 1) + (1 + 0.02)/2 + 0.07 = 7.51, and all 10,000 to 6 (10000^(1/6) -
        // 1) + 1/2 + 0.07 = 22.42. The first 100 flows therefore get a share of 0.335 of the
        // packets after each flow's first one: 0.335 * 990,000 + 100 = 331,700 of 1,000,000.
        let sizes = flow_sizes(10_000, 1_000_000, Some(1.2));
        assert_eq!(total(&sizes), 1_000_000);
        let top = total(&sizes[..100]);
        assert!((329_000..334_000).contains(&top), "{top}");
        assert!(sizes.windows(2).all(|pair| pair[0] + 1 >= pair[1]), "not in falling order");
        // Without a tail they get a hundredth.
        assert_eq!(total(&flow_sizes(10_000, 1_000_000, None)[..100]), 10_000);
    }

    #[test]
    fn extreme_tails_keep_the_total() {
        for index in [0.01, 0.5, 100.0] {
            let sizes = flow_sizes(1_000, 50_000, Some(index));
            assert_eq!(total(&sizes), 50_000, "{index}");
            assert!(sizes.iter().all(|size| *size >= 1));
        }
    }

    #[test]
    fn frame_sizes_are_read() {
        assert_eq!("60".parse(), Ok(FrameSize::Range(60, 60)));
        assert_eq!("64..1500".parse(), Ok(FrameSize::Range(64, 1500)));
        assert_eq!("imix".parse(), Ok(FrameSize::Imix));
        for text in ["", "59", "9015", "100..64", "64..", "..64", "64...65", "IMIX", "-64", "1e3"] {
            assert!(text.parse::<FrameSize>().unwrap_err().contains("expected imix"), "{text}");
        }
    }

    #[test]
    fn frame_sizes_are_drawn_from_all_of_a_range() {
        let mut random = Random::new(1, 1);
        let mut seen: Vec<u16> =
            (0..200).map(|_| FrameSize::Range(64, 67).draw(&mut random)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [64, 65, 66, 67]);
    }

    #[test]
    fn internet_mix_has_its_mean() {
        // (7 * 60 + 4 * 590 + 1514) / 12 = 357.8; 40,000 draws have a standard deviation of 2.1.
        let mut random = Random::new(1, 1);
        let sum: u64 = (0..40_000).map(|_| u64::from(FrameSize::Imix.draw(&mut random))).sum();
        let mean = sum as f64 / 40_000.0;
        assert!((mean - 357.8).abs() < 11.0, "{mean}");
    }
}
