//! Splits a packet's text into layers and words.

use super::values::{ParseError, Parsed, error, hex, number};
use std::collections::VecDeque;

/// A word of a layer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// A simple word.
    Bare(String),
    /// `name=value`.
    Attribute(String, String),
    /// A quoted string, as bytes.
    Text(Vec<u8>),
}

/// The words of one layer.
pub(super) struct Words(VecDeque<Word>);

/// The layers of a text.
pub(super) fn split(text: &str) -> Parsed<Vec<Words>> {
    let mut layers = vec![Words(VecDeque::new())];
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (bytes, after) = string(quoted)?;
            last(&mut layers).push_back(Word::Text(bytes));
            rest = after.trim_start();
            continue;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word == "/" {
            layers.push(Words(VecDeque::new()));
        } else {
            last(&mut layers).push_back(match word.split_once('=') {
                Some((name, value)) => Word::Attribute(name.to_owned(), value.to_owned()),
                None => Word::Bare(word.to_owned()),
            });
        }
        rest = after.trim_start();
    }
    Ok(layers)
}

fn last(layers: &mut [Words]) -> &mut VecDeque<Word> {
    match layers {
        [.., Words(words)] => words,
        [] => unreachable!("there is always a layer"),
    }
}

/// The bytes of a string up to its closing quote, and the text behind it.
fn string(text: &str) -> Parsed<(Vec<u8>, &str)> {
    let mut bytes = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((bytes, &text[at + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => bytes.push(b'\n'),
                Some((_, 'r')) => bytes.push(b'\r'),
                Some((_, 't')) => bytes.push(b'\t'),
                Some((_, '0')) => bytes.push(0),
                Some((_, c @ ('"' | '\\'))) => bytes.push(if c == '"' { b'"' } else { b'\\' }),
                Some((at, 'x')) => {
                    bytes.extend(hex(text.get(at + 1..at + 3).unwrap_or("?"))?);
                    chars.nth(1);
                }
                _ => return error("expected one of \\n \\r \\t \\0 \\\" \\\\ \\xHH in a string"),
            },
            c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    error("a string has no closing quote")
}

impl Words {
    /// The layer's name, if it starts with a simple word.
    pub(super) fn peek_name(&self) -> String {
        match self.0.front() {
            Some(Word::Bare(name)) => name.clone(),
            _ => String::new(),
        }
    }

    /// Skips the next word.
    pub(super) fn skip(&mut self) {
        self.0.pop_front();
    }

    /// The next word, if any.
    pub(super) fn next(&mut self) -> Option<Word> {
        self.0.pop_front()
    }

    /// The next word, if it is a simple one.
    pub(super) fn take_bare(&mut self) -> Option<String> {
        match self.0.pop_front() {
            Some(Word::Bare(word)) => Some(word),
            Some(other) => {
                self.0.push_front(other);
                None
            }
            None => None,
        }
    }

    /// A number.
    pub(super) fn number<T: TryFrom<u64>>(&mut self) -> Parsed<T> {
        match self.take_bare() {
            Some(word) => number(&word),
            None => error("expected a number"),
        }
    }

    /// Whether `A > B` follows.
    pub(super) fn has_pair(&self) -> bool {
        self.0.get(1) == Some(&Word::Bare(">".to_owned()))
    }

    /// `A > B`.
    pub(super) fn pair(&mut self) -> Parsed<(String, String)> {
        let pair = (self.take_bare(), self.take_bare(), self.take_bare());
        match pair {
            (Some(left), Some(arrow), Some(right)) if arrow == ">" => Ok((left, right)),
            found => Err(ParseError(format!("expected `A > B`, found {found:?}"))),
        }
    }
}
