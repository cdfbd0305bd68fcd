//! Tests that every ```` ```braid ```` block of the user pages compiles and has the form that
//! `braid fmt` prints. The pages are the manual, the tutorial, the README, and the pages of the
//! library's functions.

use braid_lang::{Loader, compile, diag};
use braid_native::{Description, LoadError};
use braid_testkit::harness;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files that examples name. The name decides the contents.
struct Examples;

impl Loader for Examples {
    fn read(&self, path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        let text = match path.rsplit_once('.') {
            Some(("acl", "rules")) => "@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\n",
            Some((_, "rules")) => "pass proto tcp to 0.0.0.0/0 port 80\n",
            Some((_, "routes")) => "0.0.0.0/0 1\n10.0.0.0/8 0\n",
            Some((_, "signatures")) => "alert tcp any any -> any 80 (content:\"attack\"; sid:1;)\n",
            Some((_, "patterns")) => "\"attack\"\n",
            Some((_, "prefixes")) => "10.0.0.0/8\n",
            Some((_, "keys")) => "7 aes-128-gcm 0102030405060708090a0b0c0d0e0f1011121314\n",
            _ => return Err(format!("no example file is called {path}")),
        };
        Ok(text.as_bytes().to_vec())
    }

    fn native(
        &self,
        library: &str,
        function: &str,
        is_isolated: bool,
    ) -> Result<Arc<Description>, LoadError> {
        braid_testkit::harness::register_natives();
        braid_native::isolated::start_by(vec![env!("CARGO_BIN_EXE_isolate").into()]);
        braid_native::describe(library, function, is_isolated)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Markdown files of a folder and of its subfolders.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of pages") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The text of each block of this language, with the number of its first line.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<(usize, &'a str)> {
    let fence = format!("```{language}\n");
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = page[from..].find(&fence) {
        let start = from + at + fence.len();
        let end = start + page[start..].find("```").expect("the block's end");
        found.push((page[..start].lines().count() + 1, &page[start..end]));
        from = end + 3;
    }
    found
}

#[test]
fn examples_of_pages_compile() {
    let mut files = vec![root().join("README.md")];
    pages(&root().join("docs"), &mut files);
    pages(&root().join("crates/nfs"), &mut files);
    let library: Vec<_> = braid_nfs::all().iter().map(|nf| (nf.name, nf.source)).collect();
    let (mut count, mut wrong) = (0, String::new());
    for file in &files {
        let page = std::fs::read_to_string(file).expect("a page");
        for (line, block) in blocks(&page, "braid") {
            count += 1;
            if harness::format(block).is_ok_and(|formatted| formatted != block) {
                wrong += &format!("{}:{line}: `braid fmt` prints this otherwise\n", file.display());
            }
            let name = format!("{}:{line}", file.display());
            let compiled = compile((&name, block), &library, &Examples);
            if compiled.unit.is_none() {
                let style = diag::Style::default();
                wrong += &diag::render(&compiled.diagnostics, &compiled.sources, style);
            }
        }
    }
    assert!(count >= 25, "only {count} examples were found: has their mark-up changed?");
    assert!(wrong.is_empty(), "examples that are wrong:\n{wrong}");
}
