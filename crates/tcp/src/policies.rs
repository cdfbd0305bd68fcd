//! The policies of hosts: each host that receives segments decides as its system does.

use std::net::IpAddr;
use std::str::FromStr;

use crate::policy::Policy;

/// A policy, for all hosts or for those of a prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolicyOf {
    policy: Policy,
    prefix: Option<Prefix>,
}

/// A prefix of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Prefix {
    version: u8,
    address: u128,
    len: u32,
}

/// The policies of the hosts that receive segments.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// That of hosts that no prefix has.
    default: Policy,
    /// Those of prefixes, the longest first.
    prefixes: Vec<(Prefix, Policy)>,
}

impl Policies {
    /// The policies of a list. Of several prefixes of a host, the longest one counts.
    ///
    /// # Errors
    /// Two entries are for all hosts, or for the same prefix.
    pub fn new(list: &[PolicyOf]) -> Result<Self, String> {
        let mut policies = Self::default();
        let mut default = None;
        for PolicyOf { policy, prefix } in list.iter().copied() {
            let before = match prefix {
                None => default.replace(policy).is_some(),
                Some(prefix) => {
                    let is_known = policies.prefixes.iter().any(|(of, _)| *of == prefix);
                    policies.prefixes.push((prefix, policy));
                    is_known
                }
            };
            if before {
                return Err(format!(
                    "there are two policies for the same hosts, one is `{policy}`"
                ));
            }
        }
        policies.default = default.unwrap_or_default();
        policies.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len));
        Ok(policies)
    }

    /// The policy of a host, by the version of IP and its address.
    #[must_use]
    pub fn of(&self, version: u8, address: u128) -> Policy {
        let mut prefixes = self.prefixes.iter();
        let found = prefixes.find(|(prefix, _)| prefix.contains(version, address));
        found.map_or(self.default, |(_, policy)| *policy)
    }
}

impl Prefix {
    fn contains(self, version: u8, address: u128) -> bool {
        let free = if version == 4 { 32 } else { 128 } - self.len;
        let differs = (self.address ^ address).checked_shr(free).unwrap_or(0);
        self.version == version && differs == 0
    }
}

impl FromStr for PolicyOf {
    type Err = String;

    /// Reads `POLICY` or `POLICY@PREFIX`, such as `solaris@10.1.0.0/16`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (policy, prefix) = match text.split_once('@') {
            Some((policy, prefix)) => (policy, Some(prefix.parse()?)),
            None => (text, None),
        };
        Ok(Self { policy: policy.parse()?, prefix })
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no prefix such as 10.0.0.0/8 or 2001:db8::/32");
        let (address, len) = text.split_once('/').unwrap_or((text, ""));
        let (version, width, address) = match address.parse().map_err(|_| wrong())? {
            IpAddr::V4(address) => (4, 32, u128::from(u32::from(address))),
            IpAddr::V6(address) => (6, 128, u128::from(address)),
        };
        let len = if text.contains('/') { len.parse().map_err(|_| wrong())? } else { width };
        if len > width {
            return Err(wrong());
        }
        Ok(Self { version, address, len })
    }
}

#[cfg(test)]
mod tests {
    use super::{Policies, Policy};

    fn policies(list: &[&str]) -> Result<Policies, String> {
        let list: Result<Vec<_>, _> = list.iter().map(|text| text.parse()).collect();
        Policies::new(&list?)
    }

    #[test]
    fn longest_prefix_of_a_host_decides() {
        let list = ["linux@10.0.0.0/8", "solaris@10.1.0.0/16", "last@2001:db8::/32", "first"];
        let policies = policies(&list).expect("policies");
        for (version, address, wanted) in [
            (4, 0x0a00_0001, Policy::Linux),
            (4, 0x0a01_0001, Policy::Solaris),
            (4, 0x0b00_0001, Policy::First),
            (6, 0x2001_0db8 << 96, Policy::Last),
            (6, 0x0a00_0001, Policy::First),
            (6, 0x2001_0db9 << 96, Policy::First),
        ] {
            assert_eq!(policies.of(version, address), wanted, "{address:x}");
        }
    }

    #[test]
    fn prefixes_may_be_whole_or_single() {
        let policies = policies(&["linux@0.0.0.0/0", "last@::/0", "first@10.0.0.1"]).expect("some");
        assert_eq!(policies.of(4, 1), Policy::Linux);
        assert_eq!(policies.of(6, 1), Policy::Last);
        assert_eq!(policies.of(4, 0x0a00_0001), Policy::First);
    }

    #[test]
    fn what_is_no_list_of_policies_is_refused() {
        for list in [
            &["lin"][..],
            &["linux@"],
            &["linux@10.0.0.0/33"],
            &["linux@10.0.0/8"],
            &["linux@10.0.0.0/"],
            &["linux", "bsd"],
            &["linux@10.0.0.0/8", "bsd@10.0.0.0/8"],
        ] {
            assert!(policies(list).is_err(), "{list:?}");
        }
    }
}
