//! Compiles a whole program: files, functions, chains.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use braid_ir::chain::Chain;
use braid_ir::model::Model;

use crate::ast::{self, ChainItem, File, Item, PathEnd, Span};
use crate::chain::{self, Found, Functions, Scope};
use crate::diag::{Diagnostic, Diagnostics, codes};
use crate::parse::parse;
use crate::sema::env::{Env, Loader};
use crate::sema::module::{Module, unique};
use crate::sema::{free, inner, native, nf, stream};
use crate::source::{SourceMap, beside};

/// The most files that a program uses.
const MAX_FILES: usize = 256;

/// The parts of a program.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The functions of the root file and of the files that it uses, and the library functions that
    /// chains name.
    pub models: BTreeMap<String, Arc<Model>>,
    /// The chains of the root file, in order.
    pub chains: Vec<Chain>,
    /// For each chain with the setting `workers`, where it stands.
    pub workers: BTreeMap<String, Span>,
    /// For each chain whose policy orders its functions, where the policy stands.
    pub by_rules: BTreeMap<String, Span>,
}

/// The result of compiling: the program, the diagnostics, and the source texts that they refer to.
#[derive(Debug)]
pub struct Compiled {
    /// The program. `None` when anything has errors.
    pub unit: Option<Unit>,
    /// Names of the functions that the root file defines, in order. Functions with errors are
    /// included.
    pub functions: Vec<String>,
    /// Names of the chains that the root file defines, in order. Chains with errors are included.
    pub chains: Vec<String>,
    /// All diagnostics.
    pub diagnostics: Diagnostics,
    /// The source files.
    pub sources: SourceMap,
}

/// Compiles a program. `root` is a file's name and text. `library` holds the name of each library
/// function and the text that defines it. A library function is used when the program names it and
/// does not define it. `loader` reads the files that the program names.
#[must_use]
pub fn compile(root: (&str, &str), library: &[(&str, &str)], loader: &dyn Loader) -> Compiled {
    let Gathered { program, groups, inside, damaged, mut diags, sources } =
        gather(root, library, loader);
    let inside = inside.as_slice();
    let parts = Parts { program: &program, groups: &groups, inside, library, damaged: &damaged };
    let unit = link(&parts, &sources, loader, &mut diags);
    let unit = if diags.has_errors() { None } else { Some(unit) };
    let (functions, chains) = program.last().map(names).unwrap_or_default();
    Compiled { unit, functions, chains, diagnostics: diags.sorted(), sources }
}

/// The parsed files of a program.
pub(crate) struct Gathered {
    /// The root file and the files that it uses. The root is the last.
    pub program: Vec<File>,
    /// The library functions that the program needs, each with its files.
    pub groups: Vec<(String, Vec<File>)>,
    /// The declarations of headers inside of tunnels, if the program needs them.
    inside: Option<File>,
    /// Items with syntax errors.
    damaged: Vec<Span>,
    diags: Diagnostics,
    pub sources: SourceMap,
}

/// Parses the files of a program.
pub(crate) fn gather(
    root: (&str, &str),
    library: &[(&str, &str)],
    loader: &dyn Loader,
) -> Gathered {
    let mut diags = Diagnostics::new();
    let mut sources = SourceMap::new();
    let mut files = Files {
        loader,
        sources: &mut sources,
        diags: &mut diags,
        seen: Vec::new(),
        damaged: Vec::new(),
        looks_inside: false,
    };
    let mut program = Vec::new();
    files.add(root.0, root.1, None, &mut program);
    let needed = needed(&program, library);
    let mut groups: Vec<(String, Vec<File>)> = Vec::new();
    for (name, text) in needed {
        let mut group = Vec::new();
        files.add(&format!("library/{name}.braid"), text, None, &mut group);
        groups.push((name.to_owned(), group));
    }
    let inside = files.inside();
    let damaged = files.damaged;
    Gathered { program, groups, inside, damaged, diags, sources }
}

