//! Reserved words: keywords and units.

/// Words that are not allowed as names.
pub const KEYWORDS: &[&str] = &[
    "action", "and", "const", "consume", "delete", "drop", "else", "emit", "exists", "false", "fn",
    "for", "has", "hold", "if", "in", "let", "match", "matches", "mirror", "not", "or", "output",
    "pop", "push", "resubmit", "send", "true", "while",
];

/// Units that are one word. Rates such as `Mbit/s` are in [`RATES`].
pub const UNITS: &[&str] = &[
    "ns", "us", "ms", "s", "min", "h", "d", "B", "KB", "MB", "GB", "KiB", "MiB", "GiB", "k", "M",
    "G", "Ki", "Mi", "Gi",
];

/// The parts of rate units before `/s`.
pub const RATES: &[&str] = &["bit", "kbit", "Mbit", "Gbit", "B", "KB", "MB", "GB"];

/// Words that start a statement.
const STATEMENTS: &[&str] = &[
    "match", "if", "for", "let", "delete", "output", "drop", "consume", "mirror", "hold",
    "resubmit", "send", "emit", "push", "pop",
];

/// Words that start a declaration in a function.
pub(super) const NF_ITEMS: &[&str] =
    &["const", "fn", "action", "port", "side", "tag", "state", "queue", "every", "on"];

/// Words that start a declaration in a file.
pub(super) const FILE_ITEMS: &[&str] =
    &["use", "const", "event", "header", "fn", "action", "nf", "stream", "native", "chain"];

/// Words that start a part of a chain.
pub(super) const CHAIN_ITEMS: &[&str] =
    &["interface", "path", "link", "policy", "malformed", "seed", "workers"];

/// Words that start a part of an interface.
pub(super) const INTERFACE_ITEMS: &[&str] = &["behind", "address", "gateway", "mac", "too_long"];

/// Words that may stand behind the length of a header.
pub(super) const LENGTH_ENDS: &[&str] = &["checksum", "holds"];

/// The options of a state.
pub(super) const STATE_OPTIONS: &[&str] =
    &["idle", "hard", "tick", "capacity", "full", "lives", "sharded", "portions"];

/// Words that start a part of something, but may be names elsewhere.
pub(crate) fn openers() -> impl Iterator<Item = &'static &'static str> {
    [NF_ITEMS, FILE_ITEMS, CHAIN_ITEMS, INTERFACE_ITEMS, STATE_OPTIONS].into_iter().flatten()
}

pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

pub(super) fn starts_statement(word: &str) -> bool {
    STATEMENTS.contains(&word)
}
