//! Errors and warnings as the protocol shows them.

use braid_lang::diag::{Diagnostic, codes};
use braid_lang::source::{SourceMap, Span};
use lsp_types as lsp;

use super::paths::uri;
use super::text::Lines;

/// All findings about a program, as they are shown in its root document.
pub fn findings<'f>(
    all: impl Iterator<Item = &'f Diagnostic>,
    sources: &SourceMap,
    root: &str,
) -> Vec<lsp::Diagnostic> {
    let Some(file) = sources.find(root) else { return Vec::new() };
    let lines = Lines::new(sources.get(file).map_or("", |source| source.text()));
    all.map(|found| finding(found, sources, file, &lines)).collect()
}

fn finding(
    found: &Diagnostic,
    sources: &SourceMap,
    root: u32,
    lines: &Lines<'_>,
) -> lsp::Diagnostic {
    // A finding about another file is shown where this one leads to it, or at the start.
    let here = found.labels.iter().find(|(span, _)| span.file == root);
    let elsewhere = found.span().file != root;
    let place =
        if elsewhere { format!("{}: ", sources.place(found.span())) } else { String::new() };
    let label = here.map_or("", |(_, text)| text.as_str());
    let mut message = format!("{place}{}", found.message);
    if !label.is_empty() {
        message = format!("{message}: {label}");
    }
    for note in &found.notes {
        message = format!("{message}\nnote: {note}");
    }
    if let Some(help) = &found.help {
        message = format!("{message}\nhelp: {help}");
    }
    // Native code is not loaded here, so the library of a native function is not an error.
    let is_native = found.code == codes::NATIVE_LIBRARY;
    let severity = match found.is_error() {
        _ if is_native => lsp::DiagnosticSeverity::INFORMATION,
        true => lsp::DiagnosticSeverity::ERROR,
        false => lsp::DiagnosticSeverity::WARNING,
    };
    lsp::Diagnostic {
        range: lines.range(here.map_or_else(Span::default, |(span, _)| *span)),
        severity: Some(severity),
        code: Some(lsp::NumberOrString::String(found.code.to_string())),
        source: Some("braid".to_owned()),
        message,
        related_information: Some(related(found, sources)),
        ..lsp::Diagnostic::default()
    }
}

/// The other places of a finding.
fn related(found: &Diagnostic, sources: &SourceMap) -> Vec<lsp::DiagnosticRelatedInformation> {
    let others = found.labels.iter().skip(1).filter(|(_, text)| !text.is_empty());
    let related = others.filter_map(|(span, text)| {
        let source = sources.get(span.file)?;
        let location = lsp::Location {
            uri: uri(std::path::Path::new(source.name())).parse().ok()?,
            range: Lines::new(source.text()).range(*span),
        };
        Some(lsp::DiagnosticRelatedInformation { location, message: text.clone() })
    });
    related.collect()
}
