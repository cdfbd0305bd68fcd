//! Operations on the packet: fields as values, header changes, copies and new packets.

use super::Synth;
use super::build::Way;
use super::cells::{self, Place};
use super::exec::Flow;
use super::headers::{behind_icmp, behind_ports, bit, listed};
use super::mutants::SynthMutant;
use super::range::intersect;
use super::state::{Cell, State, Tag};
use super::values::{Def, Pure, field_ty};
use super::visit::Visit;
use super::vlan::is_tag;
use braid_ir::engine::Fault;
use braid_ir::model::{Op, TagId, ValueId, Word};
use braid_ir::residual::{Counter, RuleFields, What};
use braid_ir::value::IntervalSet;
use braid_packet::{Field, Header};

impl<'a> Synth<'a> {
    pub(super) fn packet_op(
        &mut self,
        visit: &mut Visit<'a>,
        way: &mut Way,
        op: &Op,
    ) -> Result<Flow, Header> {
        match op {
            Op::Has { out, header } => {
                let present = way.state.headers.has(*header)?;
                let value = self.values.truth(present);
                self.bind(way, *out, value);
            }
            Op::Load { out, field } => match self.load(visit, way, *field)? {
                Some(value) => self.bind(way, *out, value),
                None => return Ok(self.fault(visit, way, Fault::Truncated)),
            },
            Op::LoadEntry { out, field } => match self.load_entry(visit, way, *field) {
                Some(value) => self.bind(way, *out, value),
                None => return Ok(self.fault(visit, way, Fault::Truncated)),
            },
            Op::Store { field, a } => {
                let value = self.value(way, *a);
                if !self.store(way, *field, value)? {
                    return Ok(self.fault(visit, way, Fault::Truncated));
                }
            }
            Op::LoadTag { out, tag } => {
                let value = self.load_tag(visit, way, *tag);
                self.bind(way, *out, value);
            }
            Op::StoreTag { tag, a } => {
                let a = self.value(way, *a);
                let name = visit.model.tags[tag.index()].name.clone();
                way.state.tags.insert(name, Tag::Stored(a));
                self.step(way.at, What::Op(Op::StoreTag { tag: *tag, a }));
            }
            Op::PushVlan { id } => return self.push_vlan(visit, way, *id),
            Op::PopVlan => return self.pop_vlan(visit, way),
            Op::Count { row } => way.state.count(visit.node(), Counter::Row(*row)),
            Op::Mirror { port } => {
                self.freshen(way);
                self.step(way.at, What::Op(Op::Mirror { port: *port }));
                way.state.sent = true;
            }
            Op::Create { new, port } => {
                self.freshen(way);
                let mut new = new.clone();
                for (_, value) in &mut new.fields {
                    *value = self.value(way, *value);
                }
                let port = *port;
                self.act(visit, way, &[], true, |_| What::Op(Op::Create { new, port }));
                way.state.sent = true;
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// A tag's current value.
    fn load_tag(&mut self, visit: &Visit<'_>, way: &mut Way, tag: TagId) -> ValueId {
        let decl = &visit.model.tags[tag.index()];
        let ty = decl.ty;
        match way.state.tags.get(&decl.name) {
            Some(Tag::Stored(value)) => self.values.resize(ty, *value),
            Some(Tag::Loaded(value)) if self.values.ty(*value).width >= ty.width => {
                self.values.resize(ty, *value)
            }
            _ => {
                let make = |outs: &[ValueId]| What::Op(Op::LoadTag { out: outs[0], tag });
                let value = self.act(visit, way, &[ty], false, make)[0];
                way.state.tags.insert(decl.name.clone(), Tag::Loaded(value));
                value
            }
        }
    }

    /// A field's current value. `None`: its header is absent.
    pub(super) fn load(
        &mut self,
        visit: &Visit<'_>,
        way: &mut Way,
        field: Field,
    ) -> Result<Option<ValueId>, Header> {
        let ty = field_ty(field);
        match field {
            Field::PktBackward => return Ok(Some(self.values.truth(visit.point.backward))),
            Field::PktHeld => return Ok(Some(self.values.truth(visit.point.held))),
            _ => {}
        }
        if !way.state.headers.has(field.info().header)? {
            return Ok(None);
        }
        if field == Field::PktPayloadLen {
            for header in listed(behind_ports()) {
                way.state.headers.has(header)?;
            }
        }
        Ok(Some(match cells::place(field, &mut way.state.headers)? {
            Place::Const(word) => self.values.constant(ty, word),
            Place::Cell(cell, shift) => {
                let value = self.cell(way, cell);
                self.values.extract(ty, value, shift)
            }
            Place::Halves(halves) => {
                let [upper, lower] = halves.map(|half| self.cell(way, half));
                self.values.join(ty, upper, lower)
            }
        }))
    }

    /// A field's value when the packet entered the function. `None`: its header was absent.
    pub(super) fn load_entry(
        &mut self,
        visit: &mut Visit<'a>,
        way: &mut Way,
        field: Field,
    ) -> Option<ValueId> {
        let ty = field_ty(field);
        match field {
            Field::PktBackward => return Some(self.values.truth(visit.point.backward)),
            Field::PktHeld => return Some(self.values.truth(visit.point.held)),
            _ => {}
        }
        if visit.entry.has(field.info().header) != Ok(true) {
            return None;
        }
        if self.has_mutant(SynthMutant::EntryIsCurrent) {
            return self.load(visit, way, field).ok().flatten();
        }
        match cells::place(field, &mut visit.entry) {
            Ok(Place::Const(word)) => Some(self.values.constant(ty, word)),
            Ok(Place::Cell(cell, shift)) => {
                let value = *way.state.entry.get(&cell)?;
                Some(self.values.extract(ty, value, shift))
            }
            Ok(Place::Halves([upper, lower])) => {
                let entry = &way.state.entry;
                let (upper, lower) = (*entry.get(&upper)?, *entry.get(&lower)?);
                Some(self.values.join(ty, upper, lower))
            }
            Err(_) => None,
        }
    }

    /// A cell's current value.
    pub(super) fn cell(&mut self, way: &mut Way, cell: Field) -> ValueId {
        if let Some(value) = self.bound(&way.state, cell) {
            return value;
        }
        let checksum = matches!(cell, Field::IpChecksum | Field::L4Checksum);
        let waits = is_tag(cell) && !way.state.waiting.is_empty();
        if checksum || waits || way.state.stale || way.state.moved {
            self.freshen(way);
        }
        let out = self.values.fresh(field_ty(cell), Def::Step);
        self.step(way.at, What::Op(Op::Load { out, field: cell }));
        way.state.cells.insert(cell, Cell::Value(out, false));
        out
    }

    /// A cell's current value, unless it must be read from the packet's current bytes.
    pub(super) fn bound(&mut self, state: &State, cell: Field) -> Option<ValueId> {
        match state.cells.get(&cell) {
            Some(Cell::Value(_, true))
                if self.has_mutant(SynthMutant::StaleBinding) && self.was_present(cell) =>
            {
                Some(self.values.init(cell))
            }
            Some(Cell::Value(value, _)) => Some(*value),
            None if self.was_present(cell) => Some(self.values.init(cell)),
            Some(Cell::Reload) | None => None,
        }
    }

    /// Assigns a field. False: its header is absent.
    fn store(&mut self, way: &mut Way, field: Field, value: ValueId) -> Result<bool, Header> {
        if !way.state.headers.has(field.info().header)? {
            return Ok(false);
        }
        match cells::place(field, &mut way.state.headers)? {
            Place::Const(_) => {}
            Place::Cell(cell, shift) => self.assign(way, cell, (value, shift)),
            Place::Halves(halves) => {
                for (half, shift) in halves.into_iter().zip([16, 0]) {
                    let part = self.values.extract(field_ty(half), value, shift);
                    self.assign(way, half, (part, 0));
                }
            }
        }
        Ok(true)
    }

    /// Assigns bits of a cell, starting at a given bit.
    fn assign(&mut self, way: &mut Way, cell: Field, (value, shift): (ValueId, u16)) {
        let decides = cell.decided_bits() != 0;
        if decides {
            // Fields behind the header are written while that header is still there.
            let behind = |field: &Field| {
                let header = field.info().header;
                let is_rest = matches!(field, Field::IcmpRest | Field::Icmp6Rest);
                (behind_icmp() | behind_ports()) & bit(header) != 0 || is_rest
            };
            let dirty = way
                .state
                .cells
                .iter()
                .any(|(field, cell)| matches!(cell, Cell::Value(_, true)) && behind(field));
            if dirty {
                self.flush(way);
            }
        }
        let new = if self.values.ty(value).width == cell.info().width && shift == 0 {
            value
        } else {
            let old = self.cell(way, cell);
            self.values.insert(old, value, shift)
        };
        if self.has_mutant(SynthMutant::FactKept)
            && let Some(old) = self.bound(&way.state, cell)
        {
            let kept = way.state.facts.range(&self.values, old);
            way.state.facts.note(&self.values, new, kept);
        }
        if decides {
            self.decide_headers(way, cell, new);
        }
        let before = way.state.cells.insert(cell, Cell::Value(new, true));
        self.stats.overwritten += usize::from(matches!(before, Some(Cell::Value(_, true))));
        for checksum in [Field::IpChecksum, Field::L4Checksum] {
            way.state.cells.insert(checksum, Cell::Reload);
        }
    }

    /// Prepares for an assignment to a field that decides which headers follow.
    fn decide_headers(&mut self, way: &mut Way, cell: Field, value: ValueId) {
        let range = way.state.facts.range(&self.values, value);
        let set = |kinds: &[Word]| IntervalSet::new(kinds.iter().map(|kind| (*kind, *kind)));
        let headers = &mut way.state.headers;
        if !matches!(cell, Field::IcmpType | Field::Icmp6Type) {
            decide_announced(way, cell, &range);
            return;
        }
        use Field::{Icmp6Id, Icmp6Rest, Icmp6Seq, IcmpId, IcmpRest, IcmpSeq};
        let (echo, rest) = match cell {
            Field::IcmpType => {
                let rest = [IcmpRest, IcmpId, IcmpSeq];
                (Header::IcmpEcho, rest)
            }
            _ => (Header::Icmp6Echo, [Icmp6Rest, Icmp6Id, Icmp6Seq]),
        };
        let types = |header: Header| -> Vec<Word> {
            header.announced_by(cell).iter().map(|kind| (*kind).into()).collect()
        };
        let (echoes, errors) = (set(&types(echo)), set(&types(Header::Quoted)));
        let outcome = |kinds: &IntervalSet| {
            let hit = intersect(&range, kinds);
            if hit.is_empty() { Some(false) } else { (hit == range).then_some(true) }
        };
        if outcome(&echoes).is_none_or(|present| headers.has(echo) != Ok(present)) {
            for field in rest {
                way.state.cells.insert(field, Cell::Reload);
            }
        }
        match outcome(&echoes) {
            Some(present) => headers.set(echo, present),
            None => headers.forget(bit(echo)),
        }
        let quoted = headers.has(Header::Quoted);
        match outcome(&errors) {
            Some(false) => headers.set(Header::Quoted, false),
            // The quoted packet stays quoted.
            Some(true) if quoted == Ok(true) => {
                for header in quoted_parts() {
                    let _ = headers.has(header);
                }
            }
            _ => {
                let own = if cell == Field::IcmpType { Header::Quoted4 } else { Header::Quoted6 };
                let open = [Header::Quoted, own, Header::QuotedL4, Header::QuotedEcho];
                headers.forget(open.iter().fold(0, |bits, header| bits | bit(*header)));
                for (field, _) in quoted_cells() {
                    way.state.cells.insert(field, Cell::Reload);
                }
            }
        }
        way.state.stale = true;
    }

    /// Writes all assigned fields to the packet.
    pub(super) fn flush(&mut self, way: &mut Way) {
        if way.state.waiting.is_empty() {
            self.write(way, |_| true);
            return;
        }
        // Tags that wait to be added or removed do not change where other fields are.
        self.write(way, |field| !is_tag(field));
        self.settle(way);
        self.write(way, is_tag);
    }

    /// Writes the assigned fields that `wanted` selects.
    fn write(&mut self, way: &mut Way, wanted: impl Fn(Field) -> bool) {
        let cells = way.state.cells.iter();
        let mut dirty = cells.filter(|(_, cell)| matches!(cell, Cell::Value(_, true)));
        if !dirty.any(|(field, _)| wanted(*field)) {
            return;
        }
        if way.state.moved {
            self.step(way.at, What::Parse);
            way.state.moved = false;
            // The presence of headers is only right when every field is written.
        }
        let forget = self.has_mutant(SynthMutant::ForgottenCanonical);
        let mut writes = Vec::new();
        for (field, cell) in way.state.cells.iter_mut() {
            let Cell::Value(value, dirty @ true) = cell else { continue };
            if !wanted(*field) {
                continue;
            }
            *dirty = false;
            let same = *self.values.def(*value) == Def::Pure(Pure::Init(*field))
                && !way.state.written.contains(field);
            let covered = cells::checksums(*field) != 0 && !forget;
            if covered || !same {
                writes.push((*field, *value));
            }
        }
        if !writes.is_empty() {
            way.state.written.extend(writes.iter().map(|(field, _)| *field));
            self.step(way.at, What::Write(writes));
        }
    }

    /// Writes all assigned fields, and parses the packet if its headers may have changed.
    pub(super) fn freshen(&mut self, way: &mut Way) {
        self.flush(way);
        if way.state.stale || way.state.moved {
            self.step(way.at, What::Parse);
            (way.state.stale, way.state.moved) = (false, false);
        }
    }

    /// Prepares the packet for an operation that reads the payload.
    pub(super) fn freshen_payload(&mut self, way: &mut Way) {
        let quoted = quoted_cells()
            .any(|(field, _)| matches!(way.state.cells.get(&field), Some(Cell::Value(_, true))));
        // A malformed transport header is part of the payload. Its checksum also depends on the
        // addresses.
        let sums = way.state.checksums() & cells::TRANSPORTS != 0
            && ![Header::L4, Header::Icmp, Header::Icmp6]
                .iter()
                .any(|header| way.state.headers.has(*header) == Ok(true));
        if quoted || sums || way.state.stale || way.state.moved {
            self.freshen(way);
        }
    }

    /// The fields that rules read.
    pub(super) fn rule_fields(
        &mut self,
        visit: &Visit<'_>,
        way: &mut Way,
    ) -> Result<Option<RuleFields>, Header> {
        if !way.state.headers.has(Header::Inet)? {
            return Ok(None);
        }
        let version4 = way.state.headers.has(Header::Ip4)?;
        let (src, dst) = match version4 {
            true => (Field::IpSrc, Field::IpDst),
            false => (Field::Ip6Src, Field::Ip6Dst),
        };
        let mut pair = |synth: &mut Self, header, a, b| -> Result<_, Header> {
            if !way.state.headers.has(header)? {
                return Ok(None);
            }
            let a = synth.load(visit, way, a)?;
            Ok(a.zip(synth.load(visit, way, b)?))
        };
        let ports = pair(self, Header::L4, Field::L4Sport, Field::L4Dport)?;
        let mut icmp = pair(self, Header::Icmp, Field::IcmpType, Field::IcmpCode)?;
        if icmp.is_none() {
            icmp = pair(self, Header::Icmp6, Field::Icmp6Type, Field::Icmp6Code)?;
        }
        let tcp_flags = match way.state.headers.has(Header::Tcp)? {
            true => self.load(visit, way, Field::TcpFlags)?,
            false => None,
        };
        let mut field = |synth: &mut Self, field| synth.load(visit, way, field);
        let (src, dst) = (field(self, src)?, field(self, dst)?);
        let proto = field(self, Field::InetProto)?;
        let (Some(src), Some(dst), Some(proto)) = (src, dst, proto) else { return Ok(None) };
        let version = if version4 { 4 } else { 6 };
        Ok(Some(RuleFields { version, src, dst, proto, ports, tcp_flags, icmp }))
    }
}

/// Prepares for an assignment to a field whose values each announce one header.
fn decide_announced(way: &mut Way, cell: Field, range: &IntervalSet) {
    let headers = &mut way.state.headers;
    let set = |kinds: &[Word]| IntervalSet::new(kinds.iter().map(|kind| (*kind, *kind)));
    let decided = cell.decided_bits();
    let was: Vec<_> = listed(decided).map(|header| headers.has(header)).collect();
    if cell == Field::L4Dport && headers.has(Header::Tcp) == Ok(true) {
        return;
    }
    let mut may_change = false;
    for (header, was) in listed(decided).zip(was) {
        let by = header.info().follows.iter().filter(|(field, _)| field.owner() == cell);
        let values: Vec<_> =
            by.flat_map(|(_, values)| *values).map(|value| (*value).into()).collect();
        if was != Ok(false) {
            // Another header may now have these bytes, with the content that is written there.
            let fields = header.info().fields.iter().map(|info| info.field);
            way.state.cells.extend(fields.map(|field| (field, Cell::Reload)));
        }
        if !values.is_empty() && intersect(range, &set(&values)).is_empty() {
            headers.set(header, false);
            may_change |= was != Ok(false);
        } else {
            headers.forget(bit(header));
            may_change = true;
        }
    }
    if may_change {
        way.state.cells.insert(Field::PktPayloadLen, Cell::Reload);
        way.state.stale = true;
    }
}

fn quoted_cells() -> impl Iterator<Item = (Field, Header)> {
    let all = braid_packet::FIELDS.iter().map(|info| (info.field, info.header));
    all.filter(|(_, header)| {
        behind_icmp() & bit(*header) != 0 && !matches!(header, Header::IcmpEcho | Header::Icmp6Echo)
    })
}

/// The headers of a quoted packet.
fn quoted_parts() -> impl Iterator<Item = Header> {
    listed(behind_icmp()).filter(|header| header.implies().contains(&Header::Quoted))
}
