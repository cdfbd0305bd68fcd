//! Entries of tables: found, read, assigned.

use super::{Emitter, Fresh, Place, at};
use crate::error::Error;
use crate::sys;
use braid_ir::model::ValueId;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

impl Emitter<'_, '_> {
    /// The slots follow each other from a pointer.
    pub(super) fn slots(&mut self, outs: &[ValueId], from: Value) {
        let mut offset = 0;
        for out in outs {
            let mut value = self.take(from, offset);
            offset += 8;
            if self.width(*out) > 64 {
                let high = self.take(from, offset);
                offset += 8;
                value = self.build.ins().iconcat(value, high);
            }
            self.set(*out, value);
        }
    }

    pub(super) fn find(
        &mut self,
        number: u32,
        (found, entry): (ValueId, ValueId),
        key: &[ValueId],
    ) -> Result<(), Error> {
        let words = self.key_words(key)?;
        let wanted = self.imm(u64::from(self.facts.words[entry.index()]));
        let results = match *words {
            [word] => self.host_call(at::FIND_1, number, &[word, wanted], 2),
            [first, second] => self.host_call(at::FIND_2, number, &[first, second, wanted], 2),
            _ => {
                let key = self.key(&words);
                let size = self.imm(words.len() as u64);
                match words.len() {
                    5 => self.host_call(at::FIND_5, number, &[key, wanted], 2),
                    _ => self.host_call(at::FIND, number, &[key, size, wanted], 2),
                }
            }
        };
        let missing = self.imm(sys::missing());
        let is_there = self.build.ins().icmp(IntCC::NotEqual, results[1], missing);
        self.set(found, is_there);
        self.set(entry, results[0]);
        self.fresh = Some(Fresh { entry, slots: results[1] });
        Ok(())
    }

    pub(super) fn read(
        &mut self,
        number: u32,
        outs: &[ValueId],
        entry: ValueId,
    ) -> Result<(), Error> {
        let slots = match self.fresh {
            Some(fresh) if fresh.entry == entry => fresh.slots,
            _ => {
                let handle = self.low(entry)?;
                let wanted = self.imm(u64::from(self.facts.words[entry.index()]));
                self.host_call(at::READ, number, &[handle, wanted], 1)[0]
            }
        };
        self.slots(outs, slots);
        Ok(())
    }

    /// Assigns all slots of the entry with a key.
    pub(super) fn set_slots(
        &mut self,
        number: u32,
        ok: ValueId,
        key: &[ValueId],
        values: &[ValueId],
    ) -> Result<(), Error> {
        let mut words = self.key_words(key)?;
        let size = words.len();
        for value in values {
            let (low, high) = self.halves(*value)?;
            words.push(low);
            if self.width(*value) > 64 {
                words.push(high);
            }
        }
        let all = self.key(&words);
        let sizes = (self.imm(size as u64), self.imm((words.len() - size) as u64));
        let done = self.host_call(at::SET, number, &[all, sizes.0, sizes.1], 1)[0];
        self.set(ok, done);
        Ok(())
    }

    /// Assigns one slot of the entry with a key.
    pub(super) fn put_slot(
        &mut self,
        place: Place,
        number: u32,
        ok: ValueId,
        key: &[ValueId],
        (slot, value): (u32, ValueId),
    ) -> Result<(), Error> {
        let mut words = self.key_words(key)?;
        let size = self.imm(words.len() as u64);
        let (low, high) = self.halves(value)?;
        words.extend([low, high]);
        let all = self.key(&words);
        let slot = self.build.ins().iconst(types::I32, i64::from(slot));
        let result = self.host_call(at::PUT, number, &[all, size, slot], 1)[0];
        let code = self.down(result, 1);
        self.fault_if(place, code);
        self.set(ok, result);
        Ok(())
    }
}
