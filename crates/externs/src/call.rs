//! The calling convention of operators: what a call may see, and what it gives back.

use crate::ops::maglev::Table;
use crate::rng::Rng;

/// An argument: value and width in bits (1 to 128).
pub type Arg = (u128, u16);

/// Most results of an operator.
pub const MAX_RESULTS: usize = 2;

/// Results of a call; those past the signature's are 0.
pub type Results = [u128; MAX_RESULTS];

/// What a call may see.
pub struct CallCtx<'a> {
    /// Arguments in order.
    pub args: &'a [Arg],
    /// The packet's payload; operators whose profile does not say so don't look at it.
    pub payload: &'a [u8],
    /// The parameter that the operator works on, if its signature has one.
    pub backends: Option<&'a dyn Backends>,
    /// The generator of the function instance.
    pub rng: &'a mut Rng,
    /// What the operator keeps between calls: one for each parameter of a function instance (any
    /// one for operators without a parameter).
    pub cache: &'a mut Cache,
}

/// Backends as operators see them: a slice or a `Vec` of [`Backend`]s.
pub trait Backends {
    /// How many there are, up or down.
    fn count(&self) -> usize;
    /// The name (first column) of a backend; `index` is below `count`.
    fn name(&self, index: usize) -> u128;
    /// Whether a backend is up; `index` is below `count`.
    fn is_up(&self, index: usize) -> bool;
}

/// A backend as operators see it.
pub trait Backend {
    /// Its name (first column).
    fn name(&self) -> u128;
    /// Whether it is up.
    fn is_up(&self) -> bool;
}

/// Name and health, for callers without a type of their own.
impl Backend for (u128, bool) {
    fn name(&self) -> u128 {
        self.0
    }

    fn is_up(&self) -> bool {
        self.1
    }
}

impl<B: Backend> Backends for &[B] {
    fn count(&self) -> usize {
        self.len()
    }

    fn name(&self, index: usize) -> u128 {
        self[index].name()
    }

    fn is_up(&self, index: usize) -> bool {
        self[index].is_up()
    }
}

impl<B: Backend> Backends for Vec<B> {
    fn count(&self) -> usize {
        self.len()
    }

    fn name(&self, index: usize) -> u128 {
        self[index].name()
    }

    fn is_up(&self, index: usize) -> bool {
        self[index].is_up()
    }
}

/// What operators keep between calls. Only speeds calls up: results never depend on it.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    pub(crate) maglev: Option<Table>,
}

impl CallCtx<'_> {
    /// The value of an argument; 0 when it is missing.
    pub(crate) fn arg(&self, index: usize) -> u128 {
        self.args.get(index).map_or(0, |arg| arg.0)
    }
}
