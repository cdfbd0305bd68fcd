//! `expire` programs that only return members to pools, as in NATs. The engine does not interpret
//! them, because it runs them very often.

use braid_ir::model::{Model, Op, ParamId, Program, StateId, Term};
use braid_state::SlotShape;

/// A slot of the ending entry that the program returns to a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Release {
    pub(crate) pool: ParamId,
    /// The slot's first word.
    pub(crate) word: usize,
    /// Whether the slot has two words.
    pub(crate) is_wide: bool,
}

/// By table of a model: what the table's `expire` program does, if it only returns members to
/// pools.
pub(crate) fn all(model: &Model) -> Vec<Option<Vec<Release>>> {
    let mut all = vec![None; model.state.len()];
    for (StateId(state), program) in &model.expire {
        let state = *state as usize;
        if let (Some(known), Some(decl)) = (all.get_mut(state), model.state.get(state)) {
            *known = of(program, &SlotShape::new(decl));
        }
    }
    all
}

/// What a program does. `None` if it does anything else.
fn of(program: &Program, shape: &SlotShape) -> Option<Vec<Release>> {
    let [block] = program.blocks.as_slice() else { return None };
    if block.term != Term::Return {
        return None;
    }
    let (mut slots, mut releases) = (&[][..], Vec::new());
    for op in &block.ops {
        match op {
            Op::Expiring { outs } => slots = outs,
            Op::Release { pool, a } => {
                let (word, is_wide) = shape.place(slots.iter().position(|slot| slot == a)?)?;
                releases.push(Release { pool: *pool, word, is_wide });
            }
            _ => return None,
        }
    }
    Some(releases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_ir::model::{Block, Ty, ValueId};

    fn program(ops: Vec<Op>) -> Program {
        let block = Block { params: Vec::new(), ops, term: Term::Return };
        Program { blocks: vec![block], values: vec![Ty::uint(16); 3] }
    }

    #[test]
    fn programs_that_only_release_slots_are_known() {
        let model = "model m { state s: { a: u100, b: u16 } per [u8] capacity 1 full refuse tick 1
            row \"fault\" packet { b0: consume at row0 } }";
        let model = braid_ir::text::parse(model).unwrap();
        let shape = SlotShape::new(&model.state[0]);
        let of = |ops| of(&program(ops), &shape);
        let [a, b, c] = [ValueId(0), ValueId(1), ValueId(2)];
        let slots = || Op::Expiring { outs: vec![a, b] };
        let release = |pool, a| Op::Release { pool: ParamId(pool), a };
        let released = |pool, word, is_wide| Release { pool: ParamId(pool), word, is_wide };
        assert_eq!(
            of(vec![slots(), release(3, b), release(2, a)]),
            Some(vec![released(3, 2, false), released(2, 0, true)])
        );
        assert_eq!(of(vec![slots()]), Some(Vec::new()));
        let seven = Op::Const { out: c, value: 7 };
        assert_eq!(of(vec![slots(), seven, release(3, c)]), None);
        assert_eq!(of(vec![slots(), release(3, c)]), None);
    }
}
