//! A rule on property tests: `BRAID_CASES` scales each of them.

use super::{File, files_below, scan};

/// How a number of cases begins that `BRAID_CASES` scales.
const SCALED: &str = "braid_cases::";
/// The attribute that each block of property tests begins with.
const ATTRIBUTE: &str = "#![proptest_config(";

/// Each block of property tests has a configuration, and each configuration takes its number of
/// cases from the crate `cases`.
#[must_use]
pub fn property_tests_scale() -> Vec<String> {
    files_below("crates", &[".rs"]).iter().flat_map(unscaled).collect()
}

/// The lines of a file that give a property test a number of cases of its own.
fn unscaled(file: &File) -> Vec<String> {
    let code = scan::code_only(&file.text);
    let rest = |at: usize, word: &str| code[at + word.len()..].trim_start();
    let blocks = code.match_indices("proptest! {").filter(|(at, word)| {
        let Some(config) = rest(*at, word).strip_prefix(ATTRIBUTE) else { return true };
        config.trim_start().starts_with("ProptestConfig::default(")
    });
    let counts =
        code.match_indices("with_cases(").filter(|(at, word)| !rest(*at, word).starts_with(SCALED));
    let fields = code.match_indices("ProptestConfig {").filter(|(at, word)| {
        // A function that returns a configuration ends like this, too.
        let is_result = code[..*at].trim_end().ends_with("->");
        let fields = rest(*at, word).split('}').next().unwrap_or_default();
        let count = fields.split_once("cases:").map(|(_, count)| count.trim_start());
        !is_result && !count.is_some_and(|count| count.starts_with(SCALED))
    });
    let mut lines: Vec<usize> = blocks
        .chain(counts)
        .chain(fields)
        .map(|(at, _)| code[..at].matches('\n').count() + 1)
        .collect();
    lines.sort_unstable();
    let line = |number| {
        format!("{}:{number}: a property test that `BRAID_CASES` does not scale", file.path)
    };
    lines.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let found = unscaled(&File { path: "p".to_owned(), text: text.to_owned() });
        let number = |line: &String| line.split(':').nth(1).map(str::to_owned);
        found.iter().filter_map(number).collect()
    }

    #[test]
    fn property_test_with_its_own_number_of_cases_is_found() {
        assert_eq!(lines("proptest! {\n #[test]\n}"), ["1"]);
        assert_eq!(lines("proptest! { #![proptest_config(ProptestConfig::default())] }"), ["1"]);
        let own = "proptest! {\n #![proptest_config(ProptestConfig::with_cases(64))]\n}";
        assert_eq!(lines(own), ["2"]);
        assert_eq!(lines("let c = ProptestConfig { cases: 8, ..Default::default() };"), ["1"]);
        assert_eq!(lines("let c = ProptestConfig { verbose: 1, ..Default::default() };"), ["1"]);
    }

    #[test]
    fn property_test_that_scales_is_not_found() {
        let scaled = "proptest! {\n #![proptest_config(ProptestConfig::with_cases(\
                      braid_cases::cases(64)))]\n}";
        let function = "fn config() -> ProptestConfig {\n let c = ProptestConfig {\n  cases: \
                        braid_cases::cases(9),\n ..ProptestConfig::default() };\n c }\n\
                        proptest! {\n #![proptest_config(config())]\n}";
        assert_eq!([lines(scaled), lines(function)].concat(), [""; 0]);
        assert_eq!(lines("// proptest! { with_cases(3) }"), [""; 0]);
    }
}