/// Names of the functions and chains that a file defines.
fn names(file: &File) -> (Vec<String>, Vec<String>) {
    let (mut functions, mut chains) = (Vec::new(), Vec::new());
    for item in &file.items {
        match item {
            Item::Nf(nf) => functions.push(nf.name.text.clone()),
            Item::Chain(chain) => chains.push(chain.name.text.clone()),
            _ => {}
        }
    }
    (functions, chains)
}

/// Reads files and the files that they use.
struct Files<'a> {
    loader: &'a dyn Loader,
    sources: &'a mut SourceMap,
    diags: &'a mut Diagnostics,
    /// Names of files, and whether the files that each one uses are still being read.
    seen: Vec<(String, bool)>,
    /// Items with syntax errors.
    damaged: Vec<Span>,
    /// Whether a file names headers inside of tunnels.
    looks_inside: bool,
}

impl Files<'_> {
    /// The declarations of headers inside of tunnels, if a file names some.
    fn inside(&mut self) -> Option<File> {
        let text = self.looks_inside.then(inner::declarations)?;
        let (file, found) = parse(&text, self.sources.add(inner::FILE, &text));
        self.diags.extend(found);
        Some(file)
    }

    /// Parses a file and all files that it uses, and puts the used files first.
    fn add(&mut self, name: &str, text: &str, used: Option<Span>, into: &mut Vec<File>) {
        if self.seen.len() >= MAX_FILES || into.len() >= MAX_FILES {
            self.failed(&format!("a program has at most {MAX_FILES} files"), used);
            return;
        }
        let at = self.seen.len();
        self.seen.push((name.to_owned(), true));
        self.looks_inside |= inner::is_named(text);
        let number = self.sources.add(name, text);
        let (file, found) = parse(text, number);
        self.damaged.extend(&file.doubtful);
        self.diags.extend(found);
        for item in &file.items {
            if let Item::Use { path, span } = item {
                self.use_file(path, *span, name, into);
            }
        }
        if let Some(entry) = self.seen.get_mut(at) {
            entry.1 = false;
        }
        into.push(file);
    }

    fn use_file(&mut self, path: &str, span: Span, from: &str, into: &mut Vec<File>) {
        let name = beside(from, path);
        match self.seen.iter().find(|(seen, _)| *seen == name) {
            Some((_, true)) => {
                let message = format!("`{path}` leads back to this file");
                return self.failed(&message, Some(span));
            }
            Some((_, false)) => return,
            None => {}
        }
        match self.loader.read(path, from).map(String::from_utf8) {
            Ok(Ok(text)) => self.add(&name, &text, Some(span), into),
            Ok(Err(error)) => self.not_text(name, error.as_bytes(), span),
            Err(why) => self.failed(&format!("cannot read `{path}`: {why}"), Some(span)),
        }
    }

    /// Reports a used file that is not text, once.
    fn not_text(&mut self, name: String, bytes: &[u8], used: Span) {
        let (_, found) = self.sources.add_bytes(name.clone(), bytes);
        self.seen.push((name, false));
        if let Some(found) = found {
            self.diags.push(found.label(used, "used here"));
        }
    }

    fn failed(&mut self, message: &str, span: Option<Span>) {
        let span = span.unwrap_or_default();
        self.diags.push(Diagnostic::new(codes::USE_FAILED, message, span, "used here"));
    }
}

/// The library functions that the program's chains name and that the program does not define.
fn needed<'l>(program: &[File], library: &[(&'l str, &'l str)]) -> Vec<(&'l str, &'l str)> {
    let items = || program.iter().flat_map(|file| &file.items);
    let own: BTreeSet<&str> = items()
        .filter_map(|item| match item {
            Item::Nf(nf) => Some(nf.name.text.as_str()),
            _ => None,
        })
        .collect();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for item in items() {
        let Item::Chain(chain) = item else { continue };
        for part in &chain.items {
            match part {
                ChainItem::Instance { function, .. } => {
                    named.insert(&function.text);
                }
                ChainItem::Path { ends, .. } => named.extend(ends.iter().filter_map(in_place)),
                ChainItem::Link { from, to, .. } => {
                    named.extend([from, to].into_iter().filter_map(in_place));
                }
                _ => {}
            }
        }
    }
    let wanted = |name: &str| named.contains(name) && !own.contains(name);
    library.iter().filter(|(name, _)| wanted(name)).copied().collect()
}

