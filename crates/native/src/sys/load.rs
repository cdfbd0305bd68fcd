//! Loads functions from shared libraries, and from sets of the program itself.

use super::abi::{ABI, RawNf, RawProfile};
use crate::description::Description;
use crate::flows::Limits;
use crate::load_error::LoadError;
use crate::output::MOST_SENT;
use braid_ir::native::{Keeps, Profile};
use braid_ir::text::Declared;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::mem::{MaybeUninit, offset_of};
use std::sync::{Arc, Mutex, PoisonError};

/// A function that is loaded.
#[derive(Debug)]
pub struct Definition {
    /// The function's description of itself.
    pub description: Arc<Description>,
    pub(super) raw: RawNf,
}

/// The most flows of an instance, unless the function states another number.
const FLOWS: u64 = 1 << 20;
/// The most bytes of memory for each flow.
const MOST_BYTES: u64 = 64 * 1024;

/// Open libraries. They stay open, because their code may be registered anywhere.
static OPEN: Mutex<BTreeMap<String, Arc<libloading::Library>>> = Mutex::new(BTreeMap::new());

/// The library at a path.
pub(crate) fn open(path: &str) -> Result<Arc<libloading::Library>, LoadError> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = open.get(path) {
        return Ok(library.clone());
    }
    // SAFETY: loading runs the library's initialisers. A chain file that names the library asks for
    // this, as it asks for running its functions.
    let library = unsafe { libloading::Library::new(path) }
        .map_err(|why| LoadError::Library { path: path.to_owned(), why: source_of(&why) })?;
    let library = Arc::new(library);
    open.insert(path.to_owned(), library.clone());
    Ok(library)
}

