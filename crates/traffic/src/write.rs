//! Writes traffic to a sink and summarises it.

use crate::{Error, Progress, Traffic};
use braid_io::PacketSink;

/// A summary of the written packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Number of flows. Both directions of a flow count once. `None` if flows were not counted.
    pub flows: Option<u64>,
    /// The earliest and the latest time, if there are packets.
    pub times_ns: Option<(u64, u64)>,
}

impl Summary {
    /// Nanoseconds from the first packet to the last.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        self.times_ns.map_or(0, |(first, last)| last - first)
    }
}

/// Packets between two calls of `progress`.
const STEP: u64 = 4096;

/// Writes all packets and reports progress from time to time.
///
/// # Errors
/// When the generator or the sink fails; packets before that are written.
pub fn write(
    traffic: &mut dyn Traffic,
    sink: &mut dyn PacketSink,
    progress: &mut dyn FnMut(Progress),
) -> Result<Summary, Error> {
    let mut summary = Summary::default();
    let result = pump(traffic, sink, progress, &mut summary);
    // The packets from before a failure are useful, and flushing may fail for the same reason.
    let finished = sink.finish();
    result?;
    finished?;
    summary.flows = traffic.flows();
    Ok(summary)
}

fn pump(
    traffic: &mut dyn Traffic,
    sink: &mut dyn PacketSink,
    progress: &mut dyn FnMut(Progress),
    summary: &mut Summary,
) -> Result<(), Error> {
    while let Some(packet) = traffic.next_packet()? {
        sink.write_packet(&packet)?;
        summary.packets += 1;
        summary.bytes += u64::from(packet.wire_len);
        let (first, last) = summary.times_ns.unwrap_or((packet.time_ns, packet.time_ns));
        summary.times_ns = Some((first.min(packet.time_ns), last.max(packet.time_ns)));
        if summary.packets.is_multiple_of(STEP) {
            progress(traffic.progress());
        }
    }
    Ok(())
}
