//! Reads files of signatures in Suricata's language.

use super::error::{Collector, Fault, ImportErrors};
use braid_signatures::{Cause, Loaded, Refused, Signatures};
use std::collections::BTreeMap;

/// What happens to rules that need something that Braid does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsupported {
    /// They are errors.
    Refuse,
    /// They are left out.
    Skip,
}

/// Reads a file of signatures. The second part says how many rules are not supported, and why.
///
/// # Errors
/// All lines that cannot be used.
pub fn signatures(
    text: &str,
    unsupported: Unsupported,
) -> (Result<Signatures, ImportErrors>, Option<String>) {
    let loaded = braid_signatures::load(text);
    let summary = summary(&loaded);
    let mut errors = Collector::default();
    for refused in &loaded.refused {
        if refused.cause == Cause::Wrong || unsupported == Unsupported::Refuse {
            errors.push(refused.line, &refused.text, fault(refused));
        }
    }
    (errors.finish(loaded.set), summary)
}

fn fault(refused: &Refused) -> Fault {
    let Refused { at, cause, name, why, .. } = refused;
    let expected = match cause {
        Cause::Wrong => format!("a rule ({name}: {why})"),
        Cause::Unsupported => format!("what is supported ({name}: {why})"),
    };
    Fault::new(*at, expected, refused.text.get(*at..).unwrap_or_default().trim_end())
}

/// The number of rules that are not supported, by the name of what they need.
fn summary(loaded: &Loaded) -> Option<String> {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for refused in loaded.refused.iter().filter(|of| of.cause == Cause::Unsupported) {
        *names.entry(&refused.name).or_default() += 1;
    }
    let count: usize = names.values().sum();
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let names: Vec<String> = names.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let rules = loaded.rules;
    (count > 0).then(|| format!("{count} of {rules} rules are not supported: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::{Unsupported, signatures};

    const FILE: &str = "alert tcp any any -> any any (content:\"a\"; sid:1;)\n\
        alert dns any any -> any any (content:\"a\"; sid:2;)\n\
        alert tcp any any -> any any (content:\"a\"; geoip:5; sid:3;)\n\
        alert tcp any any -> any any (geoip:5; sid:4;)\n";

    #[test]
    fn rules_that_are_not_supported_are_counted_by_name() {
        let (set, summary) = signatures(FILE, Unsupported::Skip);
        assert_eq!(set.map(|set| set.len()), Ok(1));
        let wanted = "3 of 4 rules are not supported: geoip 2, dns 1";
        assert_eq!(summary.as_deref(), Some(wanted));
    }

    #[test]
    fn unsupported_rules_are_errors_by_default() {
        let errors = signatures(FILE, Unsupported::Refuse).0.expect_err("three lines");
        let places = errors.errors.iter().map(|error| (error.line, error.column));
        assert_eq!(places.collect::<Vec<_>>(), [(2, 1), (3, 44), (4, 31)]);
        let error = &errors.errors[1];
        assert_eq!(error.expected, "what is supported (geoip: this option)");
        assert_eq!(error.found, "`geoip:5; sid:3;)`");
    }

    #[test]
    fn wrong_lines_are_always_errors() {
        let text = format!("{FILE}alert tcp any any -> any any (content:\"a\"; sid:1;)\n");
        let errors = signatures(&text, Unsupported::Skip).0.expect_err("the sid is there twice");
        assert_eq!((errors.errors.len(), errors.errors[0].line), (1, 5));
    }
}
