//! Operations on the packet: fields as values, header changes, copies and new packets.

use super::build::Way;
use super::draft::{Draft, Flow};
use super::fields::{load, load_entry, store};
use super::state::Tag;
use super::visit::Visit;
use super::vlan::{pop_vlan, push_vlan};
use super::write::freshen;
use braid_ir::engine::Fault;
use braid_ir::model::{Op, TagId, ValueId};
use braid_ir::residual::{Counter, What};
use braid_packet::Header;

/// Executes an operation on the packet.
pub(super) fn packet_op(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    way: &mut Way,
    op: &Op,
) -> Result<Flow, Header> {
    match op {
        Op::Has { out, header } => {
            let present = way.state.headers.has(*header)?;
            let value = draft.values.truth(present);
            draft.bind(way, *out, value);
        }
        Op::Load { out, field } => match load(draft, visit, way, *field)? {
            Some(value) => draft.bind(way, *out, value),
            None => return Ok(draft.fault(visit, way, Fault::Truncated)),
        },
        Op::LoadEntry { out, field } => match load_entry(draft, visit, way, *field) {
            Some(value) => draft.bind(way, *out, value),
            None => return Ok(draft.fault(visit, way, Fault::Truncated)),
        },
        Op::Store { field, a } => {
            let value = way.value(*a);
            if !store(draft, way, *field, value)? {
                return Ok(draft.fault(visit, way, Fault::Truncated));
            }
        }
        Op::LoadTag { out, tag } => {
            let value = load_tag(draft, visit, way, *tag);
            draft.bind(way, *out, value);
        }
        Op::StoreTag { tag, a } => {
            let a = way.value(*a);
            let name = visit.model.tags[tag.index()].name.clone();
            way.state.tags.insert(name, Tag::Stored(a));
            draft.step(way.at, What::Op(Op::StoreTag { tag: *tag, a }));
        }
        Op::PushVlan { id } => return push_vlan(draft, visit, way, *id),
        Op::PopVlan => return pop_vlan(draft, visit, way),
        Op::Count { row } => way.state.count(visit.node(), Counter::Row(*row)),
        Op::Mirror { port } => {
            freshen(draft, way);
            draft.step(way.at, What::Op(Op::Mirror { port: *port }));
            way.state.sent = true;
        }
        Op::Create { new, port } => {
            freshen(draft, way);
            let mut new = new.clone();
            for (_, value) in &mut new.fields {
                *value = way.value(*value);
            }
            let port = *port;
            draft.act(visit, way, &[], true, |_| What::Op(Op::Create { new, port }));
            way.state.sent = true;
        }
        _ => {}
    }
    Ok(Flow::Next)
}

/// A tag's current value.
fn load_tag(draft: &mut Draft, visit: &Visit<'_>, way: &mut Way, tag: TagId) -> ValueId {
    let decl = &visit.model.tags[tag.index()];
    let ty = decl.ty;
    match way.state.tags.get(&decl.name) {
        Some(Tag::Stored(value)) => draft.values.resize(ty, *value),
        Some(Tag::Loaded(value)) if draft.values.ty(*value).width >= ty.width => {
            draft.values.resize(ty, *value)
        }
        _ => {
            let make = |outs: &[ValueId]| What::Op(Op::LoadTag { out: outs[0], tag });
            let value = draft.act(visit, way, &[ty], false, make)[0];
            way.state.tags.insert(decl.name.clone(), Tag::Loaded(value));
            value
        }
    }
}
