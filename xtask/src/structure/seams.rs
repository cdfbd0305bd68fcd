//! Rules on the parts of a crate: neither modules nor folders import each other in circles, and the
//! code of a type is not spread over many files.

use super::allowed::{self, Found};
use super::folders;
use super::modules::{Modules, Path};
use std::collections::BTreeSet;

/// The most files with inherent `impl` blocks for one type.
const MOST_FILES: usize = 3;

/// No module imports itself through others. An exception counts a crate's modules in circles.
#[must_use]
pub fn circles() -> Vec<String> {
    allowed::check("circles", &circles_found())
}

/// The modules in circles, by crate.
#[must_use]
pub fn circles_found() -> Found {
    by_crate(|modules| {
        let imports = modules.imports();
        let of = |circle: &BTreeSet<Path>| {
            let line = |path: &Path| {
                let within = imports[path].intersection(circle).map(name).collect::<Vec<_>>();
                format!("{} imports {}", name(path), within.join(", "))
            };
            circle.iter().map(line).collect::<Vec<_>>()
        };
        modules.circles().iter().flat_map(of).collect()
    })
}

/// No folder imports itself through others. An exception counts a crate's folders in circles.
#[must_use]
pub fn folder_circles() -> Vec<String> {
    allowed::check("folder-circles", &folder_circles_found())
}

/// The folders in circles, and the modules beside them, by crate.
#[must_use]
pub fn folder_circles_found() -> Found {
    by_crate(|modules| {
        let imports = modules.imports();
        let of = |circle: &BTreeSet<Path>| {
            let line = |unit: &Path| {
                let others = circle.iter().filter(|other| *other != unit);
                let named = others.filter_map(|other| {
                    let pairs = imports.iter().filter(|(from, _)| from.starts_with(unit));
                    let mut pairs =
                        pairs.flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
                    let (from, to) = pairs.find(|(_, to)| to.starts_with(other))?;
                    Some(format!("{} ({} → {})", name(other), name(from), name(to)))
                });
                format!("{} imports {}", name(unit), named.collect::<Vec<_>>().join(", "))
            };
            circle.iter().map(line).collect::<Vec<_>>()
        };
        modules.folder_circles().iter().flat_map(of).collect()
    })
}

/// No type has inherent `impl` blocks in more than `MOST_FILES` files. An exception counts the
/// files above that.
#[must_use]
pub fn spread() -> Vec<String> {
    allowed::check("spread", &spread_found())
}

/// The files above the limit, each with its type, by crate.
#[must_use]
pub fn spread_found() -> Found {
    by_crate(|modules| {
        let of = |((_, name_of), files): ((Path, String), BTreeSet<Path>)| {
            let all = files.iter().map(name).collect::<Vec<_>>().join(", ");
            let line = format!("impl {name_of} in {} files: {all}", files.len());
            vec![line; files.len().saturating_sub(MOST_FILES)]
        };
        modules.impls().into_iter().flat_map(of).collect()
    })
}

fn by_crate(each: impl Fn(&Modules) -> Vec<String>) -> Found {
    let all = folders("crates").into_iter().map(|name| {
        let found = each(&Modules::of_crate(&name));
        (name, found)
    });
    all.filter(|(_, found)| !found.is_empty()).collect()
}

fn name(path: &Path) -> String {
    if path.is_empty() { "(root)".to_owned() } else { path.join("::") }
}
