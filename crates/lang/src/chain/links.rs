//! Resolves paths and links: from names and arrows to sources and sinks.

use braid_ir::chain::{Sink, Source};
use braid_ir::model::{LEFT, PortId, RIGHT};

use rustc_hash::FxHashMap;

use super::draft::{Draft, End, Link, MAX_LINKS, Scope};
use super::nodes;
use crate::ast::{Arrow, ChainItem, Ident, PathEnd, Span};
use crate::diag::{Diagnostic, Diagnostics, codes, did_you_mean_help};

/// Makes the links that the chain's paths and links declare, and reports sources with two links.
pub(super) fn link(draft: &mut Draft<'_>, scope: &mut Scope<'_>, diags: &mut Diagnostics) {
    let ast = draft.ast;
    let mut joined = 0;
    for item in &ast.items {
        match item {
            ChainItem::Path { ends, arrows, .. } => {
                joined += 1;
                path(draft, ends, arrows, scope, diags);
            }
            ChainItem::Link { from, arrow, to, .. } => {
                joined += 1;
                let from_end = end(draft, from, scope, diags);
                let to_end = end(draft, to, scope, diags);
                if let (Some(a), Some(b)) = (from_end, to_end) {
                    let span = from.span.to(to.span);
                    let a = (a, port(draft, a, from.port.as_ref(), diags));
                    let b = (b, port(draft, b, to.port.as_ref(), diags));
                    join(draft, a, b, *arrow, span, diags);
                }
            }
            _ => {}
        }
    }
    if joined == 0 && !draft.doubt && draft.by_rules.is_none() {
        diags.push(no_path(draft));
    }
    linked_twice(draft, diags);
}

/// Makes the links of a chain whose policy orders its functions: from its first interface through
/// the functions to its second one.
pub(super) fn link_in_order(
    draft: &mut Draft<'_>,
    order: &[u16],
    span: Span,
    diags: &mut Diagnostics,
) {
    if draft.interfaces.len() < 2 {
        let name = &draft.ast.name;
        let message = format!("the chain `{}` has rules in place of a path", name.text);
        let label = "packets enter and leave where?";
        let wrong = Diagnostic::new(codes::NO_PATH, message, name.span, label);
        diags.push(wrong.help("declare two interfaces, the left one first, or write a path"));
        return;
    }
    let nodes = order.iter().map(|node| End::Node(*node));
    let ends = [End::Interface(0)].into_iter().chain(nodes).chain([End::Interface(1)]);
    let ends: Vec<End> = ends.collect();
    for (a, b) in ends.iter().zip(ends.iter().skip(1)) {
        let (a, b) = ((*a, PortChoice::Side), (*b, PortChoice::Side));
        join(draft, a, b, Arrow::TwoWay, span, diags);
    }
}

fn no_path(draft: &Draft<'_>) -> Diagnostic {
    let name = &draft.ast.name;
    let message = format!("the chain `{}` has neither a path nor a link", name.text);
    let declared: Vec<_> = draft.interfaces.iter().filter(|i| i.span.is_some()).collect();
    let help = match declared.as_slice() {
        [a, b, ..] => {
            format!("`path {} <-> {};` passes packets on between these two", a.ir.name, b.ir.name)
        }
        [a] => format!("write `path {} -> …;` with where its packets go", a.ir.name),
        [] => "`path in <-> out;` passes everything on".into(),
    };
    Diagnostic::new(codes::NO_PATH, message, name.span, "packets could go nowhere").help(help)
}

/// An end, and its port if one is written.
type Joint = (End, PortChoice);

/// The port at an end.
#[derive(Clone, Copy)]
enum PortChoice {
    /// No port is written: packets leave by the right port and enter by the left one.
    Side,
    /// The written port.
    Port(PortId),
    /// A wrong port, which is reported.
    Wrong,
}

/// Links a path. The only path of a chain without interfaces gets `in` and `out` at its ends.
fn path(
    draft: &mut Draft<'_>,
    ends: &[PathEnd],
    arrows: &[Arrow],
    scope: &mut Scope<'_>,
    diags: &mut Diagnostics,
) {
    let found: Vec<Option<End>> =
        ends.iter().map(|written| end(draft, written, scope, diags)).collect();
    let mut joints = Vec::with_capacity(ends.len());
    for (at, (written, found)) in ends.iter().zip(&found).enumerate() {
        let inside = at > 0 && at + 1 < ends.len();
        let Some(found) = *found else {
            joints.push(None);
            continue;
        };
        let choice = match &written.port {
            Some(name) if inside => {
                diags.push(port_inside(written, name));
                PortChoice::Wrong
            }
            name => port(draft, found, name.as_ref(), diags),
        };
        joints.push(Some((found, choice)));
    }
    let mut arrows = arrows.to_vec();
    let mut spans: Vec<Span> = ends.iter().map(|written| written.span).collect();
    if is_open(draft, &found) {
        let (first, last) = (arrows.first().copied(), arrows.last().copied());
        arrows.insert(0, first.unwrap_or(Arrow::TwoWay));
        arrows.push(last.unwrap_or(Arrow::TwoWay));
        joints.insert(0, Some((End::Interface(0), PortChoice::Side)));
        joints.push(Some((End::Interface(1), PortChoice::Side)));
        spans.insert(0, spans[0]);
        spans.push(spans[spans.len() - 1]);
    }
    for (at, arrow) in arrows.iter().enumerate() {
        if let (Some(Some(a)), Some(Some(b))) = (joints.get(at), joints.get(at + 1)) {
            join(draft, *a, *b, *arrow, spans[at].to(spans[at + 1]), diags);
        }
    }
}

