//! Traces: packets of flows that begin, go on and end. They are generated, or read from a capture.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use braid_packet::{Field, FlowKey, Header, Layout, Link, Packet, checksum};
use braid_traffic::flows::{Flows, FrameSize, Options, Protocol};
use braid_traffic::{Prefix, Traffic};

use crate::definition::{self, Case, Definition};
use crate::inputs::SEED;
use crate::traffic::prefix;

/// The largest number of packets from a capture. Further packets are left out.
pub const MAX_PACKETS: usize = 1 << 20;
/// Number of packets of other flows that engines process before the trace, so that programs are
/// compiled and in the caches.
const BEFORE: usize = 20_000;
/// The address bit that is flipped to turn a flow into another one.
const OTHER: u128 = 0x0080_0000;

/// Packets in the order of arrival, each with its flow.
pub struct Trace {
    /// The packets, with times.
    pub packets: Vec<Packet>,
    /// The number of each packet's flow. `None` for packets without an IP flow.
    pub flow: Vec<Option<u32>>,
    /// Number of flows.
    pub flows: u32,
    /// Packets of other flows, to be processed before the trace.
    pub before: Vec<Packet>,
}

impl Trace {
    /// The trace that a definition describes, or a capture in its place.
    ///
    /// # Errors
    /// Returns an error when the definition or the capture gives no trace.
    pub fn new(
        definition: &Definition,
        made: &definition::Trace,
        case: &Case,
        capture: Option<&[Packet]>,
    ) -> Result<Self, String> {
        let to = prefix(&made.to)?;
        let mut packets = match capture {
            Some(capture) => {
                let first = capture.iter().take(MAX_PACKETS);
                first.map(|packet| sent_to(packet.clone(), to)).collect()
            }
            None => generated(definition, made, case, to)?,
        };
        if packets.is_empty() {
            return Err("the trace has no packets".to_owned());
        }
        for packet in &mut packets {
            (packet.ingress, packet.backward, packet.held) = (0, false, false);
        }
        let mut numbers: HashMap<FlowKey, u32> = HashMap::new();
        let mut number = |packet: &Packet| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let key = packet.flow_key(&packet.parse())?;
            Some(*match numbers.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(next),
            })
        };
        let flow = packets.iter().map(&mut number).collect();
        let start = packets.first().map_or(0, |packet| packet.time_ns);
        let before = packets.iter().take(BEFORE).filter_map(|packet| other(packet, start));
        let before = before.collect();
        let flows = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        Ok(Self { packets, flow, flows, before })
    }

    /// Mean length of the frames in bytes.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        let bytes: usize = self.packets.iter().map(|packet| packet.data().len()).sum();
        bytes / self.packets.len().max(1)
    }
}

fn generated(
    definition: &Definition,
    made: &definition::Trace,
    case: &Case,
    to: (u32, u32),
) -> Result<Vec<Packet>, String> {
    let length = u8::try_from(to.1).unwrap_or(32);
    let bytes = u16::try_from(case.frame_bytes).unwrap_or(u16::MAX);
    let options = Options {
        size: FrameSize::Range(bytes, bytes),
        tail: Some(made.tail),
        protocol: Protocol::Mix,
        to: Prefix::around(u128::from(to.0), length, false),
        seed: SEED,
        ..Options::new(case.flows, case.flows.saturating_mul(made.packets.max(1)))
    };
    let mut flows = Flows::new(options).map_err(|why| why.to_string())?;
    let mut packets = Vec::new();
    while let Some(mut packet) = flows.next_packet().map_err(|why| why.to_string())? {
        begin(&mut packet, &definition.payloads);
        packets.push(packet);
    }
    Ok(packets)
}

/// Writes one of `payloads` to the start of a packet's payload, if the packet has one. All packets
/// of a flow get the same text.
fn begin(packet: &mut Packet, payloads: &[String]) {
    let layout = packet.parse();
    let sport = packet.get(&layout, Field::L4Sport).and_then(|port| usize::try_from(port).ok());
    let chosen = sport.and_then(|port| payloads.get(port % payloads.len().max(1)));
    let Some(text) = chosen.filter(|_| layout.payload_len() > 0) else { return };
    let start = layout.payload_offset();
    for (byte, new) in packet.data_mut().iter_mut().skip(start).zip(text.bytes()) {
        *byte = new;
    }
    checksum::fill(packet);
}

