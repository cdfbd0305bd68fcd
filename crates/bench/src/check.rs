//! Checks that no engine is fast by being wrong. Before the measurements, each engine processes a
//! sample of the packets, and its output is compared with the output of `reference`.

use braid_ir::engine::{Counters, StateEntry};
use braid_packet::BURST;

use crate::feed::Feed;
pub use crate::seen::Seen;
use crate::subject::Subject;

/// Everything that can be observed of an engine: output, counters and state.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    seen: Seen,
    counters: Option<Counters>,
    state: Vec<StateEntry>,
    /// Number of packets that entered.
    pub packets: u64,
    /// Number of packets that took a flow record. `None` if the engine makes no records. This is no
    /// part of the comparison.
    pub hits: Option<u64>,
}

/// Runs an engine on `packets` packets and returns the outcome. `add` adds each packet.
#[must_use]
pub fn observe(subject: &mut dyn Subject, add: &mut dyn FnMut(&mut Feed), packets: u64) -> Outcome {
    let mut feed = Feed::new();
    let mut seen = Seen::default();
    let mut left = packets;
    while left > 0 {
        let count = left.min(BURST as u64);
        (0..count).for_each(|_| add(&mut feed));
        subject.observed(feed.burst(), &mut seen);
        feed.clear();
        left -= count;
    }
    let hits = subject.flows().map(|flows| flows.hits);
    Outcome { seen, counters: subject.counters(), state: subject.state(), packets, hits }
}

impl Outcome {
    /// The first difference from the outcome of `reference`, in words. `None` if there is none.
    #[must_use]
    pub fn difference(&self, reference: &Outcome) -> Option<String> {
        let (seen, expected) = (&self.seen, &reference.seen);
        if seen.packets != expected.packets {
            return Some(format!(
                "packets out by interface {:?} instead of {:?}",
                seen.packets, expected.packets
            ));
        }
        if seen.digest != expected.digest {
            return Some("as many packets, but other bytes".to_owned());
        }
        if seen.events != expected.events {
            return Some(format!("{} events instead of {}", seen.events, expected.events));
        }
        if self.counters != reference.counters {
            return Some(different_counters(&self.counters, &reference.counters));
        }
        if self.state.len() != reference.state.len() {
            let (here, there) = (self.state.len(), reference.state.len());
            return Some(format!("{here} state entries instead of {there}"));
        }
        let pairs = self.state.iter().zip(&reference.state);
        let entry = pairs.enumerate().find(|(_, (a, b))| a != b);
        entry.map(|(at, (here, there))| format!("state entry {at}: {here:?} instead of {there:?}"))
    }

    /// Number of packets that left by an interface.
    #[must_use]
    pub fn left_by(&self, interface: u16) -> u64 {
        self.seen.packets.get(&interface).copied().unwrap_or(0)
    }

    /// Share of the entered packets that left by an interface, from 0 to 1.
    #[must_use]
    pub fn forwarded(&self) -> f64 {
        let entered = self.counters.as_ref().map_or(0, |counters| counters.packets_in);
        let left: u64 = self.seen.packets.values().sum();
        if entered == 0 { 0.0 } else { left as f64 / entered as f64 }
    }
}

fn different_counters(here: &Option<Counters>, there: &Option<Counters>) -> String {
    let (Some(here), Some(there)) = (here, there) else {
        return "no counters".to_owned();
    };
    let nodes = here.nodes.iter().zip(&there.nodes).enumerate();
    for (node, (a, b)) in nodes {
        if a != b {
            return format!("counters of function {node}: {a:?} instead of {b:?}");
        }
    }
    let drops = if here.drops == there.drops { "" } else { ", drops" };
    format!("counters{drops}: {:?} instead of {:?}", here.drops, there.drops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_packet::{Link, Packet};

    fn outcome(bytes: &[&[u8]]) -> Outcome {
        let mut seen = Seen::default();
        for data in bytes {
            seen.leaves(1, &Packet::new(Link::Ethernet, 0, data));
        }
        let counters = Counters { packets_in: 4, ..Counters::default() };
        Outcome { seen, counters: Some(counters), state: Vec::new(), packets: 4, hits: None }
    }

    #[test]
    fn order_does_not_matter_but_each_byte_does() {
        let expected = outcome(&[b"abc", b"def"]);
        assert_eq!(outcome(&[b"def", b"abc"]).difference(&expected), None);
        let bytes = outcome(&[b"abc", b"deg"]).difference(&expected).unwrap();
        assert_eq!(bytes, "as many packets, but other bytes");
        let fewer = outcome(&[b"abc"]).difference(&expected).unwrap();
        assert_eq!(fewer, "packets out by interface {1: 1} instead of {1: 2}");
    }

    #[test]
    fn counters_events_and_state_matter() {
        let expected = outcome(&[b"abc"]);
        let mut other = expected.clone();
        other.counters.as_mut().unwrap().drops.insert((0, 1, "denied".to_owned()), 1);
        assert!(other.difference(&expected).unwrap().contains("denied"));
        let mut other = expected.clone();
        other.seen.events = 1;
        assert_eq!(other.difference(&expected).unwrap(), "1 events instead of 0");
        let mut other = expected.clone();
        other.state.push(StateEntry {
            node: 0,
            table: "t".to_owned(),
            shard: 0,
            key: Vec::new(),
            slots: Vec::new(),
            created_ns: 0,
            last_seen_ns: 0,
            expires_ns: None,
        });
        assert_eq!(other.difference(&expected).unwrap(), "1 state entries instead of 0");
    }

    #[test]
    fn forwarded_is_a_share_of_what_entered() {
        assert_eq!(outcome(&[b"a", b"b"]).forwarded(), 0.5);
    }
}
