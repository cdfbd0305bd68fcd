//! The calling convention of operators: the inputs and the results of a call.

use crate::backends::Backends;
use crate::maglev::Table;
use crate::rng::Rng;

/// An argument: value and width in bits (1 to 128).
pub type Arg = (u128, u16);

/// The most results of an operator.
pub const MAX_RESULTS: usize = 2;

/// Results of a call. Elements after the last result of the signature are 0.
pub type Results = [u128; MAX_RESULTS];

/// The inputs of a call.
pub struct CallCtx<'a> {
    /// Arguments in order.
    pub args: &'a [Arg],
    /// The packet's payload. Operators read it only if their profile declares it.
    pub payload: &'a [u8],
    /// The parameter that the operator uses, if its signature has one.
    pub backends: Option<&'a dyn Backends>,
    /// The random generator of the function instance.
    pub rng: &'a mut Rng,
    /// Data that the operator keeps between calls. Each parameter of a function instance has its
    /// own cache; operators without a parameter may use any cache.
    pub cache: &'a mut Cache,
}

/// Data that operators keep between calls. It makes calls faster and never changes a result.
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
