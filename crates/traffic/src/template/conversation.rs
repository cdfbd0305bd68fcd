//! A capture as a template: its packets in order, and the fields that each connection overwrites.

use crate::Error;
use braid_io::{CaptureReader, PacketSource};
use braid_packet::{Field, FlowKey, Header, Layout, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// The most bytes of all captures together, with the data stored beside each packet.
pub const MAX_BYTES: usize = 256 << 20;
/// The approximate number of bytes stored beside a packet's own.
const OVERHEAD: usize = 512;
/// The most ports (or ICMP identifiers) of clients in a capture.
const MAX_SLOTS: usize = 4096;

/// A capture of one conversation between a client side and a server side.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// The packets in order; at least one.
    pub steps: Vec<Step>,
    /// The number of ports that the client side uses.
    pub slots: u16,
    /// The number of flows. Both directions of a flow count once.
    pub flows: u64,
}

/// A packet.
#[derive(Clone, Debug)]
pub struct Step {
    /// The packet as captured.
    pub packet: Packet,
    /// Its headers.
    pub layout: Layout,
    /// Nanoseconds since the previous packet.
    pub gap_ns: u64,
    /// Whether the packet goes in another direction than the previous one.
    pub turns: bool,
    /// The fields to overwrite, and the values that they get.
    pub writes: Vec<(Field, Role)>,
}

/// The value that a field gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The client's address.
    Client,
    /// The server's address.
    Server,
    /// One of the client's ports, by number.
    Port(u16),
}

/// IP version and address.
type Host = (u8, u128);

/// The hosts on the server side, and the numbers of the clients' ports.
struct Sides {
    servers: BTreeMap<Host, bool>,
    slots: BTreeMap<(u8, Host, u16), u16>,
}

/// Loads a capture and subtracts its size from `room`. Adds a warning if packets were left out.
pub fn load(
    path: &Path,
    room: &mut usize,
    warnings: &mut Vec<String>,
) -> Result<Conversation, Error> {
    let file = || path.display().to_string();
    let mut reader = CaptureReader::open(path).map_err(|why| Error::Read { file: file(), why })?;
    let (mut packets, mut others) = (Vec::new(), 0_u64);
    while let Some(packet) =
        reader.next_packet().map_err(|why| Error::Read { file: file(), why })?
    {
        let layout = packet.parse();
        let Some(key) = packet.flow_key(&layout) else {
            others += 1;
            continue;
        };
        *room = room.checked_sub(packet.data().len() + OVERHEAD).ok_or_else(|| {
            let why = format!("too large for a template: all together may take {MAX_BYTES} bytes");
            Error::Capture { file: file(), why }
        })?;
        packets.push((packet, layout, key));
    }
    if let Some(warning) = reader.warning() {
        warnings.push(format!("{}: {warning}", file()));
    }
    if others > 0 {
        warnings.push(format!("{}: {others} packets that are not IP were left out", file()));
    }
    build(packets).map_err(|why| Error::Capture { file: file(), why })
}

fn build(packets: Vec<(Packet, Layout, FlowKey)>) -> Result<Conversation, String> {
    if packets.is_empty() {
        return Err("has no IP packet, so that it can't be a template".to_owned());
    }
    let keys: Vec<FlowKey> = packets.iter().map(|(_, _, key)| *key).collect();
    let mut sides = Sides { servers: servers(&keys)?, slots: BTreeMap::new() };
    let flows: BTreeSet<FlowKey> = keys.iter().map(|key| key.bidirectional()).collect();
    let mut steps = Vec::with_capacity(packets.len());
    let mut before: Option<(u64, bool)> = None;
    for (packet, layout, key) in packets {
        let back = sides.is_server(key.version, key.src) == Some(true);
        let (time, same) = before.map_or((packet.time_ns, true), |(time, was)| (time, was == back));
        before = Some((packet.time_ns, back));
        steps.push(Step {
            gap_ns: packet.time_ns.saturating_sub(time),
            turns: !same,
            writes: sides.writes(&packet, &layout, key)?,
            packet,
            layout,
        });
    }
    let slots = u16::try_from(sides.slots.len()).unwrap_or(u16::MAX);
    Ok(Conversation { steps, slots, flows: flows.len() as u64 })
}

