//! What the monitor tells: bytes, gaps, overlaps, and the ends of connections.

use crate::finding::{Gap, Overlap};
use crate::place::Place;
use crate::report::Report;

/// Takes what the monitor finds. Within a stream, [`Self::data`] and [`Self::gap`] follow each
/// other without a hole: each begins where the one before ended, the first at offset 0.
pub trait Sink {
    /// The next bytes of a stream. They begin at `offset`, which counts from the stream's first
    /// byte: the one behind the SYN, or the first one that the monitor could know of.
    fn data(&mut self, place: &Place, offset: u64, bytes: &[u8]);

    /// Bytes that were delivered before have come again. A sink that has kept them can compare.
    fn repeated(&mut self, _place: &Place, _offset: u64, _bytes: &[u8]) {}

    /// The next bytes of a stream are missing.
    fn gap(&mut self, _place: &Place, _gap: Gap) {}

    /// Bytes that still wait for earlier ones have come again, and are not the same.
    fn overlap(&mut self, _place: &Place, _overlap: Overlap) {}

    /// A connection is open: both ends have agreed, or the monitor has picked it up later. The
    /// place is the client's direction. Bytes may have come before: with a SYN, or of an incomplete
    /// handshake.
    fn opened(&mut self, _place: &Place) {}

    /// A connection is over: both ends have sent and received a FIN, or one has sent a RST. Packets
    /// of it may still follow. The place is the client's direction.
    fn over(&mut self, _place: &Place) {}

    /// The monitor forgets a connection: a time after its end, at the end of the capture, or
    /// because it has given the connection up.
    fn closed(&mut self, _report: &Report) {}
}
