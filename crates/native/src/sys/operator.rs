//! Operators in shared libraries: pure functions over numbers, which programs call as their own.

use super::abi::{RawOperator, RawWide};
use super::load::structure;
use crate::load_error::LoadError;
use braid_externs::signature::Loaded;

/// The most arguments of an operator.
pub const MAX_ARGS: usize = 16;

/// Reads an operator of a library.
pub(crate) fn operator(
    library: &libloading::Library,
    path: &str,
    name: &str,
) -> Result<Loaded, LoadError> {
    let label = format!("{name} of {path}");
    let symbol = format!("braid_operator_{name}");
    let (raw, _) = structure(library, path, (symbol, &label), size_of::<RawOperator>())?;
    // SAFETY: the library states that the structure has all of these fields. Libraries stay open.
    let raw = unsafe { raw.cast::<RawOperator>().read() };
    let Some(run) = raw.run else { return Err(LoadError::NoRun { label }) };
    let call = move |args: &[(u128, u16)], payload: &[u8]| {
        let mut numbers = [RawWide::default(); MAX_ARGS];
        for (number, (value, _)) in numbers.iter_mut().zip(args) {
            *number = RawWide::of(*value);
        }
        let count = args.len().min(MAX_ARGS);
        let mut result = RawWide::default();
        // SAFETY: `numbers` has at least `count` elements, and `payload` its length. By the header,
        // the operator reads only these and writes only the result, from any thread.
        unsafe { run(numbers.as_ptr(), count, payload.as_ptr(), payload.len(), &raw mut result) };
        result.value()
    };
    Ok(Loaded { reads_payload: raw.reads_payload != 0, call: Box::new(call) })
}
