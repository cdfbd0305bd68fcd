//! Numbered source files, spans of their text, and lines and columns for messages.

use std::ops::Range;

/// The largest source file in bytes. A larger one is refused with `FILE_TOO_LARGE`.
pub const MAX_FILE_BYTES: usize = 4 << 20;

/// A byte range in a source file, with the file's number in the `SourceMap`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Span {
    /// The file.
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The byte range.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The smallest span that covers both.
    #[must_use]
    pub(crate) fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// One source file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: String,
    text: String,
    line_starts: Vec<u32>,
}

impl SourceFile {
    fn new(name: String, text: String) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0).chain(ends.map(|(at, _)| offset(at + 1))).collect();
        Self { name, text, line_starts }
    }

    /// The name that messages show, usually its path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of a byte, both from 1. The column counts characters. A byte beyond the end
    /// counts as the end.
    #[must_use]
    pub(crate) fn line_column(&self, byte: u32) -> (u32, u32) {
        let line = self.line_starts.partition_point(|start| *start <= byte).max(1);
        let start = self.line_starts[line - 1] as usize;
        let end = floor_boundary(&self.text, byte as usize);
        let column = self.text.get(start..end).map_or(0, |before| before.chars().count());
        (offset(line), offset(column + 1))
    }
}

/// All source files of a run. `Span::file` is the number of a file.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// A map without files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file and returns its number.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> u32 {
        self.files.push(SourceFile::new(name.into(), text.into()));
        offset(self.files.len() - 1)
    }

    /// The file with this number.
    #[must_use]
    pub fn get(&self, file: u32) -> Option<&SourceFile> {
        self.files.get(file as usize)
    }

    /// The number of the file with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<u32> {
        self.files.iter().position(|file| file.name == name).map(offset)
    }

    /// The files in order of their numbers.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    /// The text of a span. Empty if the span is outside of the file.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.get(span.file).and_then(|file| file.text.get(span.range())).unwrap_or("")
    }

    /// `name:line:column` of a span's first byte.
    #[must_use]
    pub fn place(&self, span: Span) -> String {
        let Some(file) = self.get(span.file) else {
            return "?".into();
        };
        let (line, column) = file.line_column(span.start);
        format!("{}:{line}:{column}", file.name)
    }
}

/// The last character boundary at or before `byte`.
pub(crate) fn floor_boundary(text: &str, byte: usize) -> usize {
    let mut at = byte.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A position in 32 bits. Larger positions become the largest one, but `MAX_FILE_BYTES` keeps files
/// smaller.
pub(crate) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The name of a file relative to another file, with `.` and `..` resolved where possible.
pub(crate) fn beside(from: &str, path: &str) -> String {
    let absolute = path.starts_with('/');
    let folder = match from.rfind('/') {
        Some(end) if !absolute => &from[..=end],
        _ => "",
    };
    let joined = format!("{folder}{path}");
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_column_counts_characters_from_one() {
        let mut map = SourceMap::new();
        let file = map.add("a.braid", "ab\né x\n");
        let at = |byte| map.get(file).unwrap().line_column(byte);
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(2), (1, 3));
        assert_eq!(at(3), (2, 1));
        assert_eq!(at(6), (2, 3));
        assert_eq!(at(8), (3, 1));
        assert_eq!(at(99), (3, 1));
    }

    #[test]
    fn place_names_file_line_and_column() {
        let mut map = SourceMap::new();
        map.add("first", "");
        let file = map.add("dir/b.braid", "x\ny");
        assert_eq!(map.place(Span { file, start: 2, end: 3 }), "dir/b.braid:2:1");
        assert_eq!(map.find("dir/b.braid"), Some(1));
    }

    #[test]
    fn used_file_is_named_beside_its_user() {
        assert_eq!(beside("a/b.braid", "c.braid"), "a/c.braid");
        assert_eq!(beside("a/b.braid", "../c.braid"), "c.braid");
        assert_eq!(beside("b.braid", "./c.braid"), "c.braid");
        assert_eq!(beside("b.braid", "../c.braid"), "../c.braid");
        assert_eq!(beside("a/b.braid", "/x/c.braid"), "/x/c.braid");
    }
}
