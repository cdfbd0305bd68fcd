//! The files of a program and their chains.

use std::collections::HashMap;

use super::expr::{in_args, in_expr, in_type};
use super::names::{Index, Kind};
use super::scope::{Names, Walk};
use crate::ast::{Chain, ChainItem, File, InterfacePart, Item, PathEnd, PolicyKind};
use crate::compile::gather;
use crate::sema::Loader;
use crate::source::{SourceMap, Span};

/// The names of a program, and the files that their places refer to. The arguments are those of
/// [`crate::compile()`].
#[must_use]
pub fn index(
    root: (&str, &str),
    library: &[(&str, &str)],
    loader: &dyn Loader,
) -> (Index, SourceMap) {
    let gathered = gather(root, library, loader);
    let mut walk = Walk::new(&gathered.sources);
    walk.is_library = true;
    let mut of_library = Names::new();
    for (name, files) in &gathered.groups {
        walk.files(files);
        of_library.extend(walk.nfs.get(name).map(|at| (name.clone(), *at)));
        for names in [&mut walk.values, &mut walk.events, &mut walk.headers, &mut walk.nfs] {
            names.clear();
        }
    }
    walk.nfs = of_library;
    walk.is_library = false;
    walk.files(&gathered.program);
    let index = walk.index;
    (index, gathered.sources)
}

impl Walk<'_> {
    /// Files that use each other.
    fn files(&mut self, files: &[File]) {
        let mut functions = Vec::new();
        for item in files.iter().flat_map(|file| &file.items) {
            functions.push(self.declare_item(item));
        }
        let items = files.iter().flat_map(|file| &file.items);
        for (item, at) in items.zip(functions) {
            match item {
                Item::Const(one) => in_expr(self, &one.value),
                Item::Event(event) => {
                    if let Some(parent) = &event.parent {
                        self.used(parent, self.events.get(&parent.text).copied());
                    }
                    event.fields.iter().for_each(|(_, ty)| in_type(self, ty));
                }
                Item::Header(def) => {
                    for after in &def.after {
                        if let [name] = after.header.parts.as_slice() {
                            self.used(name, self.headers.get(&name.text).copied());
                        }
                        after.when.iter().for_each(|expr| in_expr(self, expr));
                    }
                    let holds = def.holds.iter().filter_map(|(_, when)| when.as_ref());
                    def.length.iter().chain(holds).for_each(|expr| in_expr(self, expr));
                }
                Item::Fn(def) => self.function_body(def, at),
                Item::Nf(nf) => {
                    if let Some(at) = at {
                        self.nf(nf, at);
                    }
                }
                Item::Chain(chain) => self.chain(chain),
                Item::Use { .. } => {}
            }
        }
    }

    /// Declares the name of an item, and returns the declaration's number.
    fn declare_item(&mut self, item: &Item) -> Option<usize> {
        match item {
            Item::Use { .. } => None,
            Item::Const(one) => {
                let at = self.define(Kind::Const, &one.name, one.span, None);
                self.values.insert(one.name.text.clone(), at);
                Some(at)
            }
            Item::Event(event) => {
                let at = self.define(Kind::Event, &event.name, event.span, None);
                self.events.insert(event.name.text.clone(), at);
                if let Some(parent) = &event.parent {
                    self.parents.insert(at, parent.text.clone());
                }
                for (name, ty) in &event.fields {
                    let whole = name.span.to(ty.span);
                    let field = self.define(Kind::EventField, name, whole, Some(event.span));
                    self.typed(field, ty);
                    self.part_of(at, field);
                }
                Some(at)
            }
            Item::Header(def) => {
                let at = self.define(Kind::Header, &def.name, def.span, None);
                self.headers.insert(def.name.text.clone(), at);
                for (name, ty) in &def.fields {
                    let whole = name.span.to(ty.span);
                    let field = self.define(Kind::HeaderField, name, whole, Some(def.span));
                    self.typed(field, ty);
                    self.part_of(at, field);
                }
                Some(at)
            }
            Item::Fn(def) => {
                let at = self.function(def, None);
                self.values.insert(def.name.text.clone(), at);
                Some(at)
            }
            Item::Nf(nf) => {
                let at = self.define(Kind::Nf, &nf.name, nf.head, None);
                self.nfs.insert(nf.name.text.clone(), at);
                Some(at)
            }
            Item::Chain(chain) => {
                let head = Span { end: chain.name.span.end, ..chain.span };
                Some(self.define(Kind::Chain, &chain.name, head, Some(chain.name.span)))
            }
        }
    }

    fn chain(&mut self, chain: &Chain) {
        let scope = Some(chain.span);
        let mut names = Names::new();
        // The network function of each instance.
        let mut functions: HashMap<usize, usize> = HashMap::new();
        for item in &chain.items {
            match item {
                ChainItem::Interface { name, span, .. } => {
                    names.insert(
                        name.text.clone(),
                        self.define(Kind::Interface, name, *span, scope),
                    );
                }
                ChainItem::Instance { name, function, span, .. } => {
                    let at = self.define(Kind::Instance, name, *span, scope);
                    names.insert(name.text.clone(), at);
                    if let Some(nf) = self.nfs.get(&function.text) {
                        functions.insert(at, *nf);
                        self.index.definitions[at].ty = Some(function.text.clone());
                    }
                }
                _ => {}
            }
        }
        for item in &chain.items {
            self.chain_item(item, &names, &functions);
        }
    }

    fn chain_item(&mut self, item: &ChainItem, names: &Names, functions: &HashMap<usize, usize>) {
        match item {
            ChainItem::Interface { parts, .. } => {
                for part in parts {
                    if let InterfacePart::Values { values, .. } = part {
                        values.iter().for_each(|value| in_expr(self, value));
                    }
                }
            }
            ChainItem::Instance { function, args, .. } => {
                let nf = self.nfs.get(&function.text).copied();
                self.used(function, nf);
                in_args(self, nf, args);
            }
            ChainItem::Path { ends, .. } => {
                ends.iter().for_each(|end| self.path_end(end, names, functions));
            }
            ChainItem::Link { from, to, .. } => {
                [from, to].into_iter().for_each(|end| self.path_end(end, names, functions));
            }
            ChainItem::Policy { rules, .. } => {
                for rule in rules {
                    let used = match &rule.kind {
                        PolicyKind::Order(a, b) | PolicyKind::Priority(a, b) => vec![a, b],
                        PolicyKind::Position(a, _) => vec![a],
                    };
                    for name in used {
                        let found = names.get(&name.text).or_else(|| self.nfs.get(&name.text));
                        self.used(name, found.copied());
                    }
                }
            }
            ChainItem::Setting { value, .. } => in_expr(self, value),
            ChainItem::Malformed(_) => {}
        }
    }

    fn path_end(&mut self, end: &PathEnd, names: &Names, functions: &HashMap<usize, usize>) {
        let found = match &end.args {
            Some(args) => {
                let nf = self.nfs.get(&end.name.text).copied();
                in_args(self, nf, args);
                nf
            }
            None => names.get(&end.name.text).copied(),
        };
        self.used(&end.name, found);
        if let Some(port) = &end.port {
            let nf = found.map(|at| functions.get(&at).copied().unwrap_or(at));
            self.used_port(nf, port);
        }
    }
}
