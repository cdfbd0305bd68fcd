//! Adds files that may not be UTF-8 text.

use super::codes;
use super::finding::Diagnostic;
use crate::source::{SourceMap, Span, offset};

impl SourceMap {
    /// Adds a file as read from disk. If it is not UTF-8 text, the wrong bytes become U+FFFD and a
    /// diagnostic is returned as well.
    pub fn add_bytes(
        &mut self,
        name: impl Into<String>,
        bytes: &[u8],
    ) -> (u32, Option<Diagnostic>) {
        let wrong = std::str::from_utf8(bytes).err().map(|error| error.valid_up_to());
        let file = self.add(name, String::from_utf8_lossy(bytes));
        let found = wrong.map(|at| {
            let span = Span { file, start: offset(at), end: offset(at) };
            let message = "the file is not UTF-8 text";
            Diagnostic::new(codes::NOT_UTF8, message, span, "first byte that is not")
        });
        (file, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_reported() {
        let mut map = SourceMap::new();
        let (file, found) = map.add_bytes("a", b"ab\xffc");
        assert_eq!(found.map(|d| (d.code, d.span().start)), Some((codes::NOT_UTF8, 2)));
        assert_eq!(map.get(file).unwrap().text(), "ab\u{fffd}c");
        assert_eq!(map.add_bytes("b", b"fine").1, None);
    }
}
