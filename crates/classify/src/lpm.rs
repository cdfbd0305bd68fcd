//! Longest-prefix match in route tables that change.
//!
//! Each address family has one [`Trie`], whose values number the distinct next hops. Beside it are
//! the routes in order, from which parts of the trie are rebuilt. A full BGP table of both families
//! (0.9 million and 0.16 million routes) takes 25 MB. DIR-24-8 takes 64 MB for any table. A table
//! of 25 MB stays in a last-level cache. A million random prefixes have less in common and take 75
//! MB; ten thousand take under 1 MB; ten take a few cache lines. `examples/routes.rs` measures
//! this.
//!
//! A change rebuilds the part of the trie that its prefix covers: some microseconds for most routes
//! of a full table, and the whole trie for the default route. Replaced nodes leave unused space
//! behind. When the trie has doubled in size it is rebuilt.

use crate::trie::{Key, Run, Trie};
use braid_ir::routes::RouteTable;
use std::collections::{BTreeMap, HashMap};

/// Nodes that changes may leave behind in a trie of any size.
const SPARE_NODES: usize = 4096;

/// A route table with fast lookups. Its answers are the same as those of [`RouteTable`].
#[derive(Clone, Debug)]
pub struct Lpm {
    v4: Family<u32>,
    v6: Family<u128>,
}

/// Routes of one address family.
#[derive(Clone, Debug)]
struct Family<K> {
    /// Hops by prefix: address and length.
    routes: BTreeMap<(K, u8), u32>,
    /// Numbers of hops, which index `hops`.
    trie: Trie<K>,
    /// The number of nodes of the trie when it was last built.
    nodes: usize,
    /// The distinct hops. The first one is `None`.
    hops: Vec<Option<u32>>,
    places: HashMap<u32, u32>,
}

impl Default for Lpm {
    fn default() -> Self {
        Self { v4: Family::new(BTreeMap::new()), v6: Family::new(BTreeMap::new()) }
    }
}

impl Lpm {
    /// Builds a table of these routes.
    #[must_use]
    pub fn new(routes: &RouteTable) -> Self {
        let v4 = routes.iter4().map(|(addr, len, hop)| (prefix(addr, len), hop));
        let v6 = routes.iter6().map(|(addr, len, hop)| (prefix(addr, len), hop));
        Self { v4: Family::new(v4.collect()), v6: Family::new(v6.collect()) }
    }

    /// The next hop of the longest prefix that contains an IPv4 address.
    #[must_use]
    #[inline]
    pub fn lookup4(&self, addr: u32) -> Option<u32> {
        self.v4.lookup(addr)
    }

    /// The next hop of the longest prefix that contains an IPv6 address.
    #[must_use]
    #[inline]
    pub fn lookup6(&self, addr: u128) -> Option<u32> {
        self.v6.lookup(addr)
    }

    /// The address group of an address (IPv6 if `wide`), below [`Self::groups`]. All addresses of
    /// a group have the same next hop until a route is added or removed.
    #[must_use]
    #[inline]
    pub fn group(&self, addr: u128, wide: bool) -> u32 {
        if wide { self.v6.trie.get(addr) } else { self.v4.trie.get(u32::cut(addr)) }
    }

    /// The number of address groups.
    #[must_use]
    pub fn groups(&self, wide: bool) -> u32 {
        let hops = if wide { self.v6.hops.len() } else { self.v4.hops.len() };
        u32::try_from(hops).unwrap_or(u32::MAX)
    }

    /// Adds an IPv4 route, or replaces the route with the same prefix. Host bits are ignored, and a
    /// length above 32 means 32.
    pub fn insert4(&mut self, addr: u32, len: u8, hop: u32) {
        self.v4.change(prefix(addr, len), Some(hop));
    }

    /// Adds an IPv6 route, or replaces the route with the same prefix. Host bits are ignored, and a
    /// length above 128 means 128.
    pub fn insert6(&mut self, addr: u128, len: u8, hop: u32) {
        self.v6.change(prefix(addr, len), Some(hop));
    }

    /// Removes an IPv4 route and returns its hop, if there was one.
    pub fn remove4(&mut self, addr: u32, len: u8) -> Option<u32> {
        self.v4.change(prefix(addr, len), None)
    }

    /// Removes an IPv6 route and returns its hop, if there was one.
    pub fn remove6(&mut self, addr: u128, len: u8) -> Option<u32> {
        self.v6.change(prefix(addr, len), None)
    }

    /// The number of routes of both families.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.routes.len() + self.v6.routes.len()
    }

    /// Whether there are no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that lookups use. The ordered routes take about as much again.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.v4.trie.memory()
            + self.v6.trie.memory()
            + (self.v4.hops.len() + self.v6.hops.len()) * 8
    }

    /// The address ranges that IPv4 routes distinguish, with their next hops.
    pub(crate) fn ranges4(&self) -> Vec<(u128, Option<u32>)> {
        self.v4.ranges()
    }

    /// The address ranges that IPv6 routes distinguish, with their next hops.
    pub(crate) fn ranges6(&self) -> Vec<(u128, Option<u32>)> {
        self.v6.ranges()
    }
}

