//! Thresholds: how often a rule holds within a time before it alerts, and how often it alerts then.
//!
//! A window of time begins when a rule holds for an address, and ends after the seconds that the rule
//! gives. All connections with the rule count together.

use crate::counts::Counts;
use crate::flow::Flow;
use crate::limits::MAX_WINDOWS;
use crate::wire::{number, read_number, take};
use hashlink::LinkedHashMap;

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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
}

/// The windows of all rules of a set, in the order in which they have begun.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Thresholds(LinkedHashMap<Key, Window>);

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
        let open = self.0.get(&key).filter(|window| now <= window.until).copied();
        let mut window = open.unwrap_or_else(|| {
            let length = u64::from(threshold.seconds) * 1_000_000_000;
            Window { until: now.saturating_add(length), count: 0 }
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
        match (open, self.0.get_mut(&key)) {
            (Some(_), Some(place)) => *place = window,
            _ => self.begin(key, window, now, counts),
        }
        alerts
    }

    /// Adds a window behind all others.
    fn begin(&mut self, key: Key, window: Window, now: u64, counts: &mut Counts) {
        self.0.insert(key, window);
        if self.0.len() > MAX_WINDOWS
            && let Some((_, oldest)) = self.0.pop_front()
            && now <= oldest.until
        {
            counts.windows += 1;
        }
    }

    /// The windows as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (Key { rule, version, addresses }, window) in &self.0 {
            number(*rule, &mut out);
            out.push(*version);
            addresses.iter().for_each(|address| out.extend(address.to_le_bytes()));
            number(window.until, &mut out);
            number(window.count.into(), &mut out);
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
            let key = Key { rule, version, addresses };
            let is_there = read.0.insert(key, Window { until, count }).is_some();
            if is_there || read.0.len() > MAX_WINDOWS {
                return None;
            }
        }
        Some(read)
    }
}
