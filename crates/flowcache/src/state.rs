//! What a specialisation finds besides the packet's bytes: the entries that the record will depend
//! on, the changes that each packet makes to them, copies, events, and tags.
#![expect(
    clippy::indexing_slicing,
    reason = "an entry's number is its position in `depends_on`, each value has a dependency, and \
              programs name what their functions declare"
)]

use crate::basis::Part;
use crate::effects::{Arg, Publication};
use crate::entry_use::{Change, EntryUse, Update};
use crate::findings::{Findings, Image};
use crate::host::Functions;
use crate::mutants::RecordMutant;
use crate::recording::Source;
use crate::script::{SlotRef, Step, Sum};
use crate::specialiser::Specialiser;
use crate::value_dependency::ValueDependency;
use braid_ir::model::{Dest, EventArg, EventId, StateId, TagId, ValueId, Word};
use braid_ir::value::ParamValue;
use braid_ir::values::Values;
use braid_state::{Handle, TableRef};
use std::sync::Arc;

impl<F: Functions> Specialiser<'_, F> {
    /// Looks up an entry. Returns its number among the entries that were found. The inner `None`
    /// means that there is no entry; the record will depend on its absence.
    pub(crate) fn find(
        &mut self,
        values: &Values<'_>,
        node: u16,
        state: StateId,
        key: &[ValueId],
    ) -> Option<Option<usize>> {
        let table = self.functions.table(node, state, self.worker);
        let confuses = self.findings.mutants.has(RecordMutant::LookupConfused);
        if let Some(number) = self.findings.asked.get(table, key, confuses) {
            return Some(number);
        }
        self.findings.fix_all(values, key)?;
        let known = self.findings.depends_on.len();
        let number = self.look_up(values, table, key);
        let Findings { depends_on, recording, .. } = &mut *self.findings;
        let found = (number.unwrap_or(known), number.is_some());
        let shape = self.functions.state().key_shape(table);
        recording.find(values, (table, shape), key, found, &depends_on[..known]);
        self.findings.asked.push(table, key, number);
        Some(number)
    }

    fn look_up(&mut self, values: &Values<'_>, table: TableRef, key: &[ValueId]) -> Option<usize> {
        let (key, entry) = self.functions.peek(table, values, key);
        self.findings.looks_up(1);
        let Findings { depends_on, absent, spare, recording, .. } = &mut *self.findings;
        let Some(entry) = entry else {
            if absent.add(table, key).is_none() {
                // Whether two keys are equal may differ between the flows of a path.
                recording.give_up();
            }
            return None;
        };
        let same = |(one, how): &(Handle, EntryUse)| (how.table, *one) == (table, entry);
        let known = depends_on.iter().position(same);
        let number = known.unwrap_or_else(|| {
            let one = spare.pop().unwrap_or_else(|| EntryUse::of(table));
            depends_on.push((entry, EntryUse { table, ..one }));
            depends_on.len() - 1
        });
        Some(number)
    }

    /// Reads the slots of an entry that was found.
    pub(crate) fn read(
        &mut self,
        values: &mut Values<'_>,
        (node, state, entry): (u16, StateId, Handle),
        outs: &[ValueId],
    ) -> Option<()> {
        let table = self.functions.table(node, state, self.worker);
        let Findings { depends_on, put, dependencies, recording, .. } = &mut *self.findings;
        let is_it = |(one, how): &(Handle, EntryUse)| (how.table, *one) == (table, entry);
        let number = depends_on.iter().position(is_it)?;
        let (store, updates) = (self.functions.state(), &depends_on[number].1.updates);
        let (shape, words) = (store.slot_shape(table), store.slots(table, entry)?);
        let length = self.headers.packet.wire_len;
        for (slot, out) in (0..).zip(outs) {
            let dependency = &mut dependencies[out.index()];
            recording.set_source(*out, Source::Unknown);
            if let Some(put) = put.iter().find(|put| (put.entry, put.slot) == (number, slot)) {
                values.set(*out, put.value);
                *dependency = put.dependency;
                recording.set_source(*out, put.source);
                continue;
            }
            let mut value = shape.get(words, slot as usize);
            let from = SlotRef::new(number, table, shape, slot);
            let update = updates.iter().find(|one| one.slot == slot);
            let (packets, bytes, wraps) = match update.map(|one| one.change) {
                None => {
                    recording.slot(*out, from);
                    (0, 0, None)
                }
                Some(Change::Time) => {
                    values.set(*out, self.now.into());
                    *dependency = ValueDependency::Time;
                    recording.define(*out, |out| Step::Time { out });
                    continue;
                }
                Some(Change::Add { packets, bytes, wraps }) => {
                    let sum = Sum { packets, bytes, wraps, most: values.ty(*out).max() };
                    value = sum.of(value, length);
                    recording.define(*out, |out| Step::Sum { out, from, sum });
                    (packets, bytes, Some(wraps))
                }
            };
            values.set(*out, value);
            *dependency = ValueDependency::Slot { entry: number, slot, packets, bytes, wraps };
        }
        Some(())
    }

    /// Assigns a slot of an entry. `None` unless the record can make the assignment for each
    /// packet, or the slot already holds the value.
    pub(crate) fn assign(
        &mut self,
        values: &Values<'_>,
        number: usize,
        slot: u32,
        id: ValueId,
    ) -> Option<()> {
        let (entry, ref how) = self.findings.depends_on[number];
        let store = self.functions.state();
        let (shape, words) = (store.slot_shape(how.table), store.slots(how.table, entry)?);
        let from = SlotRef::new(number, how.table, shape, slot);
        let old = shape.get(words, slot as usize);
        let is_now = shape.width(slot as usize) == 64 && old <= Word::from(self.functions.now());
        let dependency = self.findings.dependency(id);
        if dependency == ValueDependency::Time && !is_now {
            self.findings.recording.give_up();
        }
        let change = match dependency {
            ValueDependency::Slot { entry, slot: from, packets, bytes, wraps }
                if (entry, from) == (number, slot) =>
            {
                // The value is the slot's content before the packet, perhaps with an addition. It
                // replaces earlier assignments.
                self.findings.forget(number, slot);
                let Some(wraps) = wraps else { return Some(()) };
                let forgets = self.findings.mutants.has(RecordMutant::BytesForgotten);
                Change::Add { packets, bytes: if forgets { 0 } else { bytes }, wraps }
            }
            ValueDependency::Time if is_now => {
                self.findings.forget(number, slot);
                self.findings.recording.test(Step::NotLater { from });
                Change::Time
            }
            _ if self.findings.has_put(number, slot) || self.findings.changes_with_packets(id) => {
                return self.findings.put_dynamic(values, (number, slot), id);
            }
            _ => {
                self.findings.fix(values, id)?;
                self.findings.depends_on[number].1.read(slot);
                self.findings.recording.holds(from, id, old);
                return (values.get(id) == old).then_some(());
            }
        };
        if slot >= 63 {
            return None;
        }
        self.findings.depends_on[number].1.updates.push(Update { slot, change });
        Some(())
    }

    /// The packet with all changes so far.
    fn image(&self) -> Image {
        let (headers, effects) = (&self.headers, &self.findings.path.effects);
        Image {
            head: headers.head,
            mask: headers.mask,
            ttl: headers.rewrite.ttl,
            added: headers.added.clone(),
            vlans: headers.vlans.clone(),
            tags: effects.tags.clone(),
            outer: effects.outer.len(),
        }
    }

    /// Adds a copy that a function sends now.
    pub(crate) fn copy(&mut self, node: u16, dest: Dest) {
        self.findings.path.effects.copies.push((node, dest));
        self.findings.copies.push(self.image());
        self.findings.recording.copy();
    }

    /// Whether the packet has not changed since any of its copies was sent.
    pub(crate) fn copies_are_alike(&self) -> bool {
        self.findings.copies.iter().all(|copy| *copy == self.image())
    }

    /// Adds an event that a function publishes.
    pub(crate) fn publish(
        &mut self,
        values: &Values<'_>,
        (node, event): (u16, EventId),
        args: &[EventArg],
    ) -> Option<()> {
        let mut all = Vec::with_capacity(args.len());
        for arg in args {
            all.push(match arg {
                EventArg::Str(text) => Arg::Text(text.clone()),
                EventArg::Param(param) => {
                    self.depend_on_basis(node, *param, Part::Whole);
                    match &self.functions.chain().nodes[usize::from(node)].params[param.index()] {
                        ParamValue::Str(text) => Arg::Text(text.clone()),
                        _ => Arg::Text(String::new()),
                    }
                }
                EventArg::Value(id) => self.arg(values, *id)?,
                // Each packet may have other bytes.
                EventArg::Bytes(_) => return None,
            });
        }
        self.findings.path.effects.publications.push(Publication { node, event, args: all });
        Some(())
    }

    fn arg(&mut self, values: &Values<'_>, id: ValueId) -> Option<Arg> {
        if self.findings.mutants.has(RecordMutant::EventFixed) {
            return Some(Arg::Word(values.get(id)));
        }
        self.findings.make_linear(values, id);
        Some(match self.findings.dependency(id) {
            ValueDependency::Time => Arg::Time,
            ValueDependency::Dynamic(_) | ValueDependency::Slot { .. } => {
                Arg::Dynamic(self.findings.dynamic(values, id)?)
            }
            ValueDependency::Number { number, shift, add } => Arg::Number(number, shift, add),
            ValueDependency::Bits { number, shift } => Arg::Number(number, shift, 0),
            ValueDependency::Fixed => {
                match self.findings.keys.iter().find(|(value, _)| *value == id) {
                    Some((_, bits)) => Arg::Bits(*bits),
                    None => {
                        self.findings.pin(values, id);
                        Arg::Word(values.get(id))
                    }
                }
            }
            ValueDependency::Relative { .. } | ValueDependency::Packet => return None,
        })
    }

    /// Adds a tag to the packet.
    pub(crate) fn set_tag(
        &mut self,
        values: &Values<'_>,
        (node, tag): (u16, TagId),
        id: ValueId,
    ) -> Option<()> {
        self.findings.fix(values, id)?;
        self.findings.pin(values, id);
        let name: Arc<str> = self.tag_name(node, tag).into();
        let effects = &mut self.findings.path.effects;
        effects.set_tag(name, values.get(id));
        effects.programs_tag = true;
        Some(())
    }

    /// Reads a tag. If no function has set it, the packet must have arrived without it.
    pub(crate) fn tag(&mut self, values: &mut Values<'_>, (node, tag): (u16, TagId), out: ValueId) {
        let name = self.tag_name(node, tag);
        let most = self.functions.chain().nodes[usize::from(node)].model.tags[tag.index()].ty.max();
        let known = self.findings.path.effects.tags.iter().find(|(known, _)| **known == *name);
        let value = match known {
            Some((_, value)) => *value,
            None => {
                let has_any = !self.headers.origin.tags.is_empty();
                self.findings.path.dynamic.lack(has_any.then(|| name.into()));
                0
            }
        };
        self.findings.know(values, out, value & most);
    }

    fn tag_name(&self, node: u16, tag: TagId) -> &str {
        &self.functions.chain().nodes[usize::from(node)].model.tags[tag.index()].name
    }
}
