//! The least work that an engine can do for a packet. The first floor parses, touches and forwards.
//! The second one also looks up a flow and rewrites a header with its checksums. No engine that
//! reads packets can cost less than the first floor. No engine that translates flows can cost less
//! than the second.

use braid_packet::Packet;

/// Number of packets that are processed together.
pub const BATCH: usize = 32;

/// Offset of IPv4 in Ethernet frames without tags.
const IP: usize = 14;
/// Offset of the part of the headers that is rewritten: TTL, protocol, checksum, addresses, ports.
const REWRITE: usize = IP + 8;

/// The result of parsing a frame with TCP or UDP over IPv4 without options.
#[derive(Clone, Copy)]
struct Parsed {
    key: u128,
    /// Offset of the transport checksum in the frame.
    sum: usize,
}

/// Parses Ethernet, IPv4 without options, and TCP or UDP. `None` for all other frames, which belong
/// to no flow.
#[inline]
fn parse(bytes: &[u8]) -> Option<Parsed> {
    let header: &[u8; 42] = bytes.first_chunk()?;
    let fragment = u16::from_be_bytes([header[20], header[21]]) & 0x3fff;
    if header[12..14] != [8, 0] || header[IP] != 0x45 || fragment != 0 {
        return None;
    }
    let sum = match header[IP + 9] {
        6 => IP + 20 + 16,
        17 => IP + 20 + 6,
        _ => return None,
    };
    if bytes.len() < sum + 2 {
        return None;
    }
    let mut key = [0; 16];
    key[..12].copy_from_slice(&header[26..38]);
    key[12] = header[IP + 9];
    Some(Parsed { key: u128::from_le_bytes(key), sum })
}

/// The first floor: parses a packet, writes its link addresses and sends it to interface 1.
#[derive(Default)]
pub struct Touch {
    /// The interface of each packet: 1, or 0 for packets that belong to no flow.
    pub reached: Vec<u16>,
}

impl Touch {
    /// Processes packets in place.
    pub fn batch(&mut self, packets: &mut [Packet]) {
        self.reached.clear();
        for packet in packets {
            let bytes = packet.data_mut();
            let known = parse(bytes).is_some();
            if let Some(link) = bytes.first_chunk_mut::<12>() {
                *link = LINK;
            }
            self.reached.push(u16::from(known));
        }
    }
}

/// Link addresses of packets that leave.
const LINK: [u8; 12] = [2, 0, 0, 0, 2, 1, 2, 0, 0, 0, 1, 1];

/// An entry of the flow table: how to rewrite the packets of its flow.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Entry {
    key: u128,
    /// The new bytes of the rewritten part, where the mask has bits.
    value: u128,
    mask: u128,
    /// The amounts by which the checksums of IP and of the transport change (ones' complement).
    ip_delta: u16,
    l4_delta: u16,
    used: bool,
    packets: u32,
}

const FREE: Entry =
    Entry { key: 0, value: 0, mask: 0, ip_delta: 0, l4_delta: 0, used: false, packets: 0 };

/// The second floor: looks up each packet's flow in a hash table and applies the entry's rewrite to
/// the header. The rewrite translates source address and port.
pub struct Flow {
    table: Vec<Entry>,
    flows: usize,
    keys: [(u128, usize); BATCH],
    /// The interface of each packet: 1, or 0 for packets without an entry.
    pub reached: Vec<u16>,
}

impl Flow {
    /// Creates a table with room for `flows` flows.
    #[must_use]
    pub fn new(flows: u64) -> Self {
        let slots = (flows.max(8) * 2).next_power_of_two() as usize;
        Self { table: vec![FREE; slots], flows: 0, keys: [(0, 0); BATCH], reached: Vec::new() }
    }

    /// Processes packets in place, [`BATCH`] at a time.
    pub fn batch(&mut self, packets: &mut [Packet]) {
        self.reached.clear();
        for packets in packets.chunks_mut(BATCH) {
            self.touch(packets);
            for (at, packet) in packets.iter_mut().enumerate() {
                let known = self.one(at, packet);
                self.reached.push(u16::from(known));
            }
        }
    }

    /// Parses all packets. Then reads the table entry that each packet needs, in a loop that is so
    /// small that the loads overlap.
    fn touch(&mut self, packets: &[Packet]) {
        let mut slots = [0; BATCH];
        for ((packet, place), slot) in packets.iter().zip(&mut self.keys).zip(&mut slots) {
            *place = (0, 0);
            if let Some(parsed) = parse(packet.data()) {
                *slot = slot_of(parsed.key, self.table.len());
                *place = (parsed.key, parsed.sum << 40 | *slot);
            }
        }
        let touched = slots.iter().fold(0, |touched, slot| touched ^ self.table[*slot].packets);
        std::hint::black_box(touched);
    }

    fn one(&mut self, at: usize, packet: &mut Packet) -> bool {
        let (key, place) = self.keys[at];
        let (sum, mut slot) = (place >> 40, place & ((1 << 40) - 1));
        if sum == 0 {
            return false;
        }
        while self.table[slot].used && self.table[slot].key != key {
            slot = (slot + 1) % self.table.len();
        }
        if !self.table[slot].used {
            // Half of the table stays free, so that searches are short and end.
            if self.flows * 2 >= self.table.len() {
                return false;
            }
            self.flows += 1;
            self.table[slot] = Entry::translating(key, self.flows as u32);
        }
        let entry = &mut self.table[slot];
        entry.packets = entry.packets.wrapping_add(1);
        entry.apply(packet.data_mut(), sum);
        true
    }
}

