//! Work that the hosts of a run have for the driver.

use braid_packet::{Frame, Packet};

/// The reason for which packets are lost whose next hop does not answer.
pub(crate) const NO_NEIGHBOUR: &str = "no_neighbour";
/// The reason for which packets are lost while too many packets wait for neighbours, or too many
/// neighbours are asked for.
pub(crate) const NEIGHBOUR_LIMIT: &str = "neighbour_limit";
/// The reason for which packets are lost that are for another link, where the interface has no
/// gateway for their IP version.
pub(crate) const NO_GATEWAY: &str = "no_gateway";
/// The reason for which packets are lost that are too long for a device, if the sender gets no ICMP
/// error.
pub(crate) const TOO_LONG: &str = "send_too_long";
/// The reason for which packets are lost that are too long for a device, if the sender gets an ICMP
/// error.
pub(crate) const TOO_LONG_ANSWERED: &str = "too_long_answered";

/// Work that the hosts of a run have for the driver. Interfaces have their numbers.
#[derive(Debug, Default)]
pub(crate) struct Out {
    /// Frames of the interfaces' own, to be sent.
    pub(crate) own: Vec<(u16, Frame)>,
    /// Later fragments of packets that have left the chain, to be sent. The first fragment of each
    /// counts as the packet.
    pub(crate) fragments: Vec<(u16, Packet)>,
    /// Packets that have left the chain and waited, to be sent now.
    pub(crate) waited: Vec<(u16, Packet)>,
    /// Packets that have left the chain, waited and were lost, each with the reason.
    pub(crate) lost: Vec<(u16, &'static str)>,
    /// ICMP errors that enter the chain.
    pub(crate) errors: Vec<Packet>,
}

impl Out {
    /// Whether nothing is to be done.
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty()
            && self.fragments.is_empty()
            && self.waited.is_empty()
            && self.lost.is_empty()
            && self.errors.is_empty()
    }
}
