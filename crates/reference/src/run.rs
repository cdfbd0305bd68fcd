//! Runs one program of an instance: the packet program on a packet, a timer program or an expiry
//! program.

use super::instance::{Instance, Shard};
use super::others::Others;
use super::packet::PacketState;
use super::schedule::Expiries;
use super::subject::StreamSubject;
use crate::trace::{Observer, Verdict};
use braid_ir::engine::{Fault, Outputs, RESUBMIT_LIMIT};
use braid_ir::model::{Area, Dest, Model, ParamId, Program, Target, Term, ValueId, Word, flow_of};
use braid_ir::value::ParamValue;
use braid_packet::edits::Rest;
use braid_packet::tunnel::Change;
use braid_packet::{Packet, crypt};

/// The data that a program may access besides its own values and packet.
pub(super) struct Env<'a> {
    /// The function.
    pub(super) node: u16,
    /// The worker that runs the program. Timers and expiry programs run on the worker of their
    /// shard.
    pub(super) worker: u16,
    /// The worker's shard of its state.
    pub(super) shard: usize,
    /// The current time.
    pub(super) now: u64,
    pub(super) instance: &'a mut Instance,
    /// The functions that the events of the program may reach.
    pub(super) others: Others<'a>,
    /// The expiry times of entries.
    pub(super) expiries: &'a mut Expiries,
    /// The next entry's number.
    pub(super) ids: &'a mut u64,
    pub(super) out: &'a mut dyn Outputs,
    pub(super) observer: &'a mut dyn Observer,
}

impl Env<'_> {
    /// The value of a parameter.
    pub(super) fn param(&self, param: ParamId) -> &ParamValue {
        &self.instance.params[param.index()]
    }

    /// The shard of the instance in which the program runs.
    pub(super) fn shard(&mut self) -> &mut Shard {
        &mut self.instance.shards[self.shard]
    }

    /// The same environment, for a program that runs within this one.
    pub(super) fn nested(&mut self) -> Env<'_> {
        Env {
            node: self.node,
            worker: self.worker,
            shard: self.shard,
            now: self.now,
            instance: self.instance,
            others: self.others.again(),
            expiries: self.expiries,
            ids: self.ids,
            out: self.out,
            observer: self.observer,
        }
    }
}

/// The reason why a program runs.
pub(super) enum Role {
    /// For a packet.
    Packet(Box<PacketState>),
    /// For a timer.
    Timer,
    /// For an entry that ended, with its slots and key.
    Expire(Vec<Word>, Vec<Word>),
    /// For an event of a TCP connection.
    Stream(StreamSubject),
    /// For an event that another function has published, with its fields. Texts are 0.
    Handler(Vec<Word>),
}

/// A packet that a program sends before it ends.
pub(super) struct Emission {
    pub(super) dest: Dest,
    pub(super) packet: Packet,
    pub(super) origin: Origin,
}

/// How a packet that a program sends came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// It is a copy of the current packet.
    Copied,
    /// It was built from fields.
    Built,
    /// Native code has made it, and it may be malformed.
    Made,
}

/// A change that a program made to the packet.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Write {
    Field(braid_packet::Field, Word),
    Tag(String, Word),
    PushVlan(u16),
    PopVlan,
    /// A TCP option that the program added with these values, or removed.
    Option(braid_packet::Header, Option<Vec<Word>>),
    /// A number in an area of the packet: the area and its offset there, its bytes, its value.
    Bytes((Area, Word), usize, Word),
    /// Bytes of the payload: their offset and their number, and the new number and words.
    Replace((Word, Word), (Word, Vec<Word>)),
    /// A TCP option of any kind that the function added with this value, or removed.
    AnyOption(u8, Option<Vec<u8>>),
    /// Outer headers that the program added or removed.
    Tunnel(Change),
    /// A payload that the program encrypted or decrypted.
    Crypt(crypt::Change),
    /// Bytes that native code changed and that no other write covers.
    Rest(Rest),
    /// A packet to which native code gave other headers or another length.
    Whole(Box<Packet>),
}

/// A running program.
pub(super) struct Run<'a> {
    pub(super) env: Env<'a>,
    pub(super) role: Role,
    pub(super) values: Vec<Word>,
    /// The entry that this run last found or assigned, by table.
    pub(super) touched: Vec<Option<u64>>,
    pub(super) emissions: Vec<Emission>,
    pub(super) writes: Vec<Write>,
}

/// The end of a program, with the verdict on its packet or its connection if it has one.
enum End {
    Verdict(Verdict),
    Stream(braid_streams::End),
    Resubmit,
    Return,
}

/// The result of a function for a packet.
pub(super) struct Outcome {
    /// The packet with the function's changes.
    pub(super) packet: Packet,
    pub(super) emissions: Vec<Emission>,
    pub(super) writes: Vec<Write>,
    pub(super) verdict: Verdict,
}