/// Whether a path gets `in` and `out` at its ends. The chain must declare no interfaces, the path
/// must be its only link, and neither end may be `in` or `out`.
fn is_open(draft: &Draft<'_>, found: &[Option<End>]) -> bool {
    let implicit = draft.interfaces.iter().all(|interface| interface.span.is_none());
    let is_link =
        |item: &&ChainItem| matches!(item, ChainItem::Path { .. } | ChainItem::Link { .. });
    let alone = draft.ast.items.iter().filter(is_link).count() == 1;
    let is_node = |end: Option<&Option<End>>| matches!(end, Some(Some(End::Node(_))));
    implicit && alone && is_node(found.first()) && is_node(found.last())
}

/// Resolves an end. A function written in place becomes an instance.
fn end<'a>(
    draft: &mut Draft<'a>,
    written: &PathEnd,
    scope: &mut Scope<'_>,
    diags: &mut Diagnostics,
) -> Option<End> {
    let name = &written.name;
    if let Some(args) = &written.args {
        let instance = Ident { text: free_name(draft, &name.text), span: name.span };
        let at = nodes::instance(draft, &instance, name, args, scope, diags)?;
        return Some(End::Node(at));
    }
    if let Some(found) = draft.names.get(name.text.as_str()) {
        return Some(*found);
    }
    if !draft.doubt {
        diags.push(unknown_end(draft, name, scope));
    }
    None
}

/// A free name for an instance in place: the function's name, then `name_2` and so on.
fn free_name(draft: &mut Draft<'_>, function: &str) -> String {
    if draft.taken.is_empty() {
        let declared: Vec<String> = draft.end_names().map(String::from).collect();
        draft.taken.extend(declared.into_iter().map(|name| (name, 1)));
    }
    let mut number = draft.taken.get(function).copied().unwrap_or(0);
    let name = loop {
        number += 1;
        let name = match number {
            1 => function.to_owned(),
            _ => format!("{function}_{number}"),
        };
        if !draft.taken.contains_key(&name) {
            break name;
        }
    };
    draft.taken.insert(function.to_owned(), number);
    draft.taken.insert(name.clone(), 1);
    name
}

fn unknown_end(draft: &Draft<'_>, name: &Ident, scope: &Scope<'_>) -> Diagnostic {
    let message = format!("`{}` is neither an interface nor an instance of this chain", name.text);
    let diagnostic = Diagnostic::new(codes::CHAIN_UNKNOWN_END, message, name.span, "unknown");
    if scope.functions.names().contains(&name.text) {
        let help = format!("to use the function here, write `{}(…)` with its arguments", name.text);
        return diagnostic.help(help);
    }
    let known: Vec<&str> = draft.end_names().collect();
    diagnostic
        .note(format!("the chain has {}", known.join(", ")))
        .help_if(did_you_mean_help(&name.text, known.iter().copied()))
}

/// The port that an end names.
fn port(draft: &Draft<'_>, end: End, name: Option<&Ident>, diags: &mut Diagnostics) -> PortChoice {
    let Some(name) = name else { return PortChoice::Side };
    let node = match end {
        End::Interface(at) => {
            let interface = draft.interfaces.get(usize::from(at)).map_or("?", |i| &i.ir.name);
            let message = format!("`{interface}` is an interface, which has no ports");
            diags.push(
                Diagnostic::new(codes::CHAIN_UNKNOWN_PORT, message, name.span, "no such port")
                    .help(format!("write `{interface}` alone")),
            );
            return PortChoice::Wrong;
        }
        End::Node(at) => &draft.nodes[usize::from(at)],
    };
    let Some(model) = &node.model else { return PortChoice::Wrong };
    if let Some(at) = model.ports.iter().position(|port| *port == name.text) {
        return PortChoice::Port(PortId(u32::try_from(at).unwrap_or(u32::MAX)));
    }
    let message = format!("`{}` has no port `{}`", node.name, name.text);
    diags.push(
        Diagnostic::new(codes::CHAIN_UNKNOWN_PORT, message, name.span, "no such port")
            .note(format!("its ports are {}", model.ports.join(", ")))
            .help_if(did_you_mean_help(&name.text, model.ports.iter().map(String::as_str))),
    );
    PortChoice::Wrong
}

