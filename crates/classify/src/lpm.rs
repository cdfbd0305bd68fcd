//! Longest-prefix match.

use braid_ir::routes::RouteTable;
use std::collections::BTreeMap;

/// A route table made fast to look up. Answers are those of [`RouteTable`].
#[derive(Clone, Debug, Default)]
pub struct Lpm {
    v4: BTreeMap<(u8, u32), u32>,
    v6: BTreeMap<(u8, u128), u32>,
}

impl Lpm {
    /// A table of these routes.
    #[must_use]
    pub fn new(routes: &RouteTable) -> Self {
        let mut table = Self::default();
        for (addr, len, hop) in routes.iter4() {
            table.insert4(addr, len, hop);
        }
        for (addr, len, hop) in routes.iter6() {
            table.insert6(addr, len, hop);
        }
        table
    }

    /// Next hop of the longest prefix that an IPv4 address has.
    #[must_use]
    pub fn lookup4(&self, addr: u32) -> Option<u32> {
        (0..=32).rev().find_map(|len| self.v4.get(&(len, addr & mask4(len))).copied())
    }

    /// Next hop of the longest prefix that an IPv6 address has.
    #[must_use]
    pub fn lookup6(&self, addr: u128) -> Option<u32> {
        (0..=128).rev().find_map(|len| self.v6.get(&(len, addr & mask6(len))).copied())
    }

    /// As [`Self::lookup4`] for each address; as many as both slices have places for.
    pub fn lookup4_batch(&self, addrs: &[u32], hops: &mut [Option<u32>]) {
        for (addr, hop) in addrs.iter().zip(hops) {
            *hop = self.lookup4(*addr);
        }
    }

    /// As [`Self::lookup6`] for each address; as many as both slices have places for.
    pub fn lookup6_batch(&self, addrs: &[u128], hops: &mut [Option<u32>]) {
        for (addr, hop) in addrs.iter().zip(hops) {
            *hop = self.lookup6(*addr);
        }
    }

    /// Adds an IPv4 route, replacing one for the same prefix; host bits are ignored, and lengths
    /// beyond 32 are 32.
    pub fn insert4(&mut self, addr: u32, len: u8, hop: u32) {
        let len = len.min(32);
        self.v4.insert((len, addr & mask4(len)), hop);
    }

    /// Adds an IPv6 route, replacing one for the same prefix; host bits are ignored, and lengths
    /// beyond 128 are 128.
    pub fn insert6(&mut self, addr: u128, len: u8, hop: u32) {
        let len = len.min(128);
        self.v6.insert((len, addr & mask6(len)), hop);
    }

    /// Removes an IPv4 route; its hop, if there was one.
    pub fn remove4(&mut self, addr: u32, len: u8) -> Option<u32> {
        let len = len.min(32);
        self.v4.remove(&(len, addr & mask4(len)))
    }

    /// Removes an IPv6 route; its hop, if there was one.
    pub fn remove6(&mut self, addr: u128, len: u8) -> Option<u32> {
        let len = len.min(128);
        self.v6.remove(&(len, addr & mask6(len)))
    }
}

fn mask4(len: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)
}

fn mask6(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
}
