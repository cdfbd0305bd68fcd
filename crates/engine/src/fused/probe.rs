//! Specialises a program to a flow and to the state as it is: runs it without any effect on a packet that is about
//! to run, and writes down what it does and on what that hangs.
//!
//! Each value is known together with what it hangs on: on the key, parameters and state only; or on bits of this
//! packet, of which a condition or a value then becomes a guard.

use super::NONE;
use super::aside::Image;
use super::bound::Counters;
use super::change::Part;
use super::class::{Search, Way};
use super::guard::{Guards, Number};
use super::natives::Tied;
use super::plan::{Bits, LENGTH};
use super::rest::Asked;
use super::write::Headers;
use crate::act::{Functions, Values};
use crate::exec::rule_packet;
use crate::ops;
use braid_externs::signature::{Profile, Touch};
use braid_ir::engine::Outputs;
use braid_ir::model::{Key, Op, ParamId, Target, ValueId, Word};
use braid_ir::residual::{Block, HeaderMask, Point, Step, TallyId, What};
use braid_packet::blend::{Outline, WIDE, Window};
use braid_packet::{Field, Layout, Packet};
use braid_state::{Handle, Keys, RecordBug, Use};
use std::borrow::Cow;

/// What probes write down: the memory is used again, and holds what the last one found.
pub(super) struct Notes {
    /// What values hang on, of those that were reached.
    pub(super) hangs: Vec<Hang>,
    /// What copies that functions have sent are like.
    pub(super) copies: Vec<Image>,
    /// Values that are bits of the key.
    pub(super) keys: Vec<(ValueId, Bits)>,
    pub(super) guards: Guards,
    pub(super) way: Way,
    pub(super) bytes: Window<WIDE>,
    pub(super) sums: [u16; 2],
    /// Entries that were found, each once, and what each packet does with them.
    pub(super) rests_on: Vec<(Handle, Use)>,
    /// Slots of those that were assigned what is computed for each packet: what they hold then, and on what it hangs.
    pub(super) put: Vec<(usize, u32, Word, Hang)>,
    pub(super) asked: Asked,
    /// Keys of entries that were not there.
    pub(super) absent: Keys,
    /// How often something was looked up, or a native function asked.
    pub(super) lookups: u32,
    /// How many steps programs have taken.
    pub(super) steps: u32,
    pub(super) counters: Counters,
    /// What native functions do.
    pub(super) tied: Vec<Tied>,
    /// Headers whose presence matters to programs.
    pub(super) care: u128,
    /// Arguments of a jump.
    args: Vec<(Word, Hang)>,
    /// Memory of what earlier records did with entries.
    pub(super) spare: Vec<Use>,
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
    /// The number of the program that runs, or [`NONE`], its blocks, where its packets are, and what headers they have.
    pub(super) number: u32,
    pub(super) blocks: &'a [Block],
    pub(super) point: Point,
    pub(super) shape: HeaderMask,
    pub(super) functions: &'a mut Functions,
    pub(super) worker: u16,
    pub(super) out: &'a mut dyn Outputs,
    /// The packet as it came.
    pub(super) origin: &'a Packet,
    /// The packet as it is in front of the program, but for checksums.
    pub(super) packet: Cow<'a, Packet>,
    /// The time when it runs.
    pub(super) now: u64,
    /// Where the packet's headers are when it comes.
    pub(super) layout: &'a Layout,
    pub(super) outline: Outline,
    pub(super) notes: &'a mut Notes,
    pub(super) headers: Headers,
    /// Whether the program has added or removed tags since the packet was last parsed.
    pub(super) stale: bool,
    /// Functions that were visited.
    pub(super) hops: u32,
}

impl Notes {
    pub(super) fn new() -> Self {
        Self {
            hangs: Vec::new(),
            copies: Vec::new(),
            keys: Vec::new(),
            guards: Guards::default(),
            way: Way::new(),
            bytes: [0; WIDE],
            sums: [0; 2],
            rests_on: Vec::new(),
            put: Vec::new(),
            asked: Asked::default(),
            absent: Keys::default(),
            lookups: 0,
            steps: 0,
            counters: Counters::default(),
            tied: Vec::new(),
            care: 0,
            args: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// A probe starts, of packets that come by an entry with an outline.
    fn start(&mut self, entry: u32, outline: Outline) {
        self.copies.clear();
        self.guards.0.clear();
        self.way.start(entry, outline);
        for (_, mut one) in self.rests_on.drain(..) {
            one.clear();
            self.spare.push(one);
        }
        self.put.clear();
        self.counters.start();
        self.absent.clear();
        self.tied.clear();
        (self.lookups, self.steps, self.care) = (0, 0, 0);
    }

    /// Why a record would save no time.
    pub(super) fn loss(&self) -> Option<&'static str> {
        // As measured: machine code takes about so many steps while a record computes a value.
        let least = 12 + 2 * self.way.live.size();
        match (self.lookups, self.way.live.size()) {
            (0, _) => Some("nothing is looked up on its way but routes"),
            (_, 0) => None,
            _ if self.steps >= least => None,
            _ => Some("too much of it has to be computed for each packet"),
        }
    }

    /// A program with so many values runs.
    pub(super) fn enter(&mut self, values: usize) {
        if self.hangs.len() < values {
            self.hangs.resize(values, Hang::Packet);
        }
        self.keys.clear();
        self.asked.clear();
    }
}

impl<'a> Probe<'a> {
    /// A probe for a packet of a worker that comes by an entry.
    pub(super) fn new(
        entry: u32,
        functions: &'a mut Functions,
        worker: u16,
        out: &'a mut dyn Outputs,
        (packet, layout): (&'a Packet, &'a Layout),
        notes: &'a mut Notes,
    ) -> Option<Self> {
        let outline = Outline::of(layout)?;
        let now = packet.time_ns.max(functions.now);
        notes.counters.forget();
        notes.start(entry, outline);
        Some(Self {
            number: NONE,
            blocks: &[],
            point: Point { node: 0, backward: false, held: false },
            shape: HeaderMask { care: 0, present: 0 },
            functions,
            worker,
            out,
            origin: packet,
            packet: Cow::Borrowed(packet),
            now,
            layout,
            outline,
            notes,
            headers: Headers::of(packet),
            stale: false,
            hops: 0,
        })
    }

