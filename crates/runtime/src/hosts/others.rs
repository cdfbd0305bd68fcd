//! Other hosts on the link that have an address of the interface or of a function.

use super::messages::Mac;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The most addresses that are kept.
const MOST: usize = 1024;

/// The time between two checks whether the hosts still have their addresses (ns).
const PERIOD_NS: u64 = 20_000_000_000;

/// A host that was silent for this time (ns) no longer counts as having its address: it has not
/// answered three questions.
const SILENT_NS: u64 = 65_000_000_000;

/// The addresses that other hosts have, too.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// By address: the host, and when it was last heard (ns).
    hosts: BTreeMap<IpAddr, (Mac, u64)>,
    /// When to ask next (ns).
    next_ns: u64,
}

impl Others {
    /// Records that a host claims an address.
    pub(super) fn hear(&mut self, address: IpAddr, mac: Mac, now_ns: u64) {
        if self.hosts.is_empty() {
            self.next_ns = now_ns.saturating_add(PERIOD_NS);
        }
        if self.hosts.len() < MOST || self.hosts.contains_key(&address) {
            self.hosts.insert(address, (mac, now_ns));
        }
    }

    /// Whether another host has an address.
    pub(super) fn have(&self, address: IpAddr) -> bool {
        self.hosts.contains_key(&address)
    }

    /// The addresses of other hosts, each with its host.
    pub(super) fn iter(&self) -> impl Iterator<Item = (IpAddr, Mac)> {
        self.hosts.iter().map(|(address, (mac, _))| (*address, *mac))
    }

    /// Forgets hosts that are silent. Returns the addresses for which to ask now.
    pub(super) fn advance(&mut self, now_ns: u64) -> Vec<IpAddr> {
        if self.hosts.is_empty() || now_ns < self.next_ns {
            return Vec::new();
        }
        self.next_ns = now_ns.saturating_add(PERIOD_NS);
        self.hosts.retain(|_, (_, heard_ns)| now_ns.saturating_sub(*heard_ns) < SILENT_NS);
        self.hosts.keys().copied().collect()
    }
}
