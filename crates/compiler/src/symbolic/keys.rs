//! Keys of state tables as values, for tables per flow, per connection or per field.

use super::Synth;
use super::build::Way;
use super::mutants::SynthMutant;
use super::values::Pure;
use super::visit::{Visit, key_fields};
use braid_ir::engine::FLOW_WIDTHS;
use braid_ir::model::{BinOp, CmpOp, Granularity, Key, Kind, StateId, Ty, ValueId};

impl<'a> Synth<'a> {
    /// The parts of a key. `None`: the packet lacked a field of the key.
    pub(super) fn key(
        &mut self,
        visit: &mut Visit<'a>,
        way: &mut Way,
        state: StateId,
        key: &Key,
    ) -> Option<Vec<ValueId>> {
        if let Key::Explicit(values) = key {
            return Some(values.iter().map(|value| self.value(way, *value)).collect());
        }
        let model = visit.model;
        let granularity = &model.state[state.index()].granularity;
        let fields = key_fields(granularity, key);
        let mut parts = Vec::with_capacity(fields.len());
        for field in fields {
            parts.push(self.load_entry(visit, way, *field)?);
        }
        if matches!(granularity, Granularity::Flow | Granularity::Biflow) {
            parts = self.flow(way, parts, key, *granularity == Granularity::Biflow);
        }
        Some(parts)
    }

    /// A flow's key, made from version, source, destination, protocol and ports.
    fn flow(&mut self, way: &Way, mut parts: Vec<ValueId>, key: &Key, both: bool) -> Vec<ValueId> {
        if self.has_mutant(SynthMutant::KeyPartsSwapped) {
            parts.swap(4, 5);
        }
        if let Key::Reversed(_) = key {
            parts.swap(1, 2);
            parts.swap(4, 5);
        }
        if both {
            let (mut src, mut dst) = (self.narrow(parts[1]), self.narrow(parts[2]));
            if self.values.ty(src).width != self.values.ty(dst).width {
                (src, dst) = (parts[1], parts[2]);
            }
            let bool = Ty::of(Kind::Bool);
            let less = self.values.cmp(CmpOp::Lt, src, dst);
            let equal = self.values.cmp(CmpOp::Eq, src, dst);
            let ports = self.values.cmp(CmpOp::Le, parts[4], parts[5]);
            let tie = self.values.bin(BinOp::And, bool, equal, ports);
            let ordered = self.values.bin(BinOp::Or, bool, less, tie);
            let ordered = match way.state.facts.only(&self.values, ordered) {
                Some(word) => self.values.truth(word != 0),
                None => ordered,
            };
            for (a, b) in [(1, 2), (4, 5)] {
                let (x, y) = (parts[a], parts[b]);
                parts[a] = self.values.select(ordered, x, y);
                parts[b] = self.values.select(ordered, y, x);
            }
        }
        let parts = parts.into_iter().zip(FLOW_WIDTHS);
        parts.map(|(part, width)| self.values.resize(Ty::uint(width), part)).collect()
    }

    /// The value before it was widened.
    fn narrow(&self, value: ValueId) -> ValueId {
        match self.values.def(value) {
            super::values::Def::Pure(Pure::Resize(inner))
                if self.values.ty(*inner).width < self.values.ty(value).width =>
            {
                *inner
            }
            _ => value,
        }
    }
}