impl<K: Key> Family<K> {
    fn new(routes: BTreeMap<(K, u8), u32>) -> Self {
        let mut family = Self {
            routes,
            trie: Trie::new(&[(0, 0)]),
            nodes: 0,
            hops: vec![None],
            places: HashMap::new(),
        };
        family.renew();
        family
    }

    /// Rebuilds the trie.
    fn renew(&mut self) {
        (self.hops, self.places) = (vec![None], HashMap::new());
        let routes = std::mem::take(&mut self.routes);
        let runs =
            sweep(0, ones::<K>(0), 0, routes.iter().map(|(at, hop)| (*at, self.place(*hop))));
        self.routes = routes;
        self.trie = Trie::new(&runs);
        self.nodes = self.trie.nodes();
    }

    fn place(&mut self, hop: u32) -> u32 {
        *self.places.entry(hop).or_insert_with(|| {
            self.hops.push(Some(hop));
            // Each distinct hop has a number. No memory can hold 2^30 hops.
            u32::try_from(self.hops.len() - 1).unwrap_or(0)
        })
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "the trie's values are places in `hops`")]
    fn lookup(&self, addr: K) -> Option<u32> {
        self.hops[self.trie.get(addr) as usize]
    }

    /// Adds, replaces or removes the route of a prefix and returns its previous hop.
    fn change(&mut self, at: (K, u8), hop: Option<u32>) -> Option<u32> {
        let old = match hop {
            Some(hop) => self.routes.insert(at, hop),
            None => self.routes.remove(&at),
        };
        if old == hop {
            return old;
        }
        if let Some(hop) = hop {
            self.place(hop);
        }
        let (routes, places) = (&self.routes, &self.places);
        let place = |hop: u32| places.get(&hop).copied().unwrap_or(0);
        self.trie.update(at.0.into(), K::BITS - u32::from(at.1), &mut |low, host| {
            let last = low | ones::<K>(K::BITS - host);
            let inside = (K::cut(low), 0)..=(K::cut(last), u8::MAX);
            let inside = routes.range(inside).map(|(at, hop)| (*at, place(*hop)));
            let around = around(routes, low, K::BITS - host).map_or(0, place);
            sweep(low, last, around, inside)
        });
        if self.trie.nodes() > 2 * self.nodes + SPARE_NODES {
            self.renew();
        }
        old
    }

    fn ranges(&self) -> Vec<(u128, Option<u32>)> {
        let places =
            self.routes.iter().map(|(at, hop)| (*at, self.places.get(hop).copied().unwrap_or(0)));
        let runs = sweep(0, ones::<K>(0), 0, places);
        let hop = |place: u32| self.hops.get(place as usize).copied().flatten();
        runs.into_iter().map(|(start, place)| (start, hop(place))).collect()
    }
}

/// The hop of the longest prefix, of at most `bits` bits, that contains an address.
fn around<K: Key>(routes: &BTreeMap<(K, u8), u32>, addr: u128, bits: u32) -> Option<u32> {
    let at = |len: u32| (K::cut(addr & !ones::<K>(len)), u8::try_from(len).unwrap_or(u8::MAX));
    (0..=bits).rev().find_map(|len| routes.get(&at(len)).copied())
}

/// A prefix in its stored form: without host bits, and with a length of at most the number of bits.
fn prefix<K: Key>(addr: K, len: u8) -> (K, u8) {
    let len = u32::from(len).min(K::BITS);
    (K::cut(addr.into() & !ones::<K>(len)), u8::try_from(len).unwrap_or(u8::MAX))
}

/// The bits of an address after the first `len` bits.
fn ones<K: Key>(len: u32) -> u128 {
    u128::MAX.checked_shr(u128::BITS - (K::BITS - len)).unwrap_or(0)
}

/// The values of the addresses `low..=last`, from prefixes (sorted, all inside the range or around
/// it).
fn sweep<K: Key>(
    low: u128,
    last: u128,
    around: u32,
    prefixes: impl Iterator<Item = ((K, u8), u32)>,
) -> Vec<Run> {
    let mut runs = vec![(low, around)];
    let mut open: Vec<Run> = vec![(last, around)];
    for ((addr, len), value) in prefixes {
        let start: u128 = addr.into();
        close(&mut open, start, &mut runs);
        add(&mut runs, (start.max(low), value));
        open.push((start | ones::<K>(u32::from(len)), value));
    }
    close(&mut open, last, &mut runs);
    runs
}

/// Ends the prefixes whose last address is before this address.
fn close(open: &mut Vec<Run>, before: u128, runs: &mut Vec<Run>) {
    while let Some(&(end, _)) = open.last().filter(|(end, _)| *end < before) {
        open.pop();
        if let Some(&(_, value)) = open.last() {
            add(runs, (end + 1, value));
        }
    }
}

