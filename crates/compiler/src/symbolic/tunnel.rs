//! Outer headers that functions add, remove and translate. Each change is made at once. Then only
//! the parser knows the packet's headers, so the next function gets a program of its own for them.

use super::build::Path;
use super::draft::Draft;
use super::headers::EVERY;
use super::mutants::SynthMutant;
use super::visit::Visit;
use super::write::freshen;
use braid_ir::model::{Inner, Op, Ty};
use braid_ir::residual::{Block, End, Exit, Fate, Step, What};
use braid_packet::{FIELDS, Field, Header};

/// Executes an operation on outer headers.
pub(super) fn tunnel_op(draft: &mut Draft, visit: &Visit<'_>, path: &mut Path, op: &Op) {
    let (inner, ok) = match op {
        Op::Encapsulate { inner, ok, .. } | Op::Decapsulate { inner, ok, .. } => (*inner, *ok),
        Op::Translate { ok, .. } => (Inner::Packet, *ok),
        _ => return,
    };
    freshen(draft, path);
    // Whether the length changes is only known when the program runs.
    draft.count_now(path);
    let mut op = op.clone();
    op.visit_uses_mut(&mut |value| *value = path.value(*value));
    let outs = draft.act(visit, path, &[Ty::uint(1)], true, |outs| {
        op.visit_outs_mut(&mut |out| *out = outs[0]);
        What::Op(op)
    });
    draft.bind(path, ok, outs[0]);
    // The packet is parsed when the program first looks at it again.
    (path.state.moved, path.state.stale) = (true, true);
    path.state.ends = true;
    let stays = match inner {
        Inner::Frame => Header::Pkt.bit(),
        Inner::Packet => Header::Pkt.bit() | Header::bits(Header::LINK),
    };
    if !draft.has_mutant(SynthMutant::TunnelMissed) {
        path.state.headers.forget(EVERY & !stays);
    }
    let link = stays & !Header::Pkt.bit();
    let moved = |field: &Field| field.info().header.bit() & link == 0 || *field == Field::EthType;
    let fields: Vec<Field> = FIELDS.iter().map(|info| info.field).filter(moved).collect();
    path.state.written.extend(&fields);
    if !draft.has_mutant(SynthMutant::TunnelFieldsKept) {
        path.state.reload(fields);
    }
}

/// Whether packets of a program go on to other programs in a tunnel. A flow record may follow them
/// through the tunnel, so any of their headers matter.
pub(super) fn goes_on_in_tunnel(blocks: &[Block]) -> bool {
    let is_push = |step: &Step| matches!(step.what, What::Op(Op::Encapsulate { .. }));
    let goes_on = |block: &Block| matches!(&block.end, End::Exit(Exit { fate: Fate::Go(_), .. }));
    blocks.iter().any(|block| block.steps.iter().any(is_push)) && blocks.iter().any(goes_on)
}
