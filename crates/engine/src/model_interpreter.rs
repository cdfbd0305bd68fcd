//! The model interpreter: runs a model's programs operation by operation, over the engine's state.
#![expect(clippy::indexing_slicing, reason = "a verified model refers only to what it declares")]

use crate::event_run::Interpreter;
use crate::exec_context::ExecContext;
use crate::ops::{addresses, association, string, wide};
use crate::streams;
use crate::work::{Emission, Role, Work};
use braid_ir::engine::{Fault, RESUBMIT_LIMIT};
use braid_ir::model::{
    Area, Association, Dest, Granularity, Key, KeyRef, Op, ParamId, Program, QueueId, ReasonId,
    RowId, StateId, Target, Term, Word,
};
use braid_ir::rules::RulePacket;
use braid_ir::value::ParamValue;
use braid_ir::values::Values;
use braid_packet::edits::Rest;
use braid_packet::tunnel::Change;
use braid_packet::{Field, FlowKey, Header, Layout, Packet, crypt};
use braid_streams::View;
use smallvec::SmallVec;
use std::sync::Arc;

/// A change that a program made to the packet.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Write {
    Field(Field, Word),
    Tag(Arc<str>, Word),
    PushVlan(u16),
    /// A TCP option that the function added with these values, or removed.
    Option(Header, Option<Vec<Word>>),
    PopVlan,
    /// A number in the payload: its offset, its bytes, its value.
    Bytes((Area, Word), usize, Word),
    /// Bytes of the payload: offset and length of the old ones, length and words of the new ones.
    Replace((Word, Word), (Word, Vec<Word>)),
    /// A TCP option of any kind that the function added with this value, or removed.
    AnyOption(u8, Option<Vec<u8>>),
    /// Outer headers that the function added or removed.
    Tunnel(Change),
    /// A payload that the function encrypted or decrypted.
    Crypt(crypt::Change),
    /// Bytes that native code changed and that no other write covers.
    Rest(Rest),
    /// A packet to which native code gave other headers or another length.
    Whole(Box<Packet>),
}

/// The verdict of a function on a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Output(SmallVec<[Dest; 2]>),
    Drop(RowId, ReasonId),
    Fault(Fault),
    Consume,
    Hold { queue: QueueId, until_ns: u64 },
}

/// The result of a function for a packet, with the packets that it sent and its writes.
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    pub(crate) emissions: Vec<Emission>,
    /// In the order of the program.
    pub(crate) writes: Vec<Write>,
}

/// The way in which a program ended.
enum End {
    Verdict(Verdict),
    Stream(braid_streams::End),
    Resubmit,
    Return,
}

/// The subject of a program: a packet, an ended entry, or none.
enum Subject<'a> {
    /// A packet, and a copy from when it entered the function.
    Packet {
        work: Work<'a>,
        /// `None` for native functions and stream functions, whose packet programs leave it alone.
        entry: Option<Box<(Packet, Layout)>>,
        writes: Vec<Write>,
    },
    Nothing,
    /// An ended entry: its slots and its key.
    Ended(&'a [Word], &'a [Word]),
    /// An event of a TCP connection.
    Stream(&'a View<'a>),
    /// An event that another function has published: its fields.
    Event(&'a [Word]),
}

/// The words of a key, of slots or of arguments, in place up to the words of a flow key.
type Words = SmallVec<[Word; 6]>;

struct Run<'a, 'b> {
    context: &'a mut ExecContext<'b>,
    subject: Subject<'a>,
}

/// Runs a function's packet program. `layout` is where the packet's headers are.
pub(crate) fn on_packet(
    context: &mut ExecContext<'_>,
    packet: &mut Packet,
    layout: &mut Layout,
) -> Outcome {
    on_resubmitted(context, (packet, layout), 0, Vec::new())
}

