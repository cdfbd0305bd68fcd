//! Outer headers that a record adds. They are the last change of the packet on a path: nothing is
//! known of the packet behind them.

use crate::findings::Findings;
use crate::guard::Guard;
use crate::headers::Headers;
use crate::key::LENGTH;
use braid_ir::model::Op;
use braid_ir::values::Values;
use braid_packet::Header;
use braid_packet::tunnel::Change;

/// Adds outer headers with fixed contents to the path. `None` if some packet of the record could
/// not take them, or if a checksum would cover bytes of the packet. A guard bounds the packets'
/// length.
pub(crate) fn add(
    findings: &mut Findings,
    headers: &mut Headers<'_>,
    values: &mut Values<'_>,
    op: &Op,
) -> Option<()> {
    // Each encrypted packet has a number of its own.
    let Op::Encapsulate { ok, inner, parts, len, words, seal: None } = op else { return None };
    if parts.contains(&Header::Ip6) && parts.contains(&Header::Udp) {
        return None;
    }
    for word in words {
        findings.fix(values, *word)?;
        findings.pin(values, *word);
    }
    let words = words.iter().map(|word| values.get(*word)).collect();
    let change = Change::Push((*inner, parts.clone()), (*len as usize, words), None);
    // The packets of a record have the same headers in front, so this succeeds for all or for none,
    // apart from their length.
    let mut trial = headers.origin.clone();
    if change.apply(&mut trial, headers.layout) != Ok(true) {
        return None;
    }
    let before = findings.path.effects.longer() + i64::from(headers.vlans.longer().max(0));
    let more = u32::try_from(before).ok()?.checked_add(*len)?;
    let most = u32::from(u16::MAX).checked_sub(more)?;
    findings.guards.add(Guard { number: LENGTH, least: 0, most });
    findings.path.effects.outer.push(change);
    headers.seal();
    findings.know(values, *ok, 1);
    Some(())
}
