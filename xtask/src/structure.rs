//! The rules of the repository's structure: the places of things, their lengths, and the
//! dependencies between crates.
//!
//! Each rule returns one line for each violation.

use std::path::{Path, PathBuf};

pub mod allowed;
pub mod arrows;
pub mod cases;
pub mod code;
pub mod columns;
pub mod drawing;
pub mod length;
pub mod library;
pub mod losses;
pub mod mechanisms;
pub mod modules;
pub mod scan;
pub mod seams;
pub mod terms;

/// A rule: returns one line for each violation.
pub type Rule = fn() -> Vec<String>;

/// All rules, by name.
pub const RULES: &[(&str, Rule)] = &[
    ("every file starts with a line on what lives there", code::first_lines),
    ("crates use only crates that they may", arrows::arrows),
    ("unsafe code is forbidden", code::unsafe_fences),
    ("the data path warns of lost bits and panics", code::data_path_lints),
    ("files are short", length::files_are_short),
    ("functions are short", length::functions),
    ("no placeholder is left", code::placeholders),
    ("nothing names a place outside of the repository", code::outside),
    ("every network function has its model, page and cases", library::folders_are_whole),
    ("modules do not import each other in circles", seams::circles),
    ("folders do not import each other in circles", seams::folder_circles),
    ("a type is implemented in few files", seams::spread),
    ("each loss of packets is explained", losses::losses_are_explained),
    ("no retired term is used", terms::none_retired),
    ("the glossary has every term once", terms::glossary_is_sorted),
    ("property tests scale", cases::property_tests_scale),
    ("documents wrap", columns::documents_wrap),
    ("rows of tables are lines", columns::tables_have_lines),
    ("the drawing of crates and modules is true", drawing::is_true),
    ("the lines of mechanisms are right", mechanisms::lines_are_right),
];

/// By rule, all violations for which exceptions are allowed ([`allowed`]).
#[must_use]
pub fn with_exceptions() -> Vec<(&'static str, allowed::Found)> {
    vec![
        ("circles", seams::circles_found()),
        ("folder-circles", seams::folder_circles_found()),
        ("spread", seams::spread_found()),
        ("terms", terms::retired_found()),
        ("columns", columns::long_lines()),
    ]
}

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// A file of the repository.
#[derive(Debug)]
pub struct File {
    /// The path from the root.
    pub path: String,
    /// The text.
    pub text: String,
}

/// All text files with one of these endings (or exact names), in order of path.
#[must_use]
pub fn files(endings: &[&str]) -> Vec<File> {
    files_below("", endings)
}

/// The same, below a folder of the repository.
#[must_use]
pub fn files_below(folder: &str, endings: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    walk(&root().join(folder), &mut |path| {
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

/// Calls `each` for every file below a folder, except build outputs and hidden folders.
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

/// The folders directly below a folder of the repository, by name, in order.
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
