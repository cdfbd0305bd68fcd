//! Renders diagnostics as text (with ariadne) and as JSON.

use std::fmt;
use std::ops::Range;

use ariadne::{Cache, CharSet, Config, IndexType, Label, Report, ReportKind, Source};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::codes::Severity;
use super::finding::{Diagnostic, Diagnostics};
use crate::source::{SourceMap, Span, floor_boundary};

/// A longer line is not shown. Its message then has only a place.
const LONGEST_SHOWN_LINE: usize = 400;

/// The style of rendered text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Style {
    /// Whether to use colours. They are for terminals only.
    pub color: bool,
    /// Whether frames use only ASCII characters.
    pub ascii: bool,
    /// The most findings that are shown. The closing line counts the others. `None` shows all.
    pub most: Option<usize>,
}

/// All findings by place, with a closing line that counts them. Empty when there are no findings.
#[must_use]
pub fn render(all: &Diagnostics, sources: &SourceMap, style: Style) -> String {
    let mut printer = Printer { sources, style, cache: Shown::default() };
    let mut text = String::new();
    let most = style.most.unwrap_or(usize::MAX);
    for diagnostic in all.clone().sorted().iter().take(most) {
        text.push_str(&printer.print(diagnostic));
        text.push('\n');
    }
    let more = all.iter().len().saturating_sub(most) + all.left_out();
    if more > 0 {
        text.push_str(&format!("{more} more not shown\n"));
    }
    text
}

struct Printer<'m> {
    sources: &'m SourceMap,
    style: Style,
    cache: Shown,
}

impl Printer<'_> {
    fn print(&mut self, diagnostic: &Diagnostic) -> String {
        self.framed(diagnostic).unwrap_or_else(|| plain(diagnostic, self.sources))
    }

    /// The message with its source lines. `None` when the lines cannot be shown.
    fn framed(&mut self, diagnostic: &Diagnostic) -> Option<String> {
        let spans: Vec<Place> =
            diagnostic.labels.iter().map(|(span, _)| self.place(*span)).collect::<Option<_>>()?;
        let first = spans.first()?.clone();
        let kind = match diagnostic.code.severity() {
            Severity::Error => ReportKind::Error,
            Severity::Warning => ReportKind::Warning,
        };
        let charset = if self.style.ascii { CharSet::Ascii } else { CharSet::Unicode };
        let config = Config::default()
            .with_color(self.style.color)
            .with_index_type(IndexType::Byte)
            .with_char_set(charset);
        // ariadne starts a new part under the first place wherever labels go back by a line.
        let mut parts: Vec<_> = spans.into_iter().zip(&diagnostic.labels).collect();
        parts.sort_by_key(|(place, (span, _))| {
            let number = place.id.number;
            (number != first.id.number, number, self.last_line(*span))
        });
        let labels = parts.into_iter().map(|(place, (_, text))| {
            let label = Label::new(place);
            // ariadne does not underline a place with an empty label.
            label.with_message(if text.is_empty() { "here".into() } else { printable(text) })
        });
        let mut report = Report::build(kind, first)
            .with_config(config)
            .with_code(diagnostic.code)
            .with_message(printable(&diagnostic.message))
            .with_labels(labels);
        for note in &diagnostic.notes {
            report.add_note(printable(note));
        }
        if let Some(help) = &diagnostic.help {
            report.add_help(printable(help));
        }
        let mut bytes = Vec::new();
        report.finish().write(&mut self.cache, &mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        // ariadne pads lines. An editor would strip the spaces from a snapshot.
        Some(text.lines().map(|line| format!("{}\n", line.trim_end())).collect())
    }

    fn last_line(&self, span: Span) -> u32 {
        let end = span.end.saturating_sub(1).max(span.start);
        self.sources.get(span.file).map_or(0, |file| file.line_column(end).0)
    }

    fn place(&mut self, span: Span) -> Option<Place> {
        let file = self.sources.get(span.file)?;
        let text = file.text();
        let start = floor_boundary(text, span.start as usize);
        let end = floor_boundary(text, span.end as usize).max(start);
        if !lines_are_short(text, start..end) {
            return None;
        }
        self.cache.0.entry(span.file).or_insert_with(|| Source::from(shown_text(text)));
        Some(Place {
            id: FileId { number: span.file, name: file.name().into() },
            range: start..end,
        })
    }
}

