//! What the process of an isolated function may do. `docs/native.md` lists it for users.

use braid_native::isolated::Phase;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::CapabilitySet;

use super::{capabilities, paths, syscalls};

/// The most memory (bytes), and the most open files.
const MEMORY: u64 = 4 << 30;
const FILES: u64 = 64;

/// Gives up what the phase does not need. A library may read files and start threads while it is
/// loaded and while its instance is made. Afterwards the process has its memory, these threads and
/// the time. Landlock keeps it away from other processes, too, where the kernel has it.
pub fn confine(phase: Phase) -> Result<(), String> {
    let is_loading = phase == Phase::BeforeLoading;
    if is_loading {
        for (what, most) in [(Resource::Core, 0), (Resource::As, MEMORY), (Resource::Nofile, FILES)]
        {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            setrlimit(what, limit).map_err(|why| format!("its resources: {why}"))?;
        }
        capabilities::keep(CapabilitySet::empty()).map_err(|why| format!("its rights: {why}"))?;
    }
    paths::limit_function(is_loading).map_err(|why| format!("its files: {why}"))?;
    syscalls::limit_function(is_loading).map_err(|why| format!("its system calls: {why}"))
}
