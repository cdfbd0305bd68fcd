//! Specialises a program to a flow and to the state as it is: runs it without any effect on a packet that is about
//! to run, and writes down what it does and on what that hangs.
//!
//! Each value is known together with what it hangs on: on the key, parameters and state only; or on bits of this
//! packet, of which a condition or a value then becomes a guard.

use super::class::Way;
use super::guard::{Guard, Guards, Number};
use super::plan::{Bits, LENGTH, bits, in_sum, is_key};
use crate::act::{Functions, Role, Values};
use crate::exec::rule_packet;
use crate::ops;
use braid_externs::Profile;
use braid_ir::engine::Outputs;
use braid_ir::model::{BinOp, CmpOp, Op, Target, ValueId, Word};
use braid_ir::residual::{End, Residual, Step, What};
use braid_packet::blend::{BYTES, Blend, TTL, WORDS, Window, sums, words};
use braid_packet::{Field, Header, Layout, Packet};
use braid_state::{Handle, TableRef};

/// What a record is made of.
pub(super) struct Found {
    pub(super) way: Way,
    pub(super) bytes: Window,
    pub(super) sums: [u16; 2],
    pub(super) rests_on: Vec<(TableRef, Handle)>,
}

/// What a value hangs on, beside what a record rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hang {
    /// Nothing.
    Fixed,
    /// It is a number in the packet, shifted down by `shift`, plus `add`.
    Number { number: Number, shift: u32, add: i64 },
    /// It is a number in the packet, shifted down, of which guards can only ask for the very bits.
    Bits { number: Number, shift: u32 },
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
    hangs: Vec<Hang>,
    guards: Guards,
    way: Way,
    /// The packet's first bytes as the program leaves them, and the bits that it assigns.
    head: [u8; BYTES],
    mask: [u8; BYTES],
    /// Whether it has assigned any.
    writes: bool,
    rests_on: Vec<(TableRef, Handle)>,
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
        })
    }

    /// Runs the program; `None` where a record cannot say what it does.
    pub(super) fn run(mut self, memory: &mut [Word]) -> Option<Found> {
        let program = self.program;
        let mut values = Values { words: memory, types: &program.values };
        let mut at = 0;
        loop {
            let block = &program.blocks[at];
            for step in &block.steps {
                self.step(&mut values, step)?;
            }
            let next = match &block.end {
                End::Jump(target) => target,
                End::Branch { cond, yes, no } => {
                    self.fix(&values, *cond)?;
                    if values.truth(*cond) { yes } else { no }
                }
                End::Exit(exit) => {
                    self.way.tallies.push(exit.tally);
                    self.way.block = at as u32;
                    return Some(self.found());
                }
                End::Hold { .. } => return None,
            };
            self.pass(&mut values, next);
            at = next.block.index();
        }
    }

    fn found(mut self) -> Found {
        let old = self.packet.window().copied().unwrap_or(self.head);
        let (mask, mut bytes) = (words(&self.mask), words(&self.head));
        bytes.iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
        self.way.blend.keep = mask.map(|word| !word);
        self.way.guards = self.guards.0;
        let sums = sums(self.layout, &old, &self.head);
        Found { way: self.way, bytes, sums, rests_on: self.rests_on }
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

    fn hang(&self, id: ValueId) -> Hang {
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
                self.fix_all(values, key)?;
                // As for a timer, for which nothing is renewed.
                let shard = self.functions.instances[usize::from(node)].shard(self.worker);
                let mut act = self.functions.act(node, shard, Role::Timer, self.out);
                let handle = act.with_key(values, key, |act, key| act.find(*state, key))?;
                self.rests_on.push((act.table(*state), handle));
                values.set(*found, 1);
                values.set(*entry, handle.to_bits().into());
            }
            What::Read { outs, state, entry } => {
                let entry = Handle::from_bits(values.get(*entry) as u64);
                let act = self.functions.act_on(node, self.worker, self.out);
                act.read(*state, entry, &mut |slot, value| values.set(outs[slot], value));
            }
        }
        Some(())
    }

    fn op(&mut self, node: u16, values: &mut Values<'_>, op: &Op) -> Option<()> {
        let by_function = match op {
            Op::Load { out, field } => return self.load(values, *out, *field),
            Op::Route { .. } => true,
            Op::Extern { name, .. } => {
                braid_externs::lookup(name)?.signature.profile == Profile::PURE
            }
            _ => false,
        };
        let hang = match self.follow(values, op) {
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
            Field::PktTime => (0, Hang::Packet),
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

    /// Makes a value one that hangs on nothing more: by a guard that its bits are these, if they are few.
    fn fix(&mut self, values: &Values<'_>, id: ValueId) -> Option<()> {
        let (number, shift, value) = match self.hang(id) {
            Hang::Fixed => return Some(()),
            Hang::Packet => return None,
            Hang::Number { number, shift, add } => {
                (number, shift, i64::try_from(values.get(id)).ok()?.checked_sub(add)?)
            }
            Hang::Bits { number, shift } => (number, shift, i64::try_from(values.get(id)).ok()?),
        };
        self.fix_bits(number, u32::try_from(value).ok()?, shift)?;
        self.hangs[id.index()] = Hang::Fixed;
        Some(())
    }

    /// A guard that a number has this value, which is shifted down, if it has few bits.
    fn fix_bits(&mut self, number: Number, value: u32, shift: u32) -> Option<()> {
        if number.mask.count_ones() > 8 {
            return None;
        }
        let value = value.checked_shl(shift)?;
        self.guards.add(Guard { number, least: value, most: value });
        Some(())
    }

    fn fix_all(&mut self, values: &Values<'_>, ids: &[ValueId]) -> Option<()> {
        ids.iter().try_for_each(|id| self.fix(values, *id))
    }

    /// What the result of an operation hangs on, if that is less than all of its operands: guards say what
    /// it takes for granted.
    fn follow(&mut self, values: &Values<'_>, op: &Op) -> Option<Hang> {
        match *op {
            Op::Bin { out, op, a, b } => self.follow_bin(values, out, op, (a, b)),
            Op::Cmp { op, a, b, .. } => match (self.hang(a), self.hang(b)) {
                (hang, Hang::Fixed) if hang != Hang::Fixed => self.compare(values, op, a, b),
                (Hang::Fixed, hang) if hang != Hang::Fixed => {
                    let turned = match op {
                        CmpOp::Eq | CmpOp::Ne => op,
                        CmpOp::Lt => CmpOp::Gt,
                        CmpOp::Le => CmpOp::Ge,
                        CmpOp::Gt => CmpOp::Lt,
                        CmpOp::Ge => CmpOp::Le,
                    };
                    self.compare(values, turned, b, a)
                }
                _ => None,
            },
            Op::Resize { out, a } | Op::Clamp { out, a }
                if values.width(out) >= values.width(a) =>
            {
                Some(self.hang(a))
            }
            _ => None,
        }
    }

    fn follow_bin(
        &mut self,
        values: &Values<'_>,
        out: ValueId,
        op: BinOp,
        (a, b): (ValueId, ValueId),
    ) -> Option<Hang> {
        let (packet, fixed) = match (self.hang(a), self.hang(b), op) {
            (_, Hang::Fixed, _) => (a, b),
            (Hang::Fixed, _, BinOp::AddWrap | BinOp::AddSat | BinOp::And) => (b, a),
            _ => return None,
        };
        let Hang::Number { number, shift, add } = self.hang(packet) else { return None };
        let by = i64::try_from(values.get(fixed)).ok()?;
        let add = match op {
            BinOp::AddWrap | BinOp::AddSat => add.checked_add(by)?,
            BinOp::SubWrap | BinOp::SubSat => add.checked_sub(by)?,
            BinOp::And if add == 0 => {
                let bits = values.get(fixed) & Word::from(number.mask >> shift);
                let mask = (bits as u32) << shift;
                return Some(Hang::Bits { number: Number { mask, ..number }, shift });
            }
            _ => return None,
        };
        // So long as nothing wraps or stops.
        let most = i64::try_from(values.ty(out).max()).unwrap_or(i64::MAX);
        self.within(values, packet, (number, shift), (-add, most.saturating_sub(add)))?;
        Some(Hang::Number { number, shift, add })
    }

    /// A guard that what a value is made of stays in an interval, which it must be in.
    fn within(
        &mut self,
        values: &Values<'_>,
        id: ValueId,
        (number, shift): (Number, u32),
        (least, most): (i64, i64),
    ) -> Option<()> {
        let Hang::Number { add, .. } = self.hang(id) else { return None };
        let now = i64::try_from(values.get(id)).ok()?.checked_sub(add)?;
        if now < least || now > most {
            return None;
        }
        let all = i64::from(number.mask >> shift);
        if least > 0 || most < all {
            let bound = |value: i64| u32::try_from(value.clamp(0, all) << shift).ok();
            let guard = Guard { number, least: bound(least)?, most: bound(most)? };
            self.guards.add(guard);
        }
        Some(())
    }

    /// A comparison of bits of the packet with a fixed value.
    fn compare(
        &mut self,
        values: &Values<'_>,
        op: CmpOp,
        id: ValueId,
        with: ValueId,
    ) -> Option<Hang> {
        let (number, shift, add) = match self.hang(id) {
            Hang::Number { number, shift, add } => (number, shift, add),
            Hang::Bits { number, shift } if matches!(op, CmpOp::Eq | CmpOp::Ne) => {
                let value = u32::try_from(values.get(id) << shift).ok()?;
                self.guards.add(Guard { number, least: value, most: value });
                return Some(Hang::Fixed);
            }
            _ => return None,
        };
        let value = i64::try_from(values.get(id)).ok()?;
        // Larger than all that the bits can be is as good as the least such value.
        let with = i64::try_from(values.get(with)).unwrap_or(i64::MAX).min(1 << 40);
        let below = (i64::MIN, with - 1);
        let (up_to, from, above) = ((i64::MIN, with), (with, i64::MAX), (with + 1, i64::MAX));
        let (least, most) = match op {
            CmpOp::Lt | CmpOp::Ge => {
                if value < with {
                    below
                } else {
                    from
                }
            }
            CmpOp::Le | CmpOp::Gt => {
                if value <= with {
                    up_to
                } else {
                    above
                }
            }
            CmpOp::Eq | CmpOp::Ne => {
                if value == with {
                    (with, with)
                } else if value < with {
                    below
                } else {
                    above
                }
            }
        };
        let range = (least.saturating_sub(add), most.saturating_sub(add));
        self.within(values, id, (number, shift), range)?;
        Some(Hang::Fixed)
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
                    self.way.blend.sums[1] |= self.layout.has_pseudo_sum()?;
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
