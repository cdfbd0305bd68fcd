//! Builds source text with indentation.

/// Lines of source.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    lines: String,
    depth: usize,
}

impl Text {
    /// Adds a line. A line that ends in `{` indents the following lines, and a line that starts
    /// with `}` ends that.
    pub(super) fn line(&mut self, line: &str) {
        if line.starts_with('}') {
            self.depth = self.depth.saturating_sub(1);
        }
        self.lines += &"  ".repeat(self.depth);
        self.lines += line;
        self.lines.push('\n');
        if line.ends_with('{') {
            self.depth += 1;
        }
    }

    /// All lines.
    pub(super) fn finish(self) -> String {
        self.lines
    }
}
