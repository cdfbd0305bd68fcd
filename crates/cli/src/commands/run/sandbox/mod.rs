//! What a live run may do once its devices and files are open. Hostile packets meet parsers,
//! machine code and native functions, so the process gives up what these do not need: capabilities,
//! files, and system calls. `docs/operations.md` lists what is left, and why.
//!
//! All this holds for the thread that asks for it and for threads that it starts later. So it comes
//! before the first one.

mod capabilities;
mod function;
mod needs;
mod paths;
mod syscalls;
mod user;

use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_io::Device;
use braid_native::isolated::become_user;

use crate::answer::Failure;
use crate::output::{tell, warn};

pub use function::confine as confine_function;
pub use needs::Needs;
pub use user::User;

/// Gives up what the run does not need. Says what the kernel cannot take away.
pub fn confine(needs: &Needs<'_>) -> Result<(), Failure> {
    // DPDK's own threads run already, and nobody can list what its drivers need.
    if needs.devices.iter().any(Device::is_dpdk) {
        if needs.user.is_some() {
            return Err(Failure::usage("--user cannot be used with DPDK devices"));
        }
        if needs.is_limited {
            tell("braid: note: drivers of DPDK cannot be confined, so the run keeps its rights\n");
        }
        return Ok(());
    }
    if needs.user.is_none() && !needs.is_limited {
        return Ok(());
    }
    // The kernel lists a thread for a moment after its end.
    let is_alone = (0..200).any(|_| {
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        threads == 1 || {
            std::thread::sleep(Duration::from_millis(1));
            false
        }
    });
    if !is_alone && needs.has_native {
        return Err(Failure::input(
            "a native function has started a thread before the run was confined: start it with the \
             first packet, or use --no-sandbox without --user",
        ));
    }
    if !is_alone {
        return Err(Failure::inconsistent("a thread runs before the sandbox"));
    }
    if let Some(user) = needs.user {
        for socket in needs.sockets {
            user.own(socket).map_err(|why| Failure::file(socket, why))?;
        }
        if let Some(folder) = needs.state {
            for path in just_made(folder) {
                user.own(&path).map_err(|why| Failure::file(&path, why))?;
            }
        }
        let become_it = user.become_it().and_then(|()| become_user(user.uid, user.gid));
        become_it.map_err(|why| {
            Failure::input(format!("cannot become the user {}: {why}", user.name))
        })?;
        say_what_is_out_of_reach(needs, user);
    }
    let kept = capabilities::needed(needs.devices, needs.user.is_none());
    capabilities::keep(kept)
        .map_err(|why| Failure::input(format!("cannot give up capabilities: {why}")))?;
    if !needs.is_limited {
        return Ok(());
    }
    if !paths::limit(needs).map_err(Failure::input)? {
        tell("braid: note: this kernel has no Landlock, so the run may open other files\n");
    }
    let has_xdp = needs.devices.iter().any(|device| matches!(device, Device::Xdp(_)));
    if let Err(why) = syscalls::limit(has_xdp) {
        tell(format!("braid: note: system calls cannot be limited: {why}\n"));
    }
    Ok(())
}

/// The folder for state and its lock, if nothing else is there, so that the run has just made them.
fn just_made(folder: &Path) -> Vec<PathBuf> {
    let files: io::Result<Vec<DirEntry>> = std::fs::read_dir(folder).and_then(Iterator::collect);
    let mut paths: Vec<_> = files.into_iter().flatten().map(|file| file.path()).collect();
    paths.push(folder.to_owned());
    let is_lock = |path: &PathBuf| path.extension().is_some_and(|end| end == "lock");
    match paths.len() == 2 && is_lock(&paths[0]) {
        true => paths,
        false => Vec::new(),
    }
}

/// Warns of files that a user cannot reach, and says what does not work then.
fn say_what_is_out_of_reach(needs: &Needs<'_>, user: &User) {
    let name = &user.name;
    if let Err(why) = std::fs::File::open(needs.file) {
        let file = needs.file.display();
        warn(format!(
            "the user {name} cannot read {file} ({why}), so the chain cannot be reloaded"
        ));
    }
    if let Some(folder) = needs.state.filter(|folder| !user.may_write(folder)) {
        let folder = folder.display();
        warn(format!(
            "the user {name} cannot write to {folder}, so no state is saved; run `chown -R {name} {folder}`"
        ));
    }
}
