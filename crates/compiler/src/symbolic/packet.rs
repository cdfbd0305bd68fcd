//! Operations on the packet: fields as values, header changes, copies and new packets.

use super::announce::doubt_in_payload;
use super::build::Path;
use super::draft::{Draft, Flow};
use super::fields::{load, load_entry, store};
use super::headers::EVERY;
use super::mutants::SynthMutant;
use super::options::{option_op, rewritten};
use super::state::Tag;
use super::tunnel::tunnel_op;
use super::visit::Visit;
use super::vlan::{pop_vlan, push_vlan};
use super::write::freshen;
use braid_ir::engine::Fault;
use braid_ir::model::{Area, Op, TagId, Ty, ValueId};
use braid_ir::residual::{Counter, What};
use braid_packet::field::LENGTHS;
use braid_packet::{Field, Header, options};

/// Executes an operation on the packet.
pub(super) fn packet_op(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    op: &Op,
) -> Result<Flow, Header> {
    match op {
        Op::Has { out, header } => {
            let present = path.state.headers.has(*header)?;
            let value = draft.values.truth(present);
            draft.bind(path, *out, value);
        }
        Op::Load { out, field } => match load(draft, visit, path, *field)? {
            Some(value) => draft.bind(path, *out, value),
            None => return Ok(draft.fault(visit, path, Fault::Truncated)),
        },
        Op::LoadEntry { out, field } => match load_entry(draft, visit, path, *field) {
            Some(value) => draft.bind(path, *out, value),
            None => return Ok(draft.fault(visit, path, Fault::Truncated)),
        },
        Op::Store { field, a } => {
            let value = path.value(*a);
            if !store(draft, path, *field, value)? {
                return Ok(draft.fault(visit, path, Fault::Truncated));
            }
        }
        Op::StoreBytes { ok, area, offset, a } => {
            store_bytes(draft, visit, path, *area, (*ok, *offset, *a))?;
        }
        Op::ReplaceBytes { ok, .. } | Op::Encrypt { ok, .. } | Op::Decrypt { ok, .. } => {
            replace_bytes(draft, visit, path, *ok, op)?;
        }
        Op::SetOption { ok, .. } => replace_bytes(draft, visit, path, *ok, op)?,
        op if op.rewraps() => tunnel_op(draft, visit, path, op),
        Op::LoadTag { out, tag } => {
            let value = load_tag(draft, visit, path, *tag);
            draft.bind(path, *out, value);
        }
        Op::StoreTag { tag, a } => {
            let a = path.value(*a);
            let name = visit.model.tags[tag.index()].name.clone();
            path.state.tags.insert(name, Tag::Stored(a));
            draft.step(path.at, What::Op(Op::StoreTag { tag: *tag, a }));
        }
        Op::PushVlan { id } => return push_vlan(draft, visit, path, *id),
        Op::PopVlan => return pop_vlan(draft, visit, path),
        Op::HasRoom { .. } | Op::PushOption { .. } | Op::PopOption { .. } => {
            return option_op(draft, visit, path, op);
        }
        Op::Count { row } => path.state.count(visit.node(), Counter::Row(*row)),
        Op::Mirror { port } => {
            freshen(draft, path);
            draft.step(path.at, What::Op(Op::Mirror { port: *port }));
            path.state.sent = true;
        }
        Op::Create { new, port } => {
            freshen(draft, path);
            let mut new = new.clone();
            let options = new.options.iter_mut().flat_map(|(_, values)| values);
            for value in new.fields.iter_mut().map(|(_, value)| value).chain(options) {
                *value = path.value(*value);
            }
            let port = *port;
            draft.act(visit, path, &[], true, |_| What::Op(Op::Create { new, port }));
            path.state.sent = true;
        }
        _ => {}
    }
    Ok(Flow::Next)
}

/// What is in front of a payload that can be changed.
enum Before {
    Tcp,
    Udp,
    /// IP, and neither of them.
    Ip,
    /// None of these.
    Link,
}

impl Before {
    /// What is in front of the packet's payload. `None` if the payload cannot be changed, so that
    /// `ok` is false: the packet is an ICMP error, or it has neither TCP nor UDP, where the
    /// operation `needs` one.
    fn of(
        draft: &mut Draft,
        path: &mut Path,
        (ok, needs): (ValueId, bool),
    ) -> Result<Option<Self>, Header> {
        if path.state.headers.has(Header::L4)? {
            let is_udp = path.state.headers.has(Header::Udp)?;
            return Ok(Some(if is_udp { Self::Udp } else { Self::Tcp }));
        }
        if !needs && !path.state.headers.has(Header::Quoted)? {
            let is_ip = path.state.headers.has(Header::Inet)?;
            return Ok(Some(if is_ip { Self::Ip } else { Self::Link }));
        }
        let no = draft.values.truth(false);
        draft.bind(path, ok, no);
        Ok(None)
    }

