//! The flows of a function. Each has a number that is never used again, memory, and an idle time.

use crate::stream::Data;
use braid_packet::FlowKey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Deadlines are rounded up to multiples of this (ns), like the deadlines of state entries.
const TICK_NS: u64 = 100_000_000;

/// Limits of a function's flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// The most flows at a time.
    pub capacity: u64,
    /// A flow ends when it had no packet for this time (ns). 0: never.
    pub idle_ns: u64,
    /// Whether the oldest flow ends to make room for a new one. Otherwise the new flow is refused.
    pub evict_oldest: bool,
    /// Bytes of memory for each flow.
    pub bytes: usize,
}

/// A flow.
#[derive(Debug)]
pub struct Flow {
    /// The key that identifies the flow.
    pub key: FlowKey,
    /// Memory of the function for this flow, initially zero. It consists of words, so that it is
    /// aligned for any type.
    pub memory: Box<[u128]>,
    /// When the first packet came (ns).
    pub created_ns: u64,
    /// When the last packet came (ns).
    pub last_seen_ns: u64,
    /// For the client and for the server of a connection: the end of the bytes that have come.
    pub ends: [u64; 2],
}

/// The result of looking for a packet's flow.
#[derive(Debug)]
pub enum Found {
    /// The flow exists.
    Known(u64),
    /// The flow is new. If another flow ended to make room, it comes along.
    New(u64, Option<(u64, Flow)>),
    /// There is no room for the flow.
    Full,
}

/// All flows of an instance. Packets determine the keys, therefore the map uses the standard
/// library's keyed hash.
#[derive(Debug)]
pub struct Flows {
    limits: Limits,
    by_key: HashMap<FlowKey, u64>,
    /// Flows by number, which is the order of their creation.
    all: BTreeMap<u64, Flow>,
    /// Time and number for each flow: when to check next whether it has ended.
    deadlines: BTreeSet<(u64, u64)>,
    /// The number of the next flow. No flow has number 0.
    next: u64,
    /// The number of flows that were refused.
    pub refused: u64,
}

impl Flows {
    /// A table without flows.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            by_key: HashMap::new(),
            all: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            next: 1,
            refused: 0,
        }
    }

    /// The number of the flow with this key, if it exists.
    #[must_use]
    pub fn known(&self, key: &FlowKey) -> Option<u64> {
        self.by_key.get(key).copied()
    }

    /// The flow of a packet that comes now. It is created if it does not exist.
    pub fn find(&mut self, key: FlowKey, now: u64) -> Found {
        if let Some(number) = self.known(&key) {
            if let Some(flow) = self.all.get_mut(&number) {
                flow.last_seen_ns = now;
            }
            return Found::Known(number);
        }
        let mut evicted = None;
        if self.all.len() as u64 >= self.limits.capacity {
            let oldest = self.all.first_key_value().map(|(number, _)| *number);
            let Some(oldest) = oldest.filter(|_| self.limits.evict_oldest) else {
                self.refused += 1;
                return Found::Full;
            };
            evicted = self.remove(oldest).map(|flow| (oldest, flow));
        }
        let number = self.next;
        self.next += 1;
        let memory = self.memory();
        self.by_key.insert(key, number);
        self.all
            .insert(number, Flow { key, memory, created_ns: now, last_seen_ns: now, ends: [0; 2] });
        if let Some(deadline) = self.deadline(now) {
            self.deadlines.insert((deadline, number));
        }
        Found::New(number, evicted)
    }

    /// The number of the next flow.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Adds a flow of an earlier instance, with its number. Its memory is zero. Returns false if
    /// the number or the key is in use.
    pub fn put_back(
        &mut self,
        number: u64,
        key: FlowKey,
        (created_ns, last_seen_ns): (u64, u64),
        ends: [u64; 2],
    ) -> bool {
        if self.has(number) || self.by_key.insert(key, number).is_some() {
            return false;
        }
        let memory = self.memory();
        self.all.insert(number, Flow { key, memory, created_ns, last_seen_ns, ends });
        if let Some(deadline) = self.deadline(last_seen_ns) {
            self.deadlines.insert((deadline, number));
        }
        true
    }

    /// Sets the number of the next flow.
    pub fn go_on(&mut self, next: u64) {
        self.next = next.max(1);
    }

    /// Memory for a flow.
    fn memory(&self) -> Box<[u128]> {
        vec![0; self.limits.bytes.div_ceil(size_of::<u128>())].into_boxed_slice()
    }

    /// The first flow with a number above this one.
    #[must_use]
    pub fn after(&self, number: u64) -> Option<u64> {
        self.all.range(number.checked_add(1)?..).next().map(|(number, _)| *number)
    }

    fn deadline(&self, last_seen_ns: u64) -> Option<u64> {
        if self.limits.idle_ns == 0 {
            return None;
        }
        last_seen_ns.checked_add(self.limits.idle_ns)?.div_ceil(TICK_NS).checked_mul(TICK_NS)
    }

    /// Records that a packet of a flow comes now.
    pub fn touch(&mut self, number: u64, now: u64) {
        if let Some(flow) = self.all.get_mut(&number) {
            flow.last_seen_ns = now;
        }
    }

    /// The flow with this number.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Flow> {
        self.all.get_mut(&number)
    }

    /// Whether there is a flow with this number.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        self.all.contains_key(&number)
    }

    /// Ends a flow.
    pub fn remove(&mut self, number: u64) -> Option<Flow> {
        let flow = self.all.remove(&number)?;
        self.by_key.remove(&flow.key);
        Some(flow)
    }

    /// The number of bytes of a connection that are missing directly in front of these, which have
    /// come now. 0 if there is no such flow.
    pub fn missing(&mut self, number: u64, data: Data<'_>) -> u64 {
        let Some(flow) = self.all.get_mut(&number) else { return 0 };
        let [of_client, of_server] = &mut flow.ends;
        let end = if data.from_client { of_client } else { of_server };
        let missing = data.offset.saturating_sub(*end);
        *end = data.offset.saturating_add(data.bytes.len() as u64);
        missing
    }

    /// The earliest time at which a flow may end. A packet of the flow may have come since, which
    /// moves its end.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The next flow that has ended until now: the time of its end, its number, the flow.
    pub fn ended_by(&mut self, now: u64) -> Option<(u64, u64, Flow)> {
        while let Some((deadline, number)) = self.deadlines.first().copied() {
            if deadline > now {
                return None;
            }
            self.deadlines.pop_first();
            let Some(flow) = self.all.get(&number) else { continue };
            match self.deadline(flow.last_seen_ns) {
                Some(later) if later > deadline => {
                    self.deadlines.insert((later, number));
                }
                _ => return self.remove(number).map(|flow| (deadline, number, flow)),
            }
        }
        None
    }

    /// When a flow ends if no packet of it comes before.
    #[must_use]
    pub fn expires(&self, flow: &Flow) -> Option<u64> {
        self.deadline(flow.last_seen_ns)
    }

    /// All flows in the order of their creation.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Flow)> {
        self.all.iter().map(|(number, flow)| (*number, flow))
    }
}

