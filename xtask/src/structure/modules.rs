//! The modules of a crate and their imports from each other, read from the sources.
//!
//! A module is a file. It imports another module when it names an item that the other file defines.
//! Re-exports are followed to the definition. Code under `#[cfg(test)]` does not count.

use super::{File, files_below, scan};
use std::collections::{BTreeMap, BTreeSet};

/// The path of a module from the crate's root, which is the empty path.
pub type Path = Vec<String>;

/// The most re-exports that are followed for one name: they may form a circle.
const MOST_STEPS: usize = 6;

/// One module.
#[derive(Debug, Default)]
struct Module {
    /// Names of the items that the file defines.
    items: BTreeSet<String>,
    /// Names from `use`, with the path of each.
    names: BTreeMap<String, Path>,
    /// Paths of `use path::*`.
    globs: Vec<Path>,
    /// All other paths in the code, such as `crate::model::Op` and `child::run`.
    paths: BTreeSet<Path>,
    /// Types with inherent `impl` blocks in the file.
    impls: BTreeSet<Path>,
}

/// The modules of one crate.
#[derive(Debug, Default)]
pub struct Modules(BTreeMap<Path, Module>);

impl Modules {
    /// The modules of the crate in `crates/NAME`.
    #[must_use]
    pub fn of_crate(name: &str) -> Self {
        let source = format!("crates/{name}/src/");
        let own = files_below(&source, &[".rs"]).into_iter().filter_map(|file| {
            let path = file.path.strip_prefix(&source)?.to_owned();
            Some(File { path, text: file.text })
        });
        Self::new(&own.collect::<Vec<_>>())
    }

    /// The modules in these files, whose paths start at the crate's `src` folder.
    #[must_use]
    pub fn new(files: &[File]) -> Self {
        let modules = files.iter().filter(|file| !file.path.starts_with("bin/"));
        Self(modules.map(|file| (path_of(&file.path), read(&file.text))).collect())
    }

    /// The paths of the modules directly below the root.
    #[must_use]
    pub fn top(&self) -> Vec<String> {
        self.0.keys().filter(|path| path.len() == 1).map(|path| path[0].clone()).collect()
    }

    /// For each module, the modules that it imports from.
    #[must_use]
    pub fn imports(&self) -> BTreeMap<Path, BTreeSet<Path>> {
        let of = |(path, module): (&Path, &Module)| {
            let named = module.names.values().chain(&module.paths);
            let mut found: BTreeSet<Path> =
                named.filter_map(|used| self.owner(path, used, MOST_STEPS)).collect();
            found.extend(module.globs.iter().filter_map(|glob| self.module(path, glob)));
            found.remove(path);
            (path.clone(), found)
        };
        self.0.iter().map(of).collect()
    }

    /// Groups of modules that all import each other, directly or through others.
    #[must_use]
    pub fn circles(&self) -> Vec<BTreeSet<Path>> {
        circles_of(&self.imports())
    }

    /// Groups of folders, and of modules beside them, that all import each other. A folder counts
    /// as one unit with everything below it and the file of its name. Such a unit may be part of a
    /// larger one.
    #[must_use]
    pub fn folder_circles(&self) -> Vec<BTreeSet<Path>> {
        let imports = self.imports();
        let folders = self.0.keys().filter_map(|path| Some(path.split_last()?.1));
        let folders: BTreeSet<&[String]> = folders.collect();
        let circles = folders.into_iter().flat_map(|folder| circles_of(&units(&imports, folder)));
        circles.filter(|circle| circle.iter().any(|unit| self.is_folder(unit))).collect()
    }

    fn is_folder(&self, unit: &Path) -> bool {
        self.0.keys().any(|path| path.len() > unit.len() && path.starts_with(unit))
    }

    /// For each type of the crate, the modules that have inherent `impl` blocks for it.
    #[must_use]
    pub fn impls(&self) -> BTreeMap<(Path, String), BTreeSet<Path>> {
        let mut found: BTreeMap<(Path, String), BTreeSet<Path>> = BTreeMap::new();
        for (path, module) in &self.0 {
            for used in &module.impls {
                let owner = self.owner(path, used, MOST_STEPS);
                let name = used.last().cloned().unwrap_or_default();
                let of = (owner.unwrap_or_else(|| path.clone()), name);
                found.entry(of).or_default().insert(path.clone());
            }
        }
        found
    }

