//! The files that a live run may open, by Landlock.

use std::path::{Path, PathBuf};

use braid_io::Device;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::needs::Needs;

/// The newest interface of the kernel that this file knows. Older kernels do what they can.
const KNOWN: ABI = ABI::V6;

/// What shared libraries, the number of cores and facts about devices are read from.
const SYSTEM: [&str; 7] =
    ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/proc/self", "/sys/class/net", "/sys/devices"];

/// Lets the run open no other files than the ones it needs, and no TCP connections. Returns false
/// if the kernel cannot do this.
pub fn limit(needs: &Needs<'_>) -> Result<bool, String> {
    let enforced = rules(needs).map_err(|why| format!("the files cannot be limited: {why}"))?;
    Ok(enforced != RulesetStatus::NotEnforced)
}

fn rules(needs: &Needs<'_>) -> Result<RulesetStatus, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let remove = BitFlags::from(AccessFs::RemoveFile);
    let replace =
        read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let readable = SYSTEM.map(PathBuf::from).into_iter();
    let readable = readable.chain(needs.folders.iter().map(|folder| named(folder)));
    let tap = needs.devices.iter().any(|device| matches!(device, Device::Tap(_)));
    let sockets = needs.sockets.iter().filter_map(|socket| socket.parent()).map(named);
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .add_rules(path_beneath_rules(readable, read))?
        .add_rules(path_beneath_rules(tap.then_some("/dev/net/tun"), device))?
        .add_rules(path_beneath_rules(needs.state.map(named), replace))?
        // The run removes its sockets at the end.
        .add_rules(path_beneath_rules(sockets, remove))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Lets the process of an isolated function read files, or not even that, and write none.
pub fn limit_function(may_read: bool) -> Result<(), String> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    let limited = || {
        Ruleset::default()
            .handle_access(AccessFs::from_all(KNOWN))?
            .handle_access(AccessNet::from_all(KNOWN))?
            .scope(Scope::from_all(KNOWN))?
            .create()?
            .add_rules(path_beneath_rules(may_read.then_some("/"), read))?
            .restrict_self()
    };
    limited().map(drop).map_err(|why: RulesetError| why.to_string())
}

/// The folder itself instead of an empty name.
fn named(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }
}
