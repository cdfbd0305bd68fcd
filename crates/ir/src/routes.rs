//! Route tables: longest-prefix match from IPv4 and IPv6 prefixes to next hop numbers.

use prefix_trie::PrefixMap;

/// A route table.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct RouteTable {
    v4: Box<PrefixMap<(u32, u8), u32>>,
    v6: Box<PrefixMap<(u128, u8), u32>>,
}

impl RouteTable {
    /// Adds a route. It replaces a route for the same prefix. Host bits are ignored.
    pub fn insert4(&mut self, addr: u32, len: u8, hop: u32) {
        self.v4.insert((addr, len), hop);
    }

    /// Adds a route. It replaces a route for the same prefix. Host bits are ignored.
    pub fn insert6(&mut self, addr: u128, len: u8, hop: u32) {
        self.v6.insert((addr, len), hop);
    }

    /// Next hop of the longest matching prefix.
    #[must_use]
    pub fn lookup4(&self, addr: u32) -> Option<u32> {
        self.v4.get_lpm(&(addr, 32)).map(|(_, hop)| *hop)
    }

    /// Next hop of the longest matching prefix.
    #[must_use]
    pub fn lookup6(&self, addr: u128) -> Option<u32> {
        self.v6.get_lpm(&(addr, 128)).map(|(_, hop)| *hop)
    }

    /// Number of routes of both families.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Whether there are no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// IPv4 routes in lexicographic order: (address, prefix length, next hop).
    pub fn iter4(&self) -> impl Iterator<Item = (u32, u8, u32)> + '_ {
        self.v4.iter().map(|((addr, len), &hop)| (addr, len, hop))
    }

    /// IPv6 routes in lexicographic order: (address, prefix length, next hop).
    pub fn iter6(&self) -> impl Iterator<Item = (u128, u8, u32)> + '_ {
        self.v6.iter().map(|((addr, len), &hop)| (addr, len, hop))
    }
}
