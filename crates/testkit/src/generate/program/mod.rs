//! Generates random programs: functions in the language, well typed by construction, and chains of
//! them.
//!
//! A generated program must compile. So a function uses everything that it declares, reads fields
//! only if their header is known to be present, and no row of a match hides another row.

mod beside;
mod chain;
mod counters;
mod expr;
mod function;
mod library;
pub(in crate::generate) mod limits;
mod pieces;
mod pred;
mod source;
mod steered;
mod stmt;
pub mod streams;
mod text;
mod types;

pub use source::{Options, Program};

use super::Rng;

/// The random program of a seed.
#[must_use]
pub fn program(seed: u64) -> Program {
    program_with(seed, Options::default())
}

/// The program of a seed. One of six has functions with limits on counters. Of the others, one of
/// three is a chain of library functions that use the same fields and tables.
#[must_use]
pub fn any(seed: u64) -> Program {
    match Kind::of(seed) {
        Kind::Limits => limits::program(&mut Rng::new(seed)),
        Kind::Library => library::program(&mut Rng::new(seed)),
        Kind::Random => program(seed),
    }
}

/// The kind of chain that [`any`] makes from a seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Functions with limits on counters.
    Limits,
    /// Library functions.
    Library,
    /// Random functions.
    Random,
}

impl Kind {
    /// The kind of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        match limits::is_drawn(seed) {
            true => Self::Limits,
            false if seed.is_multiple_of(3) => Self::Library,
            false => Self::Random,
        }
    }
}

/// The random program of a seed, with these options.
#[must_use]
pub fn program_with(seed: u64, options: Options) -> Program {
    let mut rng = Rng::new(seed);
    let mut program = Program::default();
    let count = if options.shares_events { 2 + rng.below(4) } else { 1 + rng.below(4) };
    let shares = options.shares_events;
    let functions: Vec<_> =
        (0..count).map(|number| function::generate(&mut rng.split(), number, shares)).collect();
    for function in &functions {
        function.add_to(&mut program.source);
        program.files.extend(function.files.clone());
    }
    program.source += &chain::generate(&mut rng, &functions, options);
    program
}
