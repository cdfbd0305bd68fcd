//! Reads words, numbers, names and punctuation of the text form.

use super::names::is_word;
use crate::model::Word;
use crate::show::parse_word;

/// The reason why a text is not a model.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The error, or the text that was expected.
    pub message: String,
}

pub(crate) type Result<T> = std::result::Result<T, TextError>;

/// A position in a text.
pub(crate) struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// The start of the last word or number.
    token: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, token: 0 }
    }

    /// An error at the current position: another text was expected there.
    pub(crate) fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        self.error_at(self.at, message)
    }

    /// An error at the last word or number: it is wrong.
    pub(crate) fn wrong<T>(&self, message: impl Into<String>) -> Result<T> {
        self.error_at(self.token, message)
    }

    /// The start of the last word or number.
    pub(crate) fn last(&self) -> usize {
        self.token
    }

    pub(crate) fn error_at<T>(&self, at: usize, message: impl Into<String>) -> Result<T> {
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Err(TextError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        })
    }

    /// Skips blanks and comments (`;` to the end of the line), and returns the remaining text.
    fn rest(&mut self) -> &'a str {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with(';') {
                return trimmed;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    pub(crate) fn at_end(&mut self) -> bool {
        self.rest().is_empty()
    }

    /// Whether this punctuation comes next.
    pub(crate) fn sees(&mut self, punctuation: &str) -> bool {
        self.rest().starts_with(punctuation)
    }

    pub(crate) fn eat(&mut self, punctuation: &str) -> bool {
        let found = self.sees(punctuation);
        if found {
            self.at += punctuation.len();
        }
        found
    }

    pub(crate) fn expect(&mut self, punctuation: &str) -> Result<()> {
        if self.eat(punctuation) { Ok(()) } else { self.error(format!("expected `{punctuation}`")) }
    }

    fn take(&mut self, text: &str) {
        self.token = self.at;
        self.at += text.len();
    }

    fn run(&mut self, inside: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        &rest[..rest.find(|c| !inside(c)).unwrap_or(rest.len())]
    }

    /// The next word, without reading it. Empty if no word comes next.
    pub(crate) fn peek_word(&mut self) -> &'a str {
        let word = self.run(|c| c.is_ascii_alphanumeric() || c == '_');
        if word.starts_with(|c: char| c.is_ascii_digit()) { "" } else { word }
    }

    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == word;
        if found {
            self.take(word);
        }
        found
    }

    pub(crate) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { self.error(format!("expected `{word}`")) }
    }

    /// A word: a letter or `_`, then letters, digits, `_`.
    pub(crate) fn word(&mut self) -> Result<&'a str> {
        let word = self.peek_word();
        if word.is_empty() {
            return self.error("expected a word");
        }
        self.take(word);
        Ok(word)
    }

    /// A word with dots, such as a field's name.
    pub(crate) fn dotted(&mut self) -> Result<&'a str> {
        let word = self.run(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        if word.is_empty() {
            return self.error("expected a name such as `ip.src`");
        }
        self.take(word);
        Ok(word)
    }

    /// A declared name: a word, or quoted.
    pub(crate) fn name(&mut self) -> Result<String> {
        if self.sees("\"") { self.string() } else { self.word().map(str::to_owned) }
    }

    /// A scalar in any of the forms of [`crate::show::parse_word`].
    pub(crate) fn literal(&mut self) -> Result<Word> {
        let text = self.run(|c| c.is_ascii_alphanumeric() || c == ':' || c == '.');
        match parse_word(text) {
            Some(value) => {
                self.take(text);
                Ok(value)
            }
            None => self.error("expected a number, an address, `true` or `false`"),
        }
    }

    /// Whether an IPv6 address comes next.
    pub(crate) fn sees_ip6(&mut self) -> bool {
        self.run(|c| c.is_ascii_alphanumeric() || c == ':' || c == '.').contains(':')
    }

    /// Reads the next word if it is a name and not a literal.
    pub(crate) fn reference(&mut self) -> Option<&'a str> {
        let text = self.run(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '_'));
        if !is_word(text) {
            return None;
        }
        self.take(text);
        Some(text)
    }

    /// Whether a word followed by `:` or `@` comes next: the name of a function before a step.
    pub(crate) fn names_step(&mut self) -> bool {
        let word = self.peek_word();
        let after = self.rest()[word.len()..].trim_start();
        !word.is_empty() && after.starts_with([':', '@'])
    }

    /// Decimal digits as a number.
    pub(crate) fn decimal(&mut self) -> Result<u32> {
        let digits = self.run(|c| c.is_ascii_digit());
        match digits.parse() {
            Ok(number) => {
                self.take(digits);
                Ok(number)
            }
            Err(_) => self.error("expected a number"),
        }
    }

    /// A number that fits the type.
    pub(crate) fn number<T: TryFrom<Word>>(&mut self) -> Result<T> {
        let value = self.literal()?;
        T::try_from(value).or_else(|_| self.wrong("this number is too large here"))
    }

    /// The number of a reference such as `v12`.
    pub(crate) fn id(&mut self, prefix: &str) -> Result<u32> {
        let word = self.peek_word();
        match super::names::numbered(prefix, word) {
            Some(number) => {
                self.take(word);
                Ok(number)
            }
            None => self.error(format!("expected a number such as `{prefix}0`")),
        }
    }

    /// Quoted text.
    pub(crate) fn string(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes).or_else(|_| self.error("this text is not UTF-8"))
    }

    /// Quoted bytes: text with the escapes `\n \r \t \0 \\ \" \' \xHH \u{H…}`.
    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>> {
        self.expect("\"")?;
        self.token = self.at - 1;
        let mut out = Vec::new();
        loop {
            let Some(c) = self.text[self.at..].chars().next() else {
                return self.error("this text has no closing quote");
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => self.escape(&mut out)?,
                _ => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let rest = &self.text[self.at..];
        let (length, bytes): (usize, Vec<u8>) = match rest.as_bytes().first() {
            Some(b'n') => (1, vec![b'\n']),
            Some(b'r') => (1, vec![b'\r']),
            Some(b't') => (1, vec![b'\t']),
            Some(b'0') => (1, vec![0]),
            Some(c @ (b'\\' | b'"' | b'\'')) => (1, vec![*c]),
            Some(b'x') => {
                let byte = rest.get(1..3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
                let Some(byte) = byte else { return self.error("expected two hex digits") };
                (3, vec![byte])
            }
            Some(b'u') => {
                let hex = rest.strip_prefix("u{").and_then(|rest| rest.split_once('}'));
                let code = hex.and_then(|(hex, _)| u32::from_str_radix(hex, 16).ok());
                let (Some((hex, _)), Some(c)) = (hex, code.and_then(char::from_u32)) else {
                    return self.error("expected a character such as `\\u{e9}`");
                };
                (hex.len() + 3, c.to_string().into_bytes())
            }
            _ => return self.error("this escape is not known"),
        };
        self.at += length;
        out.extend(bytes);
        Ok(())
    }

    /// Items separated by commas, up to and including a closing punctuation mark.
    pub(crate) fn items<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }
}
