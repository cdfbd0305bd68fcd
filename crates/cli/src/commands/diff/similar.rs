//! How similar two packets are.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use braid_packet::{Field, Packet};

/// The fields that count, with their weights.
const FIELDS: [(Field, u32); 19] = [
    (Field::EthSrc, 1),
    (Field::EthDst, 1),
    (Field::EthType, 1),
    (Field::InetVersion, 1),
    (Field::InetSrc, 2),
    (Field::InetDst, 2),
    (Field::InetProto, 1),
    (Field::InetTtl, 1),
    (Field::IpId, 2),
    (Field::IpFrag, 1),
    (Field::L4Sport, 2),
    (Field::L4Dport, 2),
    (Field::TcpSeq, 3),
    (Field::TcpAck, 1),
    (Field::TcpFlags, 1),
    (Field::IcmpType, 1),
    (Field::IcmpRest, 2),
    (Field::Icmp6Type, 1),
    (Field::Icmp6Rest, 2),
];

/// The weights of the length and of the payload.
const LENGTH: u32 = 1;
const PAYLOAD: u32 = 4;

/// The similarity of equal packets.
pub const EQUAL: u32 = 1000;
/// The least similarity of packets that are taken for one packet that was changed.
pub const LEAST: u32 = 500;

/// What of a packet counts.
pub struct Features {
    /// The values of the fields, folded to fit. 0 stands for an absent field.
    values: [u64; FIELDS.len()],
    len: u32,
    /// The hash of the payload, if there is one.
    payload: Option<u64>,
}

impl Features {
    pub fn of(packet: &Packet) -> Self {
        let layout = packet.parse();
        let payload = packet.payload(&layout);
        let mut hash = DefaultHasher::new();
        payload.hash(&mut hash);
        Self {
            values: FIELDS.map(|(field, _)| packet.get(&layout, field).map_or(0, folded)),
            len: packet.wire_len,
            payload: (!payload.is_empty()).then(|| hash.finish()),
        }
    }

    /// The similarity of two packets, from 0 to [`EQUAL`].
    pub fn similarity(&self, other: &Self) -> u32 {
        let (mut same, mut all) = (0, 0);
        let mut count = |weight: u32, is_there: bool, is_same: bool| {
            all += if is_there { weight } else { 0 };
            same += if is_there && is_same { weight } else { 0 };
        };
        for ((_, weight), (a, b)) in FIELDS.iter().zip(self.values.iter().zip(&other.values)) {
            count(*weight, (a | b) != 0, a == b);
        }
        count(LENGTH, true, self.len == other.len);
        let has_payload = self.payload.is_some() || other.payload.is_some();
        count(PAYLOAD, has_payload, self.payload == other.payload);
        same * EQUAL / all.max(1)
    }
}

/// A value in 64 bits, never 0. Only IPv6 addresses lose bits.
fn folded(value: u128) -> u64 {
    let [low, high] = [value, value >> 64].map(|half| (half & u128::from(u64::MAX)) as u64);
    (low ^ high.rotate_left(31)) | 1 << 63
}
