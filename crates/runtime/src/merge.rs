//! Merges several inputs into one stream in time order.

use braid_io::{PacketSource, ReadError};
use braid_packet::{Burst, Packet, Pool};

/// Packets that enter a chain.
pub struct Input {
    /// The name in messages, such as the file's name.
    pub name: String,
    /// The number of the interface by which they enter. With `None`, their addresses decide.
    pub interface: Option<u16>,
    /// The packets.
    pub source: Box<dyn PacketSource + Send>,
}

/// The ingress of a packet whose headers must tell where it enters.
pub(crate) const UNKNOWN: u16 = u16::MAX;

/// A packet with its input's interface.
type Entering = (Option<u16>, Packet);

/// The name of an input that cannot be read, and the reason.
pub(crate) type Unreadable = (String, ReadError);

/// The inputs, each with its next packet.
pub(crate) struct Merge {
    inputs: Vec<Waiting>,
}

struct Waiting {
    input: Input,
    /// `None` at the end of the input.
    next: Option<Result<Packet, ReadError>>,
    /// The time of the next packet. If the input cannot be read, the time of the last packet
    /// before.
    time_ns: u64,
}

impl Merge {
    /// Reads the first packet of each input, unless there is only one.
    pub(crate) fn new(inputs: Vec<Input>, pool: &mut Pool) -> Self {
        let is_one = inputs.len() == 1;
        let begin = |input| {
            let mut waiting = Waiting { input, next: None, time_ns: 0 };
            if !is_one {
                waiting.read(pool);
            }
            waiting
        };
        Self { inputs: inputs.into_iter().map(begin).collect() }
    }

    /// Adds packets to a burst until it is full or the inputs end. Their ingress is the interface
    /// of their input, or [`UNKNOWN`]. Returns whether there may be more.
    pub(crate) fn fill(&mut self, burst: &mut Burst, pool: &mut Pool) -> Result<bool, Unreadable> {
        if let [Waiting { input, .. }] = &mut self.inputs[..] {
            let filled = input.source.fill(burst, pool);
            let ingress = input.interface.unwrap_or(UNKNOWN);
            burst.packets_mut().iter_mut().for_each(|packet| packet.ingress = ingress);
            return filled.map_err(|error| (input.name.clone(), error));
        }
        while !burst.is_full() {
            let Some((interface, mut packet)) = self.next(pool)? else { return Ok(false) };
            packet.ingress = interface.unwrap_or(UNKNOWN);
            burst.push(packet);
        }
        Ok(true)
    }

    /// The earliest next packet and its input's interface. At equal times, the input that was
    /// declared first comes first. Each input keeps its order, even if its time goes back.
    fn next(&mut self, pool: &mut Pool) -> Result<Option<Entering>, Unreadable> {
        let waiting = self.inputs.iter_mut().filter(|waiting| waiting.next.is_some());
        let Some(first) = waiting.min_by_key(|waiting| waiting.time_ns) else {
            return Ok(None);
        };
        match first.read(pool) {
            Some(Ok(packet)) => Ok(Some((first.input.interface, packet))),
            Some(Err(error)) => Err((first.input.name.clone(), error)),
            None => Ok(None),
        }
    }

    /// The bytes read and the total, of the inputs that know them.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let known = self.inputs.iter().filter_map(|waiting| waiting.input.source.progress());
        known.fold((0, 0), |(read, total), p| (read + p.read, total + p.total))
    }

    /// The warnings of the sources, each with its input's name in front.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warn = |Waiting { input, .. }: &Waiting| {
            input.source.warning().map(|warning| format!("{}: {warning}", input.name))
        };
        self.inputs.iter().filter_map(warn).collect()
    }
}

impl Waiting {
    /// Returns the next packet and reads the one after it.
    fn read(&mut self, pool: &mut Pool) -> Option<Result<Packet, ReadError>> {
        let after = match self.next {
            // No packet comes after an error.
            Some(Err(_)) => None,
            _ => self.input.source.next_in(pool).transpose(),
        };
        if let Some(Ok(packet)) = &after {
            self.time_ns = packet.time_ns;
        }
        std::mem::replace(&mut self.next, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_io::MemorySource;
    use braid_packet::Link;

    fn input(interface: u16, times: &[u64]) -> Input {
        let packets = times.iter().map(|&time| Packet::new(Link::RawIp, time, vec![]));
        let source = Box::new(MemorySource::new(packets.collect::<Vec<_>>()));
        Input { name: String::new(), interface: Some(interface), source }
    }

    #[test]
    fn inputs_are_merged_by_time_and_then_by_declaration() {
        let mut pool = Pool::new(1, 64).unwrap();
        let inputs = vec![input(7, &[5, 3, 9]), input(8, &[1, 5, 9, 10]), input(9, &[])];
        let mut merge = Merge::new(inputs, &mut pool);
        let mut order = Vec::new();
        while let Some((interface, packet)) = merge.next(&mut pool).unwrap() {
            order.push((interface.unwrap(), packet.time_ns));
        }
        assert_eq!(order, [(8, 1), (7, 5), (7, 3), (8, 5), (7, 9), (8, 9), (8, 10)]);
    }
}