    /// Starts anew, with what is known of counters now.
    pub(super) fn again(&mut self) {
        self.notes.start(self.notes.way.entry, self.outline);
        (self.packet, self.headers) = (Cow::Borrowed(self.origin), Headers::of(self.origin));
        (self.stale, self.hops) = (false, 0);
    }

    /// Gives a block its parameters.
    pub(super) fn pass(&mut self, values: &mut Values<'_>, target: &Target) {
        let params = &self.blocks[target.block.index()].params;
        let Notes { hangs, args, .. } = &mut *self.notes;
        args.clear();
        args.extend(target.args.iter().map(|arg| (values.get(*arg), hangs[arg.index()])));
        for (param, (value, hang)) in params.iter().zip(&*args) {
            values.set(*param, *value);
            hangs[param.index()] = *hang;
        }
        for (param, arg) in params.iter().zip(&target.args) {
            self.is_key_of(*param, *arg);
        }
    }

    /// A value is the same as another one, which may be bits of the key.
    fn is_key_of(&mut self, value: ValueId, of: ValueId) {
        let key = self.notes.keys.iter().find(|(known, _)| *known == of).copied();
        self.notes.keys.extend(key.map(|(_, bits)| (value, bits)));
    }

    pub(super) fn tally(&mut self, tally: TallyId) {
        let is_forgotten = self.functions.store.has_bug(RecordBug::TagsUncounted);
        let longer = if is_forgotten { 0 } else { self.notes.way.aside.vlans.longer() };
        self.notes.way.tallies.push((tally, longer));
    }

    pub(super) fn hang(&self, id: ValueId) -> Hang {
        self.notes.hangs[id.index()]
    }

    pub(super) fn set_hang(&mut self, id: ValueId, hang: Hang) {
        self.notes.hangs[id.index()] = hang;
    }

    pub(super) fn is_fixed(&self, id: ValueId) -> bool {
        matches!(self.notes.hangs[id.index()], Hang::Fixed)
    }

    /// Does a step that only computes something from parameters and values that hang on nothing; false for others.
    #[inline(always)]
    pub(super) fn computes(&mut self, values: &mut Values<'_>, step: &Step) -> bool {
        let What::Op(op) = &step.what else { return false };
        let Some((out, uses)) = simple(op) else { return false };
        if !uses.into_iter().flatten().all(|id| self.is_fixed(id)) {
            return false;
        }
        let node = step.site.node;
        self.rest_on_operands(node, values, op);
        let params = &self.functions.chain.nodes[usize::from(node)].params;
        let done = ops::pure(params, values, op) == Ok(true);
        self.set_hang(out, Hang::Fixed);
        done
    }

