//! Where functions come from: shared libraries, and sets that the program itself brings.

use super::abi::{ABI, RawNf, RawProfile};
use crate::flows::Limits;
use crate::library::LoadError;
use braid_ir::native::Profile;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::mem::{MaybeUninit, offset_of};
use std::sync::{Arc, Mutex, PoisonError};

/// What a function says of itself.
#[derive(Debug)]
pub struct Definition {
    /// The function and where it comes from, for messages.
    pub label: String,
    /// What it does.
    pub about: String,
    /// Reasons for which it drops packets.
    pub reasons: Vec<String>,
    /// Ports beside left and right.
    pub ports: Vec<String>,
    /// What it says that it does to packets.
    pub profile: Option<Profile>,
    /// Whether its flows are those of both directions.
    pub per_biflow: bool,
    /// Limits of its flows, unless configured.
    pub limits: Limits,
    pub(super) raw: RawNf,
}

/// Most flows of an instance, unless it says otherwise.
const FLOWS: u64 = 1 << 20;
/// Most bytes of memory for each flow.
const MOST_BYTES: u64 = 64 * 1024;

/// Libraries that are open. They stay so: code of them may be registered anywhere.
static OPEN: Mutex<BTreeMap<String, Arc<libloading::Library>>> = Mutex::new(BTreeMap::new());

/// The library at a path.
pub(crate) fn open(path: &str) -> Result<Arc<libloading::Library>, LoadError> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = open.get(path) {
        return Ok(library.clone());
    }
    // SAFETY: loading runs the library's initialisers. That is what naming it in a chain file asks for, as
    // running its functions is.
    let library = unsafe { libloading::Library::new(path) }
        .map_err(|why| LoadError::Library { path: path.to_owned(), why: source_of(&why) })?;
    let library = Arc::new(library);
    open.insert(path.to_owned(), library.clone());
    Ok(library)
}

/// What the system says of an error.
fn source_of(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

/// The function of a library.
pub(crate) fn read(
    library: &libloading::Library,
    path: &str,
    name: &str,
) -> Result<Definition, LoadError> {
    let symbol = format!("braid_nf_{name}");
    // SAFETY: a symbol of this name is a `braid_nf`, by the header; only its first two fields are read before
    // they say so.
    let found = unsafe { library.get::<*const RawNf>(symbol.as_bytes()) };
    let Ok(raw) = found else {
        return Err(LoadError::Symbol { path: path.to_owned(), symbol });
    };
    let (raw, label) = (*raw, format!("{name} of {path}"));
    // SAFETY: it begins with `abi` and `size`.
    let (abi, size) = unsafe { ((*raw).abi, (*raw).size as usize) };
    let whole = whole(raw, abi, size, &label)?;
    definition(whole, label)
}

/// The structure with zeros for what its library does not know of.
fn whole(raw: *const RawNf, abi: u32, size: usize, label: &str) -> Result<RawNf, LoadError> {
    if abi != ABI {
        return Err(LoadError::Abi { label: label.to_owned(), found: abi, wanted: ABI });
    }
    let least = offset_of!(RawNf, packet) + size_of::<usize>();
    if size < least {
        return Err(LoadError::Size { label: label.to_owned(), found: size, least });
    }
    let mut whole = MaybeUninit::<RawNf>::zeroed();
    // SAFETY: the library says that it has so many bytes there; no more than fit are copied.
    unsafe {
        let bytes = size.min(size_of::<RawNf>());
        std::ptr::copy_nonoverlapping(raw.cast::<u8>(), whole.as_mut_ptr().cast::<u8>(), bytes);
    }
    // SAFETY: all zeros are valid for each of its fields (numbers, pointers, code that may be missing), and
    // what was copied was made of such fields.
    Ok(unsafe { whole.assume_init() })
}

/// The definition of a function that the program itself brings.
pub(crate) fn definition(raw: RawNf, label: String) -> Result<Definition, LoadError> {
    if raw.packet.is_none() {
        return Err(LoadError::NoPacket { label });
    }
    if raw.flow_bytes > MOST_BYTES {
        return Err(LoadError::FlowBytes { label, found: raw.flow_bytes, most: MOST_BYTES });
    }
    // SAFETY: texts of a definition are null or end with a 0, and it is a constant, as its profile is.
    let (about, reasons, ports, profile) =
        unsafe { (text(raw.about), text(raw.reasons), text(raw.ports), raw.profile.as_ref()) };
    let profile = profile.map(declared).transpose();
    let profile =
        profile.map_err(|why| LoadError::Profile { label: label.clone(), why: why.to_string() })?;
    let lines = |text: String| text.lines().map(str::to_owned).collect();
    Ok(Definition {
        about,
        reasons: lines(reasons),
        ports: lines(ports),
        profile,
        per_biflow: raw.flow_scope == 1,
        limits: Limits {
            capacity: if raw.flow_capacity == 0 { FLOWS } else { raw.flow_capacity },
            idle_ns: raw.flow_idle_ns,
            evict_oldest: raw.flow_full == 1,
            bytes: usize::try_from(raw.flow_bytes).unwrap_or(0),
        },
        label,
        raw,
    })
}

fn declared(raw: &RawProfile) -> Result<Profile, braid_ir::native::UnknownName> {
    // SAFETY: as for the definition's texts.
    let (reads, writes) = unsafe { (text(raw.reads), text(raw.writes)) };
    Profile::declared(&reads, &writes, raw.may)
}

/// A text of a definition; empty where it has none.
///
/// # Safety
/// It is null or ends with a 0.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and it ends with a 0.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
