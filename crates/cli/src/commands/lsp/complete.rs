//! What an editor offers to complete.

use braid_lang::index::{Definition, Index, Kind, words};
use braid_lang::source::SourceMap;
use braid_packet::field::FIELDS;
use lsp_types::{CompletionItem, CompletionItemKind};

use super::hover::declaration;

/// What can stand at a byte of the root document.
pub fn complete(index: &Index, sources: &SourceMap, file: u32, byte: u32) -> Vec<CompletionItem> {
    let text = sources.get(file).map_or("", |source| source.text());
    let before = text.get(..byte as usize).unwrap_or("");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let start = before.trim_end_matches(is_word).len();
    let word = &before[start..];
    if let Some(dot) = word.rfind('.') {
        return behind_a_dot(&word[..=dot]);
    }
    let mut items: Vec<CompletionItem> =
        index.visible(file, byte).map(|found| of_name(found, sources)).collect();
    let words = words();
    items.extend(words.keywords.iter().map(|word| item(word, CompletionItemKind::KEYWORD)));
    items.extend(words.types.iter().map(|word| item(word, CompletionItemKind::STRUCT)));
    items.extend(words.functions.iter().map(|word| item(word, CompletionItemKind::FUNCTION)));
    items.extend(FIELDS.iter().map(|info| of_field(info.name, info.name, info.doc)));
    let known: Vec<&str> = index.definitions.iter().map(|found| found.name.as_str()).collect();
    let library = braid_nfs::all().iter().filter(|nf| !known.contains(&nf.name));
    items.extend(library.map(|nf| CompletionItem {
        detail: Some(nf.summary().to_owned()),
        ..item(nf.name, CompletionItemKind::MODULE)
    }));
    items.retain(|item| item.label.starts_with(word));
    items.sort_by(|a, b| a.label.cmp(&b.label));
    items.dedup_by(|a, b| a.label == b.label);
    items
}

/// The fields whose names begin with this text.
fn behind_a_dot(start: &str) -> Vec<CompletionItem> {
    let rest = FIELDS.iter().filter_map(|info| Some((info.name.strip_prefix(start)?, info)));
    rest.map(|(rest, info)| of_field(rest, info.name, info.doc)).collect()
}

fn of_name(found: &Definition, sources: &SourceMap) -> CompletionItem {
    let kind = match found.kind {
        Kind::Const => CompletionItemKind::CONSTANT,
        Kind::Fn | Kind::Action => CompletionItemKind::FUNCTION,
        Kind::Event => CompletionItemKind::EVENT,
        Kind::EventField => CompletionItemKind::FIELD,
        Kind::Nf | Kind::Chain => CompletionItemKind::MODULE,
        Kind::Interface | Kind::Port => CompletionItemKind::INTERFACE,
        Kind::Param | Kind::Local | Kind::State | Kind::Queue | Kind::Tag | Kind::Instance => {
            CompletionItemKind::VARIABLE
        }
    };
    let first = declaration(found, sources).lines().next().unwrap_or("").to_owned();
    CompletionItem { detail: Some(first), ..item(&found.name, kind) }
}

fn of_field(label: &str, name: &str, doc: &str) -> CompletionItem {
    CompletionItem {
        detail: Some(format!("{name}: {doc}")),
        ..item(label, CompletionItemKind::FIELD)
    }
}

fn item(label: &str, kind: CompletionItemKind) -> CompletionItem {
    CompletionItem { label: label.to_owned(), kind: Some(kind), ..CompletionItem::default() }
}
