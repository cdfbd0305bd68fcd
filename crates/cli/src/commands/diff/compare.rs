//! Compares two captures packet by packet and field by field.

use braid_io::{PacketSource, ReadError};
use braid_packet::{Difference, Packet, diff_fields};

/// The options of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Times may differ.
    pub ignore_time: bool,
    /// The most packets whose differences are kept. All are counted.
    pub limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { ignore_time: false, limit: 100 }
    }
}

/// The result of a comparison.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Comparison {
    /// The number of packets in each capture.
    pub packets: [u64; 2],
    /// Packets that differ, or that only one capture has.
    pub different: u64,
    /// The first packets that differ.
    pub shown: Vec<PacketDifference>,
}

/// A packet that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketDifference {
    /// Its number in both captures, from 1.
    pub number: u64,
    /// The difference.
    pub what: What,
}

/// The difference of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// These fields. The time is called `time` and is in nanoseconds.
    Fields(Vec<Difference>),
    /// Only the first capture has the packet, which is given in one line.
    OnlyFirst(String),
    /// Only the second capture has the packet, which is given in one line.
    OnlySecond(String),
}

impl Comparison {
    /// Whether the captures have the same packets.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.different == 0
    }
}

/// Compares two captures to their ends, holding one packet of each at a time.
///
/// # Errors
/// Returns the number of the capture that cannot be read (0 or 1), and the reason.
pub fn compare(
    first: &mut dyn PacketSource,
    second: &mut dyn PacketSource,
    options: Options,
) -> Result<Comparison, (usize, ReadError)> {
    let mut comparison = Comparison::default();
    for number in 1.. {
        let a = first.next_packet().map_err(|error| (0, error))?;
        let b = second.next_packet().map_err(|error| (1, error))?;
        comparison.packets[0] += u64::from(a.is_some());
        comparison.packets[1] += u64::from(b.is_some());
        let what = match (a, b) {
            (None, None) => break,
            (Some(a), Some(b)) => differing_fields(&a, &b, options),
            (Some(a), None) => Some(What::OnlyFirst(a.to_string())),
            (None, Some(b)) => Some(What::OnlySecond(b.to_string())),
        };
        let Some(what) = what else { continue };
        comparison.different += 1;
        if comparison.shown.len() < options.limit {
            comparison.shown.push(PacketDifference { number, what });
        }
    }
    Ok(comparison)
}

fn differing_fields(a: &Packet, b: &Packet, options: Options) -> Option<What> {
    let mut fields = Vec::new();
    if a.time_ns != b.time_ns && !options.ignore_time {
        let (a, b) = (a.time_ns.to_string(), b.time_ns.to_string());
        fields.push(Difference { what: "time".into(), a, b });
    }
    // Most packets are equal: spare them the parsing.
    if a.link != b.link || a.wire_len != b.wire_len || a.data() != b.data() {
        fields.extend(diff_fields(a, b));
    }
    (!fields.is_empty()).then_some(What::Fields(fields))
}
