//! Signatures as a Hyperscan database, through the few functions of its C interface that this
//! needs.
//!
//! Some expressions have another meaning in Hyperscan's dialect (`$`, assertions, flags), and
//! Hyperscan refuses some. The portable engine searches these, so that both builds find the same
//! signatures.

use super::signature::{Signature, portable};
use braid_externs::patterns::PatternSet;
use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

const CASELESS: c_uint = 1;
const MODE_BLOCK: c_uint = 1;

#[repr(C)]
struct CompileError {
    message: *mut c_char,
    expression: c_int,
}

type OnMatch = unsafe extern "C" fn(c_uint, c_ulonglong, c_ulonglong, c_uint, *mut c_void) -> c_int;

#[link(name = "hs")]
unsafe extern "C" {
    fn hs_compile_multi(
        expressions: *const *const c_char,
        flags: *const c_uint,
        ids: *const c_uint,
        elements: c_uint,
        mode: c_uint,
        platform: *const c_void,
        database: *mut *mut c_void,
        error: *mut *mut CompileError,
    ) -> c_int;
    fn hs_free_compile_error(error: *mut CompileError) -> c_int;
    fn hs_alloc_scratch(database: *const c_void, scratch: *mut *mut c_void) -> c_int;
    fn hs_scan(
        database: *const c_void,
        data: *const c_char,
        length: c_uint,
        flags: c_uint,
        scratch: *mut c_void,
        on_match: OnMatch,
        context: *mut c_void,
    ) -> c_int;
    fn hs_free_scratch(scratch: *mut c_void) -> c_int;
    fn hs_free_database(database: *mut c_void) -> c_int;
}

/// Signatures for Hyperscan, and signatures for the portable engine.
pub struct Database {
    /// Null if Hyperscan has no signatures.
    database: *mut c_void,
    scratch: *mut c_void,
    rest: Option<Box<PatternSet>>,
}

// SAFETY: a database is not bound to a thread. The type is not `Sync`, so that one thread owns the
// scratch space, and one call at a time uses it.
unsafe impl Send for Database {}

/// A signature as a Hyperscan expression; `None` if it may have another meaning there.
fn expression(signature: &Signature) -> Option<CString> {
    if !signature.regex {
        let hex = signature.text.iter().map(|byte| format!("\\x{byte:02x}"));
        return CString::new(hex.collect::<String>()).ok();
    }
    let text = std::str::from_utf8(&signature.text).ok()?;
    let differs =
        ["$", "^", "\\b", "\\B", "\\A", "\\z", "\\Z", "(?", "\\p", "\\P", "[[", "&&", "--", "~~"];
    if differs.iter().any(|part| text.contains(part)) {
        return None;
    }
    CString::new(text).ok()
}

/// The database of some expressions; `None` if Hyperscan refuses them.
fn compile(all: &[(CString, bool, u32)]) -> Option<*mut c_void> {
    let texts: Vec<*const c_char> = all.iter().map(|(text, ..)| text.as_ptr()).collect();
    let flags: Vec<c_uint> =
        all.iter().map(|(_, nocase, _)| CASELESS * c_uint::from(*nocase)).collect();
    let ids: Vec<c_uint> = all.iter().map(|(.., number)| *number).collect();
    let count = c_uint::try_from(all.len()).ok()?;
    let (mut database, mut error) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: three arrays of `count` elements, texts that end with a 0, two valid pointers for
    // results.
    let code = unsafe {
        hs_compile_multi(
            texts.as_ptr(),
            flags.as_ptr(),
            ids.as_ptr(),
            count,
            MODE_BLOCK,
            ptr::null(),
            &raw mut database,
            &raw mut error,
        )
    };
    if !error.is_null() {
        // SAFETY: made by the call above.
        unsafe { hs_free_compile_error(error) };
    }
    (code == 0).then_some(database)
}

impl Database {
    /// Compiles signatures.
    ///
    /// # Errors
    /// The mistake in the signatures.
    pub fn new(signatures: &[Signature]) -> Result<Self, String> {
        // The portable engine checks all signatures, whichever engine searches them.
        portable(signatures)?;
        let (mut ours, mut rest) = (Vec::new(), Vec::new());
        for signature in signatures {
            let one = expression(signature).map(|text| (text, signature.nocase, signature.number));
            let taken = one.filter(|one| {
                let alone = compile(std::slice::from_ref(one));
                // SAFETY: made by `compile`, and nobody uses it.
                alone.map(|database| unsafe { hs_free_database(database) }).is_some()
            });
            match taken {
                Some(one) => ours.push(one),
                None => rest.push(signature.clone()),
            }
        }
        let rest = match rest.is_empty() {
            true => None,
            false => Some(Box::new(portable(&rest)?)),
        };
        let mut made = Self { database: ptr::null_mut(), scratch: ptr::null_mut(), rest };
        if !ours.is_empty() {
            made.database = compile(&ours).ok_or("Hyperscan takes each signature, but not all")?;
            // SAFETY: the database is complete, and the pointer for the result is valid.
            let code = unsafe { hs_alloc_scratch(made.database, &raw mut made.scratch) };
            if code != 0 {
                return Err(format!("Hyperscan has no memory to search in (code {code})"));
            }
        }
        Ok(made)
    }

    /// The lowest number among the signatures that occur in a payload.
    pub fn lowest(&self, payload: &[u8]) -> Option<u32> {
        let mut lowest: Option<u32> = None;
        if !self.database.is_null() {
            let length = c_uint::try_from(payload.len()).unwrap_or(c_uint::MAX);
            // SAFETY: database and scratch belong together; the payload has this number of bytes;
            // the context is `lowest`, which lives as long as the call.
            unsafe {
                hs_scan(
                    self.database,
                    payload.as_ptr().cast(),
                    length,
                    0,
                    self.scratch,
                    on_match,
                    (&raw mut lowest).cast(),
                );
            }
        }
        let rest = self.rest.as_ref().and_then(|rest| rest.lowest_match(payload));
        lowest.into_iter().chain(rest).min()
    }
}

/// Lowers the number in the context to the number of a match.
unsafe extern "C" fn on_match(
    number: c_uint,
    _from: c_ulonglong,
    _to: c_ulonglong,
    _flags: c_uint,
    lowest: *mut c_void,
) -> c_int {
    // SAFETY: the context that `lowest` passed to the scan.
    let lowest = unsafe { &mut *lowest.cast::<Option<u32>>() };
    *lowest = Some(lowest.map_or(number, |before| before.min(number)));
    0
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: made by `new`, or null, which both functions accept.
        unsafe {
            hs_free_scratch(self.scratch);
            hs_free_database(self.database);
        }
    }
}
