//! Compares two captures: packets that only one of them has, and fields that differ.

use braid_io::{PacketSource, ReadError};
use braid_packet::{Difference, Packet, diff_fields};

use super::ahead::Lookahead;
use super::align::{Aligned, Pair, align};

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
    /// Packets that both captures have, with differences.
    pub changed: u64,
    /// Packets that only the first and only the second capture has.
    pub only: [u64; 2],
    /// The first packets that differ.
    pub shown: Vec<PacketDifference>,
}

/// A packet that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketDifference {
    /// Its numbers in the captures that have it, from 1.
    pub numbers: [Option<u64>; 2],
    /// The difference.
    pub what: What,
}

/// The difference of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// These fields. The time is called `time` and is in nanoseconds.
    Fields(Vec<Difference>),
    /// Only one capture has the packet, which is given in one line.
    Only(String),
}

impl Comparison {
    /// The number of packets that differ.
    #[must_use]
    pub fn different(&self) -> u64 {
        self.changed + self.only[0] + self.only[1]
    }

    /// Whether the captures have the same packets.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.different() == 0
    }
}

/// A capture that cannot be read (0 or 1), and the reason.
pub type Unread = (usize, ReadError);

/// Compares two captures to their ends. Where they differ, it reads ahead to find the packets that
/// belong together.
///
/// # Errors
/// A capture cannot be read.
pub fn compare(
    first: &mut dyn PacketSource,
    second: &mut dyn PacketSource,
    options: Options,
) -> Result<Comparison, Unread> {
    let (a, b) = (Lookahead::new(first), Lookahead::new(second));
    let mut comparing = Comparing { a, b, options, found: Comparison::default() };
    while comparing.equal_packets()? {
        comparing.different_packets()?;
    }
    comparing.found.packets = [comparing.a.taken(), comparing.b.taken()];
    Ok(comparing.found)
}

/// A comparison that goes on.
struct Comparing<'a> {
    a: Lookahead<'a>,
    b: Lookahead<'a>,
    options: Options,
    found: Comparison,
}

impl Comparing<'_> {
    /// Takes packets as long as they are equal. Returns whether anything is left.
    fn equal_packets(&mut self) -> Result<bool, Unread> {
        loop {
            let a = self.a.take().map_err(|error| (0, error))?;
            let b = self.b.take().map_err(|error| (1, error))?;
            match (a, b) {
                (Some(a), Some(b)) if self.is_equal(&a, &b) => {}
                (None, None) => return Ok(false),
                (a, b) => {
                    a.into_iter().for_each(|packet| self.a.put_back(packet));
                    b.into_iter().for_each(|packet| self.b.put_back(packet));
                    return Ok(true);
                }
            }
        }
    }

    fn is_equal(&self, a: &Packet, b: &Packet) -> bool {
        (self.options.ignore_time || a.time_ns == b.time_ns) && has_same_bytes(a, b)
    }

    /// Takes packets where the captures differ.
    fn different_packets(&mut self) -> Result<(), Unread> {
        self.a.fill().map_err(|error| (0, error))?;
        self.b.fill().map_err(|error| (1, error))?;
        let (a, b) = (self.a.held(), self.b.held());
        let aligned = align(a, b, self.options.ignore_time);
        let all = (a.len(), b.len());
        let is_all = self.a.has_ended() && self.b.has_ended();
        let (pairs, end) = if is_all { (aligned.pairs, all) } else { settled(aligned, all) };
        let mut at = (0, 0);
        for pair in pairs {
            self.only((pair.0 - at.0, pair.1 - at.1))?;
            let a = self.a.take().map_err(|error| (0, error))?;
            let b = self.b.take().map_err(|error| (1, error))?;
            if let (Some(a), Some(b)) = (a, b) {
                self.pair(&a, &b);
            }
            at = (pair.0 + 1, pair.1 + 1);
        }
        self.only((end.0 - at.0, end.1 - at.1))
    }

    /// Takes packets that only one capture has, this number of each.
    fn only(&mut self, counts: (usize, usize)) -> Result<(), Unread> {
        for _ in 0..counts.0 {
            let packet = self.a.take().map_err(|error| (0, error))?;
            self.found.only[0] += 1;
            let numbers = [Some(self.a.taken()), None];
            self.show(numbers, || What::Only(packet.map_or_else(String::new, |p| p.to_string())));
        }
        for _ in 0..counts.1 {
            let packet = self.b.take().map_err(|error| (1, error))?;
            self.found.only[1] += 1;
            let numbers = [None, Some(self.b.taken())];
            self.show(numbers, || What::Only(packet.map_or_else(String::new, |p| p.to_string())));
        }
        Ok(())
    }

    /// Compares packets that belong together and were just taken.
    fn pair(&mut self, a: &Packet, b: &Packet) {
        let fields = differing_fields(a, b, self.options);
        if !fields.is_empty() {
            self.found.changed += 1;
            let numbers = [Some(self.a.taken()), Some(self.b.taken())];
            self.show(numbers, || What::Fields(fields));
        }
    }

    fn show(&mut self, numbers: [Option<u64>; 2], what: impl FnOnce() -> What) {
        if self.found.shown.len() < self.options.limit {
            self.found.shown.push(PacketDifference { numbers, what: what() });
        }
    }
}

/// The pairs that further packets hardly change, and the packets of each capture that are done with
/// them. A quarter of either capture's packets is done at least.
fn settled(aligned: Aligned, all: Pair) -> (Vec<Pair>, Pair) {
    let Aligned { mut pairs, anchors } = aligned;
    let part = |quarters: usize| (all.0 * quarters / 4, all.1 * quarters / 4);
    let (least, most) = (part(1), part(3));
    let near = anchors.iter().rposition(|anchor| anchor.0 < most.0 && anchor.1 < most.1);
    let is_far = |at: usize| anchors[at].0 >= least.0 || anchors[at].1 >= least.1;
    let next = near.map_or(0, |near| near + 1);
    let anchor = near.filter(|near| is_far(*near)).or((next < anchors.len()).then_some(next));
    let end = match anchor {
        Some(at) => (anchors[at].0 + 1, anchors[at].1 + 1),
        // One capture may have ended, or be shorter.
        None => ((all.0 * 3).div_ceil(4), (all.1 * 3).div_ceil(4)),
    };
    pairs.retain(|pair| pair.0 < end.0 && pair.1 < end.1);
    (pairs, end)
}

fn has_same_bytes(a: &Packet, b: &Packet) -> bool {
    a.link == b.link && a.wire_len == b.wire_len && a.data() == b.data()
}

fn differing_fields(a: &Packet, b: &Packet, options: Options) -> Vec<Difference> {
    let mut fields = Vec::new();
    if a.time_ns != b.time_ns && !options.ignore_time {
        let (a, b) = (a.time_ns.to_string(), b.time_ns.to_string());
        fields.push(Difference { what: "time".into(), a, b });
    }
    // Most packets are equal: spare them the parsing.
    if !has_same_bytes(a, b) {
        fields.extend(diff_fields(a, b));
    }
    fields
}
