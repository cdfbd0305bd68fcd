//! The log of a stage's writes. A merger must know which parts a stage has written in a packet,
//! even if a written value equals the old one. So each assignment in the stage's programs also sets
//! a tag of the packet.

use braid_ir::model::{Kind, Model, Op, TagDecl, TagId, Ty, ValueId};
use braid_ir::native::{FieldSet, Native, Profile};
use braid_ir::service_graph::Part;
use braid_ir::service_graph::stages::Log;

/// The type of a tag that logs writes.
const ONCE: Ty = Ty { width: 1, kind: Kind::Bool };

/// The parts that an operation assigns. `None`: it assigns nothing that can be logged.
fn assigned(model: &Model, op: &Op) -> Option<Vec<Part>> {
    match op {
        Op::Store { field, .. } => Some(Part::Field(*field).pieces()),
        Op::StoreTag { tag, .. } => {
            let tag = model.tags.get(tag.index())?;
            Some(vec![Part::Tag(tag.name.clone())])
        }
        _ => None,
    }
}

/// Whether an operation is native code that may change packets or their tags.
fn may_change(model: &Model, op: &Op) -> bool {
    let Op::Native { .. } = op else { return false };
    let may = model.native.as_ref().map_or(Profile::ANYTHING, Native::may);
    let Profile { writes_payload, writes_bytes, adds, removes, .. } = may;
    let writes = may.writes != FieldSet::default() || !model.tags.is_empty();
    writes || writes_payload || writes_bytes || adds || removes
}

/// The parts that a model assigns, and whether it changes packets in no other way.
pub(super) fn assigns(model: &Model) -> (Vec<Part>, bool) {
    let (mut parts, mut only) = (Vec::new(), true);
    for op in model.packet.blocks.iter().flat_map(|block| &block.ops) {
        match assigned(model, op) {
            Some(found) => parts.extend(found),
            None => only &= !op.changes_bytes() && !may_change(model, op),
        }
    }
    parts.sort_unstable();
    parts.dedup();
    (parts, only)
}

/// Lets a model log its writes to these parts as the writes of a stage.
pub(super) fn add(model: &mut Model, stage: usize, parts: &[Part]) {
    let mut program = std::mem::take(&mut model.packet);
    let types = &mut program.values;
    for block in &mut program.blocks {
        let ops = std::mem::take(&mut block.ops);
        let mut one = None;
        for op in ops {
            let logs: Vec<TagId> = assigned(model, &op)
                .into_iter()
                .flatten()
                .filter(|part| parts.contains(part))
                .map(|part| tag(model, &Log::name(stage, &part)))
                .collect();
            block.ops.push(op);
            for tag in logs {
                let a = *one.get_or_insert_with(|| constant(&mut block.ops, types));
                block.ops.push(Op::StoreTag { tag, a });
            }
        }
    }
    model.packet = program;
}

/// A new value, which is 1.
fn constant(ops: &mut Vec<Op>, types: &mut Vec<Ty>) -> ValueId {
    let out = ValueId(u32::try_from(types.len()).unwrap_or(u32::MAX));
    types.push(ONCE);
    ops.push(Op::Const { out, value: 1 });
    out
}

/// The tag of this name, which the model gets if it has none.
fn tag(model: &mut Model, name: &str) -> TagId {
    let place = model.tags.iter().position(|tag| tag.name == name).unwrap_or_else(|| {
        model.tags.push(TagDecl { name: name.to_owned(), ty: ONCE });
        model.tags.len() - 1
    });
    TagId(u32::try_from(place).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_ir::verify::verify;
    use braid_packet::Field;

    #[test]
    fn each_assignment_of_a_part_is_logged_and_the_model_stays_valid() {
        let text = "model m {
             row \"body\" row \"fault\"
             packet {
             b0: v0:bool = has ip
                 branch v0, b1, b2
             b1: v1:u8 = const 7
                 store ip.ttl, v1
                 store ip.tos, v1
                 jump b2
             b2: output onward at row0 } }";
        let mut model = braid_ir::text::parse(text).unwrap();
        let (parts, only) = assigns(&model);
        let [ttl, dscp, ecn] = [Field::IpTtl, Field::IpDscp, Field::IpEcn].map(Part::Field);
        assert!(only && parts.len() == 3 && [&ttl, &dscp, &ecn].iter().all(|p| parts.contains(p)));
        add(&mut model, 2, &[ttl, ecn]);
        verify(&model).unwrap();
        let names: Vec<&str> = model.tags.iter().map(|tag| &*tag.name).collect();
        assert_eq!(names, ["\u{1}2 ip.ttl", "\u{1}2 ip.ecn"]);
        let ops = &model.packet.blocks[1].ops;
        let tags = ops.iter().filter(|op| matches!(op, Op::StoreTag { .. })).count();
        assert_eq!((ops.len(), tags), (6, 2));
    }
}