fn port_inside(written: &PathEnd, name: &Ident) -> Diagnostic {
    let text = &written.name.text;
    let message = format!("`{text}.{}` names a port inside a path", name.text);
    Diagnostic::new(codes::PORT_INSIDE_PATH, message, name.span, "enter or leave there?")
        .help(format!("write `{text}` here, and `link {text}.{} -> …;` for the port", name.text))
}

fn source((end, choice): Joint) -> Option<Source> {
    Some(match (end, choice) {
        (_, PortChoice::Wrong) => return None,
        (End::Interface(at), _) => Source::Interface(at),
        (End::Node(at), PortChoice::Side) => Source::Port(at, RIGHT),
        (End::Node(at), PortChoice::Port(port)) => Source::Port(at, port),
    })
}

fn sink((end, choice): Joint) -> Option<Sink> {
    Some(match (end, choice) {
        (_, PortChoice::Wrong) => return None,
        (End::Interface(at), _) => Sink::Interface(at),
        (End::Node(at), PortChoice::Side) => Sink::Port(at, LEFT),
        (End::Node(at), PortChoice::Port(port)) => Sink::Port(at, port),
    })
}

/// Links two ends. The arrow `<->` links the other direction too.
fn join(
    draft: &mut Draft<'_>,
    a: Joint,
    b: Joint,
    arrow: Arrow,
    span: Span,
    diags: &mut Diagnostics,
) {
    let (Some(source), Some(sink)) = (source(a), sink(b)) else { return };
    add(draft, Link { source, sink, span }, diags);
    if arrow == Arrow::TwoWay {
        let (source, sink) = (turned_sink(sink), turned_source(source));
        add(draft, Link { source, sink, span }, diags);
    }
}

/// The source of backward packets at the place where forward packets enter.
fn turned_sink(sink: Sink) -> Source {
    match sink {
        Sink::Interface(at) => Source::Interface(at),
        Sink::Port(at, port) => Source::Port(at, port),
    }
}

/// The sink of backward packets at the place where forward packets leave.
fn turned_source(source: Source) -> Sink {
    match source {
        Source::Interface(at) => Sink::Interface(at),
        Source::Port(at, port) => Sink::Port(at, port),
    }
}

fn add(draft: &mut Draft<'_>, link: Link, diags: &mut Diagnostics) {
    if draft.links.len() >= MAX_LINKS {
        let message = format!("a chain has at most {MAX_LINKS} links");
        diags.push(Diagnostic::new(codes::CHAIN_TOO_LARGE, message, link.span, "one too many"));
        return;
    }
    draft.links.push(link);
}

/// The written name of a place where packets leave.
pub(super) fn source_name(draft: &Draft<'_>, source: Source) -> String {
    match source {
        Source::Interface(at) => {
            draft.interfaces.get(usize::from(at)).map_or_else(String::new, |i| i.ir.name.clone())
        }
        Source::Port(at, port) => {
            format!("{}.{}", draft.node_name(at), port_name(draft, at, port))
        }
    }
}

/// The name of a port.
pub(super) fn port_name(draft: &Draft<'_>, node: u16, port: PortId) -> String {
    let model = draft.nodes.get(usize::from(node)).and_then(|node| node.model.as_ref());
    let name = model.and_then(|model| model.ports.get(port.index()));
    name.cloned().unwrap_or_else(|| port.to_string())
}

/// Reports sources with two links, because a source leads to one place. The first link stays.
fn linked_twice(draft: &mut Draft<'_>, diags: &mut Diagnostics) {
    let mut kept: Vec<Link> = Vec::with_capacity(draft.links.len());
    let mut first: FxHashMap<Source, Link> = FxHashMap::default();
    for link in &draft.links {
        let Some(before) = first.get(&link.source) else {
            first.insert(link.source, *link);
            kept.push(*link);
            continue;
        };
        let name = source_name(draft, link.source);
        let (message, help) = if before.sink == link.sink {
            (format!("`{name}` is linked to the same place twice"), "remove one of the links")
        } else {
            let help = "a function sends one packet to several places by ports of its own";
            (format!("`{name}` is linked to two places"), help)
        };
        diags.push(
            Diagnostic::new(codes::LINKED_TWICE, message, link.span, "and here")
                .label(before.span, "linked here")
                .help(help),
        );
    }
    draft.links = kept;
}