    /// The module that a path names, as seen from a module.
    fn module(&self, from: &Path, used: &[String]) -> Option<Path> {
        let mut at = from.clone();
        for (place, part) in used.iter().enumerate() {
            match part.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()?),
                name if place == 0 && self.0.contains_key(&child(from, name)) => {
                    at.push(name.into())
                }
                name if place > 0 => at.push(name.into()),
                _ => return None,
            }
        }
        self.0.contains_key(&at).then_some(at)
    }

    /// The module that defines the item of a path, as seen from a module. `None` for items of other
    /// crates, and for paths that name a module itself.
    fn owner(&self, from: &Path, used: &[String], steps: usize) -> Option<Path> {
        let steps = steps.checked_sub(1)?;
        let known = (1..=used.len()).rev().find_map(|len| {
            let module = self.module(from, used.get(..len)?)?;
            Some((module, &used[len..]))
        });
        let (module, rest) = match known {
            Some((_, [])) => return None,
            Some(known) => known,
            // A name of this module itself.
            None => (from.clone(), used),
        };
        let (name, behind) = rest.split_first()?;
        let here = self.0.get(&module)?;
        if here.items.contains(name) {
            return Some(module);
        }
        if let Some(path) = here.names.get(name) {
            let whole: Path = path.iter().chain(behind).cloned().collect();
            if whole != used || &module != from {
                return self.owner(&module, &whole, steps);
            }
        }
        here.globs.iter().find_map(|glob| {
            let whole: Path = glob.iter().chain(rest).cloned().collect();
            self.owner(&module, &whole, steps)
        })
    }
}

/// Groups of keys that all lead to each other.
fn circles_of(imports: &BTreeMap<Path, BTreeSet<Path>>) -> Vec<BTreeSet<Path>> {
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        imports.keys().map(|from| (from, reach(imports, from))).collect();
    let mut circles: Vec<BTreeSet<Path>> = Vec::new();
    for (from, to) in &reached {
        if !to.contains(from) || circles.iter().any(|circle| circle.contains(*from)) {
            continue;
        }
        let back = to.iter().filter(|other| reached[**other].contains(from));
        circles.push(back.map(|path| (**path).clone()).collect());
    }
    circles
}

/// The imports between the units directly below a folder.
fn units(
    imports: &BTreeMap<Path, BTreeSet<Path>>,
    folder: &[String],
) -> BTreeMap<Path, BTreeSet<Path>> {
    let unit = |path: &Path| {
        (path.len() > folder.len() && path.starts_with(folder))
            .then(|| path[..=folder.len()].to_vec())
    };
    let mut found: BTreeMap<Path, BTreeSet<Path>> = BTreeMap::new();
    for (from, to) in imports {
        let Some(from) = unit(from) else { continue };
        let to = to.iter().filter_map(unit).filter(|to| *to != from).collect::<Vec<_>>();
        found.entry(from).or_default().extend(to);
    }
    found
}

fn child(of: &Path, name: &str) -> Path {
    of.iter().cloned().chain([name.to_owned()]).collect()
}

/// The modules that a module imports, directly or through others.
fn reach<'a>(imports: &'a BTreeMap<Path, BTreeSet<Path>>, from: &Path) -> BTreeSet<&'a Path> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&Path> = imports.get(from).into_iter().flatten().collect();
    while let Some(path) = next.pop() {
        if found.insert(path) {
            next.extend(imports.get(path).into_iter().flatten());
        }
    }
    found
}

/// The module of a file below `src`.
fn path_of(file: &str) -> Path {
    let path = file.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    match path {
        "lib" | "main" | "mod" => Vec::new(),
        path => path.split('/').map(str::to_owned).collect(),
    }
}

fn read(text: &str) -> Module {
    let code = without_tests(&scan::code_only(text));
    let mut module = Module::default();
    let mut rest = String::new();
    let mut at = 0;
    for (start, _) in code.match_indices("use ") {
        let before = code[..start].chars().next_back();
        if start < at || before.is_some_and(|c| !c.is_whitespace() && c != '}' && c != ';') {
            continue;
        }
        let end = code[start..].find(';').map_or(code.len(), |len| start + len);
        rest.push_str(&code[at..start]);
        tree(&code[start + 4..end], &mut Vec::new(), &mut module);
        at = end;
    }
    rest.push_str(&code[at..]);
    items(&rest, &mut module);
    paths(&rest, &mut module);
    module
}

/// Blanks out the blocks under `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    let mut left = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        left.push_str(&rest[..at]);
        let block = rest[at..].find(['{', ';']).map_or(rest.len(), |len| at + len);
        rest = &rest[block..];
        let mut depth = 0_usize;
        let end = rest.char_indices().find_map(|(at, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            (depth == 0).then_some(at + 1)
        });
        rest = &rest[end.unwrap_or(rest.len())..];
    }
    left + rest
}

/// Reads a `use` tree, such as `super::{run::Run, state}`.
fn tree(text: &str, before: &mut Path, module: &mut Module) {
    let text = text.trim();
    let depth = before.len();
    if let Some((head, inner)) = text.split_once('{') {
        before.extend(head.split("::").map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned));
        let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
        split(inner).into_iter().for_each(|part| tree(part, before, module));
    } else if !text.is_empty() {
        let (path, alias) = text.split_once(" as ").unwrap_or((text, ""));
        before.extend(path.split("::").map(|part| part.trim().to_owned()));
        let last = before.last().cloned().unwrap_or_default();
        if last == "*" {
            module.globs.push(before[..before.len() - 1].to_vec());
        } else {
            let whole = if last == "self" { &before[..before.len() - 1] } else { &before[..] };
            let name =
                if alias.is_empty() { whole.last().cloned() } else { Some(alias.trim().into()) };
            module.names.insert(name.unwrap_or_default(), whole.to_vec());
        }
    }
    before.truncate(depth);
}

