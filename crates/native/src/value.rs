//! The configuration of a function: parameters by name, each as rows of numbers and texts.

use serde::{Deserialize, Serialize};

/// Parameters that limit flows. Every function has them.
pub const FLOWS: &str = "flows";
/// The second of these parameters.
pub const IDLE: &str = "idle";

/// A parameter's value. Each kind has these rows and texts:
///
/// | parameter | rows | texts |
/// |---|---|---|
/// | scalar | one, with one column | |
/// | string | | one |
/// | list | one for each member: its columns | |
/// | backends | one for each backend: its columns, then 1 if it can be used | |
/// | set, pool | one for each interval: first, last | |
/// | set of strings, hosts | | one for each entry |
/// | patterns | number, 1 if a regular expression, 1 if case-insensitive | one for each pattern |
/// | rules | one for each rule (see `docs/native.md`), then 1 or 0: whether other packets pass | |
/// | routes | one for each route: IP version, prefix, its length, next hop | |
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Value {
    /// Rows of numbers.
    pub rows: Vec<Vec<u128>>,
    /// Texts, or bytes.
    pub texts: Vec<Vec<u8>>,
}

impl Value {
    /// A scalar.
    #[must_use]
    pub fn scalar(value: u128) -> Self {
        Self { rows: vec![vec![value]], texts: Vec::new() }
    }

    /// A text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { rows: Vec::new(), texts: vec![text.as_bytes().to_vec()] }
    }
}

/// All parameters, in the order of their declaration.
pub type Config = Vec<(String, Value)>;

/// The value of a parameter that is one number.
#[must_use]
pub fn number(config: &Config, name: &str) -> Option<u128> {
    let (_, value) = config.iter().find(|(known, _)| known == name)?;
    value.rows.first()?.first().copied()
}
