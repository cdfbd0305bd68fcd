//! The specialiser runs programs without effect on a packet that is about to run them. It writes
//! down the programs' effects and the dependencies of these effects.
//!
//! It tracks the dependency of each value. A value may depend only on the key, parameters and
//! state, or also on other bits of this packet. A condition on such bits, or a result computed from
//! them, needs a guard.
#![expect(
    clippy::indexing_slicing,
    reason = "programs and verified models refer only to what they declare"
)]

use crate::absent_option;
use crate::basis::{Basis, Part};
use crate::fast_path::MOST_BEFORE;
use crate::findings::Findings;
use crate::goal::PathEnd;
use crate::guard::Number;
use crate::headers::{Headers, Place};
use crate::host::Functions;
use crate::key::{KeyExtractor, LENGTH, OPEN};
use crate::mutants::RecordMutant;
use crate::operations::{is_harmless, is_unknown, simple};
use crate::outer;
use crate::peel::{Arrived, Peel};
use crate::recording::Source;
use crate::slab::NONE;
use crate::tunnel_end;
use crate::value_dependency::{Origin, ValueDependency};
use braid_externs::signature::{Profile, Touch};
use braid_ir::engine::Outputs;
use braid_ir::model::{Area, Key, Op, ParamId, SetRef, Target, ValueId, Word};
use braid_ir::residual::{Block, CounterListId, Point, Step, What};
use braid_ir::value::ParamValue;
use braid_ir::values::Values;
use braid_ir::visit::HEAVY;
use braid_packet::rewrite::{Outline, WIDE, WIDE_BYTES, Window, bytes};
use braid_packet::tunnel::Inner;
use braid_packet::{Field, Header};
use braid_state::Handle;

/// How far a specialisation follows packets into tunnels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tunnels {
    /// It follows them, and has not met any.
    Open,
    /// It follows them, and has met one.
    Met,
    /// The path ends where a tunnel begins.
    Closed,
    /// Behind a tunnel, a program reads bits that the key lacks. There is no path.
    Unkeyed,
    /// It has left a tunnel in which packets come, and follows them into no other one.
    Left,
    /// The packets come in a tunnel that ends here. There might be a path if their flows were those
    /// of the packets inside, or (`None`) if they were not.
    Ends(Option<Peel>),
}

/// A specialisation: one run without effect.
pub(crate) struct Specialiser<'a, F> {
    /// The number of the running program, or [`NONE`], then its blocks, and the point where it
    /// starts.
    pub(crate) number: u32,
    pub(crate) blocks: &'a [Block],
    pub(crate) point: Point,
    pub(crate) functions: &'a mut F,
    pub(crate) worker: u16,
    pub(crate) out: &'a mut dyn Outputs,
    /// The time of the run.
    pub(crate) now: u64,
    pub(crate) findings: &'a mut Findings,
    pub(crate) arrived: Arrived<'a>,
    pub(crate) headers: Headers<'a>,
    /// The number of functions visited so far, plus [`MOST_BEFORE`].
    pub(crate) hops: u32,
    /// Where the path of the record ends, if it is a part of the packets' path.
    pub(crate) end: Option<PathEnd>,
    pub(crate) tunnels: Tunnels,
    /// The mask of the key if the key has only the bits that the first program reads. `None` if it
    /// has all bits that the packets of a flow have in common.
    pub(crate) covered: Option<[u8; WIDE_BYTES]>,
    /// The mask of the key, if the flows could be those of packets inside tunnels.
    unpeeled: Option<Window<WIDE>>,
}

