//! What an editor shows about the name under the cursor.

use braid_compiler::profile::{derive, details};
use braid_ir::model::Model;
use braid_lang::index::{Definition, Index, Kind};
use braid_lang::source::{SourceMap, Span};
use braid_lang::{of_field as of_field_type, type_name};
use braid_packet::Field;
use braid_packet::field::Access;

/// The longest declaration that is shown, in lines.
const MOST_LINES: usize = 12;

/// What is known of a name, in Markdown.
pub fn of_name(
    found: &Definition,
    index: &Index,
    sources: &SourceMap,
    model: Option<&Model>,
) -> String {
    let mut text = format!("```braid\n{}\n```\n", declaration(found, sources));
    if let Some(owner) = found.owner.and_then(|owner| index.definitions.get(owner)) {
        text += &format!("\n{} of `{}`\n", kind(found.kind), owner.name);
    } else {
        text += &format!("\n{}\n", kind(found.kind));
    }
    if found.kind == Kind::Instance {
        let nf = found.ty.as_deref().and_then(|ty| {
            index.definitions.iter().find(|other| other.kind == Kind::Nf && other.name == ty)
        });
        text += &nf.map_or_else(String::new, |nf| {
            format!("\n```braid\n{}\n```\n", declaration(nf, sources))
        });
    }
    if found.is_of_library && found.kind == Kind::Nf {
        let nf = braid_nfs::by_name(&found.name);
        text += &nf.map_or_else(String::new, |nf| format!("\n{}\n", nf.summary()));
    }
    let doc = doc(found.whole, sources);
    if !doc.is_empty() && !found.is_of_library {
        text += &format!("\n{doc}\n");
    }
    if let Some(model) = model {
        text += &format!("\n```text\n{}\n```\n", details(&derive(model)).trim_end());
    }
    text
}

/// What is known of a header field, in Markdown.
pub fn of_field(name: &str) -> Option<String> {
    let field = Field::by_name(name)?;
    let info = field.info();
    let ty = type_name(of_field_type(field));
    let access = match info.access {
        Access::Rw => "",
        Access::Ro => ", read-only",
    };
    Some(format!("```braid\n{name}: {ty}\n```\n\n{} ({} bits{access})\n", info.doc, info.width))
}

/// What is known of a built-in function or an operator, in Markdown.
pub fn of_function(name: &str) -> Option<String> {
    let (usage, doc) = braid_lang::described(name)?;
    Some(format!("```braid\n{usage}\n```\n\n{doc}\n"))
}

/// A declaration as it is written, or with its type if it is inferred.
pub fn declaration(found: &Definition, sources: &SourceMap) -> String {
    let text = sources.slice(found.whole).trim_end_matches(['{', ';']).trim_end();
    let typed = match (&found.ty, found.kind) {
        (Some(ty), Kind::Local) => Some(format!("{}: {ty}", found.name)),
        _ => None,
    };
    let shown: Vec<&str> = text.lines().take(MOST_LINES).collect();
    let cut = if text.lines().count() > MOST_LINES { "\n…" } else { "" };
    typed.unwrap_or_else(|| shown.join("\n") + cut)
}

/// The comment above a declaration.
fn doc(whole: Span, sources: &SourceMap) -> String {
    let text = sources.get(whole.file).map_or("", |source| source.text());
    let before = text.get(..whole.start as usize).unwrap_or("");
    // The line of the declaration itself is not above it.
    let above = before.rfind('\n').map_or("", |end| &before[..end]);
    let lines = above.lines().rev().map_while(|line| line.trim().strip_prefix("//"));
    let mut lines: Vec<&str> = lines.map(str::trim).collect();
    lines.reverse();
    lines.join("\n")
}

/// The words for a kind of names.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Const => "constant",
        Kind::Fn => "function of the program",
        Kind::Action => "action",
        Kind::Event => "event type",
        Kind::Header => "header",
        Kind::EventField | Kind::HeaderField => "field",
        Kind::Nf => "network function",
        Kind::Chain => "chain",
        Kind::Param => "parameter",
        Kind::Local => "local name",
        Kind::State => "state table",
        Kind::Queue => "queue",
        Kind::Tag => "tag",
        Kind::Port => "port",
        Kind::Interface => "interface",
        Kind::Instance => "function of the chain",
    }
}
