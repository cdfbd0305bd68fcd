//! Specialises a program to a flow and to the state as it is: runs it without any effect on a packet that is about
//! to run, and writes down what it does and on what that hangs.
//!
//! Each value is known together with what it hangs on: on the key, parameters and state only; or on bits of this
//! packet, of which a condition or a value then becomes a guard.

use super::class::Way;
use super::guard::{Guards, Number};
use super::plan::{Bits, LENGTH, bits, in_sum, is_key};
use super::rest::Rest;
use crate::act::{Functions, Values};
use crate::exec::rule_packet;
use crate::ops;
use braid_externs::Profile;
use braid_ir::engine::Outputs;
use braid_ir::model::{Key, Op, Target, ValueId, Word};
use braid_ir::residual::{End, Residual, Step, What};
use braid_packet::blend::{BYTES, Blend, TTL, WORDS, Window, sums, words};
use braid_packet::{Field, Header, Layout, Packet};
use braid_state::{Handle, RecordBug, TableRef, Use};

/// What a record is made of.
pub(super) struct Found {
    pub(super) way: Way,
    pub(super) bytes: Window,
    pub(super) sums: [u16; 2],
    pub(super) rests_on: Vec<(Handle, Use)>,
    pub(super) absent: Vec<(TableRef, Box<[u64]>)>,
}

/// Where a run came to what a record cannot say.
pub(super) struct Stop {
    pub(super) block: usize,
    /// The step; `None`: the block's end.
    pub(super) step: Option<usize>,
    /// What values hung on.
    pub(super) hangs: Vec<Hang>,
    /// The table of the last entry that was not there.
    pub(super) absent: Option<TableRef>,
}

/// What a value hangs on, beside what a record rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hang {
    /// Nothing.
    Fixed,
    /// It is a number in the packet, shifted down by `shift`, plus `add`.
    Number { number: Number, shift: u32, add: i64 },
    /// It is a number in the packet, shifted down, of which guards can only ask for the very bits.
    Bits { number: Number, shift: u32 },
    /// It is what a slot of an entry (by number among those that were found) holds, plus `packets`, plus
    /// `bytes` times the bytes on the wire; whether it wraps where it would not fit, once anything was added.
    Slot { entry: usize, slot: u32, packets: u32, bytes: u32, wraps: Option<bool> },
    /// It is the time.
    Time,
    /// Anything else.
    Packet,
}

/// A run without effect.
pub(super) struct Probe<'a> {
    pub(super) program: &'a Residual,
    pub(super) functions: &'a mut Functions,
    pub(super) worker: u16,
    pub(super) out: &'a mut dyn Outputs,
    pub(super) packet: &'a Packet,
    pub(super) layout: &'a Layout,
    pub(super) hangs: Vec<Hang>,
    pub(super) guards: Guards,
    way: Way,
    /// The packet's first bytes as the program leaves them, and the bits that it assigns.
    head: [u8; BYTES],
    mask: [u8; BYTES],
    /// Whether it has assigned any.
    writes: bool,
    pub(super) rests_on: Vec<Rest>,
    /// Keys of entries that were not there.
    pub(super) absent: Vec<(TableRef, Box<[u64]>)>,
}

