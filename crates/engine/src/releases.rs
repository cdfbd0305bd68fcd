//! `expire` programs that only return members to pools, as in NATs. The engine does not interpret
//! them, because it runs them very often.

use braid_ir::model::{Model, Op, ParamId, Program, StateId, Term};

/// What the `expire` program of a table does, if it only returns slots of the ending entry to
/// pools: each pool and the slot.
pub(crate) type Releases = Vec<(ParamId, usize)>;

/// The tables of a model whose `expire` programs only return members to pools, and what these
/// programs do.
pub(crate) fn all(model: &Model) -> Vec<(StateId, Releases)> {
    let known = |(state, program): &(StateId, Program)| Some((*state, of(program)?));
    model.expire.iter().filter_map(known).collect()
}

/// What a program does. `None` if it does anything else.
fn of(program: &Program) -> Option<Releases> {
    let [block] = program.blocks.as_slice() else { return None };
    if block.term != Term::Return {
        return None;
    }
    let (mut slots, mut releases) = (&[][..], Vec::new());
    for op in &block.ops {
        match op {
            Op::Expiring { outs } => slots = outs,
            Op::Release { pool, a } => {
                releases.push((*pool, slots.iter().position(|slot| slot == a)?));
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
        let [a, b, c] = [ValueId(0), ValueId(1), ValueId(2)];
        let slots = || Op::Expiring { outs: vec![a, b] };
        let release = |pool, a| Op::Release { pool: ParamId(pool), a };
        assert_eq!(
            of(&program(vec![slots(), release(3, b), release(2, a)])),
            Some(vec![(ParamId(3), 1), (ParamId(2), 0)])
        );
        assert_eq!(of(&program(vec![slots()])), Some(Vec::new()));
        let seven = Op::Const { out: c, value: 7 };
        assert_eq!(of(&program(vec![slots(), seven, release(3, c)])), None);
        assert_eq!(of(&program(vec![slots(), release(3, c)])), None);
    }
}
