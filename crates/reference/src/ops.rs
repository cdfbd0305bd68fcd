//! The effect of each operation.

use super::arith::{binary, compare};
use super::packet::PacketState;
use super::run::{Role, Run, Write};
use super::{calls, native, streams};
use braid_crypto::Key;
use braid_ir::engine::Fault;
use braid_ir::model::{
    self, KeyRef, Model, Op, ParamId, Program, SetRef, StringParts, ValueId, Word,
};
use braid_ir::show::max_of;
use braid_ir::value::ParamValue;
use braid_packet::translate::Addresses;
use braid_packet::tunnel::{Association, Change};
use braid_packet::{Field, Header, crypt};

impl Run<'_> {
    /// Runs one operation.
    pub(super) fn op(&mut self, model: &Model, program: &Program, op: &Op) -> Result<(), Fault> {
        match op {
            Op::Const { .. }
            | Op::Param { .. }
            | Op::ListLen { .. }
            | Op::ListGet { .. }
            | Op::BackendUp { .. }
            | Op::Bin { .. }
            | Op::Cmp { .. }
            | Op::Not { .. }
            | Op::Resize { .. }
            | Op::Clamp { .. }
            | Op::Select { .. }
            | Op::InSet { .. }
            | Op::LoadEvent { .. } => self.value_op(program, op),
            Op::Has { .. }
            | Op::Load { .. }
            | Op::LoadEntry { .. }
            | Op::Store { .. }
            | Op::LoadTag { .. }
            | Op::StoreTag { .. }
            | Op::PushVlan { .. }
            | Op::PopVlan
            | Op::HasRoom { .. }
            | Op::PushOption { .. }
            | Op::PopOption { .. }
            | Op::SetOption { .. }
            | Op::StoreBytes { .. }
            | Op::ReplaceBytes { .. }
            | Op::Encapsulate { .. }
            | Op::Decapsulate { .. }
            | Op::Translate { .. }
            | Op::Encrypt { .. }
            | Op::Decrypt { .. }
            | Op::Count { .. }
            | Op::Mirror { .. }
            | Op::Create { .. } => self.packet_op(model, program, op),
            Op::Native { out } => native::call(self, model).map(|answer| self.define(*out, answer)),
            Op::Stream { verdict, is_new, seq, ack } => {
                let answer = streams::call(&mut self.env, &self.role, model)?;
                self.define_all(&[*verdict, *is_new, *seq, *ack], &answer.words());
                Ok(())
            }
            Op::LoadStream { .. } | Op::StreamMatch { .. } => self.stream_op(op),
            Op::Rules { .. }
            | Op::Route { .. }
            | Op::Patterns { .. }
            | Op::FindPatterns { .. }
            | Op::InStrings { .. }
            | Op::LoadBytes { .. }
            | Op::LoadString { .. }
            | Op::Extern { .. } => calls::lookup_op(self, program, op),
            Op::StateExists { .. }
            | Op::StateGet { .. }
            | Op::StateSet { .. }
            | Op::StatePut { .. }
            | Op::StateDelete { .. }
            | Op::StateLen { .. }
            | Op::Expiring { .. }
            | Op::ExpiringKey { .. } => self.state_op(op),
            Op::Take { .. } | Op::TakeThis { .. } | Op::Release { .. } => calls::pool_op(self, op),
            Op::Emit { event, args } => {
                calls::publish(self, model, *event, args);
                Ok(())
            }
        }
    }

    /// Operations on values, parameters and fields of events alone.
    fn value_op(&mut self, program: &Program, op: &Op) -> Result<(), Fault> {
        let width = |id: ValueId| program.values[id.index()].width;
        let (out, value) = match op {
            Op::Const { out, value } => (out, *value),
            Op::Param { out, param } => (out, self.scalar_param(*param)),
            Op::ListLen { out, param } => (out, self.members(*param).len() as Word),
            Op::ListGet { out, param, index, column } => {
                let index = usize::try_from(self.value(*index)).map_err(|_| Fault::Index)?;
                let row = *self.members(*param).get(index).ok_or(Fault::Index)?;
                (out, row[*column as usize])
            }
            Op::BackendUp { out, param, index } => {
                let index = usize::try_from(self.value(*index)).map_err(|_| Fault::Index)?;
                (out, Word::from(self.backend_up(*param, index)?))
            }
            Op::Bin { out, op, a, b } => {
                (out, binary(*op, width(*out), self.value(*a), self.value(*b))?)
            }
            Op::Cmp { out, op, a, b } => {
                (out, Word::from(compare(*op, self.value(*a), self.value(*b))))
            }
            Op::Not { out, a } => (out, !self.value(*a) & max_of(width(*out))),
            Op::Resize { out, a } => (out, self.value(*a) & max_of(width(*out))),
            Op::Clamp { out, a } => (out, self.value(*a).min(max_of(width(*out)))),
            Op::Select { out, cond, a, b } => {
                (out, self.value(if self.truth(*cond) { *a } else { *b }))
            }
            Op::InSet { out, a, set } => (out, Word::from(self.in_set(self.value(*a), set))),
            Op::LoadEvent { out, field } => match &self.role {
                Role::Handler(fields) => (out, fields[*field as usize]),
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.define(*out, value);
        Ok(())
    }

    fn scalar_param(&self, param: ParamId) -> Word {
        match self.env.param(param) {
            ParamValue::Scalar(value) => *value,
            _ => 0,
        }
    }

    /// The rows of a list or of backends.
    fn members(&self, param: ParamId) -> Vec<&[Word]> {
        match self.env.param(param) {
            ParamValue::List(rows) => rows.iter().map(|row| &**row).collect(),
            ParamValue::Backends(all) => all.iter().map(|one| &*one.columns).collect(),
            _ => Vec::new(),
        }
    }

    fn backend_up(&self, param: ParamId, index: usize) -> Result<bool, Fault> {
        match self.env.param(param) {
            ParamValue::Backends(all) => {
                all.get(index).map(braid_externs::Backend::is_up).ok_or(Fault::Index)
            }
            _ => Err(Fault::Index),
        }
    }

    fn in_set(&self, value: Word, set: &SetRef) -> bool {
        match set {
            SetRef::Const(members) => members.contains(value),
            SetRef::Param(param) => match self.env.param(*param) {
                ParamValue::Set(members) => members.contains(value),
                _ => false,
            },
            SetRef::List(param, column) => match self.env.param(*param) {
                ParamValue::Backends(all) => all
                    .iter()
                    .any(|one| !one.is_removed() && one.columns[*column as usize] == value),
                _ => self.members(*param).iter().any(|row| row[*column as usize] == value),
            },
        }
    }

    /// The current packet. The verifier makes sure that programs without a packet have no
    /// operations that need it.
    fn packet(&mut self) -> Result<&mut PacketState, Fault> {
        match &mut self.role {
            Role::Packet(state) => Ok(state),
            Role::Timer | Role::Expire(..) | Role::Stream(_) | Role::Handler(_) => {
                Err(Fault::Truncated)
            }
        }
    }

    /// Operations of programs for events of TCP connections.
    fn stream_op(&mut self, op: &Op) -> Result<(), Fault> {
        let Role::Stream(subject) = &self.role else { return Err(Fault::Truncated) };
        match op {
            Op::LoadStream { out, field } => self.define(*out, subject.number(*field)),
            Op::StreamMatch { found, number, param, text } => {
                let first = subject.view().found((*param, self.env.param(*param)), *text);
                self.define(*found, first.is_some().into());
                self.define(*number, first.unwrap_or(0).into());
            }
            _ => {}
        }
        Ok(())
    }

    /// A field's value when the packet entered the function.
    pub(super) fn entry_field(&self, field: Field) -> Option<Word> {
        match &self.role {
            Role::Packet(state) => state.get_at_entry(field),
            Role::Stream(subject) => subject.view().field(field),
            Role::Timer | Role::Expire(..) | Role::Handler(_) => None,
        }
    }

    fn packet_op(&mut self, model: &Model, program: &Program, op: &Op) -> Result<(), Fault> {
        match op {
            Op::Has { out, header } => self.has(*out, *header)?,
            Op::Load { out, field } => self.load(*out, *field, false)?,
            Op::LoadEntry { out, field } => self.load(*out, *field, true)?,
            Op::Store { field, a } => self.store(*field, self.value(*a))?,
            Op::LoadTag { out, tag } => {
                let name = &*model.tags[tag.index()].name;
                let value = self.packet()?.now.tags.get(name).copied().unwrap_or(0);
                // Another function may have set the tag with a wider type.
                self.define(*out, value & model.tags[tag.index()].ty.max());
            }
            Op::StoreTag { tag, a } => {
                let (name, value) = (&model.tags[tag.index()].name, self.value(*a));
                self.packet()?.now.tags.insert(name.as_str().into(), value);
                self.writes.push(Write::Tag(name.clone(), value));
            }
            Op::PushVlan { id } => {
                let id = u16::try_from(self.value(*id)).unwrap_or(u16::MAX);
                self.vlan(Some(id))?;
            }
            Op::PopVlan => self.vlan(None)?,
            Op::HasRoom { out, option } => {
                let room = self.packet()?.has_room(*option);
                self.define(*out, room.into());
            }
            Op::PushOption { option, values } => {
                let values = values.iter().map(|value| self.value(*value)).collect();
                self.option(*option, Some(values))?;
            }
            Op::PopOption { option } => self.option(*option, None)?,
            Op::StoreBytes { ok, area, offset, a } => {
                let bytes = usize::from(program.values[a.index()].width / 8);
                let (place, value) = ((*area, self.value(*offset)), self.value(*a));
                let done = self.packet()?.set_number(place, bytes, value);
                let done = done.map_err(|_| Fault::Truncated)?;
                self.writes.push(Write::Bytes(place, bytes, value));
                self.define(*ok, done.into());
            }
            Op::ReplaceBytes { ok, offset, old, new, words } => {
                let place = (self.value(*offset), self.value(*old));
                let words: Vec<Word> = words.iter().map(|word| self.value(*word)).collect();
                let new = (self.value(*new), words);
                let done = self.packet()?.replace(place, (new.0, &new.1));
                let done = done.map_err(|_| Fault::Truncated)?;
                self.writes.push(Write::Replace(place, new));
                self.define(*ok, done.into());
            }
            Op::SetOption { ok, kind, value } => {
                let done = self.set_option(*kind, value.as_ref())?;
                self.define(*ok, done.into());
            }
            Op::Count { row } => {
                let bytes = match &self.role {
                    Role::Stream(subject) => subject.len(),
                    _ => u64::from(self.packet()?.now.wire_len),
                };
                self.env.instance.count_row(*row, bytes);
                self.env.observer.count(self.env.node, *row);
            }
            Op::Mirror { port } => calls::mirror(self, *port)?,
            Op::Create { new, port } => calls::create(self, new, *port)?,
            op => self.outer_op(op)?,
        }
        Ok(())
    }

    /// Adds a TCP option of any kind, or removes one. Returns whether the packet has changed.
    fn set_option(&mut self, kind: u8, value: Option<&StringParts>) -> Result<bool, Fault> {
        let value = value.map(|(len, words)| {
            let words: Vec<Word> = words.iter().map(|word| self.value(*word)).collect();
            calls::string(self.value(*len), &words)
        });
        let done = self.packet()?.set_option(kind, value.as_deref());
        self.writes.push(Write::AnyOption(kind, value));
        Ok(done)
    }

    /// Adds outer headers or removes some, or encrypts or decrypts the payload. Without the key
    /// that this needs, there is no change.
    fn outer_op(&mut self, op: &Op) -> Result<(), Fault> {
        let write = self.outer_write(op);
        let done = match &write {
            Some(Write::Tunnel(change)) => self.packet()?.tunnel(change),
            Some(Write::Crypt(change)) => self.packet()?.crypt(change),
            _ => Ok(false),
        };
        let done = done.map_err(|_| Fault::Truncated)?;
        self.writes.extend(write);
        op.visit_outs(&mut |ok| self.define(*ok, done.into()));
        Ok(())
    }

    /// The change of outer headers that an operation makes, or of an encrypted payload. `None` if
    /// it lacks its key.
    fn outer_write(&self, op: &Op) -> Option<Write> {
        Some(match op {
            Op::Encapsulate { inner, parts, len, words, seal, .. } => {
                let words = words.iter().map(|word| self.value(*word)).collect();
                let seal = match seal {
                    None => None,
                    Some((of, number)) => Some((self.association(*of)?, self.wide(*number))),
                };
                let headers = ((*inner, parts.clone()), (*len as usize, words));
                Write::Tunnel(Change::Push(headers.0, headers.1, seal))
            }
            Op::Decapsulate { inner, last, offset, association, .. } => {
                let association = match association {
                    None => None,
                    Some(of) => Some(self.association(*of)?),
                };
                Write::Tunnel(Change::Pop((*inner, *last), self.value(*offset), association))
            }
            Op::Translate { to, own, quoted, .. } => {
                let words = |ids: &[ValueId; 2]| ids.map(|id| self.value(id));
                let addresses = Addresses { own: words(own), quoted: quoted.as_ref().map(words) };
                Write::Tunnel(Change::Translate(*to, addresses))
            }
            Op::Encrypt { key, number, offset, .. } => {
                let sealed = (self.cipher_key(*key)?, self.wide(*number));
                Write::Crypt(crypt::Change::Encrypt(self.value(*offset), sealed))
            }
            Op::Decrypt { key, offset, .. } => {
                let key = self.cipher_key(*key)?;
                Write::Crypt(crypt::Change::Decrypt(self.value(*offset), key))
            }
            _ => return None,
        })
    }

    /// A key of a parameter. `None` if there is none with this number.
    fn cipher_key(&self, key: KeyRef) -> Option<Key> {
        self.env.param(key.keys).key(self.value(key.number)).cloned()
    }

    /// What both ends of a tunnel know of a packet. `None` if its key is missing.
    fn association(&self, of: model::Association) -> Option<Association> {
        let high = |value| u32::try_from(self.value(value)).unwrap_or(u32::MAX);
        Some(Association { key: self.cipher_key(of.key)?, high: of.high.map(high) })
    }

    /// A value of 64 bits.
    fn wide(&self, value: ValueId) -> u64 {
        u64::try_from(self.value(value)).unwrap_or(u64::MAX)
    }

    fn has(&mut self, out: ValueId, header: Header) -> Result<(), Fault> {
        let present = match &self.role {
            Role::Stream(subject) => subject.view().has(header),
            _ => self.packet()?.layout.has(header),
        };
        self.env.observer.has(self.env.node, header, present);
        self.define(out, Word::from(present));
        Ok(())
    }

    fn load(&mut self, out: ValueId, field: Field, at_entry: bool) -> Result<(), Fault> {
        if field == Field::PktTime {
            self.define(out, Word::from(self.env.now));
            return Ok(());
        }
        if let Role::Stream(_) = &self.role {
            let value = self.entry_field(field).ok_or(Fault::Truncated)?;
            self.define(out, value);
            return Ok(());
        }
        let state = self.packet()?;
        let value = if at_entry { state.get_at_entry(field) } else { state.get(field) };
        self.env.observer.read(self.env.node, field, value);
        self.define(out, value.ok_or(Fault::Truncated)?);
        Ok(())
    }

    fn store(&mut self, field: Field, value: Word) -> Result<(), Fault> {
        let done = self.packet()?.set(field, value);
        self.env.observer.write(self.env.node, field, value);
        self.writes.push(Write::Field(field, value));
        if done { Ok(()) } else { Err(Fault::Truncated) }
    }

    fn vlan(&mut self, pushed: Option<u16>) -> Result<(), Fault> {
        let state = self.packet()?;
        let done = match pushed {
            Some(id) => state.push_vlan(id),
            None => state.pop_vlan(),
        };
        self.env.observer.vlan(self.env.node, pushed);
        self.writes.push(pushed.map_or(Write::PopVlan, Write::PushVlan));
        if done { Ok(()) } else { Err(Fault::Truncated) }
    }

    /// Adds a TCP option with these values, or removes it.
    fn option(&mut self, option: Header, values: Option<Vec<Word>>) -> Result<(), Fault> {
        let done = self.packet()?.change_option(option, values.as_deref());
        self.writes.push(Write::Option(option, values));
        if done { Ok(()) } else { Err(Fault::Truncated) }
    }

    fn state_op(&mut self, op: &Op) -> Result<(), Fault> {
        match op {
            Op::StateExists { out, state, key } => {
                let found = self.state_exists(*state, key)?;
                self.define(*out, Word::from(found));
            }
            Op::StateGet { outs, state, key } => {
                let slots = self.state_get(*state, key)?;
                self.define_all(outs, &slots);
            }
            Op::StateSet { ok, state, key, values } => {
                let slots = values.iter().map(|value| self.value(*value)).collect();
                let done = self.state_set(*state, key, slots)?;
                self.define(*ok, Word::from(done));
            }
            Op::StatePut { ok, state, key, slot, value } => {
                let done = self.state_put(*state, key, *slot, self.value(*value))?;
                self.define(*ok, Word::from(done));
            }
            Op::StateDelete { state, key } => self.state_delete(*state, key)?,
            Op::StateLen { out, state } => {
                let len = self.env.instance.table(*state, self.env.shard).len();
                self.define(*out, Word::from(len).min(max_of(32)));
            }
            Op::Expiring { outs } => {
                if let Role::Expire(slots, _) = &self.role {
                    self.define_all(outs, &slots.clone());
                }
            }
            Op::ExpiringKey { outs } => {
                if let Role::Expire(_, key) = &self.role {
                    self.define_all(outs, &key.clone());
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn define_all(&mut self, outs: &[ValueId], values: &[Word]) {
        for (out, value) in outs.iter().zip(values) {
            self.define(*out, *value);
        }
    }
}
