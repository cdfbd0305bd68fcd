//! Answers the requests about documents.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use braid_lang::index::{Definition, Index, Kind};
use braid_lang::source::{SourceMap, Span};
use lsp_types::{self as lsp, Uri};

use super::documents::{Documents, name};
use super::paths::{path, uri};
use super::text::Lines;
use super::{complete, findings, hover, rename};

/// A document with the names of its program, and a place in it.
struct Place {
    index: Index,
    sources: SourceMap,
    file: u32,
    byte: u32,
}

impl Place {
    fn new(documents: &Documents, at: &lsp::TextDocumentPositionParams) -> Option<Self> {
        let uri = at.text_document.uri.as_str();
        let text = documents.text(uri)?;
        let name = name(uri);
        let (index, sources) = documents.texts(&BTreeMap::new()).index(&name, text);
        let file = sources.find(&name)?;
        let byte = Lines::new(text).byte(at.position);
        Some(Self { index, sources, file, byte })
    }

    fn definition(&self) -> Option<(Span, &Definition)> {
        let (span, at) = self.index.at(self.file, self.byte)?;
        Some((span, self.index.definitions.get(at)?))
    }

    fn range(&self, span: Span) -> lsp::Range {
        Lines::new(self.sources.get(span.file).map_or("", |source| source.text())).range(span)
    }
}

/// The errors and warnings of a document, and the files that its program asks for.
pub fn diagnostics(documents: &Documents, uri: &str) -> (Vec<lsp::Diagnostic>, BTreeSet<PathBuf>) {
    let Some(text) = documents.text(uri) else { return Default::default() };
    let name = name(uri);
    let instead = BTreeMap::new();
    let texts = documents.texts(&instead);
    let compiled = texts.compile(&name, text);
    let found = findings::findings(compiled.diagnostics.iter(), &compiled.sources, &name);
    (found, texts.asked())
}

/// What is known about the name or field at a place.
pub fn hover(documents: &Documents, at: &lsp::TextDocumentPositionParams) -> Option<lsp::Hover> {
    let place = Place::new(documents, at)?;
    let field = place.index.field_at(place.file, place.byte);
    let call = place.index.call_at(place.file, place.byte);
    let (span, value) = match (field, call) {
        (Some((span, field)), _) => (*span, hover::of_field(field)?),
        (None, Some((span, name))) => (*span, hover::of_function(name)?),
        (None, None) => {
            let (span, found) = place.definition()?;
            let uri = at.text_document.uri.as_str();
            let compiled = || {
                let text = documents.text(uri)?;
                documents.texts(&BTreeMap::new()).compile(&name(uri), text).unit
            };
            let unit = if found.kind == Kind::Nf { compiled() } else { None };
            let model = unit.as_ref().and_then(|unit| unit.models.get(&found.name));
            let model = model.map(|model| &**model);
            (span, hover::of_name(found, &place.index, &place.sources, model))
        }
    };
    let contents = lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value };
    Some(lsp::Hover {
        contents: lsp::HoverContents::Markup(contents),
        range: Some(place.range(span)),
    })
}

/// What can be completed at a place.
pub fn completion(
    documents: &Documents,
    at: &lsp::TextDocumentPositionParams,
) -> Vec<lsp::CompletionItem> {
    let Some(place) = Place::new(documents, at) else { return Vec::new() };
    complete::complete(&place.index, &place.sources, place.file, place.byte)
}

/// Where the name at a place is declared.
pub fn definition(
    documents: &Documents,
    at: &lsp::TextDocumentPositionParams,
) -> Option<lsp::Location> {
    let place = Place::new(documents, at)?;
    let (_, found) = place.definition().filter(|(_, found)| !found.is_of_library)?;
    let own = &at.text_document.uri;
    let uri = match found.span.file == place.file {
        true => own.clone(),
        false => of_file(place.sources.get(found.span.file)?.name())?,
    };
    Some(lsp::Location { uri, range: place.range(found.span) })
}

/// The changes that give the name at a place another one.
///
/// # Errors
/// Why it cannot be changed.
pub fn renamed(
    documents: &Documents,
    at: &lsp::TextDocumentPositionParams,
    new: &str,
) -> Result<lsp::WorkspaceEdit, String> {
    let place = Place::new(documents, at).ok_or("the document is not open")?;
    let (_, found) = place.definition().ok_or("there is no name that can be changed")?;
    if found.is_of_library {
        return Err(format!("`{}` is a name of the library", found.name));
    }
    let source = place.sources.get(found.span.file).ok_or("the file is unknown")?;
    if path(at.text_document.uri.as_str()).is_none() {
        return Err("save the document as a file first".to_owned());
    }
    let declared = (Path::new(source.name()), found.span);
    let places = rename::places(documents, declared);
    rename::check(documents, declared, &places, new)?;
    // Clippy: a URI never changes as a key.
    #[expect(clippy::mutable_key_type, reason = "the type of the protocol's library")]
    let mut changes: HashMap<Uri, Vec<lsp::TextEdit>> = HashMap::new();
    for (file, spans) in &places {
        let text = documents.read(file).ok_or("a file cannot be read")?;
        let lines = Lines::new(&text);
        let edit = |&(start, end): &(u32, u32)| lsp::TextEdit {
            range: lines.range(Span { file: 0, start, end }),
            new_text: new.to_owned(),
        };
        let uri = of_file(&file.display().to_string()).ok_or("a file has no URI")?;
        changes.insert(uri, spans.iter().map(edit).collect());
    }
    Ok(lsp::WorkspaceEdit { changes: Some(changes), ..lsp::WorkspaceEdit::default() })
}

/// The change that formats a document. `None`: it is formatted, or has syntax errors.
pub fn formatted(documents: &Documents, uri: &str) -> Option<Vec<lsp::TextEdit>> {
    let text = documents.text(uri)?;
    let new = braid_lang::fmt::format(text).ok()?;
    if new == text {
        return Some(Vec::new());
    }
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let range = Lines::new(text).range(Span { file: 0, start: 0, end });
    Some(vec![lsp::TextEdit { range, new_text: new }])
}

fn of_file(name: &str) -> Option<Uri> {
    uri(Path::new(name)).parse().ok()
}