/// As [`on_packet`], for a packet that was already resubmitted `submitted` times. `emissions` holds
/// the packets that the function has sent before.
pub(crate) fn on_resubmitted(
    context: &mut ExecContext<'_>,
    (packet, layout): (&mut Packet, &mut Layout),
    mut submitted: u32,
    mut emissions: Vec<Emission>,
) -> Outcome {
    let model = context.model;
    let entry = (!model.is_opaque()).then(|| Box::new((packet.clone(), *layout)));
    let work = Work { packet, layout, emissions: &mut emissions };
    let subject = Subject::Packet { work, entry, writes: Vec::new() };
    let mut run = Run { context, subject };
    let verdict = loop {
        run.context.start();
        match run.program(&model.packet) {
            Ok(End::Verdict(verdict)) => break verdict,
            Ok(End::Resubmit) if submitted < RESUBMIT_LIMIT => {
                submitted += 1;
                run.subject.enter_anew();
            }
            Ok(End::Resubmit | End::Return | End::Stream(_)) => {
                break Verdict::Fault(Fault::Resubmit);
            }
            Err(fault) => break Verdict::Fault(fault),
        }
    };
    if let Verdict::Fault(_) = verdict {
        let bytes = run.subject.wire_len();
        run.context.instance.count_row(run.context.instance.fault_row(), bytes);
    }
    let writes = match run.subject {
        Subject::Packet { writes, .. } => writes,
        Subject::Nothing | Subject::Ended(..) | Subject::Stream(_) | Subject::Event(_) => {
            Vec::new()
        }
    };
    Outcome { verdict, emissions, writes }
}

/// Runs a timer's program.
pub(crate) fn on_timer(context: &mut ExecContext<'_>, program: &Program) {
    context.start();
    in_background(Run { context, subject: Subject::Nothing }, program);
}

/// Runs a handler for an event with these fields, which may decide about the flow that they name.
pub(crate) fn on_event(context: &mut ExecContext<'_>, program: &Program, fields: &[Word]) {
    context.start();
    let run = Run { context: &mut *context, subject: Subject::Event(fields) };
    let Some(End::Stream(end)) = in_background(run, program) else { return };
    context.stacks.order(context.node, context.shard, (fields, end), context.now);
}

/// Runs the `expire` program of an ended entry, in the shard where the entry was created.
pub(crate) fn on_ending(
    context: &mut ExecContext<'_>,
    shard: u16,
    program: &Program,
    slots: &[Word],
    key: &[Word],
) {
    let mut nested = ExecContext {
        node: context.node,
        worker: shard,
        shard,
        now: context.now,
        model: context.model,
        params: context.params,
        instance: context.instance,
        store: context.store,
        locators: context.locators,
        touched: context.touched,
        scratch: context.scratch,
        stacks: context.stacks,
        event_programs: context.event_programs,
        subscriptions: context.subscriptions,
        out: context.out,
        role: Role::Expire,
    };
    in_background(Run { context: &mut nested, subject: Subject::Ended(slots, key) }, program);
}

/// What runs of programs for events of TCP connections need of the model interpreter.
pub(crate) const FOR_EVENTS: Interpreter =
    Interpreter { program: on_stream, operation: of_stream_program };

/// Executes an operation of a program for an event of a TCP connection.
fn of_stream_program(
    context: &mut ExecContext<'_>,
    view: &View<'_>,
    values: &mut Values<'_>,
    op: &Op,
) -> Result<(), Fault> {
    Run { context, subject: Subject::Stream(view) }.op(values, op)
}

/// Runs a program for an event of a TCP connection. After a fault, the connection goes on.
fn on_stream(
    context: &mut ExecContext<'_>,
    view: &View<'_>,
    program: &Program,
) -> braid_streams::End {
    // The packet program, within which this one runs, uses `words`.
    std::mem::swap(&mut context.scratch.words, &mut context.scratch.stream_words);
    let ended = Run { context: &mut *context, subject: Subject::Stream(view) }.program(program);
    std::mem::swap(&mut context.scratch.words, &mut context.scratch.stream_words);
    match ended {
        Ok(End::Stream(end)) => end,
        Ok(_) => braid_streams::End::Forward,
        Err(_) => {
            context.instance.counters.background_faults += 1;
            braid_streams::End::Forward
        }
    }
}

fn in_background(mut run: Run<'_, '_>, program: &Program) -> Option<End> {
    let ended = run.program(program);
    run.context.instance.counters.background_faults += u64::from(ended.is_err());
    ended.ok()
}

impl Run<'_, '_> {
    fn program(&mut self, program: &Program) -> Result<End, Fault> {
        let mut words = std::mem::take(&mut self.context.scratch.words);
        words.clear();
        words.resize(program.values.len(), 0);
        let end = self.blocks(program, Values { words: &mut words, types: &program.values });
        self.context.scratch.words = words;
        end
    }

