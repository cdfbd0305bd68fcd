//! Reads addresses, prefixes and address ranges.

use super::cursor::Word;
use super::error::Fault;
use std::net::IpAddr;

/// A prefix with its host bits as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Prefix {
    V4(u32, u8),
    V6(u128, u8),
}

/// An inclusive range of addresses of one version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Range {
    V4(u32, u32),
    V6(u128, u128),
}

const EXPECTED: &str = "a prefix such as 10.0.0.0/8 or 2001:db8::/32";
const EXPECTED_RANGE: &str =
    "an address, a prefix such as 10.0.0.0/8, or a range such as 10.0.0.1-10.0.0.9";

/// Reads an address with or without a prefix length.
pub(super) fn prefix(word: Word<'_>) -> Result<Prefix, Fault> {
    let (addr, length) = match word.text.split_once('/') {
        Some((addr, length)) => (addr, Some(length)),
        None => (word.text, None),
    };
    let addr: IpAddr = addr.parse().map_err(|_| word.fault(EXPECTED))?;
    let bits: u8 = if addr.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => bits,
        Some(text) => {
            // The error is at the length.
            let at = word.at + word.text.len() - text.len();
            let number = Word { at, text }.number("a prefix length", u32::from(bits))?;
            u8::try_from(number).unwrap_or(bits)
        }
    };
    Ok(match addr {
        IpAddr::V4(addr) => Prefix::V4(addr.to_bits(), length),
        IpAddr::V6(addr) => Prefix::V6(addr.to_bits(), length),
    })
}

/// Reads an address, a prefix (host bits ignored), or `A-B`.
pub(super) fn range(word: Word<'_>) -> Result<Range, Fault> {
    let Some((lo, hi)) = word.text.split_once('-') else {
        return prefix(word).map(Prefix::range).map_err(|mut fault| {
            if fault.expected == EXPECTED {
                EXPECTED_RANGE.clone_into(&mut fault.expected);
            }
            fault
        });
    };
    let found = match (lo.parse::<IpAddr>(), hi.parse::<IpAddr>()) {
        (Ok(IpAddr::V4(lo)), Ok(IpAddr::V4(hi))) => Range::V4(lo.to_bits(), hi.to_bits()),
        (Ok(IpAddr::V6(lo)), Ok(IpAddr::V6(hi))) => Range::V6(lo.to_bits(), hi.to_bits()),
        _ => return Err(word.fault(EXPECTED_RANGE)),
    };
    let empty = match found {
        Range::V4(lo, hi) => lo > hi,
        Range::V6(lo, hi) => lo > hi,
    };
    if empty { Err(word.fault("a range with its lower end first")) } else { Ok(found) }
}

impl Prefix {
    /// The addresses of the prefix.
    pub(super) fn range(self) -> Range {
        match self {
            Self::V4(addr, length) => {
                let host = u32::MAX.checked_shr(length.into()).unwrap_or(0);
                Range::V4(addr & !host, addr | host)
            }
            Self::V6(addr, length) => {
                let host = u128::MAX.checked_shr(length.into()).unwrap_or(0);
                Range::V6(addr & !host, addr | host)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Prefix, Range, Word, prefix, range};

    fn word(text: &str) -> Word<'_> {
        Word { at: 5, text }
    }

    #[test]
    fn prefix_reads_both_versions_with_and_without_length() {
        assert_eq!(prefix(word("10.1.2.3/8")), Ok(Prefix::V4(0x0a01_0203, 8)));
        assert_eq!(prefix(word("10.1.2.3")), Ok(Prefix::V4(0x0a01_0203, 32)));
        assert_eq!(prefix(word("::/0")), Ok(Prefix::V6(0, 0)));
        assert_eq!(prefix(word("::1")), Ok(Prefix::V6(1, 128)));
    }

    #[test]
    fn prefix_error_points_at_length_or_address() {
        assert_eq!(prefix(word("10.0.0.0/33")).map_err(|f| f.at), Err(14));
        for text in
            ["", "10.0.0/8", "10.0.0.0/", "10.0.0.0/+8", "::/129", "10.0.0.0/8/8", "010.0.0.1"]
        {
            assert!(prefix(word(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn range_covers_prefix_without_host_bits_and_explicit_ends() {
        assert_eq!(range(word("10.1.2.3/8")), Ok(Range::V4(0x0a00_0000, 0x0aff_ffff)));
        assert_eq!(range(word("0.0.0.0/0")), Ok(Range::V4(0, u32::MAX)));
        assert_eq!(range(word("::1/128")), Ok(Range::V6(1, 1)));
        assert_eq!(range(word("::1-::9")), Ok(Range::V6(1, 9)));
        for text in ["10.0.0.2-10.0.0.1", "10.0.0.1-::1", "10.0.0.1-", "10.0.0.0/8-10.0.0.9"] {
            assert!(range(word(text)).is_err(), "{text}");
        }
    }
}
