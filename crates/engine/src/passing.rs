//! What happens to the TCP packets that the stack of a stream function lets pass, so that the
//! interpreter runs only for the others.

use braid_ir::arith::compare;
use braid_ir::model::{Dest, Model, Op, RowId, Term, ValueId, Word};
use braid_packet::Header;
use std::collections::BTreeMap;

/// What the packet program of a stream function does with the TCP packets that the stack lets pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    /// The row that counts them.
    pub(crate) row: RowId,
    /// Where they go.
    pub(crate) port: Dest,
}

impl Passing {
    /// `None` if the program does anything else with them.
    pub(crate) fn of(model: &Model) -> Option<Self> {
        let mut known: BTreeMap<ValueId, Word> = BTreeMap::new();
        let mut counted = None;
        let mut block = model.packet.blocks.first()?;
        // Each iteration enters a block, so the number of blocks bounds a program without loops.
        for _ in &model.packet.blocks {
            for op in &block.ops {
                match op {
                    Op::Count { row } if counted.is_none() => counted = Some(*row),
                    Op::Has { out, header: Header::Tcp } => drop(known.insert(*out, 1)),
                    Op::Stream { verdict, .. } => drop(known.insert(*verdict, 0)),
                    Op::Const { out, value } => drop(known.insert(*out, *value)),
                    Op::Cmp { out, op, a, b } => {
                        let is_so = compare(*op, *known.get(a)?, *known.get(b)?);
                        known.insert(*out, is_so.into());
                    }
                    _ => return None,
                }
            }
            let next = match &block.term {
                Term::Jump(next) => next,
                Term::Branch { cond, yes, no } => {
                    if *known.get(cond)? == 0 {
                        no
                    } else {
                        yes
                    }
                }
                Term::Output { ports, .. } => {
                    let [port] = ports.as_slice() else { return None };
                    return Some(Self { row: counted?, port: *port });
                }
                _ => return None,
            };
            if !next.args.is_empty() {
                return None;
            }
            block = model.packet.blocks.get(next.block.index())?;
        }
        None
    }
}
