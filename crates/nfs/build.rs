//! Lists the library's folders and embeds each model and page, so that a new function changes only
//! its own files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed={}", root.display());
    let mut table = String::from("&[\n");
    for folder in folders(&root)? {
        add(&mut table, &folder);
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("library.rs"), table)
}

/// The folders that hold a model, by name.
fn folders(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.join("model.braid").is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Adds an entry to the table. A missing page becomes empty text: a test refuses it with a better
/// message than a build failure.
fn add(table: &mut String, folder: &Path) {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let model = folder.join("model.braid");
    let page = folder.join("README.md");
    println!("cargo::rerun-if-changed={}", model.display());
    println!("cargo::rerun-if-changed={}", page.display());
    let page =
        if page.is_file() { format!("include_str!({page:?})") } else { String::from("\"\"") };
    let _ = writeln!(
        table,
        "    Nf {{ name: {name:?}, source: include_str!({model:?}), page: {page} }},"
    );
}
