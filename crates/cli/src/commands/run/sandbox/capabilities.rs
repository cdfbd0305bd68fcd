//! The capabilities that a live run keeps.

use std::io;

use braid_io::Device;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

/// What a run needs to open its devices again, after they were removed and made anew. A run that
/// keeps its user also needs to reach files of other users: root started it, and they may own the
/// chain's file or the folder for its state.
pub fn needed(devices: &[Device], keeps_user: bool) -> CapabilitySet {
    let mut needed = CapabilitySet::empty();
    for device in devices {
        needed |= match device {
            Device::Packet(_) => CapabilitySet::NET_RAW,
            Device::Tap(_) => CapabilitySet::NET_ADMIN,
            // The memory of AF_XDP sockets is locked.
            Device::Xdp(_) => {
                CapabilitySet::NET_RAW
                    | CapabilitySet::NET_ADMIN
                    | CapabilitySet::BPF
                    | CapabilitySet::IPC_LOCK
            }
            _ => CapabilitySet::empty(),
        };
    }
    if keeps_user {
        needed |= CapabilitySet::DAC_OVERRIDE;
    }
    needed
}

/// Gives up all other capabilities for good: programs that run with more rights give none back.
pub fn keep(needed: CapabilitySet) -> io::Result<()> {
    set_no_new_privs(true)?;
    let kept = capabilities(None)?.permitted & needed;
    let none = CapabilitySet::empty();
    Ok(set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: none },
    )?)
}
