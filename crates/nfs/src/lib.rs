//! The library of network functions: one folder per function with its model, page and cases.
//! `build.rs` finds and embeds the folders; there is no list to edit.
#![forbid(unsafe_code)]

/// A function of the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nf {
    /// The name of the function, of its folder and of the `nf` in its model.
    pub name: &'static str,
    /// The model, in the Braid language.
    pub source: &'static str,
    /// The page, in Markdown.
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
    /// The function's purpose in one line: the first line of its page that is neither empty nor a
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