impl<'a> Probe<'a> {
    /// A probe of a program for a packet of a worker.
    pub(super) fn new(
        (number, program): (u32, &'a Residual),
        functions: &'a mut Functions,
        worker: u16,
        out: &'a mut dyn Outputs,
        (packet, layout): (&'a Packet, &'a Layout),
    ) -> Option<Self> {
        let head = *packet.window()?;
        let way = Way {
            program: number,
            block: 0,
            tallies: Vec::new(),
            rules: Vec::new(),
            guards: Vec::new(),
            blend: Blend { keep: [0; WORDS], ttl: 0, sums: [false; 2] },
        };
        Some(Self {
            program,
            functions,
            worker,
            out,
            packet,
            layout,
            hangs: vec![Hang::Fixed; program.values.len()],
            guards: Guards::default(),
            way,
            head,
            mask: [0; BYTES],
            writes: false,
            rests_on: Vec::new(),
            absent: Vec::new(),
        })
    }

    /// Runs the program, up to where a record cannot say what it does.
    pub(super) fn run(mut self, memory: &mut [Word]) -> Result<Found, Stop> {
        let program = self.program;
        let mut values = Values { words: memory, types: &program.values };
        let mut at = 0;
        loop {
            let block = &program.blocks[at];
            for (number, step) in block.steps.iter().enumerate() {
                self.step(&mut values, step).ok_or_else(|| self.stop(at, Some(number)))?;
            }
            let next = match &block.end {
                End::Jump(target) => target,
                End::Branch { cond, yes, no } => {
                    self.fix(&values, *cond).ok_or_else(|| self.stop(at, None))?;
                    if values.truth(*cond) { yes } else { no }
                }
                End::Exit(exit) => {
                    self.way.tallies.push(exit.tally);
                    self.way.block = at as u32;
                    let consistent = self.rests_on.iter().all(Rest::is_consistent);
                    return if consistent { Ok(self.found()) } else { Err(self.stop(at, None)) };
                }
                End::Hold { .. } => return Err(self.stop(at, None)),
            };
            self.pass(&mut values, next);
            at = next.block.index();
        }
    }

    /// It goes no further.
    fn stop(&mut self, block: usize, step: Option<usize>) -> Stop {
        let absent = self.absent.last().map(|(table, _)| *table);
        Stop { block, step, hangs: std::mem::take(&mut self.hangs), absent }
    }

    fn found(mut self) -> Found {
        let old = self.packet.window().copied().unwrap_or(self.head);
        let (mask, mut bytes) = (words(&self.mask), words(&self.head));
        bytes.iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
        self.way.blend.keep = mask.map(|word| !word);
        self.way.guards = self.guards.0;
        let mut sums = sums(self.layout, &old, &self.head);
        let bug = |bug| self.functions.store.has_bug(bug);
        if bug(RecordBug::GuardForgotten) {
            self.way.guards.pop();
        }
        if bug(RecordBug::WrongDelta) {
            sums[1] = sums[1].wrapping_add(1);
        }
        if bug(RecordBug::TtlKept) {
            self.way.blend.ttl = 0;
        }
        if bug(RecordBug::ReadForgotten) {
            self.rests_on.iter_mut().for_each(|rest| rest.how.reads = 0);
        }
        let rests_on = self.rests_on.into_iter().map(|rest| (rest.entry, rest.how)).collect();
        let Self { way, absent, .. } = self;
        Found { way, bytes, sums, rests_on, absent }
    }

    /// Gives a block its parameters.
    fn pass(&mut self, values: &mut Values<'_>, target: &Target) {
        let params = &self.program.blocks[target.block.index()].params;
        let args: Vec<_> =
            target.args.iter().map(|arg| (values.get(*arg), self.hang(*arg))).collect();
        for (param, (value, hang)) in params.iter().zip(args) {
            values.set(*param, value);
            self.hangs[param.index()] = hang;
        }
    }

    pub(super) fn hang(&self, id: ValueId) -> Hang {
        self.hangs[id.index()]
    }

    fn step(&mut self, values: &mut Values<'_>, step: &Step) -> Option<()> {
        let node = step.site.node;
        match &step.what {
            What::Op(op) => return self.op(node, values, op),
            What::Tally(tally) => self.way.tallies.push(*tally),
            What::Enter => {}
            What::Parse => return None,
            What::Write(fields) => {
                for (field, value) in fields {
                    self.write(values, *field, *value)?;
                }
            }
            What::Classify { pass, rule, param, packet } => {
                self.fix_all(values, &step.what.uses())?;
                let packet = packet.as_ref().map(|fields| rule_packet(values, fields));
                let instance = &self.functions.instances[usize::from(node)];
                let (passes, number) = instance.classify(*param, packet.as_ref());
                values.set(*pass, Word::from(passes));
                values.set(*rule, Word::from(number));
            }
            What::CountRule { param, rule } => {
                self.fix(values, *rule)?;
                self.way.rules.push((node, *param, values.get(*rule) as u32));
            }
            What::Find { found, entry, state, key } => {
                let handle = self.find(values, node, *state, key)?.map(|(_, handle)| handle);
                values.set(*found, Word::from(handle.is_some()));
                values.set(*entry, handle.map_or(0, Handle::to_bits).into());
            }
            What::Read { outs, state, entry } => {
                let entry = Handle::from_bits(values.get(*entry) as u64);
                self.read(values, (node, *state, entry), outs)?;
            }
        }
        Some(())
    }

    fn op(&mut self, node: u16, values: &mut Values<'_>, op: &Op) -> Option<()> {
        let by_function = match op {
            Op::Load { out, field } => return self.load(values, *out, *field),
            Op::StateSet { ok, state, key: Key::Explicit(key), values: slots } => {
                let (number, _) = self.find(values, node, *state, key)??;
                for (slot, value) in (0..).zip(slots) {
                    self.assign(values, number, slot, *value)?;
                }
                values.set(*ok, 1);
                return Some(());
            }
            Op::StatePut { ok, state, key: Key::Explicit(key), slot, value } => {
                let (number, _) = self.find(values, node, *state, key)??;
                self.assign(values, number, *slot, *value)?;
                values.set(*ok, 1);
                return Some(());
            }
            Op::StateDelete { state, key: Key::Explicit(key) } => {
                // There is nothing to do as long as there is no such entry.
                return self.find(values, node, *state, key)?.is_none().then_some(());
            }
            Op::Route { .. } => true,
            Op::Extern { name, .. } => {
                braid_externs::lookup(name)?.signature.profile == Profile::PURE
            }
            _ => false,
        };
        let hang = match self.follow(node, values, op) {
            Some(hang) => hang,
            None => {
                let mut uses = Vec::new();
                op.visit_uses(&mut |value| uses.push(*value));
                self.fix_all(values, &uses)?;
                Hang::Fixed
            }
        };
        let mut act = self.functions.act_on(node, self.worker, self.out);
        if by_function {
            act.common(None, values, op).ok()?;
        } else if !ops::pure(act.params, values, op).ok()? {
            return None;
        }
        op.visit_outs(&mut |out| self.hangs[out.index()] = hang);
        Some(())
    }

    fn load(&mut self, values: &mut Values<'_>, out: ValueId, field: Field) -> Option<()> {
        if self.writes && (!is_key(field) || self.is_written(field)) {
            // The packet has it as it was.
            return None;
        }
        let point = self.program.point;
        let (value, hang) = match field {
            Field::PktBackward => (point.backward.into(), Hang::Fixed),
            Field::PktHeld => (point.held.into(), Hang::Fixed),
            Field::PktLen => {
                let hang = Hang::Number { number: LENGTH, shift: 0, add: 0 };
                (self.packet.wire_len.into(), hang)
            }
            // What says so is in every key.
            Field::InetVersion | Field::IpHlen | Field::PktFragment | Field::PktLaterFragment => {
                (self.packet.get(self.layout, field)?, Hang::Fixed)
            }
            Field::PktTime => (0, Hang::Time),
            field => {
                let value = self.packet.get(self.layout, field)?;
                let number = |bits: Bits| {
                    let hang = |number| Hang::Number { number, shift: bits.shift, add: 0 };
                    bits.number().map_or(Hang::Packet, hang)
                };
                let hang = match bits(self.program, field) {
                    Some(_) if is_key(field) => Hang::Fixed,
                    Some(bits) => number(bits),
                    None => Hang::Packet,
                };
                (value, hang)
            }
        };
        values.set(out, value);
        self.hangs[out.index()] = hang;
        Some(())
    }

    /// Whether bits of a field have been assigned.
    fn is_written(&self, field: Field) -> bool {
        let mut bytes = [0; BYTES];
        let Some(bits) = bits(self.program, field) else { return true };
        bits.set(&mut bytes, u128::MAX);
        bytes.iter().zip(&self.mask).any(|(one, mask)| one & mask != 0)
    }

    /// Assigns a field.
    fn write(&mut self, values: &Values<'_>, field: Field, id: ValueId) -> Option<()> {
        self.writes = true;
        let bits = bits(self.program, field)?;
        match field.info().header {
            Header::Eth => {}
            Header::Ip4 | Header::Inet => {
                self.way.blend.sums[0] = true;
                if matches!(field, Field::IpSrc | Field::IpDst | Field::InetSrc | Field::InetDst) {
                    let follows = !self.functions.store.has_bug(RecordBug::PseudoHeaderForgotten);
                    self.way.blend.sums[1] |= self.layout.has_pseudo_sum()? && follows;
                }
            }
            Header::L4 | Header::Tcp | Header::Udp | Header::Icmp | Header::IcmpEcho => {
                self.way.blend.sums[1] = true;
            }
            _ => return None,
        }
        let value = values.get(id);
        if let Hang::Number { number, shift: 0, add } = self.hang(id)
            && Some(number) == bits.number()
            && bits.at == TTL
        {
            // Relative to what it was when the packet came, also if it was assigned before.
            self.way.blend.ttl = u8::try_from(-add).ok()?;
            bits.set(&mut self.head, value);
            return Some(());
        }
        self.fix(values, id)?;
        if in_sum(&field) && !is_key(field) {
            let old = self.packet.get(self.layout, field)?;
            self.fix_bits(bits.number()?, u32::try_from(old).ok()?, bits.shift)?;
        }
        bits.set(&mut self.head, value);
        bits.set(&mut self.mask, u128::MAX);
        Some(())
    }
}
