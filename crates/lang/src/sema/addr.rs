//! Addresses of either IP version, the type `addr`: IPv4 addresses in the low 32 bits, and IPv6
//! addresses. An IPv6 address of `::/96` counts as the IPv4 address in its low bits. On the wire,
//! only the unspecified address `::` may be one of them (RFC 4291, sections 2.5.2, 2.5.3, 2.5.5.1).

use braid_ir::model::{BinOp, CmpOp, FIRST_IP6, Kind, Op, ParamId, SetRef, Ty, ValueId, ip6_range};

use super::build::Builder;
use super::lower::Lower;
use super::types::{ADDR, BOOL, IP4, IP6, U32};
use crate::ast::Span;
use crate::diag::{Diagnostic, codes};

/// Whether a value of the type `found` may stand where the type `wanted` is needed: an address of
/// one IP version is an address of either one.
#[must_use]
pub fn widens(found: Ty, wanted: Ty) -> bool {
    wanted == ADDR && (found == IP4 || found == IP6)
}

/// The values of an inclusive range of addresses of one version. The error is for IPv6 addresses
/// that count as IPv4.
pub fn range(version: Ty, low: u128, high: u128, span: Span) -> Result<(u128, u128), Diagnostic> {
    if version != IP6 {
        return Ok((low, high));
    }
    ip6_range(low, high).ok_or_else(|| {
        let message = "an IPv6 address of ::/96 counts as an IPv4 address in an `addr`";
        let wrong = Diagnostic::new(codes::EITHER_FAMILY, message, span, "which version?");
        wrong.help("write the IPv4 address, or test `ip6.src` or `ip6.dst`")
    })
}

/// The message for a range of this type from an IPv4 to an IPv6 address.
pub fn mixed(ty: Ty, low: u128, high: u128, span: Span) -> Option<Diagnostic> {
    let is_mixed = ty == ADDR && low < FIRST_IP6 && FIRST_IP6 <= high;
    let wrong = || {
        let message = "the range begins at an IPv4 address and ends at an IPv6 address";
        Diagnostic::new(codes::EITHER_FAMILY, message, span, "both versions")
            .help("write two ranges, or prefixes such as `0.0.0.0/0` and `::/0`")
    };
    is_mixed.then(wrong)
}

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
pub fn route(lower: &mut Lower<'_>, address: ValueId, param: ParamId) -> (ValueId, ValueId) {
    let b = &mut lower.b;
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
