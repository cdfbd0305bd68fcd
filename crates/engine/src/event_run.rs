//! Runs the programs of stream functions for events of connections: machine code, with the
//! execution context as its host, or the model interpreter.

use crate::event_programs::EventCode;
use crate::exec_context::ExecContext;
use crate::ops;
use braid_compiler::streams::{COMMON, Input, common};
use braid_ir::engine::Fault;
use braid_ir::model::{Op, ParamId, Program, QueueId, StateId, StreamText, Word};
use braid_ir::residual::{Counter, Residual, What};
use braid_ir::rules::RulePacket;
use braid_ir::value::ParamValue;
use braid_ir::values::Values;
use braid_jit::{Call, Count, Ended, Host};
use braid_state::Handle;
use braid_streams::{End, View};

/// The parts of the model interpreter that runs need.
pub(crate) struct Interpreter {
    /// Runs a program.
    pub(crate) program: fn(&mut ExecContext<'_>, &View<'_>, &Program) -> End,
    /// Executes an operation of a program.
    pub(crate) operation: Operation,
}

/// Executes an operation of a program for an event.
type Operation = fn(&mut ExecContext<'_>, &View<'_>, &mut Values<'_>, &Op) -> Result<(), Fault>;

/// Runs the function's program for an event, if it has one.
pub(crate) fn run(
    context: &mut ExecContext<'_>,
    view: &View<'_>,
    interpreter: &Interpreter,
) -> End {
    let (node, model, event) = (context.node, context.model, view.event);
    let Some(program) = model.stream(event) else { return End::Forward };
    context.start();
    let code = context.event_programs.take((node, model), event, view.flow);
    let Some(mut code) = code else { return (interpreter.program)(context, view, program) };
    let end = code.run(context, view, interpreter);
    context.event_programs.put(node, (event, view.flow), code);
    end.unwrap_or_else(|| (interpreter.program)(context, view, program))
}

impl EventCode {
    /// Runs the program. After a fault, the connection goes on. `None`, without any effect, if
    /// there is no machine code for the event.
    fn run(
        &mut self,
        context: &mut ExecContext<'_>,
        view: &View<'_>,
        interpreter: &Interpreter,
    ) -> Option<End> {
        self.read_inputs(context.params, view);
        self.packet.wire_len = u32::try_from(view.len()).unwrap_or(u32::MAX);
        let now = context.now;
        let Self { program, code, answers, counts, inputs, words, packet, layout, .. } = self;
        let (operation, program) = (interpreter.operation, &program.residual);
        let mut host = EventHost { context: &mut *context, view, program, words, operation };
        let code = code.as_ref()?.as_ref().ok()?;
        let ended =
            code.runner_with_inputs(&mut host, counts, inputs).ok()?.run(packet, layout, now);
        let answer = match ended.ok()? {
            Ended::End(block) => answers.get(block as usize).copied().flatten(),
            Ended::Hold { .. } | Ended::Fault { .. } => None,
        };
        self.count_rows(context);
        Some(answer.unwrap_or_else(|| {
            context.instance.counters.background_faults += 1;
            End::Forward
        }))
    }

    /// Reads the inputs of the program.
    fn read_inputs(&mut self, params: &[ParamValue], view: &View<'_>) {
        let (first, others) = self.inputs.split_at_mut(COMMON);
        first.copy_from_slice(&common(view.flow, view.len(), view.offset));
        // Most programs ask for the same match twice: whether there is one, and its number.
        let mut last = None;
        let mut found = |param: ParamId, text: Option<StreamText>| {
            let known = last.filter(|(of, _)| *of == (param, text));
            let search = || view.found((param, params.get(param.index())?), text);
            let (_, found) = *last.insert(known.unwrap_or_else(|| ((param, text), search())));
            found
        };
        for (word, input) in others.iter_mut().zip(&self.program.inputs) {
            *word = match input {
                Input::Number(field) => view.number(*field),
                Input::Found(param, text) => found(*param, *text).is_some().into(),
                Input::Which(param, text) => found(*param, *text).unwrap_or(0).into(),
                Input::Param(param) => match params.get(param.index()) {
                    Some(ParamValue::Scalar(value)) => *value,
                    _ => 0,
                },
            };
        }
    }

    /// Adds what the run has counted to the rows of the function.
    fn count_rows(&self, context: &mut ExecContext<'_>) {
        let lists = self.counts.iter().zip(&self.program.residual.counter_lists);
        // The first list has no counters.
        for (count, list) in lists.skip(1) {
            let Count { packets, bytes } = count.take();
            if packets == 0 {
                continue;
            }
            for one in list {
                if let Counter::Row(row) = one.counter
                    && let Some(traffic) = context.instance.counters.rows.get_mut(row.index())
                {
                    traffic.packets += packets;
                    traffic.bytes += bytes;
                }
            }
        }
    }
}

/// The execution context as the host of machine code.
struct EventHost<'a, 'b> {
    context: &'a mut ExecContext<'b>,
    view: &'a View<'a>,
    program: &'a Residual,
    words: &'a mut [Word],
    operation: Operation,
}

impl EventHost<'_, '_> {
    /// Finds an entry and its slots.
    #[inline(always)]
    fn look_up(&mut self, number: u32, key: &[u64]) -> Option<(Handle, &[u64])> {
        let table = self.context.table(StateId(number));
        let ExecContext { store, touched, locators, now, .. } = &mut *self.context;
        let (entry, slots) = store.find_hinted(table, key, *now)?;
        if locators.get(number as usize).is_some_and(|locator| locator.is_partner()) {
            touched.set(table, entry);
        }
        Some((entry, slots))
    }
}

impl Host for EventHost<'_, '_> {
    #[expect(clippy::indexing_slicing, reason = "machine code names steps of its own program")]
    fn step(&mut self, call: Call<'_>) -> Result<(), Fault> {
        let what = &self.program.blocks[call.block as usize].steps[call.step as usize].what;
        // Programs for events have no other steps that need a host.
        let What::Op(op) = what else { return Err(Fault::Truncated) };
        let mut values = Values { words: self.words, types: &self.program.values };
        let mut args = call.args.iter();
        op.visit_uses(&mut |value| {
            if let Some(arg) = args.next() {
                values.set(*value, *arg);
            }
        });
        (self.operation)(self.context, self.view, &mut values, op)?;
        let mut outs = call.outs.iter_mut();
        op.visit_outs(&mut |value| {
            if let Some(out) = outs.next() {
                *out = values.get(*value);
            }
        });
        Ok(())
    }

    fn find(&mut self, number: u32, key: &[u64]) -> Option<(u64, &[u64])> {
        self.look_up(number, key).map(|(entry, slots)| (entry.to_bits(), slots))
    }

    #[inline(always)]
    fn find_words<const N: usize>(&mut self, number: u32, key: &[u64; N]) -> Option<(u64, &[u64])> {
        self.look_up(number, key).map(|(entry, slots)| (entry.to_bits(), slots))
    }

    fn read(&mut self, number: u32, entry: u64) -> &[u64] {
        let table = self.context.table(StateId(number));
        self.context.store.slots(table, Handle::from_bits(entry)).unwrap_or(&[])
    }

    fn set(&mut self, number: u32, key: &[u64], slots: &[u64]) -> bool {
        let state = StateId(number);
        match self.look_up(number, key).map(|(entry, _)| entry) {
            Some(entry) => {
                let (table, now) = (self.context.table(state), self.context.now);
                self.context.store.assign(table, entry, slots, now)
            }
            None => self.context.assign_packed(state, key, slots),
        }
    }

    fn put(&mut self, number: u32, key: &[u64], slot: u32, value: u128) -> Result<bool, Fault> {
        let state = StateId(number);
        match self.look_up(number, key).map(|(entry, _)| entry) {
            Some(entry) => {
                let (table, now) = (self.context.table(state), self.context.now);
                Ok(self.context.store.put(table, entry, slot as usize, value, now))
            }
            None => self.context.put_packed(state, key, slot, value),
        }
    }

    fn classify(&mut self, number: u32, packet: &RulePacket) -> (bool, u32) {
        self.context.instance.classify(ParamId(number), Some(packet))
    }

    fn count_rule(&mut self, number: u32, rule: u32) {
        self.context.instance.count_rule(ParamId(number), rule);
    }

    fn route(&mut self, number: u32, addr: u128, wide: bool) -> Option<u32> {
        let width = if wide { 128 } else { 32 };
        self.context.instance.route(ParamId(number), width, addr)
    }

    fn member(&mut self, number: u32, index: u64, column: u32) -> Option<u128> {
        ops::list_get(self.context.params, ParamId(number), index.into(), column).ok()
    }

    fn take(&mut self, number: u32) -> Option<u128> {
        self.context.instance.take(self.context.shard, ParamId(number))
    }

    fn has_room(&mut self, number: u32) -> bool {
        let ExecContext { instance, params, shard, .. } = &*self.context;
        instance.queue_has_room(params, QueueId(number), *shard)
    }
}