/// Divides the hosts into two sides so that packets only go from one side to the other. The source
/// of the first packet is a client. In every other group of connected hosts, the source of the
/// group's first packet is a client too.
fn servers(keys: &[FlowKey]) -> Result<BTreeMap<Host, bool>, String> {
    let mut peers: BTreeMap<Host, BTreeSet<Host>> = BTreeMap::new();
    for key in keys {
        let (src, dst) = ((key.version, key.src), (key.version, key.dst));
        peers.entry(src).or_default().insert(dst);
        peers.entry(dst).or_default().insert(src);
    }
    let mut servers = BTreeMap::new();
    for key in keys {
        let first = (key.version, key.src);
        if servers.contains_key(&first) {
            continue;
        }
        servers.insert(first, false);
        let mut queue = VecDeque::from([(first, false)]);
        while let Some((host, is_server)) = queue.pop_front() {
            for peer in peers.get(&host).into_iter().flatten() {
                match servers.insert(*peer, !is_server) {
                    None => queue.push_back((*peer, !is_server)),
                    Some(known) if known == is_server => {
                        return Err("its hosts can't be split into clients and servers, so that \
                                    it can't be a template"
                            .to_owned());
                    }
                    Some(_) => {}
                }
            }
        }
    }
    Ok(servers)
}

impl Sides {
    fn is_server(&self, version: u8, address: u128) -> Option<bool> {
        self.servers.get(&(version, address)).copied()
    }

    /// The number of a client's port.
    fn slot(&mut self, key: FlowKey, client: u128, port: u16) -> Result<Role, String> {
        let number = self.slots.len();
        let slot = self.slots.entry((key.proto, (key.version, client), port));
        let number = *slot.or_insert(u16::try_from(number).unwrap_or(u16::MAX));
        if self.slots.len() > MAX_SLOTS {
            return Err(format!("its clients use more than {MAX_SLOTS} ports"));
        }
        Ok(Role::Port(number))
    }

    /// The fields of a packet to overwrite.
    fn writes(
        &mut self,
        packet: &Packet,
        layout: &Layout,
        key: FlowKey,
    ) -> Result<Vec<(Field, Role)>, String> {
        let mut writes = Vec::with_capacity(3);
        let addresses = match key.version {
            4 => [Field::IpSrc, Field::IpDst],
            _ => [Field::Ip6Src, Field::Ip6Dst],
        };
        let echo = [(Header::IcmpEcho, Field::IcmpId), (Header::Icmp6Echo, Field::Icmp6Id)];
        let ports = match echo.iter().find(|(header, _)| layout.has(*header)) {
            Some((_, id)) => Some([*id, *id]),
            None => layout.has(Header::L4).then_some([Field::L4Sport, Field::L4Dport]),
        };
        self.write(key, addresses, ports, &mut writes)?;
        if let Some(quoted) = packet.quoted_flow_key(layout) {
            let addresses = match quoted.version {
                4 => [Field::QuotedIpSrc, Field::QuotedIpDst],
                _ => [Field::QuotedIp6Src, Field::QuotedIp6Dst],
            };
            let ports = match layout.has(Header::QuotedEcho) {
                true => Some([Field::QuotedId, Field::QuotedId]),
                false if !layout.has(Header::QuotedL4) => None,
                false => Some([Field::QuotedSport, Field::QuotedDport]),
            };
            self.write(quoted, addresses, ports, &mut writes)?;
        }
        Ok(writes)
    }

