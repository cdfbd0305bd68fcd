//! Steps of a specialisation whose effects are beside the packet's bytes: copies, events, tags.
#![expect(
    clippy::indexing_slicing,
    reason = "programs name functions, parameters and tags of the chain"
)]

use crate::basis::Part;
use crate::effects::{Arg, Publication};
use crate::findings::Image;
use crate::host::Functions;
use crate::mutants::RecordMutant;
use crate::specialiser::Specialiser;
use crate::value_dependency::ValueDependency;
use braid_ir::model::{Dest, EventArg, EventId, TagId, ValueId};
use braid_ir::value::ParamValue;
use braid_ir::values::Values;
use std::sync::Arc;

impl<F: Functions> Specialiser<'_, F> {
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
