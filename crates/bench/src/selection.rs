//! The packets on which engines are compared with `reference`: enough packets of a flow that flow
//! records take most of them, and packets from late in the traffic.

use braid_traffic::random::hash;

use crate::Error;
use crate::check::{self, Outcome};
use crate::feed::Feed;
use crate::frames::Cursor;
use crate::inputs::SEED;
use crate::sequence::Sequence;
use crate::setup::Setup;
use crate::subject::{Kind, Subject};
use crate::trace::Trace;

/// Number of packets of a flow that has a record by then, whatever made its record late.
pub const KNOWN: u64 = 16;

/// Some of a case's packets.
pub struct Selection<'a> {
    from: From<'a>,
    packets: u64,
    longest: u64,
}

enum From<'a> {
    /// Packets that are sent repeatedly: the first `first` ones, then the last `last` frames over
    /// and over.
    Ring { cursor: Cursor<'a>, first: u64, last: usize },
    /// These packets of a sequence.
    Sequence(&'a Sequence, Vec<u32>),
    /// These packets of a trace.
    Trace(&'a Trace, Vec<u32>),
}

impl<'a> Selection<'a> {
    /// About twice `check` packets of a case. If a case's packets are sent once, these are all
    /// packets of some flows, from the first packet to the last. Where servers answer, all packets
    /// are taken, because answers depend on all packets before them.
    #[must_use]
    pub fn new(setup: &'a Setup, check: u64) -> Self {
        let most = check.saturating_mul(2);
        if let Some(sequence) = &setup.sequence {
            let most = if sequence.has_replies() { u64::MAX } else { most };
            let flows = || sequence.flow_numbers().map(Some);
            let (list, longest) = some_flows(flows, most);
            let packets = list.len() as u64;
            return Self { from: From::Sequence(sequence, list), packets, longest };
        }
        if let Some(trace) = &setup.trace {
            let flows = || trace.flow.iter().copied();
            let (list, longest) = some_flows(flows, most);
            let packets = list.len() as u64;
            return Self { from: From::Trace(trace, list), packets, longest };
        }
        let last = check.div_ceil(KNOWN).clamp(1, setup.ring.frames().max(1) as u64);
        let cursor = setup.ring.cursor(u64::MAX);
        let from = From::Ring { cursor, first: check, last: last as usize };
        Self { from, packets: check + last * KNOWN, longest: KNOWN }
    }

    /// Number of packets.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether a flow sends enough packets that some of them should take a record.
    #[must_use]
    pub fn expects_hits(&self) -> bool {
        self.longest >= KNOWN
    }

    /// Runs an engine on the packets, and compares the outcome with that of `reference`. If `hits`,
    /// an engine with flow records must have taken some.
    ///
    /// # Errors
    /// Returns an error when the outcomes differ, or when no packet took a record.
    pub fn compare(
        &self,
        kind: Kind,
        subject: &mut dyn Subject,
        reference: &Outcome,
        hits: bool,
    ) -> Result<Outcome, Refused> {
        let outcome = self.observe(subject);
        let refused = |difference| Refused { kind, difference, packets: self.packets };
        if let Some(why) = outcome.difference(reference) {
            return Err(refused(Some(why)));
        }
        if hits && self.expects_hits() && outcome.hits == Some(0) {
            return Err(refused(None));
        }
        Ok(outcome)
    }

    /// Runs an engine on the packets and returns the outcome.
    #[must_use]
    pub fn observe(&self, subject: &mut dyn Subject) -> Outcome {
        match &self.from {
            From::Ring { cursor, first, last } => {
                let (mut cursor, mut sent) = (cursor.clone(), 0);
                let mut next = |feed: &mut Feed| {
                    if sent == *first {
                        cursor.only_last(*last);
                    }
                    cursor.add(feed);
                    sent += 1;
                };
                check::observe(subject, &mut next, self.packets)
            }
            From::Sequence(sequence, list) => {
                let mut list = list.iter();
                let mut next = |feed: &mut Feed| {
                    list.by_ref().take(1).for_each(|at| sequence.add(u64::from(*at), feed));
                };
                check::observe(subject, &mut next, self.packets)
            }
            From::Trace(trace, list) => {
                let packets = &trace.packets;
                let mut list = list.iter().filter_map(|at| packets.get(*at as usize));
                let mut next = |feed: &mut Feed| {
                    list.by_ref().take(1).for_each(|packet| feed.add_copy(packet));
                };
                check::observe(subject, &mut next, self.packets)
            }
        }
    }
}

/// Why an engine is not measured.
#[derive(Debug)]
pub struct Refused {
    kind: Kind,
    /// The difference from `reference`. `None` if no packet took a flow record.
    difference: Option<String>,
    packets: u64,
}

impl Refused {
    /// The error for a bench and its case.
    #[must_use]
    pub fn of(self, name: &str) -> Error {
        let name = name.to_owned();
        match self.difference {
            Some(why) => Error::Differs { name, engine: self.kind.name().to_owned(), why },
            None => Error::NoHits { name, packets: self.packets },
        }
    }
}

/// The packets of flows that are spread over all flows, at most about `most` packets, and the
/// number of packets of the flow that has most of them. Packets without a flow are left out, unless
/// all packets are taken.
fn some_flows<I: Iterator<Item = Option<u32>>>(
    flows: impl Fn() -> I,
    most: u64,
) -> (Vec<u32>, u64) {
    let mut one_in: u64 = 1;
    let all_of = |one_in: u64| -> Vec<(u32, Option<u32>)> {
        let is_in = |flow: Option<u32>| match flow {
            Some(flow) => hash(SEED, u64::from(flow)) & (one_in - 1) == 0,
            None => one_in == 1,
        };
        (0..).zip(flows()).filter(|(_, flow)| is_in(*flow)).collect()
    };
    let mut chosen = all_of(one_in);
    while chosen.len() as u64 > most {
        one_in *= 2;
        let fewer = all_of(one_in);
        if fewer.is_empty() {
            // A few flows send nearly all packets.
            chosen.truncate(most as usize);
            break;
        }
        chosen = fewer;
    }
    let mut counts = std::collections::HashMap::new();
    for flow in chosen.iter().filter_map(|(_, flow)| *flow) {
        *counts.entry(flow).or_insert(0_u64) += 1;
    }
    let longest = counts.into_values().max().unwrap_or(0);
    (chosen.into_iter().map(|(at, _)| at).collect(), longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_taken_whole_from_all_of_the_traffic() {
        let flows = || (0..100_000_u32).map(|at| Some(at % 1_000));
        let (list, longest) = some_flows(flows, 20_000);
        assert_eq!(longest, 100);
        assert!((5_000..=20_000).contains(&list.len()) && list.len() % 100 == 0, "{}", list.len());
        assert!(list[0] < 100 && list[list.len() - 1] > 99_900 && list.is_sorted());
        let (all, _) = some_flows(flows, u64::MAX);
        assert_eq!(all.len(), 100_000);
    }

    #[test]
    fn one_flow_that_sends_everything_is_cut() {
        let (list, longest) = some_flows(|| (0..1_000).map(|_| Some(5)), 64);
        assert_eq!((list.len(), longest), (64, 64));
    }
}
