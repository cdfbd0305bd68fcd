//! Lines of a file and a cursor over a line: the shared lexing of all importers.

use super::error::{Collector, Fault};

/// The lines of a file, each with its number from 1. Empty lines, lines that start with `#`, and a
/// byte order mark are omitted.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (1..).zip(text.lines()).filter(|(_, line)| {
        let start = line.trim_start();
        !start.is_empty() && !start.starts_with('#')
    })
}

/// Calls `f` with a cursor over each of these lines, and collects the errors.
pub(super) fn each_line(
    text: &str,
    mut f: impl FnMut(u32, &mut Cursor<'_>) -> Result<(), Fault>,
) -> Collector {
    let mut errors = Collector::default();
    for (number, line) in lines(text) {
        if let Err(fault) = f(number, &mut Cursor::new(line)) {
            errors.push(number, line, fault);
        }
    }
    errors
}

/// A place in a line.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    line: &'a str,
    at: usize,
}

/// A piece of a line and its byte offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self { line, at: 0 }
    }

    /// The rest of the line after white space, with its offset.
    pub(super) fn rest(&mut self) -> Word<'a> {
        let rest = self.line.get(self.at..).unwrap_or("");
        let text = rest.trim_start();
        self.at += rest.len() - text.len();
        Word { at: self.at, text }
    }

    /// The rest of the line with its offset, including white space.
    pub(super) fn raw(&self) -> (usize, &'a str) {
        (self.at, self.line.get(self.at..).unwrap_or(""))
    }

    /// The whole line.
    pub(super) fn line(&self) -> &'a str {
        self.line
    }

    /// Moves forward by this many bytes.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// The characters up to one that satisfies `end`. Empty at the end of the line.
    pub(super) fn until(&mut self, end: impl Fn(char) -> bool) -> Word<'a> {
        let Word { at, text } = self.rest();
        let text = &text[..text.find(end).unwrap_or(text.len())];
        self.skip(text.len());
        Word { at, text }
    }

    /// The characters up to white space. Empty at the end of the line.
    pub(super) fn word(&mut self) -> Word<'a> {
        self.until(char::is_whitespace)
    }

    /// Consumes the next word if it is this keyword (in any case).
    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        let before = self.at;
        let found = self.word().text.eq_ignore_ascii_case(keyword);
        if !found {
            self.at = before;
        }
        found
    }

    /// Consumes this character, which white space may precede.
    pub(super) fn character(&mut self, wanted: char, expected: &str) -> Result<(), Fault> {
        let rest = self.rest();
        if rest.text.starts_with(wanted) {
            self.skip(wanted.len_utf8());
            return Ok(());
        }
        Err(Fault::new(rest.at, expected, self.word().text))
    }

    /// Checks that only white space and a comment follow.
    pub(super) fn end(&mut self, expected: &str) -> Result<(), Fault> {
        let rest = self.rest();
        if rest.text.is_empty() || rest.text.starts_with('#') {
            return Ok(());
        }
        Err(Fault::new(rest.at, expected, self.word().text))
    }
}

impl Word<'_> {
    /// An error at this word: something else was expected.
    pub(super) fn fault(&self, expected: impl Into<String>) -> Fault {
        Fault::new(self.at, expected, self.text)
    }

    /// Reads a decimal number of at most `max`.
    pub(super) fn number(&self, what: &str, max: u32) -> Result<u32, Fault> {
        decimal(self.text)
            .filter(|&number| number <= max)
            .ok_or_else(|| self.fault(format!("{what} from 0 to {max}")))
    }
}

/// Reads a decimal number of digits only (`parse` alone would accept `+1`).
pub(super) fn decimal(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Reads a hexadecimal number `0x…`.
pub(super) fn hexadecimal(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let valid = digits.bytes().all(|b| b.is_ascii_hexdigit());
    valid.then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::{Cursor, decimal, hexadecimal, lines};

    #[test]
    fn lines_skip_blanks_comments_and_byte_order_mark() {
        let found: Vec<_> = lines("\u{feff}a\r\n\n  # no\n b # c\n").collect();
        assert_eq!(found, [(1, "a"), (4, " b # c")]);
    }

    #[test]
    fn numbers_take_no_sign_and_no_overflow() {
        assert_eq!(decimal("4294967295"), Some(u32::MAX));
        for text in ["", "+1", "-1", "1 ", "4294967296", "0x1", "١"] {
            assert_eq!(decimal(text), None, "{text}");
        }
        assert_eq!(hexadecimal("0xFf"), Some(255));
        for text in ["", "0x", "ff", "0x+1", "0x100000000"] {
            assert_eq!(hexadecimal(text), None, "{text}");
        }
    }

    #[test]
    fn cursor_gives_offsets_past_white_space() {
        let mut cursor = Cursor::new("  ab\t12 : 3");
        let word = cursor.word();
        assert_eq!((word.at, word.text), (2, "ab"));
        assert!(!cursor.keyword("1"));
        assert!(cursor.keyword("12"));
        assert!(cursor.character(':', "`:`").is_ok());
        let fault = cursor.end("the end").expect_err("3 is left");
        assert_eq!((fault.at, fault.found.as_str()), (10, "`3`"));
    }
}
