//! Groups rules about packets by a number that their packets must have, so that a packet only tries
//! rules that may hold for it.
//!
//! A rule is in one group: that of the number that it restricts most, to the smallest share of all
//! values. These are the rules without a content, which nothing else preselects.

use crate::flow::Flow;
use crate::headers::Number;
use crate::limits::{MAX_GROUPED, MAX_GROUPED_RANGES};
use crate::rule::Rule;
use braid_intervals::IntervalSet;
use std::collections::BTreeMap;

/// The most values of any number, as bits.
const BITS: u32 = 32;
/// A table of fewer rules costs more than it saves.
const FEWEST: usize = 2;

/// What a table looks at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum By {
    SourcePort,
    DestinationPort,
    Number(Number),
}

/// Rules by the values that they accept.
#[derive(Debug)]
struct Table {
    by: By,
    /// Ranges of values, by their first ones. The first range begins at 0.
    starts: Vec<u64>,
    /// For each range, the rules that accept its values.
    rules: Vec<Vec<u32>>,
}

/// The rules of a set for packets of a kind, without the ones that a content preselects.
#[derive(Debug, Default)]
pub struct Groups {
    tables: Vec<Table>,
    /// Rules for all packets.
    always: Vec<u32>,
}

impl Groups {
    /// Of no rules.
    pub const NONE: Self = Self { tables: Vec::new(), always: Vec::new() };

    /// Of the rules with these numbers.
    pub fn new<'a>(rules: impl Iterator<Item = (u32, &'a Rule)>) -> Self {
        let mut members: BTreeMap<By, Vec<(u32, &IntervalSet)>> = BTreeMap::new();
        let (mut made, mut room) = (Self::default(), MAX_GROUPED);
        for (number, rule) in rules {
            match narrowest(rule) {
                Some((by, values)) => members.entry(by).or_default().push((number, values)),
                None => made.always.push(number),
            }
        }
        for (by, members) in members {
            match members.len() {
                ..FEWEST => made.always.extend(members.iter().map(|(number, _)| number)),
                _ => made.tables.push(Table::new(by, &members, &mut room, &mut made.always)),
            }
        }
        made
    }

    /// Adds the rules that may hold for a packet, in any order.
    pub fn select(&self, flow: &Flow, number: &dyn Fn(Number) -> Option<u32>, into: &mut Vec<u32>) {
        into.extend(&self.always);
        for table in &self.tables {
            let value = match table.by {
                By::SourcePort => Some(flow.sport.into()),
                By::DestinationPort => Some(flow.dport.into()),
                By::Number(of) => number(of),
            };
            into.extend(value.map_or(&[][..], |value| table.of(value.into())));
        }
    }
}

impl Table {
    /// Of these rules, with the values that they accept. Rules that no room is left for join those
    /// for all packets.
    fn new(
        by: By,
        members: &[(u32, &IntervalSet)],
        room: &mut usize,
        always: &mut Vec<u32>,
    ) -> Self {
        let bound = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        let ranges = || members.iter().flat_map(|(_, values)| values.intervals());
        let ends = ranges().flat_map(|(low, high)| [bound(*low), bound(*high).saturating_add(1)]);
        let mut starts: Vec<u64> = std::iter::once(0).chain(ends).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut rules = vec![Vec::new(); starts.len()];
        for (number, values) in members {
            let places = values.intervals().iter().map(|(low, high)| {
                let at = |value: u64| starts.partition_point(|start| *start < value);
                at(bound(*low))..at(bound(*high).saturating_add(1))
            });
            let places: Vec<_> = places.collect();
            let count = places.iter().map(ExactSizeIterator::len).sum();
            match room.checked_sub(count) {
                Some(rest) => {
                    *room = rest;
                    for place in places.into_iter().flatten() {
                        rules
                            .get_mut(place)
                            .into_iter()
                            .for_each(|of: &mut Vec<_>| of.push(*number));
                    }
                }
                None => always.push(*number),
            }
        }
        Self { by, starts, rules }
    }

    /// The rules that accept a value.
    fn of(&self, value: u64) -> &[u32] {
        let behind = self.starts.partition_point(|start| *start <= value);
        behind.checked_sub(1).and_then(|at| self.rules.get(at)).map_or(&[], Vec::as_slice)
    }
}

/// The number that a rule restricts most, to the smallest share of all values, with these values.
/// `None` if it accepts more than half of all values of each number.
fn narrowest(rule: &Rule) -> Option<(By, &IntervalSet)> {
    let header = &rule.header;
    // A rule for both directions looks at either port.
    let ports = (!header.is_both_ways).then_some([
        (By::SourcePort, &header.sports, 16),
        (By::DestinationPort, &header.dports, 16),
    ]);
    let numbers = rule.of_packets.numbers.iter();
    let numbers = numbers.map(|(number, values)| (By::Number(*number), values, number.bits()));
    let share = |values: &IntervalSet, bits: u32| {
        let count = |(low, high): &(u128, u128)| (high - low).saturating_add(1);
        values.intervals().iter().map(count).sum::<u128>() << (BITS - bits)
    };
    let all = ports.into_iter().flatten().chain(numbers);
    let few = all.filter(|(_, values, _)| values.intervals().len() <= MAX_GROUPED_RANGES);
    let shares = few.map(|(by, values, bits)| (share(values, bits), by, values));
    let (share, by, values) = shares.min_by_key(|(share, by, _)| (*share, *by))?;
    (share <= 1 << (BITS - 1)).then_some((by, values))
}
