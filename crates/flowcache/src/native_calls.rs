//! Native functions in a specialisation (SpeedyBox §IV, §V). The recording of a native function for
//! a flow becomes a part of the flow's record. Its header actions become part of the rewrite. When
//! the recording changes, the record ends.

use crate::absences::kept_elsewhere;
use crate::bindings::Binding;
use crate::effects::Splice;
use crate::findings::Findings;
use crate::guard::Guard;
use crate::headers::Headers;
use crate::host::Functions;
use crate::key::{LENGTH, bits};
use crate::obstacle::NoRecording;
use crate::path::{Native, Subpath};
use braid_ir::model::EventId;
use braid_ir::residual::{HeaderMask, Point};
use braid_ir::visit::HEAVY;
use braid_native::{HeaderAction, Instance, Payload, Profile, Recorded, Verdict};
use braid_packet::{Field, MOST};

/// Looks up a native function's recording for the packet's flow and applies it. Returns the verdict
/// on the packet. The error is the reason why a record is impossible.
#[expect(clippy::indexing_slicing, reason = "points name functions of the chain")]
pub(crate) fn ask(
    (findings, headers): (&mut Findings, &mut Headers<'_>),
    functions: &impl Functions,
    (point, worker, now): (Point, u16, u64),
) -> Result<Verdict, NoRecording> {
    let Point { node, backward, .. } = point;
    if findings.path.natives().any(|one| one.node == node) {
        return Err(NoRecording::Twice);
    }
    let model = &functions.chain().nodes[usize::from(node)].model;
    let mut events = (0..).map(EventId).take(model.events.len());
    if events.any(|event| functions.is_taken(node, event)) {
        return Err(NoRecording::Taken);
    }
    findings.looks_up(HEAVY);
    let shard = functions.shard(node, worker);
    let (flow, record) = recorded(headers, functions.native(node, shard), now)?;
    if !record.is_for_side(backward) {
        return Err(NoRecording::OtherSide);
    }
    // State functions run before the packet gets the tags.
    let has_tags = !(model.tags.is_empty() || findings.path.effects.tags.is_empty());
    if has_tags && !record.state.is_empty() {
        return Err(NoRecording::Tags);
    }
    let payload = record.payload();
    if payload == Payload::Write {
        return Err(NoRecording::WritesPayload);
    }
    if payload != Payload::Ignore && headers.layout.payload_truncated() {
        return Err(NoRecording::Cut);
    }
    let before = if record.state.is_empty() { None } else { Some(headers.change()) };
    let before = match before {
        Some(None) => return Err(NoRecording::NoChecksums),
        Some(Some(change)) => (!change.rewrite.is_nothing()).then(|| Box::new(change)),
        None => None,
    };
    let native = model.native.as_ref().ok_or(NoRecording::Absent)?;
    let verdict = apply(findings, headers, &native.may(), &record)?;
    let (table, key) = kept_elsewhere(node, shard, flow);
    findings.absent.push(table, &key);
    let writes = record.headers.iter().filter_map(|action| match action {
        HeaderAction::Modify(field, _) => Some(*field),
        _ => None,
    });
    findings.path.subpaths.push(Subpath::Native(Native {
        node,
        backward,
        before: before.as_ref().map(|change| Box::new(change.rewrite)),
        state: record.state.iter().map(|function| function.payload).collect(),
        guards: record.guards.len(),
        writes: writes.collect(),
        drops: if let Verdict::Drop(reason) = verdict { Some(reason) } else { None },
        longer: findings.path.effects.longer(),
    }));
    findings.bindings.push(Binding {
        node,
        shard,
        backward,
        flow,
        has_guards: !record.guards.is_empty(),
        functions: record.state.into(),
        reads_payload: payload != Payload::Ignore,
        before,
    });
    Ok(verdict)
}

/// The recording of an instance for the packet's flow, and the number by which the function knows
/// the flow.
fn recorded(
    headers: &Headers<'_>,
    function: Option<&Instance>,
    now: u64,
) -> Result<(u64, Recorded), NoRecording> {
    let function = function.ok_or(NoRecording::Absent)?;
    if function.is_checked() {
        return Err(NoRecording::Checked);
    }
    if function.is_due(now) {
        return Err(NoRecording::Due);
    }
    if headers.packet.get(headers.layout, Field::PktFragment) != Some(0) {
        return Err(NoRecording::Fragment);
    }
    let key = headers.packet.flow_key(headers.layout).ok_or(NoRecording::NoFlow)?;
    let recorded = function.recorded(&key);
    let (flow, record) = recorded.ok_or(NoRecording::Nothing)?;
    Ok((flow, record.clone()))
}

/// Applies the header actions of a recording.
fn apply(
    findings: &mut Findings,
    headers: &mut Headers<'_>,
    may: &Profile,
    record: &Recorded,
) -> Result<Verdict, NoRecording> {
    const NEVER: NoRecording = NoRecording::Undeclared;
    let all = HeaderMask { care: u128::MAX, present: headers.layout.presence() };
    let mut verdict = Verdict::Forward;
    for action in &record.headers {
        match action {
            HeaderAction::Forward => {}
            HeaderAction::Drop(_) if !may.drops => return Err(NEVER),
            HeaderAction::Drop(_) if !findings.path.effects.splices.is_empty() => {
                return Err(NoRecording::DropsChanged);
            }
            HeaderAction::Drop(reason) => return Ok(Verdict::Drop(*reason)),
            HeaderAction::Output(_) if !may.redirects => return Err(NEVER),
            HeaderAction::Output(port) => verdict = Verdict::Port(*port),
            HeaderAction::Tag(name, value) => {
                findings.path.effects.set_tag(name.clone(), *value);
            }
            HeaderAction::Modify(field, _) if !may.may_write(*field) => return Err(NEVER),
            HeaderAction::Modify(..) if !findings.path.effects.splices.is_empty() => {
                return Err(NoRecording::ChangesMoved);
            }
            HeaderAction::Modify(field, value) => {
                let bits = bits(all, headers.outline, *field);
                let assigned = bits
                    .and_then(|bits| headers.assign(&mut findings.guards, *field, bits, *value));
                assigned.ok_or(NoRecording::NotKey)?;
            }
            HeaderAction::Encap { at, bytes } if may.adds => {
                splice(findings, headers, Splice::In { at: *at, bytes: bytes.as_slice().into() })?;
            }
            HeaderAction::Decap { at, len } if may.removes => {
                splice(findings, headers, Splice::Out { at: *at, len: *len })?;
            }
            HeaderAction::Encap { .. } | HeaderAction::Decap { .. } => return Err(NEVER),
        }
    }
    Ok(verdict)
}

/// Adds inserted or removed bytes. They lie within headers that all packets of the flow have. A
/// guard makes sure that each packet has room for them.
fn splice(
    findings: &mut Findings,
    headers: &Headers<'_>,
    splice: Splice,
) -> Result<(), NoRecording> {
    let splices = &findings.path.effects.splices;
    let sum = |put_in: usize, one: &Splice| put_in + one.change().2;
    let (at, less, more) = splice.change();
    let put_in = splices.iter().fold(more, sum);
    let longer = isize::try_from(findings.path.effects.longer()).unwrap_or(isize::MAX);
    let there = headers.outline.l4().saturating_add_signed(longer);
    if at.checked_add(less).is_none_or(|end| end > there) {
        return Err(NoRecording::BehindHeaders);
    }
    let most = MOST.saturating_sub(u32::try_from(put_in).unwrap_or(u32::MAX));
    findings.guards.add(Guard { number: LENGTH, least: 0, most });
    findings.path.effects.splices.push(splice);
    Ok(())
}