fn lines_are_short(text: &str, range: Range<usize>) -> bool {
    let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[range.end..].find('\n').map_or(text.len(), |at| range.end + at);
    text[start..end].split('\n').all(|line| line.len() <= LONGEST_SHOWN_LINE)
}

fn plain(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let mut text = format!(
        "[{}] {}: {}\n",
        diagnostic.code,
        if diagnostic.is_error() { "Error" } else { "Warning" },
        printable(&diagnostic.message)
    );
    for (span, label) in &diagnostic.labels {
        text.push_str(&format!("  at {} {}", sources.place(*span), printable(label)));
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    for note in &diagnostic.notes {
        text.push_str(&format!("  Note: {}\n", printable(note)));
    }
    if let Some(help) = &diagnostic.help {
        text.push_str(&format!("  Help: {}\n", printable(help)));
    }
    text
}

/// The text of a message for a terminal. Control characters are escaped, because they may come from
/// a hostile file.
fn printable(text: &str) -> String {
    let keep = |c: char| !c.is_control() || c == '\n';
    let escape = |c: char| {
        if keep(c) { c.to_string() } else { c.escape_default().to_string() }
    };
    text.chars().map(escape).collect()
}

/// A source text for display. Control characters, and line ends that only ariadne counts as line
/// ends, are replaced by characters of equal length. So offsets stay.
fn shown_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let shown_as = match c {
            '\n' | '\t' => c,
            _ if c.is_control() && c.len_utf8() == 1 => ' ',
            _ if c.is_control() && c.len_utf8() == 2 => '¿',
            '\u{2028}' | '\u{2029}' => '\u{fffd}',
            _ => c,
        };
        shown.push(shown_as);
    }
    shown
}

#[derive(Default)]
struct Shown(FxHashMap<u32, Source<String>>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct FileId {
    number: u32,
    name: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    id: FileId,
    range: Range<usize>,
}

impl ariadne::Span for Place {
    type SourceId = FileId;

    fn source(&self) -> &FileId {
        &self.id
    }

    fn start(&self) -> usize {
        self.range.start
    }

    fn end(&self) -> usize {
        self.range.end
    }
}

impl Cache<FileId> for Shown {
    type Storage = String;

    fn fetch(&mut self, id: &FileId) -> Result<&Source<String>, impl fmt::Debug> {
        self.0.get(&id.number).ok_or("no such file")
    }

    fn display<'a>(&self, id: &'a FileId) -> Option<impl fmt::Display + 'a> {
        Some(&id.name)
    }
}

/// A place in the JSON form. Line and column count from 1, columns are characters, and `end` is one
/// past the last.
#[derive(Serialize)]
struct JsonPlace<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    text: &'a str,
}

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    code: String,
    severity: String,
    message: &'a str,
    labels: Vec<JsonPlace<'a>>,
    notes: &'a [String],
    help: Option<&'a str>,
}

/// The findings by place as a JSON value: an array of objects with `code`, `severity`, `message`,
/// `labels`, `notes` and `help`. A label has `file`, `line`, `column`, `end_line`, `end_column` and
/// `text`. The first label is the primary one.
#[must_use]
pub fn to_json(all: &Diagnostics, sources: &SourceMap) -> serde_json::Value {
    let sorted = all.clone().sorted();
    let list: Vec<JsonDiagnostic<'_>> = sorted.iter().map(|d| json(d, sources)).collect();
    serde_json::to_value(list).unwrap_or_default()
}

