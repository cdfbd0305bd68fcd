//! Processes of isolated functions.

use rustix::process::Pid;
use std::io;

/// Signals that ask a program to end. For functions, that is for Braid to decide.
const ENDS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Lets this process, and processes that it starts, ignore signals that ask it to end.
pub(crate) fn ignore_ends() {
    for signal in ENDS {
        // SAFETY: ignoring a signal installs no code.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

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
/// The system's, and a refusal if this process has several threads: their locks would stay locked
/// in the copy.
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
