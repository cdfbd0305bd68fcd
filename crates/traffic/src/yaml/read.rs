//! Typed access to a tree: every error and warning names the line and the key's path.

use super::tree::{Node, Value};
use std::net::Ipv4Addr;

/// A node and its path.
#[derive(Clone, Debug)]
pub struct At<'a> {
    node: &'a Node,
    path: String,
}

/// A mapping and its path.
#[derive(Clone, Debug)]
pub struct Map<'a> {
    entries: &'a [(String, Node)],
    line: usize,
    path: String,
}

impl<'a> At<'a> {
    /// The root of a tree. Messages call it `name`.
    pub fn root(node: &'a Node, name: &str) -> Self {
        Self { node, path: name.to_owned() }
    }

    /// An error message about this value.
    pub fn wrong(&self, what: impl AsRef<str>) -> String {
        format!("line {}: {}: {}", self.node.line, self.path, what.as_ref())
    }

    fn expected(&self, what: &str) -> String {
        self.wrong(format!("expected {what}, found {}", self.node.describe()))
    }

    /// The value as a mapping.
    pub fn map(&self) -> Result<Map<'a>, String> {
        match &self.node.value {
            Value::Map(entries) => {
                Ok(Map { entries, line: self.node.line, path: self.path.clone() })
            }
            _ => Err(self.expected("a mapping")),
        }
    }

    /// The value as a list of at most `most` items.
    pub fn list(&self, most: usize) -> Result<Vec<At<'a>>, String> {
        let Value::List(items) = &self.node.value else { return Err(self.expected("a list")) };
        if items.len() > most {
            return Err(self.wrong(format!("{} items; at most {most} are read", items.len())));
        }
        let at = |(i, node)| At { node, path: format!("{}[{i}]", self.path) };
        Ok(items.iter().enumerate().map(at).collect())
    }

    /// Whether the value is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.node.value, Value::List(_))
    }

    fn plain(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Scalar { text, quoted: false } => Some(text),
            _ => None,
        }
    }

    /// The value as text that is not empty.
    pub fn text(&self) -> Result<&'a str, String> {
        match &self.node.value {
            Value::Scalar { text, .. } if !text.is_empty() => Ok(text),
            _ => Err(self.expected("a text")),
        }
    }

    /// The value as a number from 0 up to `most`.
    pub fn number(&self, most: f64) -> Result<f64, String> {
        let number = self.plain().and_then(|text| match text.strip_prefix("0x") {
            Some(hex) => Some(u64::from_str_radix(hex, 16).ok()? as f64),
            None if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                text.parse::<f64>().ok()
            }
            None => None,
        });
        match number {
            None => Err(self.expected("a number")),
            Some(number) if (0.0..=most).contains(&number) => Ok(number),
            Some(_) => Err(self.expected(&format!("a number from 0 to {most}"))),
        }
    }

    /// The value as a whole number.
    pub fn whole(&self, least: u64, most: u64) -> Result<u64, String> {
        let number = self.plain().and_then(|text| match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        });
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(number),
            None => Err(self.expected(&format!("a whole number from {least} to {most}"))),
        }
    }

    /// The value as `true` or `false`.
    pub fn flag(&self) -> Result<bool, String> {
        match self.plain() {
            Some("true" | "True" | "TRUE") => Ok(true),
            Some("false" | "False" | "FALSE") => Ok(false),
            _ => Err(self.expected("true or false")),
        }
    }

    /// The value as an IPv4 address.
    pub fn address(&self) -> Result<u32, String> {
        let address = self.text().ok().and_then(|text| text.parse::<Ipv4Addr>().ok());
        address.map(Ipv4Addr::to_bits).ok_or_else(|| self.expected("an IPv4 address"))
    }
}

impl<'a> Map<'a> {
    /// The same mapping, with paths that start here.
    pub fn top(self) -> Self {
        Self { path: String::new(), ..self }
    }

    /// The value of a key, if the key is present.
    pub fn get(&self, key: &str) -> Option<At<'a>> {
        let (_, node) = self.entries.iter().find(|(known, _)| known == key)?;
        Some(At { node, path: self.path_of(key) })
    }

    /// The value of a key, which must be present.
    pub fn need(&self, key: &str) -> Result<At<'a>, String> {
        self.get(key).ok_or_else(|| format!("line {}: {} is missing", self.line, self.path_of(key)))
    }

    /// The value of a key, converted by `read`, if the key is present.
    pub fn optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(&At<'a>) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        self.get(key).as_ref().map(read).transpose()
    }

    /// Warnings about unknown keys.
    pub fn unknown<'b>(&'b self, known: &'b [&'b str]) -> impl Iterator<Item = String> + 'b {
        let unknown = self.entries.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        unknown.map(|(key, node)| {
            let path = self.path_of(&key.escape_debug().to_string());
            format!("line {}: {path} is not known; it has no effect", node.line)
        })
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn with<T>(text: &str, read: impl FnOnce(At<'_>) -> Result<T, String>) -> Result<T, String> {
        read(At::root(&parse(text).unwrap(), "x"))
    }

    #[test]
    fn numbers_are_decimal_fractional_or_hexadecimal() {
        for (text, expected) in [("12", 12.0), ("0.5", 0.5), ("1e3", 1000.0), ("0x1f", 31.0)] {
            assert_eq!(with(text, |at| at.number(1e4)), Ok(expected), "{text}");
        }
    }

    #[test]
    fn numbers_that_are_none_or_too_large_are_refused() {
        for text in ["a", "\"12\"", ".nan", ".inf", "inf", "nan", "[1]", "{}", "1e999", "-1", "1_0"]
        {
            assert!(with(text, |at| at.number(1e4)).is_err(), "{text}");
        }
        for text in ["1.0", "-1", "65536", "99999999999999999999999999", "0", ""] {
            assert!(with(&format!("- {text}"), |at| at.list(1)?[0].whole(1, 65535)).is_err());
        }
    }

    #[test]
    fn errors_name_line_path_and_what_was_found() {
        let error = with("\n\n- a: {b: [1, two]}\n", |at| {
            let items = at.list(9)?[0].map()?.need("a")?.map()?.need("b")?.list(9)?;
            items[1].whole(0, 9)
        });
        let expected = "line 3: x[0].a.b[1]: expected a whole number from 0 to 9, found `two`";
        assert_eq!(error, Err(expected.to_owned()));
    }

    #[test]
    fn missing_and_unknown_keys_are_named() {
        let tree = parse("a:\n  b: 1\n  c: 2\n").unwrap();
        let map = At::root(&tree, "").map().unwrap().need("a").unwrap().map().unwrap();
        assert_eq!(map.need("d").unwrap_err(), "line 2: a.d is missing");
        let warnings: Vec<String> = map.unknown(&["b"]).collect();
        assert_eq!(warnings, ["line 3: a.c is not known; it has no effect"]);
    }
}