fn json<'a>(diagnostic: &'a Diagnostic, sources: &'a SourceMap) -> JsonDiagnostic<'a> {
    let place = |(span, text): &'a (Span, String)| {
        let file = sources.get(span.file);
        let at = |byte| file.map_or((1, 1), |file| file.line_column(byte));
        let ((line, column), (end_line, end_column)) = (at(span.start), at(span.end));
        let file = file.map_or("", |file| file.name());
        JsonPlace { file, line, column, end_line, end_column, text }
    };
    JsonDiagnostic {
        code: diagnostic.code.to_string(),
        severity: diagnostic.code.severity().to_string(),
        message: &diagnostic.message,
        labels: diagnostic.labels.iter().map(place).collect(),
        notes: &diagnostic.notes,
        help: diagnostic.help.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::codes;

    fn one(text: &str, start: u32, end: u32) -> (Diagnostics, SourceMap) {
        let mut sources = SourceMap::new();
        let file = sources.add("a.braid", text);
        let mut all = Diagnostics::new();
        let span = Span { file, start, end };
        all.push(Diagnostic::new(codes::UNEXPECTED_TOKEN, "no \u{1b}[2J", span, "here").help("go"));
        (all, sources)
    }

    #[test]
    fn render_escapes_control_characters() {
        let (all, sources) = one("x \u{1b}[31m\u{85} y\u{2028}\n", 0, 1);
        let text = render(&all, &sources, Style::default());
        assert!(!text.contains('\u{1b}') && text.contains("no \\u{1b}[2J"), "{text}");
    }

    #[test]
    fn render_survives_any_span() {
        for (start, end) in [(0, 0), (3, 3), (7, 99), (9, 2), (1, 2), (u32::MAX, u32::MAX)] {
            let (all, sources) = one("aé\nb\n", start, end);
            assert!(render(&all, &sources, Style::default()).contains("E0101"));
            assert_eq!(to_json(&all, &sources)[0]["code"], "E0101");
        }
    }

    #[test]
    fn render_shows_earlier_lines_first_under_the_first_place() {
        let (mut all, mut sources) = one("ab\ncd\nef\n", 3, 5);
        let other = sources.add("b.braid", "gh\n");
        let at = |file, start| Span { file, start, end: start + 2 };
        let found = Diagnostic::new(codes::DUPLICATE_NAME, "two", at(0, 6), "again");
        all.push(found.label(at(other, 0), "there").label(at(0, 0), "first"));
        let text = render(&all, &sources, Style::default());
        let shown = &text[text.find("two").unwrap()..];
        let places = ["a.braid:3:1", "ab", "ef", "b.braid:1:1", "gh"];
        let found: Vec<usize> = places.iter().map(|part| shown.find(part).unwrap()).collect();
        assert!(found.is_sorted(), "{shown}");
        assert_eq!(shown.matches("a.braid").count(), 1, "{shown}");
    }

    #[test]
    fn render_shows_the_first_findings_and_counts_the_others() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.braid", "ab cd ef");
        let mut all = Diagnostics::default();
        for start in [6, 0, 3] {
            let span = Span { file, start, end: start + 2 };
            all.push(Diagnostic::new(codes::DUPLICATE_NAME, format!("two at {start}"), span, ""));
        }
        for (most, shown) in [(None, 3), (Some(3), 3), (Some(1), 1)] {
            let text = render(&all, &sources, Style { most, ..Style::default() });
            assert_eq!(text.matches("two at").count(), shown);
            assert_eq!(text.ends_with("2 more not shown\n"), shown == 1, "{text}");
            assert!(text.contains("two at 0"));
        }
    }

    #[test]
    fn render_leaves_long_lines_out() {
        let (all, sources) = one(&"x".repeat(LONGEST_SHOWN_LINE + 1), 5, 6);
        let text = render(&all, &sources, Style::default());
        assert_eq!(text, "[E0101] Error: no \\u{1b}[2J\n  at a.braid:1:6 here\n  Help: go\n\n");
    }

    #[test]
    fn json_gives_lines_and_columns() {
        let (all, sources) = one("ab\ncd\n", 3, 5);
        let value = to_json(&all, &sources);
        let label = &value[0]["labels"][0];
        assert_eq!((label["line"].as_u64(), label["column"].as_u64()), (Some(2), Some(1)));
        assert_eq!((label["end_line"].as_u64(), label["end_column"].as_u64()), (Some(2), Some(3)));
        assert_eq!(value[0]["severity"], "error");
    }
}
