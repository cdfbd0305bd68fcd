//! Addresses of either IP version, the type `addr`: IPv4 addresses in the low 32 bits, and IPv6
//! addresses. An IPv6 address of `::/96` counts as the IPv4 address in its low bits. On the wire,
//! only the unspecified address `::` may be one of them (RFC 4291, sections 2.5.2, 2.5.3, 2.5.5.1).

use braid_ir::model::{FIRST_IP6, Ty, ip6_range};

use super::types::{ADDR, IP4, IP6};
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
