//! Compiled programs.

use crate::abi::{Ended, Host, Misfit, Resource, Work};
use crate::error::Error;
use braid_ir::residual::Residual;

/// The machine code of a residual program. Its memory is freed with it.
#[derive(Debug)]
pub struct Code {}

/// Compiles a program. `number` chooses numbers for the resources of functions (see
/// [`Host`]); one without goes through [`Host::step`].
///
/// # Errors
/// When the program is not well-formed, or there is no code generator for this machine.
pub fn compile(
    _residual: &Residual,
    _number: &mut dyn FnMut(u16, Resource) -> Option<u32>,
) -> Result<Code, Error> {
    Err(Error::Machine("not supported yet".to_owned()))
}

impl Code {
    /// Runs the program on one packet.
    ///
    /// # Errors
    /// When the packet, its layout or the counts do not fit the program; nothing was done then.
    pub fn run<H: Host>(&self, _host: &mut H, _work: Work<'_>) -> Result<Ended, Misfit> {
        Err(Misfit::Shape)
    }
}
