//! The documents that the editor shows, and programs made of them and of files on disk.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use braid_lang::index::{Index, index};
use braid_lang::source::SourceMap;
use braid_lang::{Compiled, Loader, compile};

use super::paths::{path, tidy};
use crate::load::check_policies;
use crate::read::read_text;

/// The most documents that are open at a time.
const MOST_DOCUMENTS: usize = 1000;
/// The most files of the folders that the editor shows, and how deep they lie.
const MOST_FILES: usize = 500;
const DEEPEST: usize = 8;

/// An open document.
struct Document {
    text: String,
    /// The number that the editor gives each state of the text.
    version: i32,
}

/// Texts by URI.
#[derive(Default)]
pub struct Documents {
    open: BTreeMap<String, Document>,
    /// The folders that the editor shows.
    pub folders: Vec<PathBuf>,
}

impl Documents {
    /// Opens or changes a document. Returns whether there is room for it.
    pub fn set(&mut self, uri: &str, text: String, version: i32) -> bool {
        let has_room = self.open.contains_key(uri) || self.open.len() < MOST_DOCUMENTS;
        if has_room {
            self.open.insert(uri.to_owned(), Document { text, version });
        }
        has_room
    }

    pub fn close(&mut self, uri: &str) {
        self.open.remove(uri);
    }

    pub fn text(&self, uri: &str) -> Option<&str> {
        self.open.get(uri).map(|document| document.text.as_str())
    }

    pub fn version(&self, uri: &str) -> Option<i32> {
        self.open.get(uri).map(|document| document.version)
    }

    /// The text of an open document, or of a file.
    pub fn read(&self, path: &Path) -> Option<String> {
        self.texts(&BTreeMap::new()).of(path).ok()
    }

    /// Texts that replace those of documents and files.
    pub fn texts<'a>(&'a self, instead: &'a BTreeMap<PathBuf, String>) -> Texts<'a> {
        let open = self.open.iter();
        let open = open.filter_map(|(uri, document)| Some((path(uri)?, document.text.as_str())));
        Texts { open: open.collect(), instead, asked: RefCell::default() }
    }

    /// The files of the language in the folders that the editor shows, and the open ones.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        let mut found: BTreeSet<PathBuf> = self.open.keys().filter_map(|uri| path(uri)).collect();
        for folder in &self.folders {
            search(folder, 0, &mut found);
        }
        found
    }
}

fn search(folder: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let is_left_out = name.to_string_lossy().starts_with('.') || name == "target";
        if found.len() >= MOST_FILES || is_left_out || path.is_symlink() {
            continue;
        }
        if path.is_dir() && depth < DEEPEST {
            search(&path, depth + 1, found);
        } else if path.extension().is_some_and(|end| end == "braid") {
            found.insert(path);
        }
    }
}

/// Texts of files: replaced ones, then open documents, then what is on disk. Native code is not
/// loaded: opening a file must not run anything.
pub struct Texts<'a> {
    open: BTreeMap<PathBuf, &'a str>,
    instead: &'a BTreeMap<PathBuf, String>,
    /// The files that programs asked for.
    asked: RefCell<BTreeSet<PathBuf>>,
}

impl Texts<'_> {
    /// The files that programs asked for, also ones that cannot be read.
    pub fn asked(self) -> BTreeSet<PathBuf> {
        self.asked.into_inner()
    }

    /// The text of a file.
    pub fn of(&self, path: &Path) -> Result<String, String> {
        if let Some(text) = self.instead.get(path) {
            return Ok(text.clone());
        }
        match self.open.get(path) {
            Some(text) => Ok((*text).to_owned()),
            None => read_text(path).map_err(|why| why.to_string()),
        }
    }

    /// Compiles the program of a text.
    pub fn compile(&self, name: &str, text: &str) -> Compiled {
        let mut compiled = compile((name, text), &library(), self);
        check_policies(&mut compiled);
        compiled
    }

    /// The names of the program of a text.
    pub fn index(&self, name: &str, text: &str) -> (Index, SourceMap) {
        index((name, text), &library(), self)
    }
}

impl Loader for Texts<'_> {
    fn read(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String> {
        let beside = Path::new(relative_to).parent().unwrap_or(Path::new(""));
        let path = tidy(&beside.join(path));
        let text = self.of(&path).map(String::into_bytes);
        self.asked.borrow_mut().insert(path);
        text
    }
}

/// The library: names and texts.
fn library() -> Vec<(&'static str, &'static str)> {
    braid_nfs::all().iter().map(|nf| (nf.name, nf.source)).collect()
}

/// The name of a document in a program: its path if it is a file.
pub fn name(uri: &str) -> String {
    path(uri).map_or_else(|| uri.to_owned(), |path| path.display().to_string())
}
