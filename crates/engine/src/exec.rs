//! The interpreter of residual programs.

use crate::deliver::deliver_now;
use crate::exec_context::Functions;
use crate::ops::bytes_op;
use crate::work::Work;
use braid_ir::engine::{Fault, Outputs};
use braid_ir::model::{Key, Op, Target, ValueId, Word};
use braid_ir::residual::{CounterListId, End, Residual, Step, What};
use braid_ir::values::Values;
use braid_jit::{Count, Ended};
use braid_state::Handle;
use std::cell::Cell;

/// A run of a residual program: everything that its steps need.
pub(crate) struct Exec<'a, 'b> {
    pub(crate) functions: &'a mut Functions,
    /// The worker to which the packet belongs.
    pub(crate) worker: u16,
    pub(crate) out: &'a mut dyn Outputs,
    pub(crate) work: Work<'b>,
    pub(crate) counts: &'a [Cell<Count>],
}

impl Exec<'_, '_> {
    /// Runs a program from its first block to an end. The caller carries out the end.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        reason = "a program has fewer than 2^32 blocks and steps, and jumps name its blocks"
    )]
    pub(crate) fn run(&mut self, program: &Residual, words: &mut [Word]) -> Ended {
        let mut values = Values { words, types: &program.values };
        let mut at = 0;
        loop {
            let block = &program.blocks[at];
            for (number, step) in block.steps.iter().enumerate() {
                if let Err(fault) = self.step(&mut values, step) {
                    if let Some(counters) = step.fault {
                        self.count(counters);
                    }
                    return Ended::Fault { block: at as u32, step: number as u32, fault };
                }
            }
            let next = match &block.end {
                End::Jump(target) => target,
                End::Branch { cond, yes, no } => {
                    if values.truth(*cond) {
                        yes
                    } else {
                        no
                    }
                }
                End::Exit(exit) => {
                    self.count(exit.counters);
                    return Ended::End(at as u32);
                }
                End::Hold { node, queue, delay, counters, full } => {
                    if self.functions.queue_has_room(*node, *queue, self.worker) {
                        self.count(*counters);
                        let delay = u64::try_from(values.get(*delay)).unwrap_or(u64::MAX);
                        return Ended::Hold { block: at as u32, delay };
                    }
                    full
                }
            };
            self.pass(program, &mut values, next);
            at = next.block.index();
        }
    }

    /// Assigns the parameters of a jump's target.
    #[expect(clippy::indexing_slicing, reason = "jumps name blocks of the program")]
    fn pass(&mut self, program: &Residual, values: &mut Values<'_>, target: &Target) {
        let params = &program.blocks[target.block.index()].params;
        if let ([param], [arg]) = (&**params, &*target.args) {
            return values.set(*param, values.get(*arg));
        }
        // All arguments are read before any parameter is written.
        let parts = &mut self.functions.scratch.parts;
        parts.clear();
        parts.extend(target.args.iter().map(|arg| values.get(*arg)));
        values.set_all(params, parts);
    }

    fn count(&mut self, counters: CounterListId) {
        let Some(count) = self.counts.get(counters.0 as usize) else { return };
        let bytes = u64::from(self.work.packet.wire_len);
        count.update(|Count { packets, bytes: before }| Count {
            packets: packets + 1,
            bytes: before + bytes,
        });
    }

    /// Executes one step.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        reason = "numbers of rules have 32 bits, and handles have 64; steps name functions of the \
                  chain, and a table has a slot for each result"
    )]
    pub(crate) fn step(&mut self, values: &mut Values<'_>, step: &Step) -> Result<(), Fault> {
        let node = step.site.node;
        match &step.what {
            What::Op(op) => return self.op(node, values, op),
            What::Count(counters) => self.count(*counters),
            What::Parse => self.work.parse(),
            What::Write(fields) => {
                for (field, value) in fields {
                    let value = values.get(*value);
                    if !self.work.packet.set(self.work.layout, *field, value) {
                        return Err(Fault::Truncated);
                    }
                }
            }
            What::Enter => self.functions.context_of(node, self.worker, self.out).start(),
            What::Classify { pass, rule, param, packet } => {
                let instance = &self.functions.instances[usize::from(node)];
                let packet = packet.as_ref().map(|fields| values.rule_packet(fields));
                let (passes, number) = instance.classify(*param, packet.as_ref());
                values.set(*pass, Word::from(passes));
                values.set(*rule, Word::from(number));
            }
            What::CountRule { param, rule } => {
                let number = values.get(*rule);
                self.functions.instances[usize::from(node)].count_rule(*param, number as u32);
            }
            What::Find { found, entry, state, key } => {
                let mut context = self.functions.context_of(node, self.worker, self.out);
                let handle =
                    context.with_key(values, key, |context, key| context.find(*state, key));
                values.set(*found, Word::from(handle.is_some()));
                values.set(*entry, handle.map_or(0, Handle::to_bits).into());
            }
            What::Read { outs, state, entry } => {
                let entry = Handle::from_bits(values.get(*entry) as u64);
                let context = self.functions.context_of(node, self.worker, self.out);
                context.read(*state, entry, &mut |slot, value| values.set(outs[slot], value));
            }
        }
        Ok(())
    }

    #[expect(clippy::indexing_slicing, reason = "steps name functions of the chain")]
    fn op(&mut self, node: u16, values: &mut Values<'_>, op: &Op) -> Result<(), Fault> {
        let params = &self.functions.chain.nodes[usize::from(node)].params;
        if bytes_op(params, &mut self.work, values, op)? {
            return Ok(());
        }
        let mut context = self.functions.context_of(node, self.worker, self.out);
        match op {
            Op::StateSet { ok, state, key, values: slots } => {
                let done = context.with_key(values, parts(key), |context, key| {
                    let mut words = std::mem::take(&mut context.scratch.values);
                    words.clear();
                    words.extend(slots.iter().map(|slot| values.get(*slot)));
                    let done = context.assign(*state, key, &words);
                    context.scratch.values = words;
                    done
                });
                values.set(*ok, Word::from(done));
            }
            Op::StatePut { ok, state, key, slot, value } => {
                let value = values.get(*value);
                let done = context.with_key(values, parts(key), |context, key| {
                    context.put(*state, key, *slot, value)
                })?;
                values.set(*ok, Word::from(done));
            }
            Op::StateDelete { state, key } => {
                context.with_key(values, parts(key), |context, key| context.delete(*state, key));
            }
            Op::Emit { event, args } if !context.subscriptions.stays_outside(node, *event) => {
                // The program itself has the handlers.
                let made = context.event(values, *event, args);
                context.out.event(made);
                return Ok(());
            }
            op => context.common(Some(&mut self.work), values, op)?,
        }
        deliver_now(self.functions, self.out);
        Ok(())
    }
}

/// The parts of a key. Residual programs have explicit keys only.
fn parts(key: &Key) -> &[ValueId] {
    match key {
        Key::Explicit(parts) => parts,
        Key::Entry | Key::Quoted | Key::Reversed(_) => &[],
    }
}