    /// Runs the blocks of a program on its values, which are 0 at first.
    fn blocks(&mut self, program: &Program, mut values: Values<'_>) -> Result<End, Fault> {
        let mut at = 0;
        loop {
            let block = &program.blocks[at];
            for op in &block.ops {
                self.op(&mut values, op)?;
            }
            let next = match &block.term {
                Term::Jump(target) => target,
                Term::Branch { cond, yes, no } => {
                    if values.truth(*cond) {
                        yes
                    } else {
                        no
                    }
                }
                Term::Hold { queue, full, .. }
                    if !self.context.instance.queue_has_room(
                        self.context.params,
                        *queue,
                        self.context.shard,
                    ) =>
                {
                    full
                }
                end => return Ok(self.end(&values, end)),
            };
            pass(&mut values, program, next);
            at = next.block.index();
        }
    }

    fn end(&self, values: &Values<'_>, term: &Term) -> End {
        End::Verdict(match term {
            Term::Output { ports, .. } => Verdict::Output(SmallVec::from_slice(ports)),
            Term::Drop { reason, row } => Verdict::Drop(*row, *reason),
            Term::Consume { .. } => Verdict::Consume,
            Term::Hold { queue, delay, .. } => {
                let delay = u64::try_from(values.get(*delay)).unwrap_or(u64::MAX);
                Verdict::Hold { queue: *queue, until_ns: self.context.now.saturating_add(delay) }
            }
            Term::Resubmit { .. } => return End::Resubmit,
            Term::Reset { reason, .. } => return End::Stream(braid_streams::End::Reset(*reason)),
            Term::Bypass { .. } => return End::Stream(braid_streams::End::Bypass),
            Term::Resume { .. } => return End::Stream(braid_streams::End::Resume),
            Term::Return | Term::Jump(_) | Term::Branch { .. } => return End::Return,
        })
    }

    fn op(&mut self, values: &mut Values<'_>, op: &Op) -> Result<(), Fault> {
        match op {
            Op::LoadEntry { out, field } => {
                let value = self.entry_field(*field).ok_or(Fault::Truncated)?;
                values.set(*out, value);
            }
            Op::Store { .. }
            | Op::StoreTag { .. }
            | Op::PushVlan { .. }
            | Op::PopVlan
            | Op::PushOption { .. }
            | Op::PopOption { .. } => self.change(values, op)?,
            op if op.changes_payload() || op.rewraps() => self.change(values, op)?,
            Op::Count { row } => {
                let bytes = self.subject.wire_len();
                self.context.instance.count_row(*row, bytes);
            }
            Op::Rules { pass, rule, param } => {
                let (passes, number) = self.rules(*param);
                values.set(*pass, Word::from(passes));
                values.set(*rule, Word::from(number));
            }
            Op::Expiring { outs } => {
                if let Subject::Ended(slots, _) = self.subject {
                    values.set_all(outs, slots);
                }
            }
            Op::ExpiringKey { outs } => {
                if let Subject::Ended(_, key) = self.subject {
                    values.set_all(outs, key);
                }
            }
            Op::LoadEvent { out, field } => {
                if let Subject::Event(fields) = self.subject {
                    values.set(*out, fields[*field as usize]);
                }
            }
            Op::Stream { verdict, is_new, seq, ack } => {
                let Subject::Packet { work, .. } = &self.subject else {
                    return Err(Fault::Truncated);
                };
                let answer = match self.context.scratch.answer.take() {
                    Some(answer) => answer,
                    None => streams::pass(self.context, (work.packet, work.layout), &FOR_EVENTS),
                };
                values.set_all(&[*verdict, *is_new, *seq, *ack], &answer.words());
            }
            Op::StateExists { .. }
            | Op::StateGet { .. }
            | Op::StateSet { .. }
            | Op::StatePut { .. }
            | Op::StateDelete { .. } => self.state(values, op)?,
            op => match self.subject {
                Subject::Stream(view) if streams::step(self.context, view, values, op)? => {}
                _ => self.context.common(self.subject.work(), values, op)?,
            },
        }
        Ok(())
    }

