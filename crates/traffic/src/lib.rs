//! Generated traffic: expanded from templates, a repeated capture, or synthetic flows.
//!
//! Every generator is a [`Traffic`]: it returns packets one at a time, in memory that doesn't
//! depend on their number. The same options and the same seed give the same bytes on every machine,
//! because random numbers, and the two functions that need more than the four basic operations, are
//! computed here.
#![forbid(unsafe_code)]

mod arrivals;
pub mod churn;
mod error;
pub mod flows;
mod generator;
mod permutation;
mod prefix;
pub mod random;
pub mod repeat;
pub mod template;
mod write;
mod yaml;

pub use arrivals::Arrivals;
pub use error::Error;
pub use generator::{Progress, Traffic};
pub use permutation::Permutation;
pub use prefix::Prefix;
pub use write::{Summary, write};

/// The default time of the first packet: 2025-01-01T00:00:00Z.
pub const START_NS: u64 = 1_735_689_600_000_000_000;

/// The latest time: the end of pcap's times, in the year 2106.
pub const END_NS: u64 = u32::MAX as u64 * 1_000_000_000;

/// Parses a point in time: decimal seconds since the epoch, with up to nine decimals.
///
/// # Errors
/// A message that says what is expected.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let expected = || {
        format!(
            "expected seconds since the epoch with at most nine decimals, before the year 2106, \
             such as 1700000000.25; found `{text}`"
        )
    };
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 9 {
        return Err(expected());
    }
    let seconds: u64 = whole.parse().map_err(|_| expected())?;
    let nanos: u64 = format!("{decimals:0<9}").parse().map_err(|_| expected())?;
    let time = seconds.checked_mul(1_000_000_000).and_then(|time| time.checked_add(nanos));
    time.filter(|time| *time <= END_NS).ok_or_else(expected)
}

/// A time later than another. Fails if it is past [`END_NS`].
fn later(time_ns: u64, by_ns: u64) -> Result<u64, Error> {
    time_ns.checked_add(by_ns).filter(|time| *time <= END_NS).ok_or(Error::End)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_nanosecond() {
        assert_eq!(parse_time("0"), Ok(0));
        assert_eq!(parse_time("1.5"), Ok(1_500_000_000));
        assert_eq!(parse_time("1700000000.000000001"), Ok(1_700_000_000_000_000_001));
        assert_eq!(parse_time("4294967295"), Ok(END_NS));
    }

    #[test]
    fn times_that_are_none_are_refused() {
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1.0000000001", "4294967296", "now"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