fn in_place(end: &PathEnd) -> Option<&str> {
    end.args.as_ref().map(|_| end.name.text.as_str())
}

/// Functions by name.
struct Program<'a> {
    found: BTreeMap<String, Found>,
    library: &'a [(&'a str, &'a str)],
}

impl Functions for Program<'_> {
    fn find(&mut self, name: &str, _diags: &mut Diagnostics) -> Found {
        self.found.get(name).cloned().unwrap_or(Found::Unknown)
    }

    fn names(&self) -> Vec<String> {
        let library = self.library.iter().map(|(name, _)| (*name).to_owned());
        self.found.keys().cloned().chain(library).collect()
    }
}

/// The parsed files of a program.
struct Parts<'a> {
    program: &'a [File],
    /// The library functions that the program needs, each with its files.
    groups: &'a [(String, Vec<File>)],
    /// The declarations of headers inside of tunnels, if the program needs them.
    inside: &'a [File],
    library: &'a [(&'a str, &'a str)],
    damaged: &'a [Span],
}

fn link(
    parts: &Parts<'_>,
    sources: &SourceMap,
    loader: &dyn Loader,
    diags: &mut Diagnostics,
) -> Unit {
    let mut functions = Program { found: BTreeMap::new(), library: parts.library };
    for (name, files) in parts.groups {
        let inside = inner::held_by(parts.inside, files);
        let mut module = Module::new(items(&inside).chain(items(files)), parts.damaged, diags);
        module.loader = Some(loader);
        for function in &module.nfs {
            if function.name.text == *name {
                let found = lower(function, &module, sources, loader, diags);
                functions.found.insert(name.clone(), found);
            }
        }
    }
    let inside = inner::held_by(parts.inside, parts.program);
    let own = items(&inside).chain(items(parts.program));
    let mut module = Module::new(own, parts.damaged, diags);
    module.loader = Some(loader);
    for function in &module.nfs {
        let found = lower(function, &module, sources, loader, diags);
        functions.found.insert(function.name.text.clone(), found);
    }
    free::check(&module, sources, diags);
    let env = Env { constants: &module.consts, loader, sources };
    let mut names: BTreeMap<&str, Span> = BTreeMap::new();
    let (mut chains, mut workers, mut by_rules) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    // A file that others use may have chains of its own. The root file comes last.
    let root = parts.program.last().map_or(&[][..], std::slice::from_ref);
    for item in items(root) {
        let Item::Chain(chain) = item else { continue };
        unique(&mut names, &chain.name, diags);
        let doubt = module.is_damaged(chain.span);
        let mut scope = Scope { functions: &mut functions, env, doubt };
        chains.extend(chain::resolve(chain, &mut scope, diags));
        let settings = chain.items.iter().filter_map(|item| match item {
            ChainItem::Setting { name, .. } if name.text == "workers" => Some(name.span),
            _ => None,
        });
        by_rules.extend(chain::by_rules(chain).map(|span| (chain.name.text.clone(), span)));
        workers.extend(settings.map(|span| (chain.name.text.clone(), span)));
    }
    let mut unit = Unit { models: BTreeMap::new(), chains, workers, by_rules };
    for (name, found) in functions.found {
        match found {
            Found::Model(model) => {
                unit.models.insert(name, model);
            }
            Found::Broken | Found::Unknown => {}
        }
    }
    unit
}

fn items(files: &[File]) -> impl Iterator<Item = &Item> {
    files.iter().flat_map(|file| &file.items)
}

fn lower(
    function: &ast::Nf,
    module: &Module<'_>,
    sources: &SourceMap,
    loader: &dyn Loader,
    diags: &mut Diagnostics,
) -> Found {
    let lowered = match &function.native {
        Some(code) => native::lower(function, code, module, sources, loader, diags),
        None if function.stream => stream::lower(function, module, sources, loader, diags),
        None => nf::lower(function, module, sources, loader, diags),
    };
    match lowered {
        Some(model) => Found::Model(Arc::new(model)),
        None => Found::Broken,
    }
}
