//! Side effects in a specialisation: events, tags and copies.

use crate::basis::Part;
use crate::effects::{Arg, Publication};
use crate::findings::{Dependence, Image};
use crate::host::Functions;
use crate::mutants::RecordMutant;
use crate::path::Path;
use crate::specialiser::Specialiser;
use braid_ir::model::{Dest, EventArg, EventId, TagId, ValueId};
use braid_ir::value::ParamValue;
use braid_ir::values::Values;
use std::sync::Arc;

impl<F: Functions> Specialiser<'_, F> {
    /// What has been done to the packet.
    fn image(&self) -> Image {
        let Path { blend, effects, .. } = &self.findings.path;
        Image {
            head: self.headers.head,
            mask: self.headers.mask,
            ttl: blend.ttl,
            vlans: effects.vlans.clone(),
            tags: effects.tags.clone(),
        }
    }

    /// A function sends a copy.
    pub(crate) fn copy(&mut self, node: u16, dest: Dest) {
        self.findings.path.effects.copies.push((node, dest));
        self.findings.copies.push(self.image());
    }

    /// Whether all copies are as the packet is now.
    pub(crate) fn copies_are_alike(&self) -> bool {
        self.findings.copies.iter().all(|copy| *copy == self.image())
    }

    /// A function publishes an event.
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
                    let params = &self.functions.chain().nodes[usize::from(node)].params;
                    match &params[param.index()] {
                        ParamValue::Str(text) => Arg::Text(text.clone()),
                        _ => Arg::Text(String::new()),
                    }
                }
                EventArg::Value(id) => self.arg(values, *id)?,
            });
        }
        self.findings.path.effects.publications.push(Publication { node, event, args: all });
        Some(())
    }

    fn arg(&mut self, values: &Values<'_>, id: ValueId) -> Option<Arg> {
        let kind = values.ty(id).kind;
        if self.has_mutant(RecordMutant::EventFixed) {
            return Some(Arg::Word(kind, values.get(id)));
        }
        Some(match self.dependence(id) {
            Dependence::Time => Arg::Time(kind),
            Dependence::Dynamic(_) | Dependence::Slot { .. } => {
                Arg::Dynamic(kind, self.dynamic(values, id)?)
            }
            Dependence::Number { number, shift, add } => Arg::Number(kind, number, shift, add),
            Dependence::Bits { number, shift } => Arg::Number(kind, number, shift, 0),
            Dependence::Fixed => match self.findings.keys.iter().find(|(value, _)| *value == id) {
                Some((_, bits)) => Arg::Bits(kind, *bits),
                None => Arg::Word(kind, values.get(id)),
            },
            Dependence::Packet => return None,
        })
    }

    /// The packet gets a tag.
    pub(crate) fn set_tag(
        &mut self,
        values: &Values<'_>,
        (node, tag): (u16, TagId),
        id: ValueId,
    ) -> Option<()> {
        self.fix(values, id)?;
        let name: Arc<str> = self.tag_name(node, tag).into();
        let tags = &mut self.findings.path.effects.tags;
        match tags.iter_mut().find(|(known, _)| *known == name) {
            Some((_, value)) => *value = values.get(id),
            None => tags.push((name, values.get(id))),
        }
        Some(())
    }

    /// A function reads a tag, which the packet has from another one, or else did not have when it came.
    pub(crate) fn tag(&mut self, values: &mut Values<'_>, (node, tag): (u16, TagId), out: ValueId) {
        let name = self.tag_name(node, tag);
        let most = self.functions.chain().nodes[usize::from(node)].model.tags[tag.index()].ty.max();
        let known = self.findings.path.effects.tags.iter().find(|(known, _)| **known == *name);
        let value = match known {
            Some((_, value)) => *value,
            None => {
                let name = name.into();
                self.findings.path.dynamic.lack(name);
                0
            }
        };
        self.know(values, out, value & most);
    }

    fn tag_name(&self, node: u16, tag: TagId) -> &str {
        &self.functions.chain().nodes[usize::from(node)].model.tags[tag.index()].name
    }
}
