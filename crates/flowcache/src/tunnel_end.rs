//! The end of a tunnel on the path of a specialisation. From there on, the specialisation is about
//! the packet inside.

use crate::effects::SideEffects;
use crate::findings::Findings;
use crate::headers::Headers;
use crate::mutants::RecordMutant;
use crate::peel::{Front, Inside};
use crate::value_dependency::ValueDependency;
use braid_ir::residual::HeaderMask;
use braid_packet::Header;
use braid_packet::rewrite::{Outline, Retag};

/// Whether a path that has come to the end of a tunnel may go on with the packets inside. All flows
/// in the tunnel share what functions have changed in front of it, and only some records may change
/// the same entry.
pub(crate) fn may_leave(findings: &Findings, headers: &Headers<'_>) -> bool {
    let path = &findings.path;
    // What is assigned to a link header that stays would stay. A smaller TTL goes with its header.
    let mut assigned = headers.mask.iter().chain(&headers.written);
    let writes = assigned.any(|bits| *bits != 0) || !headers.added.is_empty();
    let has_effects = path.effects != SideEffects::default() || headers.vlans != Retag::default();
    let counts = findings.depends_on.iter().any(|(_, how)| !how.updates.is_empty())
        || !findings.counters.compared.is_empty();
    !(writes || has_effects || counts || path.asks() || path.front.is_some())
}

/// Leaves the tunnel: from now on, a specialisation is about the packet inside.
pub(crate) fn leave<'a>(
    findings: &mut Findings,
    headers: &mut Headers<'a>,
    inside: Inside<'a>,
) -> Option<()> {
    let Inside { peel, less, packet, layout, covered } = inside;
    let (path, longer) = (&mut findings.path, i32::try_from(less).ok()?);
    // Records count the bytes of the packets inside.
    let is_forgotten = findings.mutants.has(RecordMutant::OuterUncounted);
    let longer = if is_forgotten { 0 } else { longer };
    path.counter_lists.iter_mut().for_each(|(_, of)| *of += longer);
    let put = findings.put.iter_mut().map(|put| &mut put.dependency);
    for dependency in findings.dependencies.iter_mut().chain(put) {
        // Guards behind this point are about the packet inside.
        if !matches!(dependency, ValueDependency::Fixed | ValueDependency::Time) {
            *dependency = ValueDependency::Packet;
        }
    }
    findings.keys.clear();
    let mut guards = Vec::new();
    if !findings.mutants.has(RecordMutant::OuterUntested) {
        findings.guards.needed(&mut guards);
    }
    findings.guards.0.clear();
    findings.recording.leave(peel, less);
    findings.care = 0;
    let passing = Header::bits(Header::PASSING);
    let shape = HeaderMask { care: !passing, present: layout.presence() & !passing };
    let outline = std::mem::replace(&mut path.outline, Outline::PLAIN);
    path.front =
        Some(Box::new(Front { inner: peel.inner, less, outline, shape, is_narrow: false, guards }));
    *headers = Headers::of(packet, layout, Outline::PLAIN, findings.mutants);
    (headers.shape, headers.covered, headers.stale) = (shape, Some(covered), true);
    Some(())
}

/// Completes the findings about a packet that came in a tunnel. `None` if its record would have to
/// ask something of the packet inside.
pub(crate) fn finish(findings: &mut Findings, headers: &Headers<'_>) -> Option<()> {
    let (asks, rewrite) = (findings.path.asks(), findings.path.rewrite);
    let Some(front) = &mut findings.path.front else {
        // Scripts for such flows take the sums of the packet inside.
        findings.recording.give_up();
        return Some(());
    };
    let is_tested = !findings.mutants.has(RecordMutant::InsideUntested);
    let care = if is_tested { findings.care | headers.asked.get() } else { 0 };
    front.shape = HeaderMask { care, present: headers.layout.presence() & care };
    front.is_narrow = rewrite.is_narrow() && rewrite.keep.starts_with(&[u64::MAX; 2]);
    (!asks).then_some(())
}
