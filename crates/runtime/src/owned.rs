//! Addresses that functions of a chain own: a NAT's outside address, a load balancer's service
//! address, a router's own addresses. No host behind an interface has them, but packets to them are
//! for the chain. Interfaces with addresses of their own answer for them.
//!
//! A function owns each address of its scalar and pool parameters. If it compares the destination
//! under a mask with a parameter, it also owns every address that matches.

use braid_ir::chain::Node;
use braid_ir::model::{BinOp, CmpOp, FIRST_IP6, Kind, Op, ParamTy, Ty, ValueId, Word};
use braid_ir::value::ParamValue;
use braid_packet::Field;
use std::collections::HashMap;
use std::net::IpAddr;

/// Addresses of one IP version, as values under masks and as intervals.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Addresses {
    masked: Vec<(Word, Word)>,
    intervals: Vec<(Word, Word)>,
}

/// The addresses that functions of a chain own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Owned {
    ip4: Addresses,
    ip6: Addresses,
}

impl Addresses {
    fn contains(&self, address: Word) -> bool {
        self.masked.iter().any(|(value, mask)| address & mask == *value)
            || self.intervals.iter().any(|(low, high)| (*low..=*high).contains(&address))
    }

    /// The members of the intervals.
    fn members(&self) -> impl Iterator<Item = Word> {
        self.intervals.iter().flat_map(|(low, high)| *low..=*high)
    }
}

impl Owned {
    /// The addresses that these functions own.
    pub(crate) fn of(nodes: &[Node]) -> Self {
        let mut owned = Self::default();
        for node in nodes {
            owned.add_params(node);
            owned.add_masked(node);
        }
        owned
    }

    /// Whether a function owns this IPv4 address.
    pub(crate) fn has_ip4(&self, address: Word) -> bool {
        self.ip4.contains(address)
    }

    /// Whether a function owns this IPv6 address.
    pub(crate) fn has_ip6(&self, address: Word) -> bool {
        self.ip6.contains(address)
    }

    /// Whether a function owns this address.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.has_ip4(address.to_bits().into()),
            IpAddr::V6(address) => self.has_ip6(address.to_bits()),
        }
    }

    /// The first addresses, at most this many for each IP version.
    pub(crate) fn first(&self, most: usize) -> Vec<IpAddr> {
        let ip4 = self.ip4.members().filter_map(|a| u32::try_from(a).ok());
        let ip4 = ip4.map(|address| IpAddr::V4(address.into())).take(most);
        ip4.chain(self.ip6.members().map(|a| IpAddr::V6(a.into())).take(most)).collect()
    }

    fn of_kind(&mut self, kind: Kind) -> Option<&mut Addresses> {
        match kind {
            Kind::Ip4 => Some(&mut self.ip4),
            Kind::Ip6 | Kind::Addr => Some(&mut self.ip6),
            _ => None,
        }
    }

    fn add_params(&mut self, node: &Node) {
        for (decl, value) in node.model.params.iter().zip(&node.params) {
            let (ParamTy::Scalar(Ty { kind, .. }) | ParamTy::Pool(Ty { kind, .. }, _)) = decl.ty
            else {
                continue;
            };
            let intervals = match value {
                // The unspecified address means "none".
                ParamValue::Scalar(0) => continue,
                ParamValue::Scalar(address) => &[(*address, *address)],
                ParamValue::Pool(members) => members.intervals(),
                _ => continue,
            };
            for (low, high) in intervals {
                // An interval of the kind `Addr` has addresses of one version.
                let of = if kind == Kind::Addr && *low < FIRST_IP6 { Kind::Ip4 } else { kind };
                if let Some(addresses) = self.of_kind(of) {
                    addresses.intervals.push((*low, *high));
                }
            }
        }
    }

    /// Adds the addresses that the function compares with: `ip.dst & mask == address`, in either
    /// order.
    fn add_masked(&mut self, node: &Node) {
        let operations = || node.model.packet.blocks.iter().flat_map(|block| &block.ops);
        let scalar = |op: &Op| match op {
            Op::Const { out, value } => Some((*out, *value)),
            Op::Param { out, param } => match node.params.get(param.index()) {
                Some(ParamValue::Scalar(value)) => Some((*out, *value)),
                _ => None,
            },
            _ => None,
        };
        let scalars: HashMap<ValueId, Word> = operations().filter_map(scalar).collect();
        let destination = |op: &Op| match op {
            Op::Load { out, field } | Op::LoadEntry { out, field } => {
                kind(*field).map(|k| (*out, k))
            }
            _ => None,
        };
        let destinations: HashMap<ValueId, Kind> = operations().filter_map(destination).collect();
        let one_each = |a: &ValueId, b: &ValueId| {
            let pair = |a, b| Some((*destinations.get(a)?, *scalars.get(b)?));
            pair(a, b).or_else(|| pair(b, a))
        };
        let masked = |op: &Op| match op {
            Op::Bin { out, op: BinOp::And, a, b } => Some((*out, one_each(a, b)?)),
            _ => None,
        };
        let masked: HashMap<ValueId, (Kind, Word)> = operations().filter_map(masked).collect();
        for op in operations() {
            let Op::Cmp { op: CmpOp::Eq, a, b, .. } = op else { continue };
            let pair = |a, b| Some((*masked.get(a)?, *scalars.get(b)?));
            if let Some(((kind, mask), value)) = pair(a, b).or_else(|| pair(b, a))
                && mask != 0
                && let Some(addresses) = self.of_kind(kind)
            {
                addresses.masked.push((value, mask));
            }
        }
    }
}

/// The kind of the destination address in this field; `None` for other fields.
fn kind(field: Field) -> Option<Kind> {
    match field {
        Field::IpDst | Field::ArpTpa => Some(Kind::Ip4),
        Field::Ip6Dst => Some(Kind::Ip6),
        _ => None,
    }
}