fn add(runs: &mut Vec<Run>, run: Run) {
    if runs.last().is_some_and(|last| last.0 == run.0) {
        runs.pop();
    }
    if runs.last().is_none_or(|last| last.1 != run.1) {
        runs.push(run);
    }
}

#[cfg(test)]
mod tests {
    use super::Lpm;
    use braid_ir::routes::RouteTable;
    use proptest::prelude::*;

    /// Address, length, and the hop or a removal.
    type Change = (u128, u8, Option<u32>);

    fn change() -> impl Strategy<Value = Change> {
        let addr =
            (0_u128..6, 0_u32..128, any::<u128>(), 0_u8..4).prop_map(|(low, at, noise, mix)| {
                let near = low << at | 0x0a00_0000;
                if mix == 0 { noise } else { near }
            });
        let len = prop_oneof![0_u8..=32, Just(24), Just(16), Just(0), 0_u8..=128];
        (addr, len, prop::option::weighted(0.7, 0_u32..5))
    }

    fn agree(fast: &Lpm, changes: &[Change]) {
        // The last change of a prefix counts.
        let mut naive = RouteTable::default();
        for four in [true, false] {
            let bits: u8 = if four { 32 } else { 128 };
            let mut last = std::collections::BTreeMap::new();
            for (addr, len, hop) in changes {
                let len = (*len).min(bits);
                let addr = if four { u128::from(*addr as u32) } else { *addr };
                let host = u128::MAX.checked_shr(128 - u32::from(bits - len)).unwrap_or(0);
                last.insert((addr & !host, len), *hop);
            }
            for ((addr, len), hop) in last {
                match hop {
                    Some(hop) if four => naive.insert4(addr as u32, len, hop),
                    Some(hop) => naive.insert6(addr, len, hop),
                    None => {}
                }
            }
        }
        assert_eq!(fast.len(), naive.len());
        let ends = changes.iter().flat_map(|(addr, len, _)| {
            let host = u128::MAX.checked_shr(u32::from(*len)).unwrap_or(0);
            let host4 = u128::from(u32::MAX.checked_shr(u32::from(*len)).unwrap_or(0));
            [
                *addr,
                addr & !host,
                addr | host,
                (addr & !host).wrapping_sub(1),
                addr & !host4,
                addr | host4,
                (addr | host4) + 1,
            ]
        });
        let ends: Vec<u128> = ends.chain([0, u128::MAX]).collect();
        let fours: Vec<u32> = ends.iter().map(|addr| *addr as u32).collect();
        for (n, addr) in ends.iter().enumerate() {
            assert_eq!(fast.lookup4(fours[n]), naive.lookup4(fours[n]), "{:x}", fours[n]);
            assert_eq!(fast.lookup6(*addr), naive.lookup6(*addr), "{addr:x}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

        #[test]
        fn changes_leave_what_the_naive_table_says(changes in prop::collection::vec(change(), 0..40)) {
            let mut table = Lpm::default();
            for (addr, len, hop) in &changes {
                let four = *addr as u32;
                match hop {
                    Some(hop) => { table.insert4(four, *len, *hop); table.insert6(*addr, *len, *hop); }
                    None => { table.remove4(four, *len); table.remove6(*addr, *len); }
                }
            }
            agree(&table, &changes);
        }
    }

    #[test]
    fn changes_in_a_large_table_touch_what_they_must() {
        let mut naive = RouteTable::default();
        for n in 0..40_000_u32 {
            naive.insert4(n.wrapping_mul(0x9e37_79b1), 8 + (n % 25) as u8, n % 16);
        }
        let mut table = Lpm::new(&naive);
        // More changes than the spare nodes allow, so that the trie is rebuilt in between.
        for n in 0..6_000_u32 {
            let (addr, len) = (n.wrapping_mul(0x85eb_ca6b), 14 + (n % 19) as u8);
            naive.insert4(addr, len, n % 7);
            table.insert4(addr, len, n % 7);
        }
        for n in 0..200_000_u32 {
            let addr = n.wrapping_mul(0xc2b2_ae35);
            assert_eq!(table.lookup4(addr), naive.lookup4(addr), "{addr:x}");
        }
        assert_eq!(table.len(), naive.len());
    }

    #[test]
    fn a_removed_route_uncovers_the_one_around_it() {
        let mut table = Lpm::default();
        table.insert4(0, 0, 1);
        table.insert4(0x0a00_0000, 8, u32::MAX);
        table.insert4(0x0a01_0203, 40, 3);
        assert_eq!(table.lookup4(0x0a01_0203), Some(3));
        assert_eq!(table.remove4(0x0a01_0203, 32), Some(3));
        assert_eq!(table.lookup4(0x0a01_0203), Some(u32::MAX));
        assert_eq!(table.remove4(0x0aff_0000, 8), Some(u32::MAX));
        assert_eq!(table.lookup4(0x0a01_0203), Some(1));
        assert_eq!(table.remove4(0x0a00_0000, 8), None);
        assert_eq!((table.remove4(7, 0), table.lookup4(7), table.len()), (Some(1), None, 0));
    }
}
