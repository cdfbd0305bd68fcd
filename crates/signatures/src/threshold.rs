//! Thresholds: how often a rule holds within a time before it alerts, and how often it alerts then.
//!
//! A window of time begins when a rule holds for an address, and ends after the seconds that the
//! rule gives. All connections with the rule count together. A rule with another threshold begins a
//! new window.

use crate::counts::Counts;
use crate::flow::Flow;
use crate::limits::MAX_WINDOWS;
use braid_http::wire::{number, read_number, take};
use std::collections::{BTreeSet, HashMap};

/// `threshold` or `detection_filter`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threshold {
    pub kind: Kind,
    pub track: Track,
    pub count: u32,
    pub seconds: u32,
}

/// Which of the times that a rule holds in a window are alerts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The first ones, up to the count.
    Limit,
    /// Each time that the count is reached, which then begins anew.
    Threshold,
    /// The one that reaches the count.
    Both,
    /// Those beyond the count (`detection_filter`).
    Filter,
}

/// What counts together, beside the rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Track {
    Source,
    Destination,
    /// Both addresses, in either order.
    Pair,
    /// All connections.
    Rule,
}

/// What counts together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Key {
    rule: u64,
    version: u8,
    addresses: [u128; 2],
}

/// A window that has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Window {
    /// Its last nanosecond.
    until: u64,
    /// How often the rule has held in it.
    count: u32,
    /// What the rule has asked for.
    threshold: Threshold,
}

/// The windows of all rules of a set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Thresholds {
    windows: HashMap<Key, Window>,
    /// Their ends, in order.
    ends: BTreeSet<(u64, Key)>,
}

const KINDS: [Kind; 4] = [Kind::Limit, Kind::Threshold, Kind::Both, Kind::Filter];
const TRACKS: [Track; 4] = [Track::Source, Track::Destination, Track::Pair, Track::Rule];

impl Threshold {
    /// Whether a rule that holds again in a window does not alert.
    pub fn is_limiting(&self) -> bool {
        matches!(self.kind, Kind::Limit | Kind::Both)
    }

    fn key(&self, rule: u64, flow: &Flow) -> Key {
        let (version, addresses) = match self.track {
            Track::Source => (flow.version, [flow.src, 0]),
            Track::Destination => (flow.version, [flow.dst, 0]),
            Track::Pair => (flow.version, [flow.src.min(flow.dst), flow.src.max(flow.dst)]),
            Track::Rule => (0, [0, 0]),
        };
        Key { rule, version, addresses }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let kind = KINDS.iter().position(|kind| *kind == self.kind);
        let track = TRACKS.iter().position(|track| *track == self.track);
        for at in [kind, track].into_iter().flatten() {
            number(at as u64, out);
        }
        number(self.count.into(), out);
        number(self.seconds.into(), out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let kind = *KINDS.get(usize::try_from(read_number(from)?).ok()?)?;
        let track = *TRACKS.get(usize::try_from(read_number(from)?).ok()?)?;
        let mut small = || u32::try_from(read_number(from)?).ok();
        Some(Self { kind, track, count: small()?, seconds: small()? })
    }
}

impl Thresholds {
    /// A rule holds for a flow. Returns whether it alerts.
    pub(crate) fn alerts(
        &mut self,
        (rule, threshold): (u64, &Threshold),
        flow: &Flow,
        now: u64,
        counts: &mut Counts,
    ) -> bool {
        let key = threshold.key(rule, flow);
        let of_rule = self.windows.get(&key);
        let open = of_rule.filter(|of| now <= of.until && of.threshold == *threshold).copied();
        let mut window = open.unwrap_or_else(|| {
            let length = u64::from(threshold.seconds) * 1_000_000_000;
            Window { until: now.saturating_add(length), count: 0, threshold: *threshold }
        });
        window.count = window.count.saturating_add(1);
        let alerts = match threshold.kind {
            Kind::Limit => window.count <= threshold.count,
            Kind::Threshold => window.count >= threshold.count,
            Kind::Both => window.count == threshold.count,
            Kind::Filter => window.count > threshold.count,
        };
        if alerts && threshold.kind == Kind::Threshold {
            window.count = 0;
        }
        if open.is_none() && of_rule.is_none() {
            self.make_room(now, counts);
        }
        self.put_window(key, window);
        alerts
    }

    /// Forgets the window that ends first, if there is no room for another one.
    fn make_room(&mut self, now: u64, counts: &mut Counts) {
        if self.windows.len() >= MAX_WINDOWS
            && let Some((until, key)) = self.ends.pop_first()
        {
            self.windows.remove(&key);
            counts.windows += u64::from(now <= until);
        }
    }

    /// Puts a window in the place of the one that is there.
    fn put_window(&mut self, key: Key, window: Window) {
        let before = self.windows.insert(key, window);
        if before.is_none_or(|before| before.until != window.until) {
            before.into_iter().for_each(|before| {
                self.ends.remove(&(before.until, key));
            });
            self.ends.insert((window.until, key));
        }
    }

    /// The windows as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (until, key) in &self.ends {
            let Some(window) = self.windows.get(key) else { continue };
            let Key { rule, version, addresses } = key;
            number(*rule, &mut out);
            out.push(*version);
            addresses.iter().for_each(|address| out.extend(address.to_le_bytes()));
            number(*until, &mut out);
            number(window.count.into(), &mut out);
            window.threshold.put(&mut out);
        }
        out
    }

    /// Reads the bytes of windows. `None` if they are damaged.
    #[must_use]
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let from = &mut bytes;
        let mut read = Self::default();
        while !from.is_empty() {
            let rule = read_number(from)?;
            let version = *take(from, 1)?.first()?;
            let mut address = || take(from, 16)?.try_into().ok().map(u128::from_le_bytes);
            let addresses = [address()?, address()?];
            let until = read_number(from)?;
            let count = u32::try_from(read_number(from)?).ok()?;
            let threshold = Threshold::read(from)?;
            let key = Key { rule, version, addresses };
            let is_behind = read.ends.last().is_none_or(|last| *last < (until, key));
            if !is_behind || read.windows.contains_key(&key) || read.windows.len() >= MAX_WINDOWS {
                return None;
            }
            read.put_window(key, Window { until, count, threshold });
        }
        Some(read)
    }
}