/// Runs an instance's packet program on a packet.
pub(super) fn on_packet(env: Env<'_>, packet: Packet) -> Outcome {
    let model = env.instance.model.clone();
    let mut run = Run::new(env, Role::Packet(Box::new(PacketState::new(packet))));
    let mut submitted = 0;
    let verdict = loop {
        if let Role::Packet(state) = &run.role {
            run.env.observer.enter(run.env.node, &state.now);
        }
        match run.program(&model, &model.packet) {
            Ok(End::Verdict(verdict)) => break verdict,
            Ok(End::Resubmit) if submitted < RESUBMIT_LIMIT => {
                submitted += 1;
                run.start_anew();
            }
            Ok(End::Resubmit | End::Return | End::Stream(_)) => {
                break Verdict::Fault(Fault::Resubmit);
            }
            Err(fault) => break Verdict::Fault(fault),
        }
    };
    run.env.observer.verdict(run.env.node, &verdict);
    let Run { role, emissions, writes, .. } = run;
    let packet = match role {
        Role::Packet(state) => state.now,
        Role::Timer | Role::Expire(..) | Role::Stream(_) | Role::Handler(_) => {
            unreachable!("it was made for a packet above")
        }
    };
    Outcome { packet, emissions, writes, verdict }
}

/// Runs a handler for an event with these fields. What it wants of the flow that the event names
/// goes to the function's stack.
pub(super) fn on_event(env: Env<'_>, fields: &[Word], program: &Program) {
    let model = env.instance.model.clone();
    let mut run = Run::new(env, Role::Handler(fields.to_vec()));
    match run.program(&model, program) {
        Ok(End::Stream(end)) => {
            let now = run.env.now;
            if let (Some(stack), Some(flow)) = (&mut run.env.shard().stack, flow_of(fields)) {
                stack.order(0, flow, end, now);
            }
        }
        Ok(_) => {}
        Err(_) => run.env.instance.counters.background_faults += 1,
    }
}

/// Runs a timer program or an expiry program.
pub(super) fn in_background(env: Env<'_>, role: Role, program: &Program) {
    let model = env.instance.model.clone();
    let mut run = Run::new(env, role);
    if run.program(&model, program).is_err() {
        run.env.instance.counters.background_faults += 1;
    }
}

/// Runs a program for an event of a TCP connection. After a fault, the connection goes on.
pub(super) fn on_stream(
    env: Env<'_>,
    subject: StreamSubject,
    program: &Program,
) -> braid_streams::End {
    let model = env.instance.model.clone();
    let mut run = Run::new(env, Role::Stream(subject));
    match run.program(&model, program) {
        Ok(End::Stream(end)) => end,
        Ok(_) => braid_streams::End::Forward,
        Err(_) => {
            run.env.instance.counters.background_faults += 1;
            braid_streams::End::Forward
        }
    }
}

impl<'a> Run<'a> {
    fn new(env: Env<'a>, role: Role) -> Self {
        let touched = vec![None; env.instance.model.state.len()];
        Self { env, role, values: Vec::new(), touched, emissions: Vec::new(), writes: Vec::new() }
    }

    /// Starts again after `resubmit`: the current packet enters.
    fn start_anew(&mut self) {
        if let Role::Packet(state) = &mut self.role {
            **state = PacketState::new(state.now.clone());
        }
        self.touched.fill(None);
    }

    fn program(&mut self, model: &Model, program: &Program) -> Result<End, Fault> {
        self.values.clear();
        self.values.resize(program.values.len(), 0);
        let mut at = 0;
        loop {
            let block = &program.blocks[at];
            for op in &block.ops {
                self.op(model, program, op)?;
            }
            let next = match &block.term {
                Term::Jump(target) => target,
                Term::Branch { cond, yes, no } => {
                    if self.truth(*cond) {
                        yes
                    } else {
                        no
                    }
                }
                Term::Hold { queue, full, .. }
                    if !self.env.instance.queue_has_room(*queue, self.env.shard) =>
                {
                    full
                }
                end => return Ok(self.end(model, end)),
            };
            self.pass(program, next);
            at = next.block.index();
        }
    }

    /// Gives a block its arguments.
    fn pass(&mut self, program: &Program, target: &Target) {
        let args: Vec<Word> = target.args.iter().map(|arg| self.value(*arg)).collect();
        for (param, arg) in program.blocks[target.block.index()].params.iter().zip(args) {
            self.values[param.index()] = arg;
        }
    }

    fn end(&self, model: &Model, term: &Term) -> End {
        End::Verdict(match term {
            Term::Output { ports, row } => Verdict::Output { ports: ports.clone(), row: *row },
            Term::Drop { reason, row } => {
                Verdict::Drop { reason: model.reasons[reason.index()].clone(), row: *row }
            }
            Term::Consume { row } => Verdict::Consume { row: *row },
            Term::Hold { queue, delay, row, .. } => {
                let delay = u64::try_from(self.value(*delay)).unwrap_or(u64::MAX);
                let until_ns = self.env.now.saturating_add(delay);
                Verdict::Hold { queue: *queue, until_ns, row: *row }
            }
            Term::Resubmit { .. } => return End::Resubmit,
            Term::Reset { reason, .. } => return End::Stream(braid_streams::End::Reset(*reason)),
            Term::Bypass { .. } => return End::Stream(braid_streams::End::Bypass),
            Term::Resume { .. } => return End::Stream(braid_streams::End::Resume),
            Term::Return | Term::Jump(_) | Term::Branch { .. } => return End::Return,
        })
    }

    pub(super) fn value(&self, id: ValueId) -> Word {
        self.values[id.index()]
    }

    pub(super) fn truth(&self, id: ValueId) -> bool {
        self.value(id) != 0
    }

    pub(super) fn define(&mut self, id: ValueId, value: Word) {
        self.values[id.index()] = value;
    }
}
