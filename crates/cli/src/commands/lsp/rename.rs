//! Renames a name in all files that use it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use braid_lang::Compiled;
use braid_lang::index::{Index, is_name};
use braid_lang::source::{SourceMap, Span};

use super::documents::Documents;

/// The places of a name by file: first and last byte.
pub type Places = BTreeMap<PathBuf, BTreeSet<(u32, u32)>>;

/// The places of the declaration at a place, in all programs of the editor's files.
pub fn places(documents: &Documents, declared: (&Path, Span)) -> Places {
    let (declared_in, span) = declared;
    let instead = BTreeMap::new();
    let texts = documents.texts(&instead);
    let mut all = Places::new();
    for root in documents.files() {
        let Ok(text) = texts.of(&root) else { continue };
        let (index, sources) = texts.index(&root.display().to_string(), &text);
        let Some(at) = declaration(&index, &sources, declared_in, span) else { continue };
        for place in index.places(at) {
            if let Some(source) = sources.get(place.file) {
                let file = all.entry(PathBuf::from(source.name())).or_default();
                file.insert((place.start, place.end));
            }
        }
    }
    all
}

/// The number of the declaration at a place of a file.
fn declaration(index: &Index, sources: &SourceMap, file: &Path, span: Span) -> Option<usize> {
    let number = sources.find(&file.display().to_string())?;
    let is_it =
        |found: Span| (found.file, found.start, found.end) == (number, span.start, span.end);
    index.definitions.iter().position(|found| is_it(found.span))
}

/// Checks a new name, and that programs mean the same with it. `declared` is the file of the
/// declaration and its place.
///
/// # Errors
/// Why the name cannot be changed.
pub fn check(
    documents: &Documents,
    declared: (&Path, Span),
    places: &Places,
    new: &str,
) -> Result<(), String> {
    if !is_name(new) {
        return Err(format!("`{new}` cannot be a name"));
    }
    let none = BTreeMap::new();
    let mut instead = BTreeMap::new();
    for (file, spans) in places {
        let text = documents.texts(&none).of(file)?;
        instead.insert(file.clone(), replaced(&text, spans, new));
    }
    for root in documents.files() {
        let (before, after) = (documents.texts(&none), documents.texts(&instead));
        let (Ok(old), Ok(changed)) = (before.of(&root), after.of(&root)) else { continue };
        let name = root.display().to_string();
        let old = before.compile(&name, &old);
        let uses_it =
            old.sources.files().any(|source| instead.contains_key(&PathBuf::from(source.name())));
        if !uses_it {
            continue;
        }
        if errors(&after.compile(&name, &changed)) > errors(&old) {
            return Err(format!("with the name `{new}`, {name} would have new errors"));
        }
    }
    let moved = moved(places, declared, new);
    let documents_after = places_after(documents, &instead, (declared.0, moved));
    match documents_after == places.values().map(BTreeSet::len).sum::<usize>() {
        true => Ok(()),
        false => Err(format!("the name `{new}` stands for something else there already")),
    }
}

fn errors(compiled: &Compiled) -> usize {
    let found = &compiled.diagnostics;
    found.iter().filter(|found| found.is_error()).count() + found.left_out()
}

/// Where the declaration is when the names before it in its file have changed.
fn moved(places: &Places, declared: (&Path, Span), new: &str) -> Span {
    let (file, span) = declared;
    let len = u32::try_from(new.len()).unwrap_or(u32::MAX);
    let old = span.end - span.start;
    let spans = places.get(file).into_iter().flatten();
    let before = spans.filter(|(start, _)| *start < span.start).count();
    let before = u32::try_from(before).unwrap_or(u32::MAX);
    let start = span.start.saturating_add(before * len).saturating_sub(before * old);
    Span { start, end: start.saturating_add(len), ..span }
}

/// The number of places of the declaration after the change.
fn places_after(
    documents: &Documents,
    instead: &BTreeMap<PathBuf, String>,
    declared: (&Path, Span),
) -> usize {
    let texts = documents.texts(instead);
    let mut all: BTreeSet<(String, u32)> = BTreeSet::new();
    for root in documents.files() {
        let Ok(text) = texts.of(&root) else { continue };
        let (index, sources) = texts.index(&root.display().to_string(), &text);
        let Some(at) = declaration(&index, &sources, declared.0, declared.1) else { continue };
        for place in index.places(at) {
            let name = sources.get(place.file).map_or("", |source| source.name());
            all.insert((name.to_owned(), place.start));
        }
    }
    all.len()
}

/// A text with another name at these places.
fn replaced(text: &str, spans: &BTreeSet<(u32, u32)>, new: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for &(from, to) in spans {
        out.push_str(text.get(end..from as usize).unwrap_or(""));
        out.push_str(new);
        end = to as usize;
    }
    out + text.get(end..).unwrap_or("")
}
