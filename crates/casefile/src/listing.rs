//! Finds cases by listing folders.

use std::io;
use std::path::{Path, PathBuf};

/// The name of the file that makes a folder a case.
const SCRIPT: &str = "case.txt";
/// The name of the file with a case's chain.
const CHAIN: &str = "chain.braid";
/// How many folders above the case's may have its chain.
const ABOVE: usize = 2;
/// The deepest folder below the one where the search begins. A link may lead to a folder above it.
const DEEPEST: usize = 16;

/// A case on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// Its folder.
    pub folder: PathBuf,
    /// Its name in messages.
    pub name: String,
    /// The file with its chain. `None`: there is none.
    pub chain: Option<PathBuf>,
}

impl Case {
    /// The case in a folder.
    fn new(folder: PathBuf) -> Self {
        let chain = chain(&folder);
        Self { name: folder.display().to_string(), folder, chain }
    }

    /// The file with its steps.
    #[must_use]
    pub fn script(&self) -> PathBuf {
        self.folder.join(SCRIPT)
    }
}

/// The nearest chain: in the case's folder, the folder above, or the one above that.
fn chain(folder: &Path) -> Option<PathBuf> {
    let own = folder.join(CHAIN);
    if own.is_file() {
        return Some(own);
    }
    let whole = folder.canonicalize().ok()?;
    (1..=ABOVE).find_map(|level| {
        let chain = whole.ancestors().nth(level)?.join(CHAIN);
        // The path as it was written is shorter in messages.
        let names = folder.components().count();
        let written = folder.ancestors().nth(level).filter(|_| names > level);
        chain.is_file().then(|| written.map_or(chain, |above| above.join(CHAIN)))
    })
}

/// The cases in a folder and below it, by name. Folders whose name begins with a dot are left out.
///
/// # Errors
/// When a folder cannot be listed.
pub fn find(folder: &Path) -> io::Result<Vec<Case>> {
    let mut found = Vec::new();
    search(folder, 0, &mut found)?;
    found.sort_by(|a: &Case, b: &Case| a.name.cmp(&b.name));
    Ok(found)
}

fn search(folder: &Path, depth: usize, found: &mut Vec<Case>) -> io::Result<()> {
    if folder.join(SCRIPT).is_file() {
        found.push(Case::new(folder.to_owned()));
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if depth < DEEPEST && !hidden && path.is_dir() && !path.is_symlink() {
            search(&path, depth + 1, found)?;
        }
    }
    Ok(())
}
