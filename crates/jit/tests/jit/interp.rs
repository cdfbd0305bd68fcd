//! A minimal interpreter of residual programs. It does arithmetic and fields by itself, and asks
//! the host for everything else step by step.

use braid_ir::engine::Fault;
use braid_ir::model::{BinOp, CmpOp, Op, SetRef, Target, ValueId};
use braid_ir::residual::{End, Residual, What};
use braid_ir::show::max_of;
use braid_jit::{Call, Count, Ended, Host};
use braid_packet::{Field, Layout, Packet};

pub struct Interp<'a, H> {
    pub residual: &'a Residual,
    pub host: &'a mut H,
    pub packet: &'a mut Packet,
    pub layout: &'a mut Layout,
    pub now: u64,
    pub counts: &'a mut [Count],
    pub values: Vec<u128>,
    /// Functions that the run has entered.
    pub entered: Vec<u16>,
}

impl<H: Host> Interp<'_, H> {
    pub fn run(&mut self) -> Ended {
        self.values = vec![0; self.residual.values.len()];
        let mut at = 0;
        loop {
            let block = &self.residual.blocks[at];
            for (number, step) in (0..).zip(&block.steps) {
                if step.what == What::Enter && !self.entered.contains(&step.site.node) {
                    self.entered.push(step.site.node);
                    continue;
                }
                if let Err(fault) = self.step(at as u32, number, &step.what) {
                    if let Some(counters) = step.fault {
                        self.count(counters.0);
                    }
                    return Ended::Fault { block: at as u32, step: number, fault };
                }
            }
            let target = match &block.end {
                End::Jump(target) => target,
                End::Branch { cond, yes, no } => {
                    if self.get(*cond) != 0 {
                        yes
                    } else {
                        no
                    }
                }
                End::Exit(exit) => {
                    self.count(exit.counters.0);
                    return Ended::End(at as u32);
                }
                End::Hold { delay, counters, full, .. } => {
                    let delay = self.get(*delay);
                    let mut outs = [0];
                    self.ask(at as u32, block.steps.len() as u32, &[delay], &mut outs).unwrap();
                    if outs[0] != 0 {
                        self.count(counters.0);
                        return Ended::Hold { block: at as u32, delay: delay as u64 };
                    }
                    full
                }
            };
            at = self.jump(target);
        }
    }

    fn jump(&mut self, target: &Target) -> usize {
        let args: Vec<u128> = target.args.iter().map(|arg| self.get(*arg)).collect();
        let params = &self.residual.blocks[target.block.index()].params;
        for (param, arg) in params.iter().zip(args) {
            self.values[param.index()] = arg;
        }
        target.block.index()
    }

    fn get(&self, value: ValueId) -> u128 {
        self.values[value.index()]
    }

    fn width(&self, value: ValueId) -> u16 {
        self.residual.values[value.index()].width
    }

    fn count(&mut self, counters: u32) {
        let count = &mut self.counts[counters as usize];
        count.packets += 1;
        count.bytes += u64::from(self.packet.wire_len);
    }

    fn ask(
        &mut self,
        block: u32,
        step: u32,
        args: &[u128],
        outs: &mut [u128],
    ) -> Result<(), Fault> {
        let (packet, layout) = (&mut *self.packet, &mut *self.layout);
        self.host.step(Call { block, step, args, outs, packet, layout })
    }

    fn step(&mut self, block: u32, step: u32, what: &What) -> Result<(), Fault> {
        let (out, value) = match what {
            What::Op(Op::Const { out, value }) => (out, *value),
            What::Op(Op::Bin { out, op, a, b }) => {
                (out, binary(*op, self.width(*out), self.get(*a), self.get(*b))?)
            }
            What::Op(Op::Cmp { out, op, a, b }) => {
                (out, u128::from(compare(*op, self.get(*a), self.get(*b))))
            }
            What::Op(Op::Not { out, a }) => (out, max_of(self.width(*out)) - self.get(*a)),
            What::Op(Op::Resize { out, a }) => (out, self.get(*a) & max_of(self.width(*out))),
            What::Op(Op::Clamp { out, a }) => (out, self.get(*a).min(max_of(self.width(*out)))),
            What::Op(Op::Select { out, cond, a, b }) => {
                (out, self.get(if self.get(*cond) == 0 { *b } else { *a }))
            }
            What::Op(Op::InSet { out, a, set: SetRef::Const(set) }) => {
                let a = self.get(*a);
                (out, u128::from(set.intervals().iter().any(|(low, high)| *low <= a && a <= *high)))
            }
            What::Op(Op::Has { out, header }) => (out, u128::from(self.layout.has(*header))),
            What::Op(Op::Load { out, field: Field::PktTime }) => (out, u128::from(self.now)),
            What::Op(Op::Load { out, field }) => {
                (out, self.packet.get(self.layout, *field).ok_or(Fault::Truncated)?)
            }
            What::Write(fields) => {
                for (field, value) in fields {
                    assert!(self.packet.set(self.layout, *field, self.get(*value)));
                }
                return Ok(());
            }
            What::Count(counters) => {
                self.count(counters.0);
                return Ok(());
            }
            what => {
                let args: Vec<u128> = what.uses().into_iter().map(|used| self.get(used)).collect();
                let outs = what.outs();
                let mut results = vec![0; outs.len()];
                self.ask(block, step, &args, &mut results)?;
                for (out, result) in outs.into_iter().zip(results) {
                    self.values[out.index()] = result;
                }
                return Ok(());
            }
        };
        self.values[out.index()] = value;
        Ok(())
    }
}

/// As the page on the model IR defines it.
fn binary(op: BinOp, width: u16, a: u128, b: u128) -> Result<u128, Fault> {
    let max = max_of(width);
    let in_width = |value: u128| value & max;
    let shift = b < u128::from(width);
    Ok(match op {
        BinOp::AddSat => a.checked_add(b).unwrap_or(max).min(max),
        BinOp::SubSat if a < b => 0,
        BinOp::SubSat => a - b,
        BinOp::MulSat => a.checked_mul(b).unwrap_or(max).min(max),
        BinOp::AddWrap => in_width(a.wrapping_add(b)),
        BinOp::SubWrap => in_width(a.wrapping_sub(b)),
        BinOp::MulWrap => in_width(a.wrapping_mul(b)),
        BinOp::Div if b == 0 => return Err(Fault::Division),
        BinOp::Div => a / b,
        BinOp::Rem if b == 0 => return Err(Fault::Division),
        BinOp::Rem => a % b,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl if shift => in_width(a << b),
        BinOp::Shr if shift => a >> b,
        BinOp::Shl | BinOp::Shr => 0,
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
    })
}

fn compare(op: CmpOp, a: u128, b: u128) -> bool {
    match op {
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Gt => a > b,
        CmpOp::Ge => a >= b,
    }
}
