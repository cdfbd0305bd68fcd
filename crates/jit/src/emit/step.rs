//! Which steps are machine code, and which are the host's.

use super::{Emitter, Place};
use crate::abi::{Resource, reshapes};
use crate::error::Error;
use braid_ir::model::{Key, Op, ParamId, SetRef, ValueId};
use braid_ir::residual::{Step, What};

impl Emitter<'_, '_> {
    pub(super) fn step(&mut self, place: Place, step: &Step) -> Result<(), Error> {
        let node = step.site.node;
        match &step.what {
            What::Op(op) => self.op(place, node, op, step),
            What::Tally(tally) => {
                self.count(*tally);
                Ok(())
            }
            What::Write(fields) => match self.plan(fields) {
                Some(plan) => self.write(&plan),
                None => self.host(place, &step.what),
            },
            What::Find { found, entry, state, key } => {
                let words = self.facts.words[entry.index()];
                match self.numbered(node, Resource::Table(*state), words) {
                    Some(number) => self.find(number, (*found, *entry), key),
                    None => self.host(place, &step.what),
                }
            }
            What::Read { outs, state, entry } => {
                let words = self.facts.words[entry.index()];
                match self.numbered(node, Resource::Table(*state), words) {
                    Some(number) => self.read(number, outs, *entry),
                    None => self.host(place, &step.what),
                }
            }
            What::Classify { pass, rule, param, packet: Some(packet) } => {
                match self.numbered(node, Resource::Rules(*param), 0) {
                    Some(number) => self.classify(place, number, (*pass, *rule), packet),
                    None => self.host(place, &step.what),
                }
            }
            What::CountRule { param, rule } => {
                match self.numbered(node, Resource::Rules(*param), 0) {
                    Some(number) => self.count_rule(place, number, *rule),
                    None => self.host(place, &step.what),
                }
            }
            What::Enter => self.enter(place, node),
            What::Parse | What::Classify { .. } => self.host(place, &step.what),
        }
    }

    pub(super) fn op(
        &mut self,
        place: Place,
        node: u16,
        op: &Op,
        step: &Step,
    ) -> Result<(), Error> {
        match op {
            // Made where it is used.
            Op::Const { .. } => Ok(()),
            Op::Bin { out, op, a, b } => self.binary(place, *out, *op, (*a, *b)),
            Op::Cmp { out, op, a, b } => self.compare(*out, *op, (*a, *b)),
            Op::Not { out, a } => self.complement(*out, *a),
            Op::Resize { out, a } => self.convert(*out, *a, false),
            Op::Clamp { out, a } => self.convert(*out, *a, true),
            Op::Select { out, cond, a, b } => self.choose(*out, *cond, (*a, *b)),
            Op::InSet { out, a, set: SetRef::Const(set) } if self.fits(set) => {
                self.member_of(*out, *a, set)
            }
            Op::Has { out, header } => {
                self.has(*out, *header);
                Ok(())
            }
            Op::Load { out, field } => {
                if self.is_only_in_part(place, *out, *field) || self.load_field(*out, *field) {
                    self.loaded.insert(*out, *field);
                    Ok(())
                } else {
                    self.host(place, &step.what)
                }
            }
            Op::Route { found, hop, param, addr } => {
                match self.numbered(node, Resource::Routes(*param), 0) {
                    Some(number) => self.route(number, (*found, *hop), *addr),
                    None => self.host(place, &step.what),
                }
            }
            Op::ListGet { out, param, index, column } if !self.is_wide(*index) => {
                self.list(place, step, *out, (*param, *index, *column))
            }
            Op::StateSet { ok, state, key: Key::Explicit(key), values } => {
                match self.numbered(node, Resource::Table(*state), 0) {
                    Some(number) => self.set_slots(number, *ok, key, values),
                    None => self.host(place, &step.what),
                }
            }
            Op::StatePut { ok, state, key: Key::Explicit(key), slot, value } => {
                match self.numbered(node, Resource::Table(*state), 0) {
                    Some(number) => self.put_slot(place, number, *ok, key, (*slot, *value)),
                    None => self.host(place, &step.what),
                }
            }
            Op::LoadEntry { .. }
            | Op::Store { .. }
            | Op::Rules { .. }
            | Op::StateExists { .. }
            | Op::StateGet { .. }
            | Op::Expiring { .. }
            | Op::ExpiringKey { .. }
            | Op::Count { .. } => Err(Error::Operation { block: place.block, step: place.step }),
            _ => self.host(place, &step.what),
        }
    }

    /// A member of a list, by its number in at most 64 bits.
    fn list(
        &mut self,
        place: Place,
        step: &Step,
        out: ValueId,
        (param, index, column): (ParamId, ValueId, u32),
    ) -> Result<(), Error> {
        let node = step.site.node;
        if self.resources.list(node, param).is_some() {
            return self.list_at(place, node, out, (param, index, column));
        }
        match self.numbered(node, Resource::List(param), 0).filter(|_| !self.is_wide(out)) {
            Some(number) => self.list_get(place, number, out, (index, column)),
            None => self.host(place, &step.what),
        }
    }

    /// The number of a resource of which so many words are read.
    pub(super) fn numbered(&mut self, node: u16, resource: Resource, words: u32) -> Option<u32> {
        if words as usize > crate::sys::SLOTS {
            return None;
        }
        self.resources.number(node, resource)
    }

    /// A universal host call.
    fn host(&mut self, place: Place, what: &What) -> Result<(), Error> {
        let changes = reshapes(what);
        self.entered &= !changes;
        self.step_call(place, what)
    }
}
