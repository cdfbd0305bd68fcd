//! Suggests names for misspelt ones.

/// The candidate nearest to `name`, if it is close enough to be a slip. The distance may be a third
/// of the length of `name`, and at least one edit. A swap of neighbours counts as one edit. Of
/// equally close candidates, the first one wins.
#[must_use]
pub fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name && candidate.len() <= name.len() + 12)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(edits, _)| *edits <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The help line for a misspelt name: "did you mean `ip.dst`?".
#[must_use]
pub fn did_you_mean_help<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    did_you_mean(name, candidates).map(|found| format!("did you mean `{found}`?"))
}

/// Optimal string alignment distance with four edits: insert, delete, replace, swap neighbours.
/// Case does not count.
fn distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 64;
    let a: Vec<char> = a.to_lowercase().chars().take(LONGEST).collect();
    let b: Vec<char> = b.to_lowercase().chars().take(LONGEST).collect();
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_candidate_is_suggested() {
        assert_eq!(did_you_mean("ip.dts", ["ip.src", "ip.dst", "ip.ttl"]), Some("ip.dst"));
        assert_eq!(did_you_mean("Output", ["output", "drop"]), Some("output"));
        assert_eq!(did_you_mean("xyz", ["output", "drop"]), None);
    }

    #[test]
    fn distance_counts_a_swap_as_one() {
        assert_eq!(distance("abcd", "abdc"), 1);
        assert_eq!(distance("abc", "abc"), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
