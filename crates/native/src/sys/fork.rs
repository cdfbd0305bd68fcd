//! Processes of isolated functions.

use rustix::process::Pid;
use std::io;

/// The two sides of a fork.
pub(crate) enum Forked {
    /// The new process.
    Child,
    /// The process that goes on, with the number of the new one.
    Parent(Pid),
}

/// Makes a process that is a copy of this one.
///
/// # Errors
/// The system's, and a refusal if this process has several threads: their locks would stay locked in
/// the copy.
pub(crate) fn fork() -> io::Result<Forked> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::other("the process has several threads"));
    }
    // SAFETY: this process has one thread, so the copy may do whatever this one may.
    let pid = unsafe { libc::fork() };
    match Pid::from_raw(pid) {
        _ if pid < 0 => Err(io::Error::last_os_error()),
        Some(pid) => Ok(Forked::Parent(pid)),
        None => Ok(Forked::Child),
    }
}