    fn state(&mut self, values: &mut Values<'_>, op: &Op) -> Result<(), Fault> {
        match op {
            Op::StateExists { out, state, key } => {
                let key = self.key(values, *state, key)?;
                let found = self.context.find(*state, &key);
                values.set(*out, Word::from(found.is_some()));
            }
            Op::StateGet { outs, state, key } => {
                let key = self.key(values, *state, key)?;
                let mut take = |slot: usize, value| values.set(outs[slot], value);
                match self.context.find(*state, &key) {
                    Some(entry) => self.context.read(*state, entry, &mut take),
                    None => self.context.default(*state, &mut take)?,
                }
            }
            Op::StateSet { ok, state, key, values: slots } => {
                let key = self.key(values, *state, key)?;
                let slots: Words = slots.iter().map(|slot| values.get(*slot)).collect();
                let done = self.context.assign(*state, &key, &slots);
                values.set(*ok, Word::from(done));
            }
            Op::StatePut { ok, state, key, slot, value } => {
                let key = self.key(values, *state, key)?;
                let done = self.context.put(*state, &key, *slot, values.get(*value))?;
                values.set(*ok, Word::from(done));
            }
            Op::StateDelete { state, key } => {
                let key = self.key(values, *state, key)?;
                self.context.delete(*state, &key);
            }
            _ => {}
        }
        Ok(())
    }

    /// Executes operations that change the packet, and logs the changes.
    fn change(&mut self, values: &mut Values<'_>, op: &Op) -> Result<(), Fault> {
        let Subject::Packet { work, writes, .. } = &mut self.subject else {
            return Err(Fault::Truncated);
        };
        match op {
            Op::Store { field, a } => {
                writes.push(Write::Field(*field, values.get(*a)));
                let done = work.packet.set(work.layout, *field, values.get(*a));
                work.parse();
                return if done { Ok(()) } else { Err(Fault::Truncated) };
            }
            Op::StoreTag { tag, a } => {
                let name = self.context.model.tags[tag.index()].name.as_str();
                writes.push(Write::Tag(name.into(), values.get(*a)));
            }
            Op::PushVlan { id } => {
                let id = u16::try_from(values.get(*id)).unwrap_or(u16::MAX);
                writes.push(Write::PushVlan(id));
            }
            Op::PopVlan => writes.push(Write::PopVlan),
            Op::PushOption { option, values: parts } => {
                let parts = parts.iter().map(|part| values.get(*part)).collect();
                writes.push(Write::Option(*option, Some(parts)));
            }
            Op::PopOption { option } => writes.push(Write::Option(*option, None)),
            Op::StoreBytes { area, offset, a, .. } => {
                let bytes = usize::from(values.width(*a) / 8);
                let place = (*area, values.get(*offset));
                writes.push(Write::Bytes(place, bytes, values.get(*a)));
            }
            Op::SetOption { kind, value, .. } => {
                let value = value.as_ref().map(|(len, words)| {
                    let (bytes, len) = string(values, *len, words);
                    bytes.get(..len).unwrap_or_default().to_vec()
                });
                writes.push(Write::AnyOption(*kind, value));
            }
            Op::ReplaceBytes { offset, old, new, words, .. } => {
                let words = words.iter().map(|word| values.get(*word)).collect();
                let place = (values.get(*offset), values.get(*old));
                writes.push(Write::Replace(place, (values.get(*new), words)));
            }
            Op::Encapsulate { .. }
            | Op::Decapsulate { .. }
            | Op::Translate { .. }
            | Op::Encrypt { .. }
            | Op::Decrypt { .. } => writes.extend(changed(self.context.params, values, op)),
            _ => {}
        }
        let done = self.context.common(Some(work), values, op);
        work.parse();
        done
    }

    fn entry_field(&self, field: Field) -> Option<Word> {
        match &self.subject {
            _ if field == Field::PktTime => Some(Word::from(self.context.now)),
            Subject::Packet { .. } => {
                let (packet, layout) = self.subject.entering()?;
                packet.get(layout, field)
            }
            Subject::Stream(view) => view.field(field),
            Subject::Nothing | Subject::Ended(..) | Subject::Event(_) => None,
        }
    }

    /// Whether the packet passes a rule set, and the number of the deciding rule. Counts the rule.
    fn rules(&mut self, param: ParamId) -> (bool, u32) {
        let packet = match &self.subject {
            Subject::Packet { work, .. } => {
                RulePacket::read(|field| work.packet.get(work.layout, field))
            }
            Subject::Nothing | Subject::Ended(..) | Subject::Stream(_) | Subject::Event(_) => None,
        };
        let answer = self.context.instance.classify(param, packet.as_ref());
        if packet.is_some() {
            self.context.instance.count_rule(param, answer.1);
        }
        answer
    }

