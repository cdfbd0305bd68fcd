//! Scripts that lead to a place which no record contains.

use crate::guard::Guard;
use crate::script::Step;
use braid_packet::Packet;

/// A place where the specialiser met something that no record contains. It is on the paths of
/// packets that pass these guards, so their records end in front of its function.
#[derive(Clone, Debug)]
pub(crate) struct Met {
    pub(crate) node: u16,
    pub(crate) guards: Box<[Guard]>,
}

impl Met {
    /// Whether a packet passes the guards.
    pub(crate) fn fits(&self, packet: &Packet) -> bool {
        self.guards.iter().all(|guard| guard.holds(packet.data(), packet.wire_len))
    }
}

/// A script that ends at such a place.
pub(crate) struct Prefix {
    pub(crate) written: Vec<Step>,
    /// The number of registers that the steps use.
    pub(crate) registers: usize,
    pub(crate) met: Met,
}
