//! Address prefixes and the hosts in them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The most hosts of a prefix that are used. An IPv6 prefix has more than anyone needs.
const MAX_HOSTS: u64 = 1 << 40;

/// An IPv4 or IPv6 prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// The first address. IPv4 addresses are in the low 32 bits.
    first: u128,
    /// The length in bits.
    len: u8,
    v6: bool,
}

impl Prefix {
    /// Whether this is an IPv6 prefix.
    #[must_use]
    pub fn is_v6(self) -> bool {
        self.v6
    }

    /// The mask of the host bits of an address.
    fn host_mask(self) -> u128 {
        let bits = if self.v6 { 128 } else { 32 };
        u128::MAX.checked_shr(128 - bits + u32::from(self.len)).unwrap_or(0)
    }

    /// The number of hosts that can be addressed, at most 2^40. The first address (network,
    /// any-cast) and, for IPv4, the last one (broadcast) do not count, unless the prefix is too
    /// long for that.
    #[must_use]
    pub fn hosts(self) -> u64 {
        let all = u64::try_from(self.host_mask()).unwrap_or(MAX_HOSTS).min(MAX_HOSTS);
        match (self.v6, all) {
            (_, 0 | 1) => all + 1,
            (false, _) => all - 1,
            (true, _) => all,
        }
    }

    /// The host with this number, which is below [`Self::hosts`].
    #[must_use]
    pub fn host(self, number: u64) -> u128 {
        let offset = u128::from(number) + u128::from(self.host_mask() > 1);
        self.first | offset & self.host_mask()
    }

    /// Whether the prefix contains an address of the same IP version.
    #[must_use]
    pub fn contains(self, address: u128) -> bool {
        address & !self.host_mask() == self.first
    }

    /// The address with `by` added to its host part, cyclically.
    #[must_use]
    pub fn shifted(self, address: u128, by: u128) -> u128 {
        let mask = self.host_mask();
        address & !mask | address.wrapping_add(by) & mask
    }

    /// The prefix of this length that contains an address. The length is at most the length of an
    /// address.
    #[must_use]
    pub fn around(address: u128, len: u8, v6: bool) -> Prefix {
        let mut prefix = Prefix { first: address, len: len.min(if v6 { 128 } else { 32 }), v6 };
        prefix.first &= !prefix.host_mask();
        prefix
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || format!("expected a prefix such as 10.0.0.0/8 or 2001:db8::/32; found `{text}`");
        let (address, len) = text.split_once('/').ok_or_else(expected)?;
        let (first, v6) = match address.parse::<IpAddr>().map_err(|_| expected())? {
            IpAddr::V4(address) => (u128::from(address.to_bits()), false),
            IpAddr::V6(address) => (address.to_bits(), true),
        };
        let most = if v6 { 128 } else { 32 };
        let digits = !len.is_empty() && len.len() <= 3 && len.bytes().all(|b| b.is_ascii_digit());
        let len: u8 = len.parse().map_err(|_| expected())?;
        if !digits || len > most {
            return Err(expected());
        }
        let prefix = Prefix::around(first, len, v6);
        if prefix.first != first {
            return Err(format!("`{text}` has bits behind its prefix; did you mean {prefix}?"));
        }
        Ok(prefix)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address: IpAddr = match self.v6 {
            true => IpAddr::V6(self.first.into()),
            false => IpAddr::V4((self.first as u32).into()),
        };
        write!(f, "{address}/{}", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn hosts_leave_out_network_and_broadcast() {
        let small = prefix("10.1.2.0/30");
        assert_eq!(small.hosts(), 2);
        assert_eq!((small.host(0), small.host(1)), (0x0a01_0201, 0x0a01_0202));
        assert_eq!(prefix("10.0.0.0/8").hosts(), (1 << 24) - 2);
        assert_eq!(prefix("0.0.0.0/0").hosts(), (1 << 32) - 2);
    }

    #[test]
    fn hosts_of_the_longest_prefixes_are_all_their_addresses() {
        assert_eq!(
            (prefix("10.0.0.4/31").hosts(), prefix("10.0.0.4/31").host(0)),
            (2, 0x0a00_0004)
        );
        assert_eq!(
            (prefix("10.0.0.4/32").hosts(), prefix("10.0.0.4/32").host(0)),
            (1, 0x0a00_0004)
        );
        assert_eq!((prefix("::1/128").hosts(), prefix("::1/128").host(0)), (1, 1));
    }

    #[test]
    fn hosts_of_an_ipv6_prefix_start_at_one_and_are_bounded() {
        let wide = prefix("2001:db8::/32");
        assert_eq!(wide.hosts(), MAX_HOSTS);
        assert_eq!(wide.host(0), 0x2001_0db8_u128 << 96 | 1);
        assert_eq!(prefix("::/0").hosts(), MAX_HOSTS);
        assert_eq!(prefix("2001:db8::/126").hosts(), 3);
    }

    #[test]
    fn shifts_go_round_within_the_host_part() {
        let eight = prefix("10.0.0.0/8");
        assert_eq!(eight.shifted(0x0aff_ffff, 2), 0x0a00_0001);
        assert!(eight.contains(0x0aff_ffff) && !eight.contains(0x0b00_0000));
        let all = prefix("::/0");
        assert_eq!(all.shifted(u128::MAX, 1), 0);
        assert!(all.contains(u128::MAX));
    }

    #[test]
    fn prefixes_are_written_as_they_are_read() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32", "::/0", "10.0.0.1/32"] {
            assert_eq!(prefix(text).to_string(), text);
        }
    }

    #[test]
    fn wrong_prefixes_are_refused_with_what_is_expected() {
        for text in ["", "/", "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/+8", "10.0.0/8", "x/8"]
        {
            assert!(text.parse::<Prefix>().unwrap_err().contains("expected a prefix"), "{text}");
        }
        let error = "10.1.0.0/8".parse::<Prefix>().unwrap_err();
        assert!(error.ends_with("did you mean 10.0.0.0/8?"), "{error}");
    }
}
