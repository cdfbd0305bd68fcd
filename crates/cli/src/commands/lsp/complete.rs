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
    let visible = || index.visible(file, byte);
    if let Some(dot) = word.rfind('.') {
        let named = visible().filter(|found| found.name == word[..dot]);
        let mut items = behind_a_dot(&word[..=dot]);
        items.extend(named.flat_map(|found| parts(index, found)));
        return items;
    }
    let mut items: Vec<CompletionItem> = visible().map(|found| of_name(found, sources)).collect();
    items.extend(arguments(index, &before[..start]));
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

/// The parts of a name: those of its record, the fields of a declared header, or the declared ports
/// of a function of a chain.
fn parts(index: &Index, found: &Definition) -> Vec<CompletionItem> {
    let ty = found.ty.as_deref().unwrap_or("");
    if found.kind == Kind::Instance {
        let nf = index.definitions.iter().position(|nf| nf.kind == Kind::Nf && nf.name == ty);
        let ports = index.definitions.iter();
        let ports = ports.filter(|port| port.kind == Kind::Port && port.owner == nf);
        return ports.map(|port| item(&port.name, CompletionItemKind::INTERFACE)).collect();
    }
    if found.kind == Kind::Header {
        let header = index.definitions.iter().position(|other| std::ptr::eq(other, found));
        let fields = index.definitions.iter();
        let fields =
            fields.filter(|field| field.kind == Kind::HeaderField && field.owner == header);
        let field = |field: &Definition| CompletionItem {
            detail: field.ty.clone(),
            ..item(&field.name, CompletionItemKind::FIELD)
        };
        return fields.map(field).collect();
    }
    let Some(record) = ty.strip_prefix('{') else { return Vec::new() };
    let parts = record.trim_end_matches('}').split(',').filter_map(|part| part.split_once(':'));
    let part = |(name, ty): (&str, &str)| CompletionItem {
        detail: Some(ty.trim().to_owned()),
        ..item(name.trim(), CompletionItemKind::FIELD)
    };
    parts.map(part).collect()
}

/// The parameters of the function in whose arguments the text ends.
fn arguments(index: &Index, before: &str) -> Vec<CompletionItem> {
    let mut depth = 0;
    // Arguments are short, and nothing else is looked through.
    let open = before.char_indices().rev().take(4096).find_map(|(at, c)| {
        depth += match c {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        (depth < 0).then_some(at)
    });
    let Some(open) = open else { return Vec::new() };
    let name = before[..open].trim_end();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = &name[name.trim_end_matches(is_word).len()..];
    let is_it = |found: &Definition| matches!(found.kind, Kind::Nf) && found.name == name;
    let Some(of) = index.definitions.iter().position(is_it) else { return Vec::new() };
    let params = index.definitions.iter();
    let params = params.filter(|found| found.kind == Kind::Param && found.owner == Some(of));
    let param = |found: &Definition| CompletionItem {
        detail: Some(format!("{}: {}", found.name, found.ty.as_deref().unwrap_or("?"))),
        insert_text: Some(format!("{}: ", found.name)),
        ..item(&found.name, CompletionItemKind::PROPERTY)
    };
    params.map(param).collect()
}

fn of_name(found: &Definition, sources: &SourceMap) -> CompletionItem {
    let kind = match found.kind {
        Kind::Const => CompletionItemKind::CONSTANT,
        Kind::Fn | Kind::Action => CompletionItemKind::FUNCTION,
        Kind::Event => CompletionItemKind::EVENT,
        Kind::Header => CompletionItemKind::STRUCT,
        Kind::EventField | Kind::HeaderField => CompletionItemKind::FIELD,
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