    /// Updates the knowledge about headers after bytes of the payload have changed. Behind UDP,
    /// they may now be a header that the port announces. Without a transport header, they may be a
    /// header that was malformed before. Few packets have one, so the program ends, and the next
    /// function gets a program for the headers that the parser finds. The rest of this function
    /// sees such a header only in packets without IP. Functions may write many bytes of other
    /// packets, such as the fields of a header inside of a tunnel, and would need code for each
    /// header after each write.
    fn changed(self, path: &mut Path) {
        match self {
            Self::Tcp => {}
            Self::Udp => {
                doubt_in_payload(&mut path.state, Header::bits(Header::behind_ports()));
            }
            Self::Ip => (path.state.stale, path.state.ends) = (true, true),
            Self::Link => {
                doubt_in_payload(&mut path.state, EVERY);
                path.state.ends = true;
            }
        }
    }
}

/// Writes a number to an area of a packet.
fn store_bytes(
    draft: &mut Draft,
    visit: &Visit<'_>,
    path: &mut Path,
    area: Area,
    (ok, offset, a): (ValueId, ValueId, ValueId),
) -> Result<(), Header> {
    let Some(before) = Before::of(draft, path, (ok, false))? else { return Ok(()) };
    freshen(draft, path);
    let (offset, a) = (path.value(offset), path.value(a));
    let make = |outs: &[ValueId]| What::Op(Op::StoreBytes { ok: outs[0], area, offset, a });
    let outs = draft.act(visit, path, &[Ty::uint(1)], true, make);
    draft.bind(path, ok, outs[0]);
    visit.beyond_records(path);
    if !draft.has_mutant(SynthMutant::PayloadSumKept) {
        path.state.reload([Field::L4Checksum]);
        path.state.written.insert(Field::L4Checksum);
    }
    if let Area::TcpOption(_) = area {
        rewritten(path, options::NAMED.iter().flat_map(|option| option.info().fields));
    }
    if area == Area::Payload && !draft.has_mutant(SynthMutant::PayloadTunnelMissed) {
        before.changed(path);
    }
    Ok(())
}

/// Replaces bytes of the payload by others, which may be more or fewer, encrypts or decrypts the
/// payload, or adds a TCP option of any kind or removes it.
fn replace_bytes(
    draft: &mut Draft,
    visit: &Visit<'_>,
    path: &mut Path,
    ok: ValueId,
    op: &Op,
) -> Result<(), Header> {
    let needs = matches!(op, Op::Encrypt { .. } | Op::Decrypt { .. });
    let is_option = matches!(op, Op::SetOption { .. });
    let Some(before) = Before::of(draft, path, (ok, needs))? else { return Ok(()) };
    freshen(draft, path);
    // The new length is only known when the program runs, so the packet is counted with the old
    // one.
    if !draft.has_mutant(SynthMutant::CountedLater) {
        draft.count_now(path);
    }
    let mut op = op.clone();
    op.visit_uses_mut(&mut |value| *value = path.value(*value));
    let outs = draft.act(visit, path, &[Ty::uint(1)], true, |outs| {
        op.visit_outs_mut(&mut |out| *out = outs[0]);
        What::Op(op)
    });
    draft.bind(path, ok, outs[0]);
    visit.beyond_records(path);
    draft.step(path.at, What::Parse);
    path.state.reload([Field::L4Checksum]);
    if !draft.has_mutant(SynthMutant::PayloadLengthsKept) {
        path.state.reload(LENGTHS);
        path.state.reload([Field::IpChecksum]);
    }
    path.state.written.extend([Field::L4Checksum, Field::IpChecksum]);
    path.state.written.extend(LENGTHS);
    if is_option {
        path.state.reload([Field::TcpHlen]);
        path.state.written.insert(Field::TcpHlen);
    }
    before.changed(path);
    Ok(())
}

/// A tag's current value.
fn load_tag(draft: &mut Draft, visit: &Visit<'_>, path: &mut Path, tag: TagId) -> ValueId {
    let decl = &visit.model.tags[tag.index()];
    let ty = decl.ty;
    match path.state.tags.get(&decl.name) {
        Some(Tag::Stored(value)) => draft.values.resize(ty, *value),
        Some(Tag::Loaded(value)) if draft.values.ty(*value).width >= ty.width => {
            draft.values.resize(ty, *value)
        }
        _ => {
            let make = |outs: &[ValueId]| What::Op(Op::LoadTag { out: outs[0], tag });
            let value = draft.act(visit, path, &[ty], false, make)[0];
            path.state.tags.insert(decl.name.clone(), Tag::Loaded(value));
            value
        }
    }
}