    /// The words of a key.
    fn key(&self, values: &Values<'_>, state: StateId, key: &Key) -> Result<Words, Fault> {
        if let Key::Explicit(parts) = key {
            return Ok(parts.iter().map(|part| values.get(*part)).collect());
        }
        match &self.context.model.state[state.index()].granularity {
            Granularity::Global | Granularity::Key(_) => Ok(Words::new()),
            Granularity::Fields(fields) => {
                let parts = fields.iter().map(|field| self.entry_field(*field));
                parts.collect::<Option<_>>().ok_or(Fault::Truncated)
            }
            Granularity::Flow => Ok(self.flow(key)?.words().into()),
            Granularity::Biflow => Ok(self.flow(key)?.bidirectional().words().into()),
        }
    }

    /// The flow of an implicit key.
    fn flow(&self, key: &Key) -> Result<FlowKey, Fault> {
        if let Subject::Stream(view) = self.subject {
            return Ok(view.flow);
        }
        let (packet, layout) = self.subject.entering().ok_or(Fault::NoEntry)?;
        let flow = match key {
            Key::Quoted | Key::Reversed(true) => packet.quoted_flow_key(layout),
            Key::Entry | Key::Reversed(false) | Key::Explicit(_) => packet.flow_key(layout),
        };
        let flow = flow.ok_or(Fault::Truncated)?;
        Ok(if matches!(key, Key::Reversed(_)) { flow.reversed() } else { flow })
    }
}

impl<'a> Subject<'a> {
    /// Implements `resubmit`: the packet in its current form becomes the entering packet.
    fn enter_anew(&mut self) {
        if let Subject::Packet { work, entry: Some(entry), .. } = self {
            work.parse();
            entry.0.clone_from(work.packet);
            entry.1 = *work.layout;
        }
    }

    /// The packet as it entered the function.
    fn entering(&self) -> Option<(&Packet, &Layout)> {
        match self {
            Subject::Packet { entry: Some(entry), .. } => Some((&entry.0, &entry.1)),
            Subject::Packet { work, entry: None, .. } => Some((work.packet, work.layout)),
            Subject::Nothing | Subject::Ended(..) | Subject::Stream(_) | Subject::Event(_) => None,
        }
    }

    fn work(&mut self) -> Option<&mut Work<'a>> {
        match self {
            Subject::Packet { work, .. } => Some(work),
            Subject::Nothing | Subject::Ended(..) | Subject::Stream(_) | Subject::Event(_) => None,
        }
    }

    /// The bytes that rows count.
    fn wire_len(&self) -> u64 {
        match self {
            Subject::Packet { work, .. } => work.packet.wire_len.into(),
            Subject::Stream(view) => view.len(),
            Subject::Nothing | Subject::Ended(..) | Subject::Event(_) => 0,
        }
    }
}

/// Assigns the parameters of a block.
fn pass(values: &mut Values<'_>, program: &Program, target: &Target) {
    let args: Words = target.args.iter().map(|arg| values.get(*arg)).collect();
    values.set_all(&program.blocks[target.block.index()].params, &args);
}

/// The change of outer headers that an operation makes, or of an encrypted payload. `None` if it
/// lacks its key.
fn changed(params: &[ParamValue], values: &Values<'_>, op: &Op) -> Option<Write> {
    let key = |of: &KeyRef| params.get(of.keys.index())?.key(values.get(of.number)).cloned();
    let known = |of: &Association| association(params, values, *of);
    Some(match op {
        Op::Encapsulate { inner, parts, len, words, seal, .. } => {
            let words = words.iter().map(|word| values.get(*word)).collect();
            let seal = match seal {
                Some((of, number)) => Some((known(of)?, wide(values, *number))),
                None => None,
            };
            let headers = ((*inner, parts.clone()), (*len as usize, words));
            Write::Tunnel(Change::Push(headers.0, headers.1, seal))
        }
        Op::Decapsulate { inner, last, offset, association: of, .. } => {
            let association = match of {
                Some(of) => Some(known(of)?),
                None => None,
            };
            Write::Tunnel(Change::Pop((*inner, *last), values.get(*offset), association))
        }
        Op::Translate { to, own, quoted, .. } => {
            Write::Tunnel(Change::Translate(*to, addresses(values, own, quoted.as_ref())))
        }
        Op::Encrypt { key: of, number, offset, .. } => {
            let sealed = (key(of)?, wide(values, *number));
            Write::Crypt(crypt::Change::Encrypt(values.get(*offset), sealed))
        }
        Op::Decrypt { key: of, offset, .. } => {
            Write::Crypt(crypt::Change::Decrypt(values.get(*offset), key(of)?))
        }
        _ => return None,
    })
}
