//! One finding, and all findings of a run.

use std::fmt;

use super::codes::{Code, Severity};
use crate::source::Span;

/// The most diagnostics that a run keeps. Further ones are only counted.
pub(crate) const MAX_DIAGNOSTICS: usize = 200;

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Its number in the catalogue.
    pub code: Code,
    /// One sentence without a full stop: the problem, the expectation, and the source text.
    pub message: String,
    /// Places with their labels. The first is the primary one.
    pub labels: Vec<(Span, String)>,
    /// Further facts, one sentence each.
    pub notes: Vec<String>,
    /// Advice.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic at `span`. `label` is the text beside the place and may be empty.
    pub fn new(
        code: Code,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Self {
        Self {
            code,
            message: message.into(),
            labels: vec![(span, label.into())],
            notes: Vec::new(),
            help: None,
        }
    }

    /// Adds a second place.
    #[must_use]
    pub(crate) fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push((span, text.into()));
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Adds advice if there is any, such as the result of `did_you_mean_help`.
    #[must_use]
    pub(crate) fn help_if(mut self, text: Option<String>) -> Self {
        self.help = text.or(self.help);
        self
    }

    /// The primary place.
    #[must_use]
    pub fn span(&self) -> Span {
        self.labels.first().map_or_else(Span::default, |(span, _)| *span)
    }

    /// Whether it is an error, so that the program cannot run.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.code.severity() == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.code.severity(), self.code, self.message)
    }
}

/// All findings of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    left_out: usize,
    left_out_errors: usize,
}

impl Diagnostics {
    /// No findings yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a finding. A finding with the same code at the same place is kept once. Beyond
    /// 200, findings are only counted, warnings before errors.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.is_error());
        let same = |d: &Diagnostic| d.code == diagnostic.code && d.labels == diagnostic.labels;
        if self.list.iter().any(same) {
            return;
        }
        if self.list.len() >= MAX_DIAGNOSTICS {
            self.left_out += 1;
            let warning = self.list.iter().rposition(|d| !d.is_error());
            let Some(warning) = warning.filter(|_| diagnostic.is_error()) else {
                self.left_out_errors += usize::from(diagnostic.is_error());
                return;
            };
            self.list.remove(warning);
        }
        self.list.push(diagnostic);
    }

    /// Adds all findings of another run.
    pub(crate) fn extend(&mut self, other: Diagnostics) {
        self.left_out += other.left_out;
        self.left_out_errors += other.left_out_errors;
        let kept = other.list.iter().filter(|d| d.is_error()).count();
        self.errors += other.errors - kept;
        for diagnostic in other.list {
            self.push(diagnostic);
        }
    }

    /// Whether any finding is an error. Warnings do not stop the program from running.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether there are no findings, warnings included.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of findings that are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Number of findings beyond the limit.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Number of errors among the findings beyond the limit.
    #[must_use]
    pub fn left_out_errors(&self) -> usize {
        self.left_out_errors
    }

    /// The findings in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Sorts by file and place, errors before warnings. Findings at one place keep their order.
    #[must_use]
    pub(crate) fn sorted(mut self) -> Self {
        self.list.sort_by_key(|d| {
            let span = d.span();
            (!d.is_error(), span.file, span.start, span.end)
        });
        self
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    fn at(start: u32) -> Diagnostic {
        let span = Span { file: 0, start, end: start + 1 };
        Diagnostic::new(codes::UNEXPECTED_TOKEN, "m", span, "")
    }

    fn warning(start: u32) -> Diagnostic {
        let span = Span { file: 0, start, end: start + 1 };
        Diagnostic::new(codes::UNUSED_PARAMETER, "m", span, "")
    }

    #[test]
    fn sorted_orders_by_place_and_puts_warnings_last() {
        let mut all = Diagnostics::new();
        all.push(warning(1));
        all.push(at(9));
        all.push(at(3));
        let starts: Vec<u32> = all.sorted().iter().map(|d| d.span().start).collect();
        assert_eq!(starts, [3, 9, 1]);
    }

    #[test]
    fn errors_beyond_the_limit_are_kept_before_warnings() {
        let mut all = Diagnostics::new();
        (0..).take(MAX_DIAGNOSTICS).for_each(|place| all.push(warning(place)));
        (0..).take(MAX_DIAGNOSTICS - 1).for_each(|place| all.push(at(place)));
        assert_eq!(all.iter().filter(|d| d.is_error()).count(), MAX_DIAGNOSTICS - 1);
        assert_eq!((all.len(), all.left_out()), (MAX_DIAGNOSTICS, MAX_DIAGNOSTICS - 1));
        assert_eq!(all.left_out_errors(), 0);
        all.push(at(7_000));
        all.push(at(8_000));
        assert_eq!((all.left_out(), all.left_out_errors()), (MAX_DIAGNOSTICS + 1, 1));
    }

    #[test]
    fn repeated_finding_is_kept_once() {
        let mut all = Diagnostics::new();
        all.push(at(1));
        all.push(at(1));
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn findings_beyond_the_limit_are_counted() {
        let mut all = Diagnostics::new();
        for start in 0..=u32::try_from(MAX_DIAGNOSTICS).unwrap() {
            all.push(at(start));
        }
        assert_eq!((all.len(), all.left_out()), (MAX_DIAGNOSTICS, 1));
        assert!(all.has_errors());
    }
}
