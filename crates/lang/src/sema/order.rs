//! Orders a program's blocks and values: removes unreachable blocks, skips blocks that only jump,
//! joins blocks with their only successor, and numbers values in the order of definition.

use braid_ir::model::{Block, BlockId, Program, Target, Term, ValueId};

/// Puts the program in order. The blocks must form a graph without cycles.
pub fn tidy(mut program: Program) -> Program {
    skip_empty(&mut program);
    let order = topological(&program);
    let order = join(&mut program, &order);
    renumber(program, &order)
}

fn targets(term: &Term) -> Vec<&Target> {
    match term {
        Term::Jump(target) => vec![target],
        Term::Branch { yes, no, .. } => vec![yes, no],
        Term::Hold { full, .. } => vec![full],
        _ => Vec::new(),
    }
}

fn targets_mut(term: &mut Term) -> Vec<&mut Target> {
    match term {
        Term::Jump(target) => vec![target],
        Term::Branch { yes, no, .. } => vec![yes, no],
        Term::Hold { full, .. } => vec![full],
        _ => Vec::new(),
    }
}

/// Redirects jumps to blocks that contain only a jump.
fn skip_empty(program: &mut Program) {
    let next: Vec<Option<BlockId>> = program
        .blocks
        .iter()
        .map(|block| match &block.term {
            Term::Jump(target)
                if block.ops.is_empty() && block.params.is_empty() && target.args.is_empty() =>
            {
                Some(target.block)
            }
            _ => None,
        })
        .collect();
    for block in &mut program.blocks {
        for target in targets_mut(&mut block.term) {
            while let Some(Some(next)) = next.get(target.block.0 as usize) {
                target.block = *next;
            }
        }
        if let Term::Branch { yes, no, .. } = &block.term
            && yes == no
        {
            block.term = Term::Jump(yes.clone());
        }
    }
}

/// The blocks that the first block reaches. Each block comes before its successors.
fn topological(program: &Program) -> Vec<usize> {
    let mut seen = vec![false; program.blocks.len()];
    let mut post = Vec::new();
    let mut stack = vec![(0usize, 0usize)];
    seen[0] = true;
    while let Some((block, at)) = stack.pop() {
        let next = targets(&program.blocks[block].term);
        // The last successor is visited first, so the first successor comes directly behind the
        // block.
        match next.len().checked_sub(at + 1).map(|back| next[back].block.0 as usize) {
            None => post.push(block),
            Some(to) => {
                stack.push((block, at + 1));
                if !seen[to] {
                    seen[to] = true;
                    stack.push((to, 0));
                }
            }
        }
    }
    post.reverse();
    post
}

/// Joins each block with its successor if the successor has no other predecessor. Returns the
/// remaining blocks.
fn join(program: &mut Program, order: &[usize]) -> Vec<usize> {
    let mut uses = vec![0usize; program.blocks.len()];
    for &block in order {
        for target in targets(&program.blocks[block].term) {
            uses[target.block.0 as usize] += 1;
        }
    }
    let mut gone = vec![false; program.blocks.len()];
    for &block in order {
        if gone[block] {
            continue;
        }
        while let Term::Jump(target) = &program.blocks[block].term {
            let to = target.block.0 as usize;
            if uses[to] != 1 || !target.args.is_empty() || to == block {
                break;
            }
            gone[to] = true;
            let end = Block { params: Vec::new(), ops: Vec::new(), term: Term::Return };
            let joined = std::mem::replace(&mut program.blocks[to], end);
            program.blocks[block].ops.extend(joined.ops);
            program.blocks[block].term = joined.term;
        }
    }
    order.iter().copied().filter(|block| !gone[*block]).collect()
}

struct Numbers {
    blocks: Vec<u32>,
    values: Vec<Option<u32>>,
    count: u32,
}

impl Numbers {
    fn define(&mut self, value: &mut ValueId) {
        let number = self.count;
        self.count += 1;
        self.values[value.0 as usize] = Some(number);
        *value = ValueId(number);
    }

    fn renumber(&self, value: &mut ValueId) {
        *value = ValueId(self.values[value.0 as usize].unwrap_or(u32::MAX));
    }
}

fn renumber(mut program: Program, order: &[usize]) -> Program {
    let mut numbers = Numbers {
        blocks: vec![0; program.blocks.len()],
        values: vec![None; program.values.len()],
        count: 0,
    };
    for (new, old) in order.iter().enumerate() {
        numbers.blocks[*old] = u32::try_from(new).unwrap_or(u32::MAX);
    }
    let mut blocks = Vec::with_capacity(order.len());
    for old in order {
        let empty = Block { params: Vec::new(), ops: Vec::new(), term: Term::Return };
        let mut block = std::mem::replace(&mut program.blocks[*old], empty);
        block.params.iter_mut().for_each(|value| numbers.define(value));
        for op in &mut block.ops {
            op.visit_uses_mut(&mut |value| numbers.renumber(value));
            op.visit_outs_mut(&mut |value| numbers.define(value));
        }
        term_values(&mut block.term, &mut |value| numbers.renumber(value));
        for target in targets_mut(&mut block.term) {
            target.block = BlockId(numbers.blocks[target.block.0 as usize]);
        }
        blocks.push(block);
    }
    let mut values = vec![braid_ir::model::Ty { width: 1, kind: braid_ir::model::Kind::Bool }; 0];
    values.resize(numbers.count as usize, super::types::BOOL);
    for (old, new) in numbers.values.iter().enumerate() {
        if let Some(new) = new {
            values[*new as usize] = program.values[old];
        }
    }
    Program { blocks, values }
}

fn term_values(term: &mut Term, each: &mut dyn FnMut(&mut ValueId)) {
    match term {
        Term::Branch { cond, .. } => each(cond),
        Term::Hold { delay, .. } => each(delay),
        _ => {}
    }
    for target in targets_mut(term) {
        target.args.iter_mut().for_each(&mut *each);
    }
}
