//! What holds of the repository as a whole: where things live, how long they are, who may use whom.
//!
//! Each rule returns one line for each place that breaks it.

use std::path::{Path, PathBuf};

pub mod arrows;
pub mod code;
pub mod length;
pub mod library;
pub mod scan;

/// A rule: gives one line for each place that breaks it.
pub type Rule = fn() -> Vec<String>;

/// All rules, by name.
pub const RULES: &[(&str, Rule)] = &[
    ("every file starts with a line on what lives there", code::first_lines),
    ("crates use only crates that they may", arrows::arrows),
    ("unsafe code is forbidden", code::unsafe_fences),
    ("files are short", length::files_are_short),
    ("functions are short", length::functions),
    ("no placeholder is left", code::placeholders),
    ("nothing names a place outside of the repository", code::outside),
    ("every network function has its model, page and cases", library::folders_are_whole),
];

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// A file of the repository.
#[derive(Debug)]
pub struct File {
    /// Path from the root.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// All text files with one of these endings (or exact names), in order of path.
#[must_use]
pub fn files(endings: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    walk(&root(), &mut |path| {
        let name = path.to_string_lossy();
        if endings.iter().any(|ending| name.ends_with(ending)) {
            let relative = path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned();
            if let Ok(text) = std::fs::read_to_string(path) {
                found.push(File { path: relative, text });
            }
        }
    });
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Calls `each` for every file below a folder, build outputs and hidden folders left out.
fn walk(folder: &Path, each: &mut dyn FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let skip = name.starts_with('.') && name != ".ci" && name != ".cargo";
        if path.is_dir() && !skip && !matches!(&*name, "target" | "corpus" | "artifacts" | "out") {
            walk(&path, each);
        } else if path.is_file() {
            each(&path);
        }
    }
}

/// Folders directly below a folder of the repository, by name, in order.
#[must_use]
pub fn folders(below: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(root().join(below)) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
