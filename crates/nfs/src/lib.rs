//! The library of network functions: one folder per function with its model, page and cases.
//! The folders are found and embedded by `build.rs`; there is no list to edit.
#![forbid(unsafe_code)]

/// A function of the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nf {
    /// Its name: that of its folder and of the `nf` in its model.
    pub name: &'static str,
    /// Its model, in the language.
    pub source: &'static str,
    /// Its page, in Markdown.
    pub page: &'static str,
}

static LIBRARY: &[Nf] = include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// All functions, by name.
#[must_use]
pub fn all() -> &'static [Nf] {
    LIBRARY
}

/// The function with this name, if the library has it.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Nf> {
    LIBRARY.binary_search_by_key(&name, |nf| nf.name).ok().map(|at| &LIBRARY[at])
}

impl Nf {
    /// What the function does, in one line: the first line of its page that is neither empty nor a
    /// heading.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.page
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .unwrap_or("")
    }
}
