//! The packets on which functions are measured.

use std::path::Path;

use braid_io::PacketSource as _;
use braid_ir::chain::Chain;
use braid_packet::Packet;
use braid_runtime::split::Splitter;

use crate::answer::Failure;
use crate::captures::{Capture, named};
use crate::{engines, generated};

/// The most packets of a sample.
const MOST: usize = 4_096;
/// The most bytes of a sample.
const MOST_BYTES: usize = 1 << 24;

/// Packets that enter a chain.
pub struct Sample {
    /// The packets, in the order of their times. Each has the number of its interface.
    pub packets: Vec<Packet>,
    /// Where they come from.
    pub source: &'static str,
}

/// The first packets of captures, named as for `--in`. A capture that cannot be read twice, such as
/// a pipe, is not read: the packets are then generated, and so they are without captures.
pub fn sample(inputs: &[String], chain: &Chain) -> Result<Sample, Failure> {
    let inputs: Vec<_> = inputs.iter().map(|text| named(text, chain)).collect::<Result<_, _>>()?;
    if inputs.is_empty() || !inputs.iter().all(|input| input.path.is_file()) {
        return generated(chain);
    }
    let splitter = Splitter::new(chain);
    let mut packets = Vec::new();
    for input in &inputs {
        let mut bytes = 0;
        for mut packet in first(&input.path)? {
            bytes += packet.data().len();
            if bytes > MOST_BYTES {
                break;
            }
            let ingress = input.interface.or_else(|| splitter.ingress(&packet, &packet.parse()));
            if let Some(ingress) = ingress {
                packet.ingress = ingress;
                packets.push(packet);
            }
        }
    }
    packets.sort_by_key(|packet| packet.time_ns);
    packets.truncate(MOST);
    Ok(Sample { packets, source: "the captures" })
}

/// The first packets of a capture. What cannot be read ends them: the run itself reports it.
fn first(path: &Path) -> Result<impl Iterator<Item = Packet>, Failure> {
    let mut capture = Capture::open(path)?;
    Ok(std::iter::from_fn(move || capture.next_packet().ok().flatten()).take(MOST))
}

/// Packets as `braid inspect` makes them.
fn generated(chain: &Chain) -> Result<Sample, Failure> {
    let mut engine = engines::make(engines::DEFAULT, chain)?;
    let mut packets = Vec::new();
    generated::drive(chain, engine.as_mut(), 4_096, |interface, packet| {
        let mut packet = packet.clone();
        packet.ingress = interface;
        packets.push(packet);
    });
    Ok(Sample { packets, source: "generated traffic" })
}
