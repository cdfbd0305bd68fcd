//! Lowers what depends on the IP version of an `addr`: sets of one version, and routes.

use braid_ir::model::{BinOp, CmpOp, FIRST_IP6, Kind, Op, ParamId, SetRef, Ty, ValueId};

use super::build::Builder;
use super::types::{ADDR, BOOL, IP4, IP6, U32};

/// Whether an address is of IPv4.
fn is_ip4(b: &mut Builder, address: ValueId) -> ValueId {
    let first6 = b.constant(ADDR, FIRST_IP6);
    b.emit(BOOL, |out| Op::Cmp { out, op: CmpOp::Lt, a: address, b: first6 })
}

/// Tests whether an address is in a set of addresses of one version. `None` for sets of other
/// types.
pub fn in_set_of(b: &mut Builder, address: ValueId, members: Ty, set: &SetRef) -> Option<ValueId> {
    let mut version = is_ip4(b, address);
    let a = match members.kind {
        Kind::Ip4 => b.clamp(address, ADDR, IP4),
        Kind::Ip6 => {
            version = b.complement(version, BOOL);
            address
        }
        _ => return None,
    };
    let is_member = b.emit(BOOL, |out| Op::InSet { out, a, set: set.clone() });
    Some(b.bin(BOOL, BinOp::And, version, is_member))
}

/// Looks an address up among the routes of its version: whether there is a route, and its next hop.
pub fn route(b: &mut Builder, address: ValueId, param: ParamId) -> (ValueId, ValueId) {
    let version4 = is_ip4(b, address);
    let (four, six) = (b.block(), b.block());
    let (join, results) = b.block_with(&[BOOL, U32]);
    b.branch(version4, four, six);
    for (block, ty) in [(four, IP4), (six, IP6)] {
        b.start(block);
        let addr = b.clamp(address, ADDR, ty);
        let (found, hop) = (b.value(BOOL), b.value(U32));
        b.op(Op::Route { found, hop, param, addr });
        b.jump(join, vec![found, hop]);
    }
    b.start(join);
    (results[0], results[1])
}
