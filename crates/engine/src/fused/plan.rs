//! What a flow is, for a program: the bits of its packets that it looks at and that stay the same.

use super::guard::{Number, WIRE};
use braid_ir::model::Op;
use braid_ir::residual::{Residual, What};
use braid_packet::blend::{BYTES, IP, L4, Window, words};
use braid_packet::{Base, Field, Header, Layout, Spot};

/// The key of a program's flows.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Bits of a packet's first bytes that belong to the key.
    pub(super) mask: Window,
}

/// Bits of a packet's first bytes: of a big-endian number of `len` bytes at `at`, `width` bits from
/// `shift` up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bits {
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) shift: u32,
    pub(super) width: u32,
}

impl Plan {
    /// The key of a program's flows, where they belong to several workers if so; `None` if its packets are of a
    /// kind that has no records.
    pub(super) fn of(residual: &Residual, many_workers: bool) -> Option<Self> {
        if residual.shape.has(Header::Ip4) != Some(true) {
            return None;
        }
        let mut mask = [0; BYTES];
        // What the packet is: EtherType, version and length of the header, fragment, protocol.
        mask[IP - 2..=IP].fill(0xff);
        (mask[IP + 6], mask[IP + 7], mask[IP + 9]) = (0x3f, 0xff, 0xff);
        for step in residual.blocks.iter().flat_map(|block| &block.steps) {
            let fields = match &step.what {
                What::Op(Op::Load { field, .. }) => vec![*field],
                // What a checksum changes by hangs on what was there.
                What::Write(fields) => {
                    fields.iter().map(|(field, _)| *field).filter(in_sum).collect()
                }
                _ => Vec::new(),
            };
            for field in fields.into_iter().filter(|field| is_key(*field)) {
                if let Some(bits) = bits(residual, field) {
                    bits.set(&mut mask, u128::MAX);
                }
            }
        }
        if many_workers {
            // By these a packet's worker is chosen.
            let fields = [Field::InetSrc, Field::InetDst, Field::InetSport, Field::InetDport];
            for field in fields {
                bits(residual, field)?.set(&mut mask, u128::MAX);
            }
        }
        Some(Self { mask: words(&mask) })
    }

    /// Whether a packet with this layout may have a record: its headers are where they are without tags and
    /// options.
    #[inline(always)]
    pub(super) fn takes(layout: &Layout) -> bool {
        layout.offsets() == (IP, L4) && layout.malformed_reason().is_none()
    }
}

/// Whether a checksum covers a field.
pub(super) fn in_sum(field: &Field) -> bool {
    field.info().header != Header::Eth
}

/// Fields that are the same in all packets of a flow.
pub(super) fn is_key(field: Field) -> bool {
    use Field::*;
    matches!(
        field,
        EthDst
            | EthSrc
            | EthType
            | IpSrc
            | IpDst
            | IpProto
            | InetSrc
            | InetDst
            | InetProto
            | L4Sport
            | L4Dport
            | TcpSport
            | TcpDport
            | UdpSport
            | UdpDport
            | InetSport
            | InetDport
            | IcmpType
            | IcmpCode
            | IcmpId
    )
}

/// Where a field is, if it is in the first bytes of a program's packets.
pub(super) fn bits(residual: &Residual, field: Field) -> Option<Bits> {
    let whole = |at, len| Bits { at, len, shift: 0, width: 8 * len as u32 };
    match field {
        Field::EthType => return Some(whole(IP - 2, 2)),
        Field::IpProto | Field::InetProto => return Some(whole(IP + 9, 1)),
        _ => {}
    }
    let spot = Spot::of(field, &|header| residual.shape.has(header))?;
    let base = match spot.base {
        Base::Packet => 0,
        Base::Ip => IP,
        Base::L4 => L4,
        _ => return None,
    };
    let (at, len) = (base + usize::from(spot.offset), usize::from(spot.len));
    let bits = Bits { at, len, shift: spot.shift.into(), width: spot.width.into() };
    (at + len <= BYTES).then_some(bits)
}

impl Bits {
    /// Assigns them.
    pub(super) fn set(self, bytes: &mut [u8; BYTES], value: u128) {
        let mask = if self.width == 128 { u128::MAX } else { (1 << self.width) - 1 };
        let range = self.at..self.at + self.len;
        let old = bytes[range.clone()].iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
        let new = old & !(mask << self.shift) | (value & mask) << self.shift;
        bytes[range].copy_from_slice(&new.to_be_bytes()[16 - self.len..]);
    }

    /// Their value.
    pub(super) fn get(self, bytes: &[u8; BYTES]) -> u128 {
        let mask = if self.width == 128 { u128::MAX } else { (1 << self.width) - 1 };
        let range = self.at..self.at + self.len;
        let all = bytes[range].iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
        all >> self.shift & mask
    }

    /// The same as a number that guards can look at.
    pub(super) fn number(self) -> Option<Number> {
        let mask = ((1_u64 << self.width.min(32)) - 1) << self.shift;
        let (at, len) = (u8::try_from(self.at).ok()?, u8::try_from(self.len).ok()?);
        matches!(len, 1 | 2 | 4).then_some(Number { at, len, mask: u32::try_from(mask).ok()? })
    }
}

/// The number of bytes on the wire.
pub(super) const LENGTH: Number = Number { at: WIRE, len: 4, mask: u32::MAX };