impl<'a, F: Functions> Specialiser<'a, F> {
    /// A specialisation for a packet of a worker. The packet's keys come from the extractor with
    /// the number `entry`.
    pub(crate) fn new(
        (entry, extractor): (u32, Option<&KeyExtractor>),
        functions: &'a mut F,
        worker: u16,
        out: &'a mut dyn Outputs,
        arrived: Arrived<'a>,
        findings: &'a mut Findings,
    ) -> Option<Self> {
        let Arrived { packet, layout, .. } = arrived;
        let outline = Outline::of(layout)?;
        let now = packet.time_ns.max(functions.now());
        findings.counters.forget();
        findings.start(entry, outline);
        let tunnels = match extractor.is_some_and(|extractor| extractor.ends_at_tunnels) {
            true => Tunnels::Closed,
            false => Tunnels::Open,
        };
        let unpeeled = extractor.filter(|extractor| extractor.may_peel && entry < OPEN);
        let unpeeled = unpeeled.and_then(|extractor| extractor.mask(outline).copied());
        let narrower = extractor.filter(|extractor| !extractor.is_whole);
        let covered =
            narrower.map(|extractor| extractor.mask(outline).map_or([0; WIDE_BYTES], bytes));
        findings.mutants = functions.state().dependents().mutants();
        // Paths that may lead to native functions have no scripts.
        findings.recording.start(entry < OPEN, findings.mutants);
        Some(Self {
            number: NONE,
            blocks: &[],
            point: Point { node: 0, backward: false, held: false },
            functions,
            worker,
            out,
            now,
            arrived,
            headers: Headers::of(packet, layout, outline, findings.mutants),
            findings,
            hops: MOST_BEFORE,
            end: None,
            tunnels,
            covered,
            unpeeled,
        })
    }

    /// Starts the run again. It now treats the slots in `counters.known` as counting slots.
    pub(crate) fn again(&mut self) {
        let Arrived { packet, layout, .. } = self.arrived;
        let outline = Outline::of(layout).unwrap_or(Outline::PLAIN);
        self.findings.start(self.findings.path.entry, outline);
        let may = self.findings.path.entry < OPEN;
        self.findings.recording.start(may, self.findings.mutants);
        self.headers = Headers::of(packet, layout, outline, self.findings.mutants);
        self.hops = MOST_BEFORE;
        if matches!(self.tunnels, Tunnels::Met | Tunnels::Left) {
            self.tunnels = Tunnels::Open;
        }
    }

    /// Makes the record depend on a part of a parameter.
    pub(crate) fn depend_on_basis(&mut self, node: u16, param: ParamId, part: Part) {
        self.findings.path.depend_on_basis(Basis { node, param, part });
    }