/// The system's text for an error.
fn source_of(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Reads the definition of a library's function.
pub(crate) fn read(
    library: &libloading::Library,
    path: &str,
    name: &str,
) -> Result<Definition, LoadError> {
    let label = format!("{name} of {path}");
    let least = offset_of!(RawNf, packet) + size_of::<usize>();
    let symbol = format!("braid_nf_{name}");
    let (raw, size) = structure(library, path, (symbol, &label), least)?;
    definition(whole(raw.cast(), size), label)
}

/// The beginning of each structure that a library describes a function or an operator with.
#[repr(C)]
struct Start {
    abi: u32,
    size: u32,
}

/// A structure of a library, with its number of bytes: at least this many.
pub(super) fn structure(
    library: &libloading::Library,
    path: &str,
    (symbol, label): (String, &str),
    least: usize,
) -> Result<(*const u8, usize), LoadError> {
    // SAFETY: by the header, a symbol of this name is a structure that begins with `abi` and
    // `size`. Nothing else is read before they confirm that.
    let found = unsafe { library.get::<*const Start>(symbol.as_bytes()) };
    let Ok(start) = found else {
        return Err(LoadError::Symbol { path: path.to_owned(), symbol });
    };
    // SAFETY: as above.
    let Start { abi, size } = unsafe { (*start).read() };
    let label = label.to_owned();
    if abi != ABI {
        return Err(LoadError::Abi { label, found: abi, wanted: ABI });
    }
    match size as usize {
        found if found < least => Err(LoadError::Size { label, found, least }),
        size => Ok(((*start).cast(), size)),
    }
}

/// The complete structure. Fields that the library does not have yet are zero.
fn whole(raw: *const RawNf, size: usize) -> RawNf {
    let mut whole = MaybeUninit::<RawNf>::zeroed();
    // SAFETY: the library states that the structure has this number of bytes; no more than fit are
    // copied.
    unsafe {
        let bytes = size.min(size_of::<RawNf>());
        std::ptr::copy_nonoverlapping(raw.cast::<u8>(), whole.as_mut_ptr().cast::<u8>(), bytes);
    }
    // SAFETY: all zeros are valid for each field (numbers, pointers, optional code), and the copied
    // bytes come from such fields.
    unsafe { whole.assume_init() }
}

/// The definition of a function of this program.
pub(crate) fn definition(raw: RawNf, label: String) -> Result<Definition, LoadError> {
    let is_stream = raw.is_stream();
    if raw.packet.is_none() && !is_stream {
        return Err(LoadError::NoPacket { label });
    }
    if raw.flow_bytes > MOST_BYTES {
        return Err(LoadError::FlowBytes { label, found: raw.flow_bytes, most: MOST_BYTES });
    }
    if raw.sends > MOST_SENT {
        let why =
            format!("it sends {} packets for each packet; {MOST_SENT} are the most", raw.sends);
        return Err(LoadError::Declared { label, why });
    }
    let keeps = keeps(raw.keeps, raw.flow_scope);
    let Some(keeps) = keeps else {
        let why = format!("its `keeps` is {}; 0 to 3 are possible", raw.keeps);
        return Err(LoadError::Declared { label, why });
    };
    // SAFETY: texts of a definition are null or end with a 0. The definition and its profile are
    // constants.
    let (about, reasons, ports, profile) =
        unsafe { (text(raw.about), text(raw.reasons), text(raw.ports), raw.profile.as_ref()) };
    // SAFETY: as above.
    let (events, tags) = unsafe { (text(raw.events), text(raw.tags)) };
    let wrong = |why| LoadError::Declared { label: label.clone(), why };
    let profile = profile.map(declared).transpose().map_err(|why| wrong(why.to_string()))?;
    let declared = Declared::parse(&events, &tags).map_err(wrong)?;
    if let Some(what) = only_for_packets(&raw).filter(|_| is_stream) {
        let why =
            format!("it takes connections (open, data, close) and no packets, so it has {what}");
        return Err(wrong(why));
    }
    let lines = |text: String| text.lines().map(str::to_owned).collect();
    let description = Description {
        about,
        reasons: lines(reasons),
        ports: lines(ports),
        profile,
        declared,
        sends: raw.sends,
        keeps,
        is_stream,
        per_biflow: raw.flow_scope == 1 || is_stream,
        limits: Limits {
            capacity: if raw.flow_capacity == 0 { FLOWS } else { raw.flow_capacity },
            idle_ns: raw.flow_idle_ns,
            evict_oldest: raw.flow_full == 1,
            bytes: usize::try_from(raw.flow_bytes).unwrap_or(0),
        },
        label,
    };
    Ok(Definition { description: Arc::new(description), raw })
}

/// What a definition has that is for packets alone, in words that follow "it has".
fn only_for_packets(raw: &RawNf) -> Option<&'static str> {
    // SAFETY: texts of a definition are null or end with a 0.
    let (ports, tags) = unsafe { (text(raw.ports), text(raw.tags)) };
    let all = [
        (raw.packet.is_some(), "no `packet`"),
        (!ports.trim().is_empty(), "no ports"),
        (!tags.trim().is_empty(), "no tags"),
        (raw.sends > 0, "no `sends`"),
        (!raw.profile.is_null(), "no profile"),
    ];
    all.into_iter().find(|(is_there, _)| *is_there).map(|(_, what)| what)
}

/// What a function keeps, by its number in the C interface. `None`: no such number.
fn keeps(number: u32, flow_scope: u32) -> Option<Keeps> {
    Some(match (number, flow_scope) {
        (0, _) => Keeps::Anything,
        (1, _) => Keeps::Nothing,
        (2, 0) => Keeps::Flows,
        (2, _) => Keeps::Biflows,
        (3, _) => Keeps::Connections,
        _ => return None,
    })
}

fn declared(raw: &RawProfile) -> Result<Profile, braid_ir::native::UnknownName> {
    // SAFETY: as for the definition's texts.
    let (reads, writes) = unsafe { (text(raw.reads), text(raw.writes)) };
    Profile::declared(&reads, &writes, raw.may)
}

/// A text of a definition; empty if it has none.
///
/// # Safety
/// `text` is null or ends with a 0.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and it ends with a 0.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
