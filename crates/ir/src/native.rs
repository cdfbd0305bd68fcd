//! A native function as a model refers to it: data only. The crate `native` loads and calls the code.

mod fields;
mod problem;
mod profile;

pub use fields::{FLOW, FieldSet, names_of};
pub use problem::{Noted, Problem, Problems};
pub use profile::{Profile, UnknownName, may};

/// The native function of a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Native {
    /// The library and the name of the function.
    pub reference: Reference,
    /// What the function declares that it does to packets, if it declares anything.
    pub profile: Option<Profile>,
}

impl Native {
    /// What the function may do to packets: anything, unless it declares less.
    #[must_use]
    pub fn may(&self) -> Profile {
        self.profile.unwrap_or(Profile::ANYTHING)
    }
}

/// A native function as a chain file names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    /// The path of a shared library, or the name of a set of functions that the program brings.
    pub library: String,
    /// The function's name in the library.
    pub function: String,
    /// What Braid checks while the function runs.
    pub checks: Checks,
}

/// What Braid checks while a native function runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checks {
    /// Compare what later packets of a flow get with what the function recorded for the flow.
    pub records: bool,
    /// Write down what the function does to packets, as an action profile.
    pub observe: bool,
}
