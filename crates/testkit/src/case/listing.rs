//! Finds cases by listing folders.

use std::io;
use std::path::{Path, PathBuf};

/// A case on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// Its folder.
    pub folder: PathBuf,
    /// Its name in messages: the path relative to the crates' folder.
    pub name: String,
    /// The file with its chain.
    pub chain: PathBuf,
}

/// All cases by name: the cases of the library's functions and of the testkit.
///
/// # Errors
/// When a folder cannot be listed, or a case has no chain.
pub fn list(crates: &Path) -> io::Result<Vec<Case>> {
    let mut homes = vec![crates.join("testkit/cases")];
    for function in folders(&crates.join("nfs"))? {
        homes.push(function.join("cases"));
    }
    let mut cases = Vec::new();
    for home in homes.iter().filter(|home| home.is_dir()) {
        for folder in folders(home)? {
            let name = folder.strip_prefix(crates).unwrap_or(&folder).display().to_string();
            let own = folder.join("chain.braid");
            let chain = if own.is_file() { own } else { home.join("chain.braid") };
            if !chain.is_file() {
                return Err(io::Error::other(format!("{name}: there is no chain.braid")));
            }
            cases.push(Case { folder, name, chain });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

/// The subfolders of a folder, by name.
fn folders(below: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(below)? {
        let path = entry?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
