//! From source text to chains and engines: what tests need of the other crates, in one place.

use braid_ir::chain::{Chain, Control};
use braid_ir::engine::Engine;
use braid_ir::interp::Reference;
use braid_packet::Packet;
use std::path::Path;

/// In which form functions are compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// As their authors wrote them.
    AsWritten,
    /// As `braid fmt` prints them.
    Formatted,
}

/// The chain in a file, with the library's functions at hand.
///
/// # Errors
/// All diagnostics, as text.
pub fn compile_file(path: &Path, _form: Form) -> Result<Chain, String> {
    Err(format!("{}: not yet", path.display()))
}

/// The reference engine.
///
/// # Panics
/// When it refuses the chain: chains from the language are never refused.
#[must_use]
pub fn reference(chain: &Chain) -> Box<dyn Engine> {
    match Reference::new(chain.clone()) {
        Ok(engine) => Box::new(engine),
        Err(error) => panic!("the reference engine refuses a chain: {error}"),
    }
}

/// All packets of a capture.
///
/// # Errors
/// Why it cannot be read.
pub fn read_capture(path: &Path) -> Result<Vec<Packet>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (packets, _, error) = braid_io::read_all(&bytes);
    match error {
        Some(error) => Err(format!("{}: {error}", path.display())),
        None => Ok(packets),
    }
}

/// A line of a control file at a time.
///
/// # Errors
/// What is wrong with the line.
pub fn control(
    _chain: &Chain,
    _time_ns: u64,
    line: &str,
    _folder: &Path,
) -> Result<Control, String> {
    Err(format!("{line}: not yet"))
}
