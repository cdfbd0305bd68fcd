//! Reads prefix lists as sets. Each line has one prefix, address or range.

use super::addr::{Range, range};
use super::cursor::each_line;
use super::error::ImportErrors;
use super::routes::MAX_ROUTES;
use braid_ir::model::ip6_range;
use braid_ir::value::IntervalSet;

/// IP version of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// `set<ip4>`.
    V4,
    /// `set<ip6>`.
    V6,
    /// `set<addr>`: both, and IPv4 in the low 32 bits.
    Both,
}

/// Reads a prefix list. Host bits are ignored. There are at most 8 Mi lines.
///
/// # Errors
/// All lines that cannot be used, including lines of the other IP version.
pub fn prefixes(text: &str, family: Family) -> Result<IntervalSet, ImportErrors> {
    let mut intervals: Vec<(u128, u128)> = Vec::new();
    let errors = each_line(text, |_, line| {
        let word = line.word();
        if intervals.len() >= MAX_ROUTES {
            return Err(word.fault(format!("at most {MAX_ROUTES} prefixes")));
        }
        let interval = match (range(word)?, family) {
            (Range::V4(lo, hi), Family::V4 | Family::Both) => (lo.into(), hi.into()),
            (Range::V6(lo, hi), Family::V6) => (lo, hi),
            (Range::V6(lo, hi), Family::Both) => ip6_range(lo, hi).ok_or_else(|| {
                word.fault("an IPv6 prefix outside of ::/96, whose addresses count as IPv4")
            })?,
            (Range::V4(..), Family::V6) => {
                return Err(word.fault("an IPv6 prefix, as in the rest of the list"));
            }
            (Range::V6(..), Family::V4) => {
                return Err(word.fault("an IPv4 prefix, as in the rest of the list"));
            }
        };
        line.end("the end of the line after the prefix")?;
        intervals.push(interval);
        Ok(())
    });
    errors.finish(IntervalSet::new(intervals))
}

#[cfg(test)]
mod tests {
    use super::{Family, prefixes};

    #[test]
    fn prefixes_addresses_and_ranges_become_one_set() {
        let text = "10.0.0.0/31\n10.0.0.2 # joins\n\n10.0.0.9-10.0.0.10\n";
        let set = prefixes(text, Family::V4).expect("good lines");
        assert_eq!(set.intervals(), [(0x0a00_0000, 0x0a00_0002), (0x0a00_0009, 0x0a00_000a)]);
    }

    #[test]
    fn both_versions_share_a_set_in_which_the_lowest_addresses_are_ipv4() {
        let set = prefixes("10.0.0.0/31\n::/0\n", Family::Both).expect("good lines");
        assert_eq!(set.intervals(), [(0x0a00_0000, 0x0a00_0001), (1 << 32, u128::MAX)]);
        assert!(prefixes("::10.0.0.1", Family::Both).is_err());
    }

    #[test]
    fn lines_of_the_other_version_are_errors() {
        let errors = prefixes("::/0\n10.0.0.0/8\n", Family::V4).expect_err("version 6");
        assert_eq!((errors.errors.len(), errors.errors[0].line), (1, 1));
        assert!(prefixes("10.0.0.0/8", Family::V6).is_err());
        assert_eq!(prefixes("::/0", Family::V6).map(|set| set.len()), Ok(u128::MAX));
    }
}
