//! Numbers in options.

use super::fault::Fault;
use std::str::FromStr;

/// A number without a sign.
pub fn number<T: FromStr>(name: &str, text: &str) -> Result<T, Fault> {
    parse(name, text, text)
}

/// A number that may have a `-`.
pub fn signed<T: FromStr>(name: &str, text: &str) -> Result<T, Fault> {
    parse(name, text, text.strip_prefix('-').unwrap_or(text))
}

fn parse<T: FromStr>(name: &str, text: &str, digits: &str) -> Result<T, Fault> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number);
    number.ok_or_else(|| Fault::wrong(name, format!("`{text}` is no number in its range")))
}
