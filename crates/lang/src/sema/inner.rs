//! The headers inside of tunnels, such as `inner.ip.src`. They are declared in the language, as a
//! program would declare them: `inner.braid` has those of one level, behind the headers of the
//! level outside of it.

/// The name of the file that declares them, in messages.
pub const FILE: &str = "library/inner.braid";

/// The declarations, where `OUT` stands for what is in front of the names of headers outside, and
/// `IN` for what is in front of those inside.
const LEVEL: &str = include_str!("inner.braid");

/// The levels inside, from the outside in.
const LEVELS: [&str; 2] = ["inner.", "inner2."];

/// Whether a text names a header inside of a tunnel. It may say so where it has no such header.
#[must_use]
pub fn is_named(text: &str) -> bool {
    LEVELS.iter().any(|level| text.contains(level))
}

/// The declarations of all levels.
#[must_use]
pub fn declarations() -> String {
    let outside = [""].into_iter().chain(LEVELS);
    let level = |(out, inside): (&str, &str)| {
        // The parser takes a stack of labels as one header; here, a label is one.
        let last = if out.is_empty() { "when" } else { "when OUTmpls.bos == 1 and" };
        let text = LEVEL.replace("OUTmpls when", &format!("OUTmpls {last}"));
        // Behind the outermost IP header, the parser walks over AH.
        let (ip, ip6) = if out.is_empty() { ("inet", "inet") } else { ("OUTip", "OUTip6") };
        let text = text.replace("OUTip.proto", &format!("{ip}.proto"));
        let text = text.replace("OUTip6.proto", &format!("{ip6}.proto"));
        text.replace("OUT", out).replace("IN", inside)
    };
    outside.zip(LEVELS).map(level).collect()
}