    pub(super) fn step(&mut self, values: &mut Values<'_>, step: &Step) -> Option<()> {
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
                let mut fixed = Some(());
                step.what.visit_uses(&mut |id| {
                    fixed = fixed.and_then(|()| match own == Some(*id) {
                        true => self.fix_flags(values, *id, flags),
                        false => self.fix(values, *id),
                    });
                });
                fixed?;
                self.notes.lookups += 1;
                self.rest_on(node, *param, Part::Whole);
                let packet = packet.as_ref().map(|fields| rule_packet(values, fields));
                let instance = &self.functions.instances[usize::from(node)];
                let (passes, number) = instance.classify(*param, packet.as_ref());
                self.know(values, *pass, Word::from(passes));
                self.know(values, *rule, Word::from(number));
            }
            What::CountRule { param, rule } => {
                self.fix(values, *rule)?;
                self.rest_on(node, *param, Part::Whole);
                self.notes.way.rules.push((node, *param, values.get(*rule) as u32));
            }
            What::Find { found, entry, state, key } => {
                let number = self.find(values, node, *state, key)?;
                let handle = number.map(|number| self.notes.rests_on[number].0);
                self.know(values, *found, Word::from(handle.is_some()));
                self.know(values, *entry, handle.map_or(0, Handle::to_bits).into());
            }
            What::Read { outs, state, entry } => {
                let entry = Handle::from_bits(values.get(*entry) as u64);
                self.read(values, (node, *state, entry), outs)?;
            }
        }
        Some(())
    }

    /// A value that hangs on nothing.
    pub(super) fn know(&mut self, values: &mut Values<'_>, id: ValueId, value: Word) {
        values.set(id, value);
        self.set_hang(id, Hang::Fixed);
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
            Op::Has { out, header } if !self.stale && !self.headers.writes => {
                let has = self.has(*header)?;
                self.know(values, *out, has.into());
                return Some(());
            }
            Op::StateSet { ok, state, key: Key::Explicit(key), values: slots } => {
                let number = self.find(values, node, *state, key)??;
                for (slot, value) in (0..).zip(slots) {
                    self.assign(values, number, slot, *value)?;
                }
                self.know(values, *ok, 1);
                return Some(());
            }
            Op::StatePut { ok, state, key: Key::Explicit(key), slot, value } => {
                let number = self.find(values, node, *state, key)??;
                self.assign(values, number, *slot, *value)?;
                self.know(values, *ok, 1);
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
                self.notes.lookups += 1;
                let Profile { payload, state } = braid_externs::lookup(name)?.signature.profile;
                payload == Touch::No && state != Touch::Writes
            }
            _ => false,
        };
        let hang = self.result(node, values, op)?;
        self.rest_on_operands(node, values, op);
        if by_function {
            let mut act = self.functions.act_on(node, self.worker, self.out);
            act.common(None, values, op).ok()?;
        } else {
            let params = &self.functions.chain.nodes[usize::from(node)].params;
            ops::pure(params, values, op).ok()?.then_some(())?;
        }
        op.visit_outs(&mut |out| self.set_hang(*out, hang));
        Some(())
    }

    /// What the result of an operation hangs on.
    fn result(&mut self, node: u16, values: &Values<'_>, op: &Op) -> Option<Hang> {
        let mut is_open = false;
        op.visit_uses(&mut |id| is_open |= !self.is_fixed(*id));
        if !is_open {
            return Some(Hang::Fixed);
        }
        if let Op::Cmp { op, a, b, .. } = *op
            && let Some(hang) = self.bound(values, op, (a, b))
        {
            return hang;
        }
        if self.is_live(values, op) {
            return self.follow_live(values, op);
        }
        if let Some(hang) = self.follow(node, values, op) {
            return Some(hang);
        }
        let mut fixed = Some(());
        op.visit_uses(&mut |value| {
            fixed = fixed.and_then(|()| self.fix(values, *value));
        });
        fixed.map(|()| Hang::Fixed)
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
        let point = self.point;
        let (value, hang) = match field {
            Field::PktBackward => (point.backward.into(), Hang::Fixed),
            Field::PktHeld => (point.held.into(), Hang::Fixed),
            Field::PktTime => (self.now.into(), Hang::Time),
            Field::PktLen => {
                let longer = self.notes.way.aside.vlans.longer();
                let length = i64::from(self.packet.wire_len) + i64::from(longer);
                let hang = Hang::Number { number: LENGTH, shift: 0, add: longer.into() };
                (Word::try_from(length).ok()?, hang)
            }
            // Where it is has changed, but not where it is looked for.
            _ if self.stale => return None,
            // What says so is in every key.
            Field::InetVersion | Field::IpHlen | Field::PktFragment | Field::PktLaterFragment => {
                let value = self.packet.get(self.layout, field).filter(|_| !self.headers.writes)?;
                (value, Hang::Fixed)
            }
            field => {
                let (value, hang, key) = self.field(field)?;
                self.notes.keys.extend(key.map(|bits| (out, bits)));
                (value, hang)
            }
        };
        values.set(out, value);
        self.set_hang(out, hang);
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
        if !search.finds_nothing(&self.functions.chain, &self.packet, self.layout) {
            return None;
        }
        let Notes { way, lookups, .. } = &mut *self.notes;
        if !way.searches.contains(&search) {
            way.searches.push(search);
        }
        *lookups += 1;
        self.know(values, outs.0, 0);
        self.know(values, outs.1, 0);
        Some(())
    }
}

/// The result and the operands of operations on values and parameters.
#[inline(always)]
fn simple(op: &Op) -> Option<(ValueId, [Option<ValueId>; 3])> {
    Some(match *op {
        Op::Const { out, .. } | Op::Param { out, .. } | Op::ListLen { out, .. } => (out, [None; 3]),
        Op::Not { out, a } | Op::Resize { out, a } | Op::Clamp { out, a } => {
            (out, [Some(a), None, None])
        }
        Op::InSet { out, a, .. }
        | Op::ListGet { out, index: a, .. }
        | Op::BackendUp { out, index: a, .. } => (out, [Some(a), None, None]),
        Op::Bin { out, a, b, .. } | Op::Cmp { out, a, b, .. } => (out, [Some(a), Some(b), None]),
        Op::Select { out, cond, a, b } => (out, [Some(cond), Some(a), Some(b)]),
        _ => return None,
    })
}
