//! Builds a tree of nodes from the events of the YAML parser.
//!
//! The parser's own loader recurses with the depth of the file and expands aliases, so that a short
//! file can take all stack or memory. This module builds the tree from the events instead, within
//! limits.

use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::{Marker, TScalarStyle};

/// Most bytes of a file.
pub const MAX_BYTES: usize = 1 << 20;
/// Most levels.
const MAX_DEPTH: usize = 32;
/// Most nodes.
const MAX_NODES: usize = 100_000;
/// The most keys of one mapping. Each new key is compared with all keys before it.
const MAX_KEYS: usize = 1_000;

/// A value and the line (from 1) on which it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Line.
    pub line: usize,
    /// Value.
    pub value: Value,
}

/// The value of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A scalar as written. A quoted scalar is always text.
    Scalar {
        /// Its text.
        text: String,
        /// Whether it was quoted, or written as a block.
        quoted: bool,
    },
    /// A list.
    List(Vec<Node>),
    /// A mapping in the order of the file. Each key occurs once.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The kind of value, for messages.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Scalar { text, quoted: false } if matches!(&**text, "" | "~" | "null") => {
                "nothing".to_owned()
            }
            Value::Scalar { text, .. } if text.chars().count() > 40 => {
                format!("`{}…`", text.chars().take(40).collect::<String>().escape_debug())
            }
            Value::Scalar { text, .. } => format!("`{}`", text.escape_debug()),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// A list or mapping whose end has not come yet.
enum Open {
    List(Vec<Node>),
    Map(Vec<(String, Node)>, Option<String>),
}

/// Parses a file with one document.
///
/// # Errors
/// When the text is not YAML, uses an unsupported feature (aliases, keys that are not
/// scalars, a second document), or breaks a limit. The message starts with the line.
pub fn parse(text: &str) -> Result<Node, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("the file has {} bytes; at most {MAX_BYTES} are read", text.len()));
    }
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    loop {
        let (event, mark) = parser
            .next_token()
            .map_err(|why| at(*why.marker(), format!("no YAML: {}", why.info())))?;
        if matches!(event, Event::StreamEnd) {
            return builder.root.ok_or_else(|| "the file is empty".to_owned());
        }
        builder.event(event, mark)?;
    }
}

fn at(mark: Marker, what: impl AsRef<str>) -> String {
    format!("line {}: {}", mark.line(), what.as_ref())
}

#[derive(Default)]
struct Builder {
    open: Vec<(usize, Open)>,
    root: Option<Node>,
    nodes: usize,
}

impl Builder {
    fn event(&mut self, event: Event, mark: Marker) -> Result<(), String> {
        let line = mark.line();
        match event {
            Event::Scalar(text, style, ..) => {
                let quoted = style != TScalarStyle::Plain;
                self.scalar(Node { line, value: Value::Scalar { text, quoted } }, mark)
            }
            Event::SequenceStart(..) => self.begin(Open::List(Vec::new()), mark),
            Event::MappingStart(..) => self.begin(Open::Map(Vec::new(), None), mark),
            Event::SequenceEnd | Event::MappingEnd => self.end(mark),
            Event::Alias(_) => Err(at(mark, "aliases (`*name`) are not supported")),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, open: Open, mark: Marker) -> Result<(), String> {
        if let Some((_, Open::Map(_, None))) = self.open.last() {
            return Err(at(mark, "a key must be a scalar"));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(at(mark, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.open.push((mark.line(), open));
        Ok(())
    }

    fn end(&mut self, mark: Marker) -> Result<(), String> {
        let Some((line, open)) = self.open.pop() else { return Ok(()) };
        let value = match open {
            Open::List(items) => Value::List(items),
            Open::Map(entries, _) => Value::Map(entries),
        };
        self.add(Node { line, value }, mark)
    }

    fn scalar(&mut self, node: Node, mark: Marker) -> Result<(), String> {
        if let Some((_, Open::Map(entries, key @ None))) = self.open.last_mut() {
            let Value::Scalar { text, .. } = node.value else { return Ok(()) };
            if entries.len() == MAX_KEYS {
                return Err(at(mark, format!("more than {MAX_KEYS} keys in one mapping")));
            }
            if entries.iter().any(|(known, _)| *known == text) {
                return Err(at(mark, format!("the key `{}` is there twice", text.escape_debug())));
            }
            *key = Some(text);
            return Ok(());
        }
        self.add(node, mark)
    }

    fn add(&mut self, node: Node, mark: Marker) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(at(mark, format!("more than {MAX_NODES} values")));
        }
        match self.open.last_mut() {
            None if self.root.is_some() => Err(at(mark, "more than one document")),
            None => {
                self.root = Some(node);
                Ok(())
            }
            Some((_, Open::List(items))) => {
                items.push(node);
                Ok(())
            }
            Some((_, Open::Map(entries, key))) => {
                entries.extend(key.take().map(|key| (key, node)));
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(line: usize, text: &str) -> Node {
        Node { line, value: Value::Scalar { text: text.to_owned(), quoted: false } }
    }

    #[test]
    fn nodes_know_their_lines() {
        let tree = parse("a: 1\nb:\n  - x\n  - y\n").unwrap();
        let list = Node { line: 3, value: Value::List(vec![scalar(3, "x"), scalar(4, "y")]) };
        let entries = vec![("a".to_owned(), scalar(1, "1")), ("b".to_owned(), list)];
        assert_eq!(tree, Node { line: 1, value: Value::Map(entries) });
    }

    #[test]
    fn deep_nesting_is_refused_without_recursion() {
        for text in ["- ".repeat(100_000), "[".repeat(100_000), "{a: ".repeat(100_000)] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains("nested deeper") || error.contains("no YAML"), "{error}");
        }
    }

    #[test]
    fn depth_up_to_the_limit_is_read() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(
            parse(&nested(MAX_DEPTH + 1)).unwrap_err(),
            "line 1: nested deeper than 32 levels"
        );
    }

    #[test]
    fn what_is_not_supported_is_named_with_its_line() {
        for (text, expected) in [
            ("a: &x 1\nb: *x\n", "line 2: aliases (`*name`) are not supported"),
            ("a: 1\na: 2\n", "line 2: the key `a` is there twice"),
            ("? [a]\n: 1\n", "line 1: a key must be a scalar"),
            ("a\n---\nb\n", "line 3: more than one document"),
            ("", "the file is empty"),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        }
        assert!(parse("a: [1\n").unwrap_err().contains("no YAML"));
    }

    #[test]
    fn limits_on_size_hold() {
        let long = "#".repeat(MAX_BYTES + 1);
        assert!(parse(&long).unwrap_err().contains("at most 1048576"));
        let many = format!("[{}]", "1,".repeat(MAX_NODES));
        assert_eq!(parse(&many).unwrap_err(), "line 1: more than 100000 values");
        let keys: String = (0..=MAX_KEYS).map(|i| format!("k{i}: 1\n")).collect();
        assert_eq!(parse(&keys).unwrap_err(), "line 1001: more than 1000 keys in one mapping");
    }
}
