//! Times in the notation of cases: `0s`, `1.5s`, `20ms`, `2min`.

/// Units, the smallest first, with their nanoseconds.
const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// The nanoseconds of a time such as `1.5s`. `None` for any other text, and for a time that is too
/// large or not a whole number of nanoseconds.
#[must_use]
pub fn parse_time(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut ns = whole.parse::<u64>().ok()?.checked_mul(*scale)?;
    let mut scale = *scale;
    for digit in fraction.chars() {
        if scale % 10 != 0 {
            return None;
        }
        scale /= 10;
        ns = ns.checked_add(scale * u64::from(digit.to_digit(10)?))?;
    }
    Some(ns)
}

/// A time in seconds, without superfluous digits, such as `1.5s`.
#[must_use]
pub fn show_time(ns: u64) -> String {
    let (whole, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    if rest == 0 {
        return format!("{whole}s");
    }
    let fraction = format!("{rest:09}");
    format!("{whole}.{}s", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_nanosecond() {
        for (text, ns) in [
            ("0s", Some(0)),
            ("1.5s", Some(1_500_000_000)),
            ("20ms", Some(20_000_000)),
            ("2min", Some(120_000_000_000)),
            ("0.000000001s", Some(1)),
            ("0.5ns", None),
            ("5", None),
            ("s", None),
            ("1.2.3s", None),
            ("300000000000d", None),
        ] {
            assert_eq!(parse_time(text), ns, "{text}");
        }
    }

    #[test]
    fn times_are_shown_in_seconds() {
        assert_eq!(show_time(120_100_000_000), "120.1s");
        assert_eq!(show_time(7), "0.000000007s");
    }
}
