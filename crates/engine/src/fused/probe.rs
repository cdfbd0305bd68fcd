//! Specialises a program to a flow and to the state as it is: runs it without any effect on a packet that is about
//! to run, and writes down what it does and on what that hangs.
//!
//! Each value is known together with what it hangs on: on the key, parameters and state only; or on bits of this
//! packet, of which a condition or a value then becomes a guard.

use super::aside::{Aside, Image};
use super::change::Part;
use super::class::{Search, Way};
use super::guard::{Guards, Link, Number};
use super::live::Live;
use super::plan::{Bits, LENGTH, in_sum, is_address, is_key};
use super::rest::Rest;
use super::tags::{Place, is_link};
use crate::act::{Functions, Values};
use crate::exec::rule_packet;
use crate::ops;
use braid_externs::signature::{Profile, Touch};
use braid_ir::engine::Outputs;
use braid_ir::model::{Key, Op, ParamId, Target, ValueId, Word};
use braid_ir::residual::{End, Residual, Step, TallyId, What};
use braid_packet::blend::{Blend, Outline, WIDE, WIDE_BYTES, Window, sums, words};
use braid_packet::{Field, Header, Layout, Packet};
use braid_state::{Handle, RecordBug, TableRef, Use};

/// What a record is made of.
pub(super) struct Found {
    pub(super) way: Way,
    pub(super) bytes: Window<WIDE>,
    pub(super) sums: [u16; 2],
    pub(super) rests_on: Vec<(Handle, Use)>,
    pub(super) absent: Vec<(TableRef, Box<[u64]>)>,
    /// How often something was looked up.
    pub(super) lookups: u32,
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
    Slot { entry: usize, slot: u32, packets: i64, bytes: u32, wraps: Option<bool> },
    /// It is the time.
    Time,
    /// It is computed for each packet: its number in [`super::live::Live`].
    Live(u8),
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
    /// The time when it runs.
    pub(super) now: u64,
    pub(super) layout: &'a Layout,
    pub(super) outline: Outline,
    pub(super) hangs: &'a mut Vec<Hang>,
    /// What copies that functions have sent are like.
    pub(super) copies: Vec<Image>,
    /// Values that are bits of the key.
    pub(super) keys: Vec<(ValueId, Bits)>,
    pub(super) guards: Guards,
    pub(super) way: Way,
    /// The packet's first bytes as the program leaves them, and the bits that it assigns.
    pub(super) head: [u8; WIDE_BYTES],
    pub(super) mask: [u8; WIDE_BYTES],
    /// Whether it has assigned any behind the link's headers.
    pub(super) writes: bool,
    /// Whether it has added or removed tags since the packet was last parsed.
    pub(super) stale: bool,
    pub(super) rests_on: Vec<Rest>,
    /// Slots of those that were assigned what is computed for each packet: what they hold then, and on what it hangs.
    pub(super) put: Vec<(usize, u32, Word, Hang)>,
    /// Keys of entries that were not there.
    pub(super) absent: Vec<(TableRef, Box<[u64]>)>,
    /// How often something was looked up.
    pub(super) lookups: u32,
}

