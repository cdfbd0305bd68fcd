//! The files of a folder, in memory. Only what was found below the folder can be asked for, so no
//! path leads elsewhere.

use std::collections::BTreeMap;
use std::fs::{read, read_dir};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that stands for its folder.
const INDEX: &str = "index.html";
/// The most files of a folder.
const MOST_FILES: usize = 10_000;
/// The most folders below each other.
const MOST_DEPTH: usize = 32;

/// A file.
#[derive(Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in requests.
    pub path: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its type, as the field Content-Type has it.
    pub kind: &'static str,
    /// A hash of its bytes.
    pub tag: u64,
}

/// Files by their paths in requests.
#[derive(Debug, Default)]
pub struct Files(BTreeMap<String, Arc<File>>);

/// What a path leads to.
#[derive(Debug)]
pub enum Found {
    /// A file.
    File(Arc<File>),
    /// A folder, whose own path ends with a slash.
    Folder,
    /// Nothing.
    Nothing,
}

impl Files {
    /// The files below a folder, but for hidden ones and symbolic links. Together they have at most
    /// `most` bytes.
    pub fn of(folder: &Path, most: u64) -> Result<Self, String> {
        let mut files = Self::default();
        let mut left = most;
        let mut folders = vec![(folder.to_owned(), String::new(), 0)];
        while let Some((folder, prefix, depth)) = folders.pop() {
            let why = |error| format!("cannot read {}: {error}", folder.display());
            for entry in read_dir(&folder).map_err(why)? {
                let entry = entry.map_err(why)?;
                let (name, path) = (entry.file_name(), entry.path());
                let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
                    continue;
                };
                let kind = entry.file_type().map_err(why)?;
                let inner = format!("{prefix}/{name}");
                if kind.is_dir() && depth < MOST_DEPTH {
                    folders.push((path, inner, depth + 1));
                } else if kind.is_file() {
                    files.add(inner, path, &mut left)?;
                }
            }
        }
        Ok(files)
    }

    fn add(&mut self, inner: String, path: PathBuf, left: &mut u64) -> Result<(), String> {
        let bytes =
            read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let rest = left.checked_sub(bytes.len() as u64);
        *left = rest.ok_or("the files of `folder` are larger than `size`")?;
        if self.0.len() >= MOST_FILES {
            return Err(format!("`folder` has more than {MOST_FILES} files"));
        }
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let (kind, tag) = (kind_of(&path), hasher.finish());
        let file = File { path: inner.clone(), bytes, kind, tag };
        self.0.insert(inner, Arc::new(file));
        Ok(())
    }

    /// What a path leads to.
    pub fn find(&self, path: &str) -> Found {
        let file = match path.ends_with('/') {
            true => self.0.get(&format!("{path}{INDEX}")),
            false => self.0.get(path),
        };
        let folder = || format!("{path}/{INDEX}");
        match file {
            Some(file) => Found::File(Arc::clone(file)),
            None if !path.ends_with('/') && self.0.contains_key(&folder()) => Found::Folder,
            None => Found::Nothing,
        }
    }

    /// The file with this path, if its bytes are still those of this hash.
    pub fn same(&self, path: &str, tag: u64) -> Option<Arc<File>> {
        self.0.get(path).filter(|file| file.tag == tag).cloned()
    }
}

/// The type of a file, by its name.
fn kind_of(path: &Path) -> &'static str {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    match end.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "txt" | "md" => "text/plain; charset=utf-8",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "pdf" => "application/pdf",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}