    /// Adds the addresses and the client's port of a key to `writes`, for the hosts whose side is
    /// known.
    fn write(
        &mut self,
        key: FlowKey,
        addresses: [Field; 2],
        ports: Option<[Field; 2]>,
        writes: &mut Vec<(Field, Role)>,
    ) -> Result<(), String> {
        let ends = [(key.src, key.sport), (key.dst, key.dport)];
        for (i, (address, port)) in ends.into_iter().enumerate() {
            match self.is_server(key.version, address) {
                Some(true) => writes.push((addresses[i], Role::Server)),
                Some(false) => {
                    writes.push((addresses[i], Role::Client));
                    if let Some(ports) = ports {
                        writes.push((ports[i], self.slot(key, address, port)?));
                    }
                }
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_packet::{Link, Shape, build_fresh};

    fn udp(time_ns: u64, src: u32, dst: u32, sport: u16, dport: u16) -> Packet {
        let fields = [
            (Field::IpSrc, u128::from(src)),
            (Field::IpDst, u128::from(dst)),
            (Field::UdpSport, u128::from(sport)),
            (Field::UdpDport, u128::from(dport)),
        ];
        build_fresh(Link::Ethernet, time_ns, Shape::Udp4, &fields, b"x").unwrap()
    }

    fn conversation(packets: &[Packet]) -> Result<Conversation, String> {
        let with_key = |packet: &Packet| {
            let layout = packet.parse();
            (packet.clone(), layout, packet.flow_key(&layout).unwrap())
        };
        build(packets.iter().map(with_key).collect())
    }

    #[test]
    fn request_and_reply_are_told_apart() {
        let packets =
            [udp(100, 1, 2, 5000, 53), udp(350, 2, 1, 53, 5000), udp(300, 1, 2, 5000, 53)];
        let conversation = conversation(&packets).unwrap();
        assert_eq!((conversation.slots, conversation.flows), (1, 1));
        let forward = [
            (Field::IpSrc, Role::Client),
            (Field::L4Sport, Role::Port(0)),
            (Field::IpDst, Role::Server),
        ];
        let backward = [
            (Field::IpSrc, Role::Server),
            (Field::IpDst, Role::Client),
            (Field::L4Dport, Role::Port(0)),
        ];
        assert_eq!(conversation.steps[0].writes, forward);
        assert_eq!(conversation.steps[1].writes, backward);
        // A time that goes back counts as no gap.
        let gaps: Vec<_> = conversation.steps.iter().map(|s| (s.gap_ns, s.turns)).collect();
        assert_eq!(gaps, [(0, false), (250, true), (0, true)]);
    }

    #[test]
    fn every_client_port_has_a_number() {
        let packets = [udp(0, 1, 9, 5000, 53), udp(0, 9, 1, 7000, 6000), udp(0, 2, 9, 5000, 53)];
        let conversation = conversation(&packets).unwrap();
        assert_eq!((conversation.slots, conversation.flows), (3, 3));
        let ports: Vec<_> =
            conversation.steps.iter().flat_map(|step| step.writes.iter().map(|w| w.1)).collect();
        for slot in 0..3 {
            assert!(ports.contains(&Role::Port(slot)), "{ports:?}");
        }
    }

    #[test]
    fn hosts_without_two_sides_are_refused() {
        let triangle = [udp(0, 1, 2, 1, 1), udp(0, 2, 3, 1, 1), udp(0, 3, 1, 1, 1)];
        assert!(conversation(&triangle).unwrap_err().contains("clients and servers"));
        assert!(conversation(&[udp(0, 1, 1, 1, 1)]).is_err());
        assert!(conversation(&[]).unwrap_err().contains("no IP packet"));
    }

    #[test]
    fn quoted_packet_of_an_error_is_written_too() {
        let request = udp(0, 1, 2, 5000, 53);
        let fields = [(Field::IcmpType, 3), (Field::IcmpCode, 3)];
        let quote = braid_packet::NewPayload::Quote(28);
        let error = braid_packet::build_new(&request, Shape::Icmp, true, &fields, quote).unwrap();
        let conversation = conversation(&[request, error]).unwrap();
        let expected = [
            (Field::IpSrc, Role::Server),
            (Field::IpDst, Role::Client),
            (Field::QuotedIpSrc, Role::Client),
            (Field::QuotedSport, Role::Port(0)),
            (Field::QuotedIpDst, Role::Server),
        ];
        assert_eq!(conversation.steps[1].writes, expected);
    }
}