impl<'a> Probe<'a> {
    /// A probe of a program for a packet of a worker.
    pub(super) fn new(
        (number, program): (u32, &'a Residual),
        functions: &'a mut Functions,
        worker: u16,
        out: &'a mut dyn Outputs,
        (packet, layout): (&'a Packet, &'a Layout),
        hangs: &'a mut Vec<Hang>,
    ) -> Option<Self> {
        let outline = Outline::of(layout)?;
        let now = packet.time_ns.max(functions.now);
        hangs.clear();
        hangs.resize(program.values.len(), Hang::Fixed);
        let way = Way {
            outline,
            program: number,
            block: 0,
            tallies: Vec::new(),
            rules: Vec::new(),
            guards: Vec::new(),
            searches: Vec::new(),
            live: Live::default(),
            blend: Blend { keep: [0; WIDE], ttl: 0, sums: [false; 2] },
            link: Link::default(),
            first: [0; 2],
            bases: Vec::new(),
            aside: Aside::default(),
        };
        Some(Self {
            program,
            functions,
            worker,
            out,
            packet,
            now,
            layout,
            outline,
            hangs,
            copies: Vec::new(),
            keys: Vec::new(),
            guards: Guards::default(),
            way,
            head: packet.wide_window(),
            mask: [0; WIDE_BYTES],
            writes: false,
            stale: false,
            rests_on: Vec::new(),
            put: Vec::new(),
            absent: Vec::new(),
            lookups: 0,
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
                    self.tally(exit.tally);
                    self.way.block = at as u32;
                    return self.found(at);
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
        Stop { block, step, hangs: std::mem::take(self.hangs), absent }
    }

    /// What a record is made of, once the program has run to the end of a block.
    fn found(mut self, block: usize) -> Result<Found, Stop> {
        let is_sound = self.count_live().is_some()
            && self.copies_are_alike()
            && self.rests_on.iter().all(Rest::is_consistent)
            // Other packets of the flow may have the checksum that this one lacks.
            && !(self.way.blend.sums[1] && self.layout.lacks_sum());
        let live = std::mem::take(&mut self.way.live).of(self.rests_on.len());
        let Some(live) = live.filter(|_| is_sound) else { return Err(self.stop(block, None)) };
        self.way.live = live;
        self.forget_lost();
        let (mask, mut bytes) = (words::<WIDE>(&self.mask), words::<WIDE>(&self.head));
        bytes.iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
        self.way.blend.keep = mask.map(|word| !word);
        self.way.guards = self.guards.needed();
        let old = self.packet.wide_window();
        let mut sums = sums(self.layout, self.outline, &old, &self.head);
        self.plant(&mut sums);
        let rests_on = self.rests_on.into_iter().map(|rest| (rest.entry, rest.how)).collect();
        let Self { way, absent, lookups, .. } = self;
        Ok(Found { way, bytes, sums, rests_on, absent, lookups })
    }

    /// Bugs of what was found.
    fn plant(&mut self, sums: &mut [u16; 2]) {
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
    }

    /// Gives a block its parameters.
    fn pass(&mut self, values: &mut Values<'_>, target: &Target) {
        let params = &self.program.blocks[target.block.index()].params;
        if params.is_empty() {
            return;
        }
        let args: Vec<_> =
            target.args.iter().map(|arg| (values.get(*arg), self.hang(*arg))).collect();
        for (param, (value, hang)) in params.iter().zip(args) {
            values.set(*param, value);
            self.hangs[param.index()] = hang;
        }
        for (param, arg) in params.iter().zip(&target.args) {
            self.is_key_of(*param, *arg);
        }
    }

    /// A value is the same as another one, which may be bits of the key.
    fn is_key_of(&mut self, value: ValueId, of: ValueId) {
        let key = self.keys.iter().find(|(known, _)| *known == of).copied();
        self.keys.extend(key.map(|(_, bits)| (value, bits)));
    }

    fn tally(&mut self, tally: TallyId) {
        let is_forgotten = self.functions.store.has_bug(RecordBug::TagsUncounted);
        let longer = if is_forgotten { 0 } else { self.way.aside.vlans.longer() };
        self.way.tallies.push((tally, longer));
    }

    pub(super) fn hang(&self, id: ValueId) -> Hang {
        self.hangs[id.index()]
    }

    fn step(&mut self, values: &mut Values<'_>, step: &Step) -> Option<()> {
        let node = step.site.node;
        match &step.what {
            What::Op(op) => return self.op(node, values, op),
            What::Tally(tally) => self.tally(*tally),
            What::Enter => {}
            What::Parse => self.stale = false,
            What::Write(fields) => {
                for (field, value) in fields {
                    self.write(values, *field, *value)?;
                }
            }
            What::Classify { pass, rule, param, packet } => {
                let instance = &self.functions.instances[usize::from(node)];
                let flags = instance.rules[param.index()].as_ref().map_or(0, |rules| rules.flags);
                let own = packet.as_ref().and_then(|fields| fields.tcp_flags);
                for id in step.what.uses() {
                    if own == Some(id) {
                        self.fix_flags(values, id, flags)?;
                    } else {
                        self.fix(values, id)?;
                    }
                }
                self.lookups += 1;
                self.rest_on(node, *param, Part::Whole);
                let packet = packet.as_ref().map(|fields| rule_packet(values, fields));
                let instance = &self.functions.instances[usize::from(node)];
                let (passes, number) = instance.classify(*param, packet.as_ref());
                values.set(*pass, Word::from(passes));
                values.set(*rule, Word::from(number));
            }
            What::CountRule { param, rule } => {
                self.fix(values, *rule)?;
                self.rest_on(node, *param, Part::Whole);
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
            Op::Load { .. }
            | Op::PushVlan { .. }
            | Op::PopVlan
            | Op::Emit { .. }
            | Op::Mirror { .. }
            | Op::StoreTag { .. }
            | Op::LoadTag { .. } => return self.on_packet(node, values, op),
            Op::Has { out, header } if !self.stale && !self.writes => {
                values.set(*out, self.has(*header)?.into());
                return Some(());
            }
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
            Op::Patterns { found, number, param } => {
                return self.search(values, (node, *param), (*found, *number));
            }
            Op::StateDelete { state, key: Key::Explicit(key) } => {
                // There is nothing to do as long as there is no such entry.
                return self.find(values, node, *state, key)?.is_none().then_some(());
            }
            Op::Route { .. } => true,
            Op::Extern { name, .. } => {
                self.lookups += 1;
                let Profile { payload, state } = braid_externs::lookup(name)?.signature.profile;
                payload == Touch::No && state != Touch::Writes
            }
            _ => false,
        };
        let is_live = self.is_live(values, op);
        let hang = if is_live { None } else { self.follow(node, values, op) };
        let hang = match hang {
            Some(hang) => hang,
            None if is_live => self.follow_live(values, op)?,
            None => {
                let mut fixed = Some(());
                op.visit_uses(&mut |value| {
                    fixed = fixed.and_then(|()| self.fix(values, *value));
                });
                fixed?;
                Hang::Fixed
            }
        };
        self.rest_on_operands(node, values, op);
        let mut act = self.functions.act_on(node, self.worker, self.out);
        if by_function {
            act.common(None, values, op).ok()?;
        } else if !ops::pure(act.params, values, op).ok()? {
            return None;
        }
        op.visit_outs(&mut |out| self.hangs[out.index()] = hang);
        Some(())
    }

    /// What looks at the packet, or does something with it or beside it.
    fn on_packet(&mut self, node: u16, values: &mut Values<'_>, op: &Op) -> Option<()> {
        match op {
            Op::Load { out, field } => self.load(values, *out, *field)?,
            Op::PushVlan { id } => self.push_tag(values, *id)?,
            Op::PopVlan => self.pop_tag()?,
            Op::Emit { event, args } => self.say(values, (node, *event), args)?,
            Op::Mirror { port } => self.copy(node, *port),
            Op::StoreTag { tag, a } => self.set_tag(values, (node, *tag), *a)?,
            Op::LoadTag { out, tag } => self.tag(values, (node, *tag), *out),
            _ => return None,
        }
        Some(())
    }

    fn load(&mut self, values: &mut Values<'_>, out: ValueId, field: Field) -> Option<()> {
        let point = self.program.point;
        let (value, hang) = match field {
            Field::PktBackward => (point.backward.into(), Hang::Fixed),
            Field::PktHeld => (point.held.into(), Hang::Fixed),
            Field::PktTime => (self.now.into(), Hang::Time),
            Field::PktLen => {
                let longer = self.way.aside.vlans.longer();
                let length = i64::from(self.packet.wire_len) + i64::from(longer);
                let hang = Hang::Number { number: LENGTH, shift: 0, add: longer.into() };
                (Word::try_from(length).ok()?, hang)
            }
            // Where it is has changed, but not where it is looked for.
            _ if self.stale => return None,
            // What says so is in every key.
            Field::InetVersion | Field::IpHlen | Field::PktFragment | Field::PktLaterFragment => {
                let value = self.packet.get(self.layout, field).filter(|_| !self.writes)?;
                (value, Hang::Fixed)
            }
            field => {
                let (value, hang, key) = self.field(field)?;
                self.keys.extend(key.map(|bits| (out, bits)));
                (value, hang)
            }
        };
        values.set(out, value);
        self.hangs[out.index()] = hang;
        Some(())
    }

    /// Searches the payload: a record can say that there is nothing in it, and each packet's is looked at.
    fn search(
        &mut self,
        values: &mut Values<'_>,
        place: (u16, ParamId),
        outs: (ValueId, ValueId),
    ) -> Option<()> {
        let search = Search { node: place.0, param: place.1 };
        if !search.finds_nothing(&self.functions.chain, self.packet, self.layout) {
            return None;
        }
        if !self.way.searches.contains(&search) {
            self.way.searches.push(search);
        }
        self.lookups += 1;
        values.set(outs.0, 0);
        values.set(outs.1, 0);
        Some(())
    }

    /// Assigns a field.
    fn write(&mut self, values: &Values<'_>, field: Field, id: ValueId) -> Option<()> {
        self.writes |= !is_link(field);
        let bits = match self.place(field).filter(|_| !self.stale)? {
            Place::Came(bits) => bits,
            Place::Got(bits) => {
                self.fix(values, id)?;
                bits.set(&mut self.way.aside.vlans.got, values.get(id));
                return Some(());
            }
        };
        match field.info().header {
            Header::Eth | Header::Vlan | Header::Vlan2 => {}
            Header::Ip4 | Header::Ip6 | Header::Inet => {
                self.way.blend.sums[0] = !self.outline.is_ip6;
                if is_address(field) {
                    let (has, lacks) = (self.layout.has_pseudo_sum(), self.layout.lacks_sum());
                    let follows = !self.functions.store.has_bug(RecordBug::PseudoHeaderForgotten);
                    self.way.blend.sums[1] |= follows && (has || lacks);
                }
            }
            Header::L4
            | Header::Tcp
            | Header::Udp
            | Header::Icmp
            | Header::IcmpEcho
            | Header::Icmp6
            | Header::Icmp6Echo
            | Header::Vxlan => self.way.blend.sums[1] = true,
            _ => return None,
        }
        let value = values.get(id);
        if let Hang::Number { number, shift: 0, add } = self.hang(id)
            && Some(number) == bits.number()
            && bits.at == self.outline.ttl()
        {
            // Relative to what it was when the packet came, also if it was assigned before.
            self.way.blend.ttl = u8::try_from(-add).ok()?;
            bits.set(&mut self.head, value);
            bits.set(&mut self.mask, 0);
            return Some(());
        }
        self.fix(values, id)?;
        if bits.at == self.outline.ttl() {
            self.way.blend.ttl = 0;
        }
        if in_sum(self.outline, field) && !is_key(field) {
            let old = self.packet.get(self.layout, field)?;
            self.fix_bits(bits.number()?, u32::try_from(old).ok()?, bits.shift)?;
        }
        bits.set(&mut self.head, value);
        bits.set(&mut self.mask, u128::MAX);
        Some(())
    }
}
