//! Rules on dependencies between crates (`docs/architecture.md` has the picture).

use super::{File, files, files_below, folders};

/// For each crate, the crates of this repository that it may depend on. Tests may use more, except
/// the pairs in `NEVER`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("cases", &[]),
    ("casefile", &["packet", "ir", "io", "runtime"]),
    ("crypto", &[]),
    ("packet", &["crypto"]),
    ("externs", &[]),
    ("native", &["packet", "externs", "ir"]),
    ("native-five", &["packet", "externs", "native"]),
    ("fragments", &["packet", "native"]),
    ("connections", &["packet", "tcp", "endpoint", "native"]),
    ("relay", &["tcp", "endpoint", "connections", "http", "native"]),
    ("server", &["tcp", "endpoint", "connections", "externs", "handover", "http", "io", "native"]),
    ("handover", &[]),
    ("preload", &["handover"]),
    ("endpoint", &["tcp"]),
    ("http", &[]),
    ("intervals", &[]),
    ("io", &["packet", "externs"]),
    ("nfs", &[]),
    ("signatures", &["http", "intervals"]),
    ("streams", &["packet", "externs", "http", "ir", "signatures", "tcp"]),
    ("tcp", &["packet"]),
    ("traffic", &["packet", "externs", "io"]),
    ("ir", &["crypto", "packet", "externs", "intervals", "signatures"]),
    ("reference", &["crypto", "packet", "externs", "native", "ir", "streams"]),
    ("sim", &["externs", "ir"]),
    ("lang", &["crypto", "packet", "externs", "native", "ir", "signatures"]),
    ("compiler", &["packet", "externs", "ir"]),
    ("state", &["packet", "externs", "ir"]),
    ("classify", &["packet", "externs", "ir"]),
    ("jit", &["packet", "ir"]),
    ("flowcache", &["packet", "externs", "native", "ir", "state"]),
    (
        "engine",
        &[
            "packet",
            "externs",
            "native",
            "ir",
            "streams",
            "compiler",
            "state",
            "flowcache",
            "classify",
            "jit",
        ],
    ),
    ("verify", &["packet", "externs", "ir"]),
    (
        "bench",
        &[
            "packet",
            "externs",
            "io",
            "ir",
            "reference",
            "compiler",
            "engine",
            "runtime",
            "sim",
            "traffic",
        ],
    ),
    ("load", &["packet", "io"]),
    ("runtime", &["packet", "externs", "ir", "io"]),
    (
        "cli",
        &[
            "casefile",
            "packet",
            "externs",
            "native",
            "native-five",
            "fragments",
            "relay",
            "server",
            "ir",
            "reference",
            "io",
            "lang",
            "compiler",
            "runtime",
            "sim",
            "nfs",
            "tcp",
            "traffic",
            "engine",
            "verify",
            "bench",
        ],
    ),
    (
        "testkit",
        &[
            "cases",
            "casefile",
            "packet",
            "externs",
            "native",
            "native-five",
            "fragments",
            "relay",
            "server",
            "ir",
            "reference",
            "io",
            "lang",
            "compiler",
            "runtime",
            "nfs",
            "engine",
            "verify",
        ],
    ),
];

/// Dependencies that not even tests may add: they would hide that a part cannot be used alone.
const NEVER: &[(&str, &str)] = &[
    ("compiler", "runtime"),
    ("compiler", "io"),
    ("verify", "compiler"),
    ("ir", "reference"),
    ("reference", "compiler"),
    ("reference", "engine"),
    ("lang", "io"),
    ("packet", "ir"),
];

/// A dependency in a section of a manifest.
#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    /// NAME of `crates/NAME`, the crate that is used.
    name: String,
    /// Whether only tests use the crate.
    dev: bool,
}

/// No crate uses a crate that it must not use.
#[must_use]
pub fn arrows() -> Vec<String> {
    let mut wrong = Vec::new();
    for name in folders("crates") {
        let Some(manifest) = files(&[&format!("crates/{name}/Cargo.toml")]).pop() else {
            wrong.push(format!("crates/{name}: has no Cargo.toml"));
            continue;
        };
        wrong.extend(of_crate(&name, &manifest));
    }
    wrong
}

/// The crates of this repository that a crate uses outside of tests, by name.
#[must_use]
pub fn uses(name: &str) -> Vec<String> {
    let manifest = files_below(&format!("crates/{name}"), &["Cargo.toml"]).pop();
    let all = manifest.map_or_else(Vec::new, |manifest| dependencies(&manifest.text));
    let mut names: Vec<String> =
        all.into_iter().filter(|used| !used.dev).map(|used| used.name).collect();
    names.sort();
    names.dedup();
    names
}

/// The violations in one crate's manifest.
fn of_crate(name: &str, manifest: &File) -> Vec<String> {
    let Some((_, may)) = MAY_USE.iter().find(|(from, _)| *from == name) else {
        return vec![format!("crates/{name}: say in {} what it may use", file!())];
    };
    let wrong = dependencies(&manifest.text).into_iter().filter(|used| {
        let never = NEVER.contains(&(name, &used.name));
        never || !used.dev && !may.contains(&used.name.as_str())
    });
    wrong.map(|used| format!("{}: {name} may not use {}", manifest.path, used.name)).collect()
}

/// The crates of this repository that a manifest names.
fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let (mut inside, mut dev) = (false, false);
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.contains("dependencies");
            dev = section.contains("dev-dependencies");
            // [dependencies.braid-ir]
            if let Some((_, name)) = section.split_once("dependencies.braid-") {
                found.push(Dependency { name: name.to_owned(), dev });
            }
        } else if let Some(rest) = line.strip_prefix("braid-").filter(|_| inside) {
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '-').collect();
            found.push(Dependency { name, dev });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(text: &str) -> File {
        File { path: "Cargo.toml".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn forbidden_arrow_is_found_in_each_way_of_writing_it() {
        for text in [
            "[dependencies]\nbraid-lang.workspace = true\n",
            "[dependencies]\nbraid-lang = { path = \"../lang\" }\n",
            "[build-dependencies]\nbraid-lang.workspace = true\n",
            "[target.'cfg(unix)'.dependencies]\nbraid-lang.workspace = true\n",
            "[dependencies.braid-lang]\nworkspace = true\n",
        ] {
            let wrong = of_crate("runtime", &manifest(text));
            assert_eq!(wrong, ["Cargo.toml: runtime may not use lang"], "{text}");
        }
    }

    #[test]
    fn tests_may_use_more_but_not_what_never_holds() {
        let dev =
            "[dev-dependencies]\nbraid-lang.workspace = true\nbraid-testkit.workspace = true\n";
        assert!(of_crate("runtime", &manifest(dev)).is_empty());
        let never = "[dev-dependencies]\nbraid-runtime.workspace = true\n";
        assert_eq!(of_crate("compiler", &manifest(never)).len(), 1);
    }

    #[test]
    fn new_crate_must_be_listed() {
        assert_eq!(of_crate("novel", &manifest("")).len(), 1);
    }
}