#[cfg(test)]
mod tests {
    use super::{Flows, Found, Limits, TICK_NS};
    use braid_packet::FlowKey;

    const LIMITS: Limits = Limits { capacity: 2, idle_ns: 0, evict_oldest: false, bytes: 8 };

    fn key(sport: u16) -> FlowKey {
        FlowKey { version: 4, src: 1, dst: 2, proto: 17, sport, dport: 53 }
    }

    fn number(found: Found) -> Option<u64> {
        match found {
            Found::Known(number) | Found::New(number, _) => Some(number),
            Found::Full => None,
        }
    }

    #[test]
    fn flow_keeps_its_number_and_a_new_one_never_gets_that_of_another() {
        let mut flows = Flows::new(LIMITS);
        assert_eq!(number(flows.find(key(1), 0)), Some(1));
        assert_eq!(number(flows.find(key(1), 5)), Some(1));
        assert!(flows.remove(1).is_some());
        assert_eq!(number(flows.find(key(1), 6)), Some(2));
    }

    #[test]
    fn new_flow_at_capacity_is_refused_and_counted() {
        let mut flows = Flows::new(LIMITS);
        flows.find(key(1), 0);
        flows.find(key(2), 0);
        assert!(matches!(flows.find(key(3), 0), Found::Full));
        assert_eq!(flows.refused, 1);
        assert_eq!(number(flows.find(key(2), 0)), Some(2));
    }

    #[test]
    fn oldest_flow_goes_for_a_new_one_where_that_was_asked_for() {
        let mut flows = Flows::new(Limits { evict_oldest: true, ..LIMITS });
        flows.find(key(1), 0);
        flows.find(key(2), 0);
        flows.find(key(1), 9);
        let Found::New(3, Some((1, gone))) = flows.find(key(3), 9) else { panic!("none evicted") };
        assert_eq!(gone.key, key(1));
    }

    #[test]
    fn flow_ends_when_it_was_idle_for_so_long_and_not_before() {
        let mut flows = Flows::new(Limits { idle_ns: TICK_NS, ..LIMITS });
        flows.find(key(1), 0);
        flows.find(key(2), 1);
        flows.find(key(1), 2 * TICK_NS - 1);
        assert!(flows.ended_by(TICK_NS).is_none());
        let ended = flows.ended_by(2 * TICK_NS);
        assert!(matches!(ended, Some((deadline, 2, _)) if deadline == 2 * TICK_NS), "{ended:?}");
        assert!(flows.ended_by(2 * TICK_NS).is_none());
        assert_eq!(
            flows.ended_by(3 * TICK_NS).map(|(at, number, _)| (at, number)),
            Some((3 * TICK_NS, 1))
        );
    }
}
