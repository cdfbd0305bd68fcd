//! Mergers (NFP §5.3): wait for all versions of each packet, and make one packet of them.

use super::bundle::{Bundle, Handle};
use super::options::Options;
use braid_ir::service_graph::stages::{LOG, Log, Route, Stage};
use braid_ir::service_graph::{Merge, Operation, Part};
use braid_packet::{Field, Packet, Reached};
use std::sync::Arc;

/// The operations of a merger on a packet.
#[derive(Default)]
pub(super) struct Changes(Vec<Change>);

/// Takes a part from another version.
struct Change {
    what: What,
    /// The version that has the part.
    from: u32,
    /// The tag that says that the part was written there.
    written: String,
    /// Tags of any version that say that a function wrote the part whose value stays.
    unless: Vec<String>,
}

enum What {
    Field(Field),
    Tag(Arc<str>),
}

impl Changes {
    /// The operations of a merger, which are all of one kind: the compiler plans no others for
    /// stages.
    pub(super) fn new(stages: &[Stage], route: &Route, merge: &Merge) -> Self {
        let change = |operation: &Operation| {
            let Operation::Modify { part, from, by, unless } = operation else { return None };
            let what = match part {
                Part::Field(field) => What::Field(*field),
                Part::Tag(name) => What::Tag(name.as_str().into()),
                _ => return None,
            };
            let stage = |function: &usize| route.stages.get(*function).copied();
            let unless = unless.iter().filter_map(stage).flat_map(|number| {
                let logged = stages.get(number).map_or(&[][..], |stage| &stage.logged);
                let over = logged.iter().filter(|other| other.shares_bits(part));
                over.map(move |other| Log::name(number, other))
            });
            let unless = unless.collect();
            Some(Change { what, from: *from, written: Log::name(stage(by)?, part), unless })
        };
        Changes(merge.operations.iter().filter_map(change).collect())
    }

    /// Carries out the operations on a packet. `version` gives the packet's other versions.
    fn apply<'p>(
        &self,
        into: &mut Packet,
        version: impl Fn(u32) -> Option<&'p Packet>,
        options: Options,
    ) {
        for at in 0..self.0.len() {
            let Some(change) = self.0.get(options.nth(at, self.0.len())) else { continue };
            let Some(from) = version(change.from) else { continue };
            let is_set = |tag: &String| into.tags.contains_key(tag.as_str());
            let is_written = from.tags.contains_key(change.written.as_str());
            if !options.counts_as_written(is_written) || change.unless.iter().any(is_set) {
                continue;
            }
            match &change.what {
                What::Field(field) => {
                    if let Some(value) = from.get(&from.parse(), *field) {
                        let layout = into.parse();
                        into.set(&layout, *field, value);
                    }
                }
                What::Tag(name) => {
                    let value = from.tags.get(name).copied().unwrap_or(0);
                    into.tags.insert(name.clone(), value);
                }
            }
        }
    }
}

/// Adds the log of another version to a packet. The packet may be a version itself.
fn add_log(packet: &mut Packet, other: Option<&Packet>) {
    let tags = other.filter(|other| !other.tags.is_empty()).into_iter();
    for (name, value) in tags.flat_map(|other| other.tags.iter()) {
        if name.starts_with(LOG) {
            packet.tags.insert(name.clone(), *value);
        }
    }
}

/// Removes the logs of writes from a packet.
pub(super) fn forget_log(packet: &mut Packet) {
    if !packet.tags.is_empty() {
        packet.tags.retain(|name, _| !name.starts_with(LOG));
        if packet.tags.is_empty() {
            packet.tags.clear();
        }
    }
}

/// A merger.
pub(super) struct Merger {
    /// The number of versions that it waits for.
    expects: usize,
    /// The version that becomes the result.
    into: u32,
    changes: Changes,
    /// The accumulating table: bundles whose other versions are missing.
    waiting: Vec<Handle>,
    /// Memory for packets while they are merged.
    packets: Vec<Packet>,
    options: Options,
}

impl Merger {
    pub(super) fn new(merge: &Merge, changes: Changes, options: Options) -> Self {
        let Merge { expects, into, .. } = *merge;
        Self { expects, into, changes, waiting: Vec::new(), packets: Vec::new(), options }
    }

