//! Which bytes count where segments overlap and disagree.
//!
//! Hosts differ here, and an attacker who knows the host can hide bytes from a monitor that decides
//! otherwise (Ptacek and Newsham, 1998). So the monitor decides as its target does (Shankar and
//! Paxson, "Active Mapping", 2003; Novak and Sturges, "Target-Based TCP Stream Reassembly", 2007).
//! These authors state each policy as a rule on two segments: when the later one wins.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Which bytes were kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Kept {
    /// Those of the segment that came first.
    Earlier,
    /// Those of the segment that came last.
    Later,
}

impl Kept {
    /// The name in listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kept::Earlier => "earlier",
            Kept::Later => "later",
        }
    }
}

/// A rule for overlapping bytes that wait for earlier ones. Bytes that have been delivered stay as
/// they are under each policy, as on a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// The bytes that came first.
    First,
    /// The bytes that came last.
    Last,
    /// The rule of FreeBSD, NetBSD and OpenBSD: the bytes that came first, except where the later
    /// segment begins in front of the earlier one.
    #[default]
    Bsd,
    /// The rule of Linux since 2.4: as `Bsd`, and the later segment also wins if it begins where
    /// the earlier one does and ends behind it.
    Linux,
    /// The rule of Linux up to 2.2: as `Bsd`, and the later segment also wins if it begins where
    /// the earlier one does and does not end in front of its end.
    OldLinux,
    /// The rule of Solaris and HP-UX 11: the later segment wins if it begins no later than the
    /// earlier one and does not end in front of its end, or if it ends behind it.
    Solaris,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 6] = [
        Policy::First,
        Policy::Last,
        Policy::Bsd,
        Policy::Linux,
        Policy::OldLinux,
        Policy::Solaris,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Policy::First => "first",
            Policy::Last => "last",
            Policy::Bsd => "bsd",
            Policy::Linux => "linux",
            Policy::OldLinux => "old-linux",
            Policy::Solaris => "solaris",
        }
    }

    /// Decides between a segment that waits and a later one that shares bytes with it.
    #[must_use]
    pub fn decide(self, earlier: &Range<u64>, later: &Range<u64>) -> Kept {
        let begins_before = later.start < earlier.start;
        let begins_with = later.start == earlier.start;
        let ends_behind = later.end > earlier.end;
        let ends_before = later.end < earlier.end;
        let is_later = match self {
            Policy::First => false,
            Policy::Last => true,
            Policy::Bsd => begins_before,
            Policy::Linux => begins_before || begins_with && ends_behind,
            Policy::OldLinux => begins_before || begins_with && !ends_before,
            Policy::Solaris => ends_behind || (begins_before || begins_with) && !ends_before,
        };
        if is_later { Kept::Later } else { Kept::Earlier }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Policy::ALL.into_iter().find(|policy| policy.name() == text);
        found.ok_or_else(|| {
            let names = Policy::ALL.map(Policy::name).join(", ");
            format!("there is no policy `{text}`; the policies are {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Kept, Policy};

    /// The nine ways in which two segments can share bytes: the later one begins before, with or
    /// behind the earlier one, and ends before, with or behind it.
    #[test]
    fn each_policy_decides_each_way_of_sharing_as_published() {
        let earlier = 10..20;
        let begins = [5, 10, 15];
        let ends = [18, 20, 25];
        for (policy, later_wins) in [
            (Policy::First, [[false; 3]; 3]),
            (Policy::Last, [[true; 3]; 3]),
            (Policy::Bsd, [[true; 3], [false; 3], [false; 3]]),
            (Policy::Linux, [[true; 3], [false, false, true], [false; 3]]),
            (Policy::OldLinux, [[true; 3], [false, true, true], [false; 3]]),
            (Policy::Solaris, [[false, true, true], [false, true, true], [false, false, true]]),
        ] {
            for (begin, row) in begins.into_iter().zip(later_wins) {
                for (end, wins) in ends.into_iter().zip(row) {
                    let kept = policy.decide(&earlier, &(begin..end));
                    assert_eq!(kept == Kept::Later, wins, "{policy} {begin}..{end}");
                }
            }
        }
    }

    #[test]
    fn names_are_read_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        let why = "bsdd".parse::<Policy>().unwrap_err();
        assert_eq!(
            why,
            "there is no policy `bsdd`; the policies are first, last, bsd, linux, old-linux, solaris"
        );
    }
}