/// The parts of a list between commas that are not inside braces.
fn split(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

/// Finds the names that the code defines, and the types that it has inherent `impl` blocks for.
fn items(code: &str, module: &mut Module) {
    let words: Vec<&str> = code.split_whitespace().collect();
    let name = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    for pair in words.windows(2) {
        let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];
        if kinds.contains(&pair[0]) || pair[0] == "macro_rules!" {
            module.items.insert(name(pair[1]));
        }
    }
    for (at, _) in code.match_indices("impl") {
        let starts_line = code[..at].rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
        let head = code[at + 4..].split('{').next().unwrap_or_default();
        if !starts_line || !head.starts_with([' ', '<']) || head.contains(" for ") {
            continue;
        }
        let of = after_generics(head).split("where").next().unwrap_or_default();
        let of = of.split('<').next().unwrap_or_default().trim();
        module.impls.insert(of.split("::").map(name).collect());
    }
}

/// The text after `<…>`, if it starts with that.
fn after_generics(head: &str) -> &str {
    if !head.starts_with('<') {
        return head;
    }
    let mut depth = 0_usize;
    for (at, c) in head.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if !head[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &head[at + 1..];
        }
    }
    head
}

/// Finds the paths with two or more parts.
fn paths(code: &str, module: &mut Module) {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for word in code.split(|c: char| !part(c)).filter(|word| word.contains("::")) {
        let parts: Path = word.split("::").map(str::to_owned).collect();
        if parts.iter().all(|part| !part.is_empty() && !part.contains(':')) {
            module.paths.insert(parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        Modules::new(&files.iter().map(file).collect::<Vec<_>>())
    }

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let all = modules(files).circles();
        all.iter().map(|circle| circle.iter().map(|path| path.join("::")).collect()).collect()
    }

    #[test]
    fn circle_through_imports_and_paths_is_found() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::{Other, B as Renamed}; pub struct A;"),
            ("b.rs", "pub struct B; pub struct Other; fn f(x: super::c::C) {}"),
            ("c/mod.rs", "use super::a; pub struct C; fn f(x: a::A) {}"),
        ]);
        assert_eq!(found, [["a", "b", "c"]]);
    }

    #[test]
    fn circle_of_folders_is_found_at_each_level() {
        let found = modules(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a/mod.rs", "mod x; pub mod y; use crate::c::C;"),
            ("a/x.rs", "use crate::b::B; pub struct X;"),
            ("a/y.rs", "pub mod deep; pub mod flat; pub struct Y;"),
            ("a/y/deep.rs", "pub mod one; pub struct Deep;"),
            ("a/y/deep/one.rs", "use super::super::flat::Flat;"),
            ("a/y/flat.rs", "use super::deep::Deep; pub struct Flat;"),
            ("b.rs", "use crate::a::y::Y; pub struct B;"),
            ("c.rs", "pub struct C;"),
        ]);
        assert!(found.circles().is_empty());
        let found = found.folder_circles();
        let found = found.iter().map(|circle| circle.iter().map(|path| path.join("::")));
        let found = found.map(Iterator::collect).collect::<Vec<Vec<_>>>();
        assert_eq!(found, [["a", "b"], ["a::y::deep", "a::y::flat"]]);
    }

    #[test]
    fn name_counts_for_the_module_that_defines_it() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
            ("a.rs", "pub struct A;"),
            ("b.rs", "use crate::A; pub struct B;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
        let parent = circles(&[
            ("a.rs", "mod part; use part::Part; pub struct Whole;"),
            ("a/part.rs", "use super::Whole; pub struct Part;"),
        ]);
        assert_eq!(parent, [["a", "a::part"]]);
    }

    #[test]
    fn tests_and_comments_do_not_count() {
        let found = circles(&[
            ("a.rs", "use crate::b::B; pub struct A;"),
            (
                "b.rs",
                "// crate::a::A\npub struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n",
            ),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn impls_are_counted_by_type_and_not_for_traits() {
        let all = modules(&[
            ("lib.rs", "mod a; mod b; pub struct S<'a>(&'a u8); impl Clone for S<'_> { }"),
            ("a.rs", "use super::S;\nimpl<'a> S<'a> { }\nimpl S<'_> { }"),
            ("b.rs", "impl crate::S<'_> { }\nfn f() -> impl Iterator { }"),
        ]);
        let found = all.impls();
        let of = found.values().map(BTreeSet::len).collect::<Vec<_>>();
        assert_eq!(of, [2], "{found:?}");
    }
}
