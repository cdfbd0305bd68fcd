//! Texts by lines, and the positions of the protocol: lines and columns from 0, columns in UTF-16.

use braid_lang::source::Span;
use lsp_types::{Position, Range};

/// A text with the places of its lines.
pub struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub fn new(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// The position of a byte. A byte behind the end counts as the end.
    pub fn position(&self, byte: u32) -> Position {
        let mut byte = (byte as usize).min(self.text.len());
        while !self.text.is_char_boundary(byte) {
            byte -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= byte).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let before = self.text.get(start..byte).unwrap_or("");
        let column = before.encode_utf16().count();
        Position { line: number(line), character: number(column) }
    }

    /// The byte at a position. A column behind the end of the line counts as its end, a line behind
    /// the end as the end of the text.
    pub fn byte(&self, position: Position) -> u32 {
        let Some(&start) = self.starts.get(position.line as usize) else {
            return number(self.text.len());
        };
        let line = self.text.get(start..).unwrap_or("").split('\n').next().unwrap_or("");
        let mut column = 0;
        for (at, c) in line.char_indices() {
            if column >= position.character {
                return number(start + at);
            }
            column += number(c.len_utf16());
        }
        number(start + line.len())
    }

    pub fn range(&self, span: Span) -> Range {
        Range { start: self.position(span.start), end: self.position(span.end) }
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_units_of_utf16() {
        let lines = Lines::new("ab\n𝒳é x\n");
        let at = |line, character| Position { line, character };
        assert_eq!(lines.position(3), at(1, 0));
        assert_eq!(lines.position(7), at(1, 2));
        assert_eq!(lines.position(9), at(1, 3));
        assert_eq!(lines.position(5), at(1, 0), "within a letter");
        assert_eq!(lines.position(999), at(2, 0));
        for byte in [0, 2, 3, 7, 9, 11, 12] {
            assert_eq!(lines.byte(lines.position(byte)), byte);
        }
        assert_eq!(lines.byte(at(0, 99)), 2);
        assert_eq!(lines.byte(at(99, 0)), 12);
        assert_eq!(Lines::new("").byte(at(u32::MAX, u32::MAX)), 0);
    }
}
