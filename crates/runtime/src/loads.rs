//! The interface to the engines that the driver of captures feeds with loads.

use crate::load::Load;
use crate::split::NO_INTERFACE;
use braid_ir::engine::Counters;

/// Runs loads of packets.
pub(crate) trait Loads {
    /// Processes a load, or lets others process it.
    fn load(&mut self, load: Load);

    /// The counters of all loads until now.
    fn counters(&mut self) -> Counters;
}

/// Counters with packets that entered nowhere.
pub(crate) fn with_lost(mut counters: Counters, no_interface: u64) -> Counters {
    if no_interface > 0 {
        counters.packets_in += no_interface;
        *counters.lost.entry(NO_INTERFACE.into()).or_default() += no_interface;
    }
    counters
}