    /// Whether no bundle waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes a version of a bundle. If it is the last one, merges all versions. Returns the merged
    /// bundle, and adds the copies to `used`.
    pub(super) fn take(&mut self, bundle: Handle, used: &mut Vec<Handle>) -> Option<Handle> {
        let packet = bundle.meta.packet();
        let is_same = |other: &Handle| other.meta.packet() == packet;
        if self.waiting.iter().filter(|other| is_same(other)).count() + 1 < self.expects {
            self.waiting.push(bundle);
            return None;
        }
        let mut into = None;
        let first = used.len();
        for one in self.waiting.extract_if(.., |other| is_same(other)).chain([bundle]) {
            match one.meta.version() == self.into {
                true => into = Some(one),
                false => used.push(one),
            }
        }
        let mut into = into?;
        let copies = used.get_mut(first..).unwrap_or_default();
        for copy in &mut *copies {
            into.seen |= copy.seen;
            into.outs.append(&mut copy.outs);
            into.exits.append(&mut copy.exits);
        }
        self.merge(&mut into, copies);
        Some(into)
    }

    /// Merges copies into a bundle. A packet that is nil in one version is dropped.
    fn merge(&mut self, into: &mut Bundle, copies: &[Handle]) {
        let is_whole = copies.iter().all(|copy| copy.places.len() == into.places.len());
        if is_whole && self.changes.0.is_empty() {
            return;
        }
        let mut next = vec![0; copies.len()];
        let places = std::mem::take(&mut into.places);
        self.packets.extend(into.burst.drain());
        for (place, mut packet) in places.into_iter().zip(self.packets.drain(..)) {
            let mut is_nil = false;
            for (copy, next) in copies.iter().zip(&mut next) {
                while copy.places.get(*next).is_some_and(|other| *other < place) {
                    *next += 1;
                }
                is_nil |= copy.places.get(*next) != Some(&place);
            }
            if self.options.drops(is_nil) {
                into.ended.push((place, Reached::Ended, packet));
                continue;
            }
            let version = |version| {
                let at = copies.iter().position(|copy| copy.meta.version() == version)?;
                copies.get(at)?.burst.packets().get(*next.get(at)?)
            };
            self.changes.apply(&mut packet, version, self.options);
            let others = copies.iter().zip(&next);
            others.for_each(|(copy, at)| add_log(&mut packet, copy.burst.packets().get(*at)));
            into.burst.push(packet);
            into.places.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_ir::service_graph::Verdict;
    use braid_ir::service_graph::stages::Meta;
    use braid_packet::Link;

    /// A version of a bundle of four packets, without `nil`.
    fn version(number: u64, version: u8, nil: Option<u16>) -> Handle {
        let mut bundle = Box::new(Bundle::new());
        bundle.meta = Meta::new(0, 4 * number, version);
        for place in (0..4).filter(|place| Some(*place) != nil) {
            bundle.burst.push(Packet::new(Link::Ethernet, place.into(), [0; 60]));
            bundle.places.push(place);
        }
        bundle
    }

    /// All orders of these numbers.
    fn orders(of: &[usize]) -> Vec<Vec<usize>> {
        if of.is_empty() {
            return vec![vec![]];
        }
        let with = |first: usize| {
            let rest: Vec<usize> = of.iter().copied().filter(|other| *other != first).collect();
            orders(&rest).into_iter().map(move |order| [&[first], &order[..]].concat())
        };
        of.iter().copied().flat_map(with).collect()
    }

    #[test]
    fn bundles_merge_once_in_whatever_order_their_versions_come() {
        let merge =
            Merge { into: 1, expects: 3, operations: Vec::new(), verdict: Verdict::AnyDrops(0) };
        for order in orders(&[0, 1, 2, 3, 4, 5]) {
            let mut merger = Merger::new(&merge, Changes::default(), Options::default());
            let (mut used, mut merged) = (Vec::new(), Vec::new());
            for (nth, at) in order.iter().enumerate() {
                // The third version of each bundle has a nil packet, at another place.
                let (number, of) = ((at / 3) as u64, at % 3);
                let nil = (of == 2).then_some(u16::try_from(number).unwrap());
                let made =
                    merger.take(version(number, 1 + u8::try_from(of).unwrap(), nil), &mut used);
                let here = order[..=nth].iter().filter(|other| **other / 3 == at / 3).count();
                assert_eq!(made.is_some(), here == 3, "{order:?}");
                merged.extend(made);
            }
            assert!(merger.is_empty() && merged.len() == 2 && used.len() == 4);
            for bundle in merged {
                let nil = u16::try_from(bundle.meta.packet() / 4).unwrap();
                assert!(!bundle.places.contains(&nil) && bundle.places.len() == 3, "{order:?}");
                let ended: Vec<_> = bundle.ended.iter().map(|(at, end, _)| (*at, *end)).collect();
                assert_eq!(ended, [(nil, Reached::Ended)]);
                let times: Vec<u64> = bundle.burst.packets().iter().map(|p| p.time_ns).collect();
                assert_eq!(times, bundle.places.iter().map(|p| u64::from(*p)).collect::<Vec<_>>());
            }
        }
    }
}