/// The slot at which the search for a key begins.
#[inline]
fn slot_of(key: u128, slots: usize) -> usize {
    const SECRET: u64 = 0x9e6c_63d0_876a_3f35;
    let halves = (key as u64 ^ SECRET, (key >> 64) as u64 ^ 0xa076_1d64_78bd_642f);
    let folded = u128::from(halves.0) * u128::from(halves.1);
    let mixed = (folded as u64 ^ (folded >> 64) as u64).wrapping_mul(SECRET);
    (mixed >> 20) as usize & (slots - 1)
}

impl Entry {
    /// An entry that translates its flow to another source address and port.
    fn translating(key: u128, number: u32) -> Self {
        let old: [u8; 16] = key.to_le_bytes();
        let address = 0xcb00_7101_u32.to_be_bytes();
        let port = (1024 + (number % 60_000) as u16).to_be_bytes();
        let (mut value, mut mask) = ([0; 16], [0; 16]);
        // The 16 bytes are TTL, protocol and checksum (4 together), source (4), destination (4),
        // ports (4).
        value[4..8].copy_from_slice(&address);
        value[12..14].copy_from_slice(&port);
        mask[4..8].fill(0xff);
        mask[12..14].fill(0xff);
        let words = |bytes: &[u8; 4]| {
            u32::from(u16::from_be_bytes([bytes[0], bytes[1]]))
                + u32::from(u16::from_be_bytes([bytes[2], bytes[3]]))
        };
        let was = !folded(words(&[old[0], old[1], old[2], old[3]]));
        let ip_delta = folded(words(&address) + u32::from(was));
        let port_was = !u16::from_be_bytes([old[8], old[9]]);
        let port_is = u16::from_be_bytes(port);
        let l4_delta = folded(u32::from(ip_delta) + u32::from(port_was) + u32::from(port_is));
        let (value, mask) = (u128::from_le_bytes(value), u128::from_le_bytes(mask));
        Self { key, value, mask, ip_delta, l4_delta, used: true, packets: 0 }
    }

    #[inline]
    fn apply(&self, bytes: &mut [u8], sum: usize) {
        if let Some(header) = bytes.get_mut(REWRITE..).and_then(<[u8]>::first_chunk_mut::<16>) {
            let old = u128::from_le_bytes(*header);
            *header = (old & !self.mask | self.value).to_le_bytes();
        }
        fix(bytes, IP + 10, self.ip_delta);
        fix(bytes, sum, self.l4_delta);
    }
}

/// Updates a checksum by the difference of its data (RFC 1624).
#[inline]
fn fix(bytes: &mut [u8], at: usize, delta: u16) {
    if let Some(field) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<2>) {
        let sum = u32::from(!u16::from_be_bytes(*field)) + u32::from(delta);
        *field = (!folded(sum)).to_be_bytes();
    }
}

/// Folds a ones' complement sum of a few words into 16 bits.
#[inline]
fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Headers;
    use braid_packet::{Link, checksum};

    fn packet(proto: u8, sport: u16) -> Packet {
        let headers = Headers {
            src: 0x0a00_0001,
            dst: 0xc612_0102,
            proto,
            sport,
            dport: 443,
            flags: 0x10,
            numbers: (1, 1),
            icmp: (8, 0),
        };
        Packet::new(Link::Ethernet, 0, headers.frame(60, &[]))
    }

    #[test]
    fn translated_packets_have_right_checksums_and_only_their_source_changed() {
        let mut flow = Flow::new(200);
        for sport in 1..=100 {
            for proto in [6, 17] {
                let before = packet(proto, sport);
                let mut after = [before.clone()];
                flow.batch(&mut after);
                assert_eq!(flow.reached, [1]);
                let layout = after[0].parse();
                assert!(checksum::verify(&after[0], &layout).all_right(), "{proto} {sport}");
                let (old, new) = (before.data(), after[0].data());
                assert_eq!(new[26..30], [0xcb, 0, 0x71, 1]);
                assert_eq!((&new[..24], &new[30..34]), (&old[..24], &old[30..34]));
                assert_eq!(new[36..38], old[36..38]);
            }
        }
    }

    #[test]
    fn flow_keeps_its_translation_and_others_have_another() {
        let mut flow = Flow::new(8);
        let mut packets = [packet(17, 1), packet(17, 2), packet(17, 1)];
        flow.batch(&mut packets);
        assert_eq!(packets[0], packets[2]);
        assert_ne!(packets[0].data()[34..36], packets[1].data()[34..36]);
    }

    #[test]
    fn full_table_and_what_is_no_flow_are_not_forwarded() {
        let mut flow = Flow::new(8);
        let mut packets: Vec<Packet> = (1..=9).map(|sport| packet(17, sport)).collect();
        packets.push(packet(1, 1));
        flow.batch(&mut packets);
        assert_eq!(flow.reached, [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
        let mut touch = Touch::default();
        touch.batch(&mut [packet(6, 1), packet(1, 1), Packet::new(Link::Ethernet, 0, vec![0; 5])]);
        assert_eq!(touch.reached, [1, 0, 0]);
    }
}
