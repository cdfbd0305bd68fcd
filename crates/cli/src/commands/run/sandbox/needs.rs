//! What a live run says about itself before it is confined.

use std::path::{Path, PathBuf};

use braid_io::Device;

use super::user::User;

/// What a run needs besides the files that are open.
pub struct Needs<'a> {
    /// The user of the run from now on.
    pub user: Option<&'a User>,
    /// Whether files and system calls are limited.
    pub is_limited: bool,
    pub devices: &'a [Device],
    /// Whether the chain has native functions, which may have started threads.
    pub has_native: bool,
    /// The chain's file.
    pub file: &'a Path,
    /// The folders of the files that the chain names.
    pub folders: &'a [PathBuf],
    /// The folder for the chain's state.
    pub state: Option<&'a Path>,
    /// The control socket, and those at which functions hand connections to servers.
    pub sockets: &'a [PathBuf],
}