    /// Makes the record depend on the parameter that an operation reads. The operation's operands
    /// are already fixed.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a list has fewer than 2^32 members, and an index past its end makes no record"
    )]
    pub(crate) fn depend_on_operands(&mut self, node: u16, values: &Values<'_>, op: &Op) {
        if let Op::ListGet { index, .. } | Op::BackendUp { index, .. } = *op {
            self.findings.pin(values, index);
        }
        let (param, part) = match *op {
            Op::Route { param, .. } | Op::Extern { param: Some(param), .. } => (param, Part::Whole),
            Op::ListLen { param, .. } | Op::InSet { set: SetRef::List(param, _), .. } => {
                (param, Part::Members)
            }
            Op::ListGet { param, index, .. } | Op::BackendUp { param, index, .. } => {
                (param, Part::Backend(values.get(index) as u32))
            }
            _ => return,
        };
        let value = &self.functions.chain().nodes[usize::from(node)].params[param.index()];
        // A change of a list replaces the programs and ends all records.
        if matches!(value, ParamValue::List(_)) {
            return;
        }
        let is_one = matches!(part, Part::Backend(_));
        if !(is_one && self.findings.mutants.has(RecordMutant::BackendIgnored)) {
            self.depend_on_basis(node, param, part);
        }
    }

    /// Assigns a block's parameters.
    pub(crate) fn pass(&mut self, values: &mut Values<'_>, target: &Target) {
        let params = &self.blocks[target.block.index()].params;
        let Findings { dependencies, args, recording, .. } = &mut *self.findings;
        args.clear();
        args.extend(
            target
                .args
                .iter()
                .map(|arg| (values.get(*arg), dependencies[arg.index()], recording.source(*arg))),
        );
        for (param, (value, dependency, source)) in params.iter().zip(&*args) {
            values.set(*param, *value);
            dependencies[param.index()] = *dependency;
            recording.set_source(*param, *source);
        }
        for (param, arg) in params.iter().zip(&target.args) {
            self.findings.is_key_of(*param, *arg);
        }
    }

    /// The number of bytes by which the packet is longer than on arrival.
    #[expect(clippy::cast_possible_truncation, reason = "outer headers are short")]
    fn longer(&self) -> i32 {
        self.headers.vlans.longer() + self.findings.path.effects.longer() as i32
    }

    pub(crate) fn counters(&mut self, counters: CounterListId) {
        let is_forgotten = self.findings.mutants.has(RecordMutant::TagsUncounted);
        let longer = if is_forgotten { 0 } else { self.longer() };
        self.findings.path.counter_lists.push((counters, longer));
    }

    /// Executes a step that only computes a value from parameters and fixed values. Returns false
    /// for all other steps and for faults.
    #[inline(always)]
    pub(crate) fn computes(&mut self, values: &mut Values<'_>, step: &Step) -> bool {
        let What::Op(op) = &step.what else { return false };
        let Some((out, uses)) = simple(op) else { return false };
        if !uses.into_iter().flatten().all(|id| self.findings.is_fixed(id)) {
            return false;
        }
        let node = step.site.node;
        self.depend_on_operands(node, values, op);
        let done = self.functions.compute(node, values, op).is_some();
        self.findings.set_dependency(out, ValueDependency::Fixed);
        if let Op::Resize { out, a } = *op
            && values.width(out) >= values.width(a)
        {
            self.findings.is_key_of(out, a);
        }
        self.findings.recording.operation(node, values, op);
        done
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "numbers of rules have 32 bits, and handles have 64"
    )]
    pub(crate) fn step(&mut self, values: &mut Values<'_>, step: &Step) -> Option<()> {
        let node = step.site.node;
        match &step.what {
            What::Op(op) => return self.op(node, values, op),
            What::Count(counters) => self.counters(*counters),
            What::Enter => {}
            What::Parse => self.headers.parse(),
            What::Write(fields) => {
                for (field, value) in fields {
                    self.write(values, *field, *value)?;
                }
            }
            What::Classify { pass, rule, param, packet } => {
                let flags = self.functions.rule_flags(node, *param);
                let own = packet.as_ref().and_then(|fields| fields.tcp_flags);
                let mut fixed = Some(());
                step.what.visit_uses(&mut |id| {
                    fixed = fixed.and_then(|()| match own == Some(*id) {
                        true => self.findings.fix_flags(values, *id, flags),
                        false => self.findings.fix(values, *id),
                    });
                });
                fixed?;
                self.findings.looks_up(HEAVY);
                self.depend_on_basis(node, *param, Part::Whole);
                let read = packet.as_ref().map(|fields| values.rule_packet(fields));
                let (passes, number) = self.functions.classify(node, *param, read.as_ref());
                self.findings.know(values, *pass, Word::from(passes));
                self.findings.know(values, *rule, Word::from(number));
                let packet = (*param, packet.as_deref());
                self.findings.recording.classify(values, node, packet, [*pass, *rule]);
            }
            What::CountRule { param, rule } => {
                self.findings.fix(values, *rule)?;
                self.findings.pin(values, *rule);
                self.depend_on_basis(node, *param, Part::Whole);
                self.findings.path.rules.push((node, *param, values.get(*rule) as u32));
            }
            What::Find { found, entry, state, key } => {
                let number = self.find(values, node, *state, key)?;
                let handle = number.map(|number| self.findings.depends_on[number].0);
                self.findings.know(values, *found, Word::from(handle.is_some()));
                self.findings.know(values, *entry, handle.map_or(0, Handle::to_bits).into());
                self.findings.recording.set_source(*entry, Source::Unknown);
            }
            What::Read { outs, state, entry } => {
                if !self.findings.is_fixed(*entry) {
                    return None;
                }
                let entry = Handle::from_bits(values.get(*entry) as u64);
                self.read(values, (node, *state, entry), outs)?;
            }
        }
        Some(())
    }

    fn op(&mut self, node: u16, values: &mut Values<'_>, op: &Op) -> Option<()> {
        if let Some(done) = self.in_tunnel(values, op) {
            return done;
        }
        let by_function = match op {
            Op::Load { .. }
            | Op::PushVlan { .. }
            | Op::PopVlan
            | Op::Emit { .. }
            | Op::Mirror { .. }
            | Op::StoreTag { .. }
            | Op::LoadTag { .. }
            | Op::Encapsulate { .. }
            | Op::Decapsulate { .. } => return self.on_packet(node, values, op),
            Op::Has { out, header } if !self.headers.stale && !self.headers.writes => {
                let has = self.headers.has(*header)?;
                self.findings.know(values, *out, has.into());
                return Some(());
            }
            Op::StateSet { .. } | Op::StatePut { .. } | Op::StateDelete { .. } => {
                return self.on_entry(node, values, op);
            }
            Op::Patterns { .. } | Op::FindPatterns { .. } => return self.search(values, node, op),
            Op::LoadBytes { found, out, area: Area::TcpOption(kind), .. } => {
                absent_option::require(&self.headers, &mut self.findings.guards, *kind)?;
                self.findings.know(values, *found, 0);
                self.findings.know(values, *out, 0);
                return Some(());
            }
            // Each packet may have other bytes.
            Op::LoadBytes { .. }
            | Op::InStrings { .. }
            | Op::LoadString { .. }
            | Op::HasRoom { .. }
            | Op::PushOption { .. }
            | Op::PopOption { .. } => return None,
            op if op.changes_payload() || op.rewraps() => return None,
            Op::Route { .. } => true,
            Op::Extern { name, .. } => {
                self.findings.looks_up(HEAVY);
                let Profile { payload, state } = braid_externs::lookup(name)?.signature.profile;
                payload == Touch::No && state != Touch::Writes
            }
            _ => false,
        };
        let compared = self.findings.counters.compared.len();
        let dependency = self.result(node, values, op)?;
        if dependency == ValueDependency::Packet {
            self.functions.compute(node, values, op)?;
            op.visit_outs(&mut |out| {
                self.findings.set_dependency(*out, dependency);
                self.findings.recording.set_source(*out, Source::Unknown);
            });
            return Some(());
        }
        self.depend_on_operands(node, values, op);
        if by_function {
            self.functions.call((node, self.worker), self.out, values, op)?;
        } else {
            self.functions.compute(node, values, op)?;
        }
        op.visit_outs(&mut |out| self.findings.set_dependency(*out, dependency));
        self.findings.recording.operation(node, values, op);
        if self.findings.counters.compared.len() > compared {
            // The outcome and the constant give a bound.
            op.visit_outs(&mut |out| self.findings.pin(values, *out));
        }
        Some(())
    }

    /// Removes the headers with which the packet came, up to `offset` bytes behind one of them.
    /// `None` if the flow is not that of the packet inside.
    fn end_tunnel(
        &mut self,
        values: &Values<'_>,
        (inner, last): (Inner, Header),
        offset: ValueId,
    ) -> Option<()> {
        self.findings.fix(values, offset)?;
        self.findings.pin(values, offset);
        let peel = Peel { inner, last, offset: usize::try_from(values.get(offset)).ok()? };
        let may_leave = tunnel_end::may_leave(self.findings, &self.headers);
        if let Some(mask) = &self.unpeeled
            && may_leave
            && peel.has_flow((self.arrived.packet, self.arrived.layout), mask)
        {
            self.tunnels = Tunnels::Ends(Some(peel));
            return None;
        }
        let inside = self.arrived.inside.filter(|inside| inside.peel == peel)?;
        if !may_leave {
            self.tunnels = Tunnels::Ends(None);
            return None;
        }
        tunnel_end::leave(self.findings, &mut self.headers, inside)?;
        self.tunnels = Tunnels::Left;
        Some(())
    }

    /// Executes an operation on an entry.
    fn on_entry(&mut self, node: u16, values: &mut Values<'_>, op: &Op) -> Option<()> {
        match op {
            Op::StateSet { ok, state, key: Key::Explicit(key), values: slots } => {
                let number = self.find(values, node, *state, key)??;
                for (slot, value) in (0..).zip(slots) {
                    self.assign(values, number, slot, *value)?;
                }
                self.findings.know(values, *ok, 1);
                Some(())
            }
            Op::StatePut { ok, state, key: Key::Explicit(key), slot, value } => {
                let number = self.find(values, node, *state, key)??;
                self.assign(values, number, *slot, *value)?;
                self.findings.know(values, *ok, 1);
                Some(())
            }
            Op::StateDelete { state, key: Key::Explicit(key) } => {
                // The step has no effect as long as the entry is absent.
                self.find(values, node, *state, key)?.is_none().then_some(())
            }
            _ => None,
        }
    }

    /// The dependency of the result of an operation.
    fn result(&mut self, node: u16, values: &Values<'_>, op: &Op) -> Option<ValueDependency> {
        let mut is_open = false;
        op.visit_uses(&mut |id| is_open |= !self.findings.is_fixed(*id));
        if !is_open {
            return Some(ValueDependency::Fixed);
        }
        if is_unknown(op, |id| self.findings.dependency(id) == ValueDependency::Packet) {
            return Some(ValueDependency::Packet);
        }
        let findings = &mut *self.findings;
        if let Op::Cmp { op, a, b, .. } = *op {
            let (a, b) = ((a, findings.dependency(a)), (b, findings.dependency(b)));
            let state = (self.functions.state(), &findings.depends_on[..]);
            let Findings { counters, recording, .. } = findings;
            if let Some(dependency) = counters.compare(recording, state, values, op, (a, b)) {
                [a.0, b.0].into_iter().for_each(|id| findings.pin_fixed(values, id));
                return dependency;
            }
        }
        if findings.is_dynamic(values, op) {
            return findings.follow_dynamic(values, op);
        }
        let params = &self.functions.chain().nodes[usize::from(node)].params;
        if let Some(dependency) = findings.follow(params, values, op) {
            return Some(dependency);
        }
        let mut fixed = Some(());
        op.visit_uses(&mut |value| {
            fixed = fixed.and_then(|()| self.findings.fix(values, *value));
        });
        match fixed {
            Some(()) => Some(ValueDependency::Fixed),
            // Perhaps nothing on this path uses the result.
            None => is_harmless(op).then_some(ValueDependency::Packet),
        }
    }

    /// Executes an operation that reads or changes the packet or has side effects.
    fn on_packet(&mut self, node: u16, values: &mut Values<'_>, op: &Op) -> Option<()> {
        match op {
            Op::Load { out, field } => self.load(values, *out, *field)?,
            Op::PushVlan { id } => {
                self.findings.fix(values, *id)?;
                self.findings.pin(values, *id);
                self.headers.push_tag(values.get(*id))?;
            }
            Op::PopVlan => self.headers.pop_tag()?,
            Op::Encapsulate { .. } => {
                outer::add(self.findings, &mut self.headers, self.blocks, values, op)?;
            }
            Op::Decapsulate { ok, inner, last, offset, association: None } => {
                self.end_tunnel(values, (*inner, *last), *offset)?;
                self.findings.know(values, *ok, 1);
            }
            Op::Emit { event, .. } if self.functions.is_taken(node, *event) => return None,
            Op::Emit { event, args } => self.publish(values, (node, *event), args)?,
            Op::Mirror { port } => self.copy(node, *port),
            Op::StoreTag { tag, a } => self.set_tag(values, (node, *tag), *a)?,
            Op::LoadTag { out, tag } => self.tag(values, (node, *tag), *out),
            _ => return None,
        }
        Some(())
    }

    fn load(&mut self, values: &mut Values<'_>, out: ValueId, field: Field) -> Option<()> {
        let point = self.point;
        self.findings.recording.set_source(out, Source::Unknown);
        let (value, dependency) = match field {
            Field::PktBackward => (point.backward.into(), ValueDependency::Fixed),
            Field::PktHeld => (point.held.into(), ValueDependency::Fixed),
            Field::PktTime => (self.now.into(), ValueDependency::Time),
            Field::PktLen => {
                let longer = self.longer();
                let length = i64::from(self.headers.packet.wire_len) + i64::from(longer);
                let dependency =
                    ValueDependency::Number { number: LENGTH, shift: 0, add: longer.into() };
                (Word::try_from(length).ok()?, dependency)
            }
            // The program has changed VLAN tags, but the layout still shows the old places.
            _ if self.headers.stale => return None,
            // Every key contains the bits of these fields.
            Field::InetVersion | Field::IpHlen | Field::PktFragment | Field::PktLaterFragment => {
                let value = self
                    .headers
                    .packet
                    .get(self.headers.layout, field)
                    .filter(|_| !self.headers.writes)?;
                (value, ValueDependency::Fixed)
            }
            field => {
                let (value, mut dependency, key) = self.headers.field(field)?;
                if dependency == ValueDependency::Packet
                    && field.whole_bytes().is_some()
                    && self.headers.place(field).is_none()
                {
                    let was = u32::try_from(value).ok()?;
                    dependency = ValueDependency::Relative { origin: Origin::Field(field), was };
                }
                self.findings.keys.extend(key.map(|bits| (out, bits)));
                (value, dependency)
            }
        };
        values.set(out, value);
        self.findings.set_dependency(out, dependency);
        let longer = self.longer();
        self.findings.recording.load(&self.headers, longer, out, field);
        Some(())
    }

    /// Assigns a field of the outer headers.
    fn write_outer(&mut self, values: &Values<'_>, field: Field, id: ValueId) -> Option<()> {
        self.findings.fix(values, id)?;
        self.findings.pin(values, id);
        self.headers.wrapped.as_mut()?.set(field, values.get(id))
    }

    /// Assigns a field.
    fn write(&mut self, values: &Values<'_>, field: Field, id: ValueId) -> Option<()> {
        if self.headers.wrapped.as_ref().is_some_and(|wrapped| wrapped.has(field)) {
            return self.write_outer(values, field, id);
        }
        if let Some((origin, was)) = self.findings.relative_to(values, id)
            && self.headers.is_at(field, origin)
        {
            let value = u32::try_from(values.get(id)).ok()?;
            let amount = self.headers.add(field, (was, value))?;
            self.findings.recording.add(origin, amount, id, value);
            return Some(());
        }
        let (place, value) = (self.headers.writable(field)?, values.get(id));
        let bits = match place {
            Place::Came(bits) => bits,
            Place::Got(bits) => {
                self.findings.fix(values, id)?;
                self.findings.pin(values, id);
                self.headers.set_tag(bits, value);
                return Some(());
            }
        };
        self.findings.recording.assign(bits, id, value);
        if let ValueDependency::Number { number, shift: 0, add } = self.findings.dependency(id)
            && Some(number) == Number::of_bits(bits)
            && bits.at == self.headers.outline.ttl()
        {
            return self.headers.count_down(field, bits, value, add);
        }
        self.findings.fix(values, id)?;
        self.headers.assign(&mut self.findings.guards, field, bits, value)
    }
}