/// The packet with a new destination. It stays unchanged if the prefix is not a single address, or
/// if the packet's checksums are wrong.
fn sent_to(mut packet: Packet, (address, length): (u32, u32)) -> Packet {
    if length == 32 {
        assign(&mut packet, Field::IpDst, |_| u128::from(address));
    }
    packet
}

/// The packet as one of another flow. `None` if its source address cannot be changed.
fn other(packet: &Packet, time_ns: u64) -> Option<Packet> {
    let mut packet = packet.clone();
    packet.time_ns = time_ns;
    assign(&mut packet, Field::IpSrc, |source| source ^ OTHER).then_some(packet)
}

/// Changes an address and corrects the checksums. Returns false, without any change, if there is no
/// such address or if a checksum was wrong before.
fn assign(packet: &mut Packet, field: Field, value: impl Fn(u128) -> u128) -> bool {
    let layout: Layout = packet.parse();
    let usable = packet.link == Link::Ethernet && layout.has(Header::Ip4);
    if !usable || !checksum::verify(packet, &layout).all_right() {
        return false;
    }
    let Some(old) = packet.get(&layout, field) else { return false };
    let done = packet.set(&layout, field, value(old));
    checksum::fill(packet);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        summary = ""
        kind = "flow_time"
        axis = "flows"
        floor = "flow"
        chain = ""
        payloads = ["GET /a HTTP/1.1"]
        [trace]
        packets = 10
        tail = 1.0
        to = "192.0.2.1"
        [[sweep]]
        flows = [300]
        frame_bytes = [100]
    "#;

    fn trace(capture: Option<&[Packet]>) -> Trace {
        let definition = Definition::parse("x", TEXT).unwrap();
        let made = definition.trace.clone().unwrap();
        Trace::new(&definition, &made, &definition.cases(false)[0], capture).unwrap()
    }

    fn sizes(trace: &Trace) -> Vec<usize> {
        let mut sizes = vec![0; trace.flows as usize];
        trace.flow.iter().flatten().for_each(|flow| sizes[*flow as usize] += 1);
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn generated_flows_have_a_heavy_tail_and_begin_with_a_syn() {
        let trace = trace(None);
        let sizes = sizes(&trace);
        assert_eq!((trace.flows, sizes.iter().sum()), (300, 3_000));
        assert!(sizes[150] < 5 && sizes[299] > 300, "{sizes:?}");
        let mut seen = vec![false; 300];
        for (packet, flow) in trace.packets.iter().zip(&trace.flow) {
            let (layout, flow) = (packet.parse(), flow.unwrap() as usize);
            assert!(checksum::verify(packet, &layout).all_right());
            assert_eq!(packet.get(&layout, Field::IpDst), Some(0xc000_0201));
            let flags = packet.get(&layout, Field::TcpFlags);
            assert_eq!(flags == Some(2), layout.has(Header::Tcp) && !seen[flow]);
            seen[flow] = true;
            if layout.payload_len() > 0 {
                assert!(packet.payload(&layout).starts_with(b"GET /a HTTP/1.1"));
            }
        }
    }

    #[test]
    fn packets_before_are_of_other_flows_at_the_time_of_the_first() {
        let trace = trace(None);
        assert_eq!(trace.before.len(), 3_000);
        for (before, packet) in trace.before.iter().zip(&trace.packets) {
            assert_eq!(before.time_ns, trace.packets[0].time_ns);
            assert!(checksum::verify(before, &before.parse()).all_right());
            assert_ne!(before.flow_key(&before.parse()), packet.flow_key(&packet.parse()));
        }
    }

    #[test]
    fn capture_takes_the_place_of_generated_packets_with_another_destination() {
        let given = trace(None);
        let mut packets = given.packets[..100].to_vec();
        let layout = packets[3].parse();
        packets[3].set(&layout, Field::IpDst, 0x0808_0808);
        checksum::fill(&mut packets[3]);
        packets[5] = Packet::new(Link::Ethernet, 0, vec![0; 60]);
        let trace = trace(Some(&packets));
        assert_eq!(trace.packets.len(), 100);
        assert_eq!((trace.flow[5], trace.before.len()), (None, 99));
        assert_eq!(trace.packets[3].get(&layout, Field::IpDst), Some(0xc000_0201));
    }
}
