//! State operations of programs: they find, assign and create entries. Programs run when entries
//! end.

use crate::exec_context::ExecContext;
use crate::model_interpreter;
use crate::scratch::Scratch;
use crate::work::Role;
use braid_ir::engine::Fault;
use braid_ir::model::{StateId, ValueId, Word};
use braid_ir::values::Values;
use braid_state::{Created, Ended, Handle, New, TableRef};

impl ExecContext<'_> {
    #[expect(clippy::indexing_slicing, reason = "each table of a model has a locator")]
    pub(crate) fn table(&self, state: StateId) -> TableRef {
        self.locators[state.index()].table(self.shard)
    }

    /// Starts the run of a program for a packet, a timer or an expiry. The run has found no entry
    /// yet.
    pub(crate) fn start(&mut self) {
        self.touched.start();
    }

    /// Records that the running program has found or assigned an entry.
    fn touch(&mut self, state: StateId, entry: Handle) {
        let locator = self.locators.get(state.index());
        if let Some(locator) = locator.filter(|locator| locator.is_partner()) {
            self.touched.set(locator.table(self.shard), entry);
        }
    }

    /// Packs a key into the scratch words.
    fn pack_key(&mut self, table: TableRef, key: &[Word]) {
        let shape = self.store.key_shape(table);
        let Scratch { key: packed, flow: (parts, flow), .. } = &mut *self.scratch;
        if shape.is_flow() && **parts == *key {
            packed.clone_from(flow);
            return;
        }
        packed.resize(shape.words(), 0);
        shape.pack(key, packed);
        if shape.is_flow() {
            key.clone_into(parts);
            flow.clone_from(packed);
        }
    }

    /// Packs slots into the scratch words.
    fn pack_slots(&mut self, table: TableRef, slots: &[Word]) {
        let shape = self.store.slot_shape(table);
        self.scratch.slots.resize(shape.words(), 0);
        shape.pack(slots, &mut self.scratch.slots);
    }

    /// Finds the entry with the packed key. A packet's program renews the entry by finding it.
    fn find_packed(&mut self, state: StateId, table: TableRef) -> Option<Handle> {
        let key = &self.scratch.key;
        let entry = match self.role {
            Role::Packet => self.store.find_hinted(table, key, self.now).map(|(entry, _)| entry),
            Role::Timer | Role::Expire => self.store.find(table, key),
        };
        if let Some(entry) = entry {
            self.touch(state, entry);
        }
        entry
    }

    /// Calls `context` with the key that has these parts.
    pub(crate) fn with_key<T>(
        &mut self,
        values: &Values<'_>,
        parts: &[ValueId],
        context: impl FnOnce(&mut Self, &[Word]) -> T,
    ) -> T {
        let mut key = std::mem::take(&mut self.scratch.parts);
        key.clear();
        key.extend(parts.iter().map(|part| values.get(*part)));
        let done = context(self, &key);
        self.scratch.parts = key;
        done
    }

    /// Finds the entry with this key.
    pub(crate) fn find(&mut self, state: StateId, key: &[Word]) -> Option<Handle> {
        let table = self.table(state);
        self.pack_key(table, key);
        self.find_packed(state, table)
    }

    /// Reads the slots of an entry. The slots of an ended entry are 0.
    pub(crate) fn read(&self, state: StateId, entry: Handle, each: &mut dyn FnMut(usize, Word)) {
        let table = self.table(state);
        let shape = self.store.slot_shape(table);
        let words = self.store.slots(table, entry).unwrap_or(&[]);
        (0..shape.slots()).for_each(|slot| each(slot, shape.get(words, slot)));
    }

    /// Reads the default slots that a table gives for a missing entry.
    pub(crate) fn default(
        &self,
        state: StateId,
        each: &mut dyn FnMut(usize, Word),
    ) -> Result<(), Fault> {
        let decl = self.model.state.get(state.index());
        let slots = decl.and_then(|decl| decl.default.as_ref()).ok_or(Fault::NoEntry)?;
        let slots = slots.iter().map(|slot| slot.value(self.params));
        slots.enumerate().for_each(|(at, value)| each(at, value));
        Ok(())
    }

    /// Assigns all slots of the entry with this key, and creates the entry if necessary. Returns
    /// false if the table refuses the new entry.
    pub(crate) fn assign(&mut self, state: StateId, key: &[Word], slots: &[Word]) -> bool {
        let table = self.table(state);
        self.pack_key(table, key);
        self.pack_slots(table, slots);
        match self.find_packed(state, table) {
            Some(entry) => self.store.assign(table, entry, &self.scratch.slots, self.now),
            None => self.create(state, table),
        }
    }

    /// Assigns one slot of the entry with this key. A missing entry is created with default values
    /// in its other slots. Returns false if the table refuses the new entry.
    pub(crate) fn put(
        &mut self,
        state: StateId,
        key: &[Word],
        slot: u32,
        value: Word,
    ) -> Result<bool, Fault> {
        let table = self.table(state);
        self.pack_key(table, key);
        if let Some(entry) = self.find_packed(state, table) {
            return Ok(self.store.put(table, entry, slot as usize, value, self.now));
        }
        self.put_first(state, table, slot as usize, value)
    }

    /// Creates the entry with the packed key. One slot gets the value, the others get their
    /// defaults.
    fn put_first(
        &mut self,
        state: StateId,
        table: TableRef,
        slot: usize,
        value: Word,
    ) -> Result<bool, Fault> {
        let mut words = std::mem::take(&mut self.scratch.slots);
        let shape = self.store.slot_shape(table);
        words.resize(shape.words(), 0);
        let packed = self.default(state, &mut |at, value| shape.put(&mut words, at, value));
        shape.put(&mut words, slot, value);
        self.scratch.slots = words;
        packed?;
        Ok(self.create(state, table))
    }

    /// As [`ExecContext::assign`], if no entry has this packed key.
    pub(crate) fn assign_packed(&mut self, state: StateId, key: &[u64], slots: &[u64]) -> bool {
        key.clone_into(&mut self.scratch.key);
        slots.clone_into(&mut self.scratch.slots);
        self.create(state, self.table(state))
    }

    /// As [`ExecContext::put`], if no entry has this packed key.
    pub(crate) fn put_packed(
        &mut self,
        state: StateId,
        key: &[u64],
        slot: u32,
        value: Word,
    ) -> Result<bool, Fault> {
        key.clone_into(&mut self.scratch.key);
        self.put_first(state, self.table(state), slot as usize, value)
    }

    /// Creates the entry with the packed key and slots. Returns false if the table refuses it.
    fn create(&mut self, state: StateId, table: TableRef) -> bool {
        if self.role == Role::Expire {
            self.store.refuse(table);
            return false;
        }
        let with = self.model.state.get(state.index()).and_then(|decl| decl.lives_with);
        let key = std::mem::take(&mut self.scratch.key);
        let slots = std::mem::take(&mut self.scratch.slots);
        let mut ended = std::mem::take(&mut self.scratch.ended);
        let new = New {
            key: &key,
            slots: &slots,
            partner: with.and_then(|with| self.touched.get(self.table(with))),
            now: self.now,
            shard: self.shard,
            renews: self.role == Role::Packet,
        };
        let mut created = self.store.create(table, &new, &mut ended);
        while created == Created::Evicted {
            self.interrupt(&ended);
            created = self.store.create_after_eviction(table, &new, &mut ended);
        }
        self.scratch.key = key;
        self.scratch.slots = slots;
        self.scratch.ended = ended;
        if let Created::Entry(entry) = created {
            self.touch(state, entry);
        }
        matches!(created, Created::Entry(_))
    }

    pub(crate) fn delete(&mut self, state: StateId, key: &[Word]) {
        let table = self.table(state);
        self.pack_key(table, key);
        if let Some(entry) = self.store.find(table, &self.scratch.key) {
            self.store.delete(table, entry);
        }
    }

    /// As [`Self::run_ended`], within a run of a program, which keeps the entries that it has
    /// found.
    fn interrupt(&mut self, ended: &Ended) {
        if ended.is_empty() {
            return;
        }
        let run = self.touched.run;
        let mut found = std::mem::take(&mut self.scratch.found);
        let tables = self.locators.iter().map(|locator| locator.table(self.shard));
        found.extend(tables.filter_map(|table| Some((table, self.touched.get(table)?))));
        self.run_ended(ended);
        self.touched.run = run;
        found.drain(..).for_each(|(table, entry)| self.touched.set(table, entry));
        self.scratch.found = found;
    }

    /// Runs the `expire` programs of this function's ended entries. These programs start without
    /// found entries.
    pub(crate) fn run_ended(&mut self, ended: &Ended) {
        self.start();
        let model = self.model;
        for entry in ended.entries() {
            if self.instance.release_slots(&entry) {
                continue;
            }
            let program = model.expire.iter().find(|(state, _)| *state == entry.state);
            let Some((_, program)) = program else { continue };
            let (mut slots, mut key) = std::mem::take(&mut self.scratch.ending);
            slots.clear();
            slots.extend(self.store.slot_shape(entry.table).unpack(entry.slots));
            key.clear();
            key.extend(self.store.key_shape(entry.table).unpack(entry.key));
            model_interpreter::on_ending(self, entry.shard, program, &slots, &key);
            self.scratch.ending = (slots, key);
        }
    }
}
