//! TCP options that functions add and remove. Each change is made at once.

use super::build::Path;
use super::cells::Cell;
use super::draft::{Draft, Flow};
use super::mutants::SynthMutant;
use super::visit::Visit;
use super::write::freshen;
use braid_ir::engine::Fault;
use braid_ir::model::{Op, Ty, ValueId};
use braid_ir::residual::What;
use braid_packet::field::LENGTHS;
use braid_packet::{Field, FieldInfo, Header, options};

/// Executes an operation on TCP options.
pub(super) fn option_op(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    op: &Op,
) -> Result<Flow, Header> {
    match op {
        Op::HasRoom { out, option } => {
            freshen(draft, path);
            let option = *option;
            let make = |outs: &[ValueId]| What::Op(Op::HasRoom { out: outs[0], option });
            let outs = draft.act(visit, path, &[Ty::uint(1)], false, make);
            draft.bind(path, *out, outs[0]);
            Ok(Flow::Next)
        }
        Op::PushOption { option, values } => push_option(draft, visit, path, *option, values),
        Op::PopOption { option } => pop_option(draft, visit, path, *option),
        _ => Ok(Flow::Next),
    }
}

/// Adds a TCP option.
fn push_option(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    option: Header,
    values: &[ValueId],
) -> Result<Flow, Header> {
    if !path.state.headers.has(Header::Tcp)? {
        return Ok(draft.fault(visit, path, Fault::Truncated));
    }
    path.state.headers.has(option)?;
    let values: Vec<ValueId> = values.iter().map(|value| path.value(*value)).collect();
    change_option(draft, visit, path, Op::PushOption { option, values: values.clone() });
    path.state.lengthen(options::growth(option).map_or(0, |bytes| bytes as i32));
    if !draft.has_mutant(SynthMutant::OptionMissed) {
        path.state.headers.set(option, true);
    }
    rewritten(path, option.info().fields.iter());
    for (info, value) in option.info().fields.iter().zip(values) {
        path.state.cells.insert(info.field, Cell::Value(value, false));
    }
    let of_packet = LENGTHS.into_iter().filter(|field| *field != Field::PktPayloadLen);
    let changed = of_packet.chain([Field::IpChecksum, Field::TcpHlen]);
    if !draft.has_mutant(SynthMutant::OptionLengthsKept) {
        path.state.reload(changed.clone());
    }
    path.state.written.extend(changed);
    Ok(Flow::Next)
}

/// Overwrites a TCP option with NOPs.
fn pop_option(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    option: Header,
) -> Result<Flow, Header> {
    if !path.state.headers.has(option)? {
        return Ok(draft.fault(visit, path, Fault::Truncated));
    }
    change_option(draft, visit, path, Op::PopOption { option });
    // The packet may have had the option twice.
    match draft.has_mutant(SynthMutant::SecondOptionMissed) {
        true => path.state.headers.set(option, false),
        false => path.state.headers.forget(option.bit()),
    }
    rewritten(path, option.info().fields.iter());
    path.state.stale = true;
    Ok(Flow::Next)
}

/// Adds a TCP option to the packet's bytes or removes one.
fn change_option(draft: &mut Draft, visit: &Visit<'_>, path: &mut Path, op: Op) {
    freshen(draft, path);
    draft.act(visit, path, &[], true, |_| What::Op(op));
    draft.step(path.at, What::Parse);
    path.state.reload([Field::L4Checksum]);
    path.state.written.insert(Field::L4Checksum);
}

/// Forgets the values of fields whose bytes have changed.
pub(super) fn rewritten<'a>(path: &mut Path, fields: impl Iterator<Item = &'a FieldInfo>) {
    let fields: Vec<Field> = fields.map(|info| info.field).collect();
    path.state.written.extend(&fields);
    path.state.reload(fields);
}
