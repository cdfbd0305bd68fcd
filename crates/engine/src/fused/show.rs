//! Flow records for people: what classes there are and what each record says, by the names of fields and
//! functions.

use super::Flows;
use super::aside::Splice;
use super::batches::{Payload, groups};
use super::change::Basis;
use super::class::{Class, Leg, Native, Way};
use super::fields::{bytes, key, link, shown};
use super::plan::{Bits, OPEN, of_kind, unfolded};
use crate::Compiled;
use crate::walk::Reached;
use braid_ir::chain::Sink;
use braid_ir::graph::port;
use braid_ir::model::{Dest, ParamId, PortId, RIGHT, RowId, Word};
use braid_ir::residual::{Counter, End, Fate, HeaderMask, Point, Residual, TallyId};
use braid_native::bridge as native;
use braid_packet::Field;
use braid_state::{Listed, Missing, Resting};
use std::fmt;

/// All flow records at a time, by class.
#[derive(Clone, Debug)]
pub struct FlowTable {
    /// How packets were processed.
    pub flows: Flows,
    /// Classes by number; those without records, too.
    pub classes: Vec<FlowClass>,
    /// Records by program and key.
    pub records: Vec<FlowRecord>,
}

/// What many records have in common: a way through programs and native functions.
#[derive(Clone, Debug)]
pub struct FlowClass {
    /// Its number.
    pub number: u32,
    /// The number of the program, if packets can meet no native functions.
    pub program: Option<u32>,
    /// Where the packets enter.
    pub point: Point,
    /// What headers they have, as far as that matters.
    pub shape: HeaderMask,
    /// What becomes of them.
    pub end: FlowEnd,
    /// Interfaces by which copies of them leave.
    pub copies: Vec<u16>,
    /// Functions in the order of the packets' way.
    pub parts: Vec<FlowPart>,
    /// Functions with state functions: those of a group could run them at the same time, behind the group before
    /// (SpeedyBox, Table I).
    pub batches: Vec<Vec<u16>>,
    /// Rules that decide: function, rule set, rule.
    pub rules: Vec<(u16, ParamId, u32)>,
    /// Addresses of the link that packets must have.
    pub link: Vec<FlowField>,
    /// What else they must fulfil.
    pub guards: Vec<FlowGuard>,
    /// Parameters that the records rest on.
    pub rests_on: Vec<Basis>,
    /// Whether one of these has changed since: then no packet takes the records.
    pub is_outdated: bool,
    /// Fields that are written.
    pub writes: Vec<&'static str>,
    /// How many VLAN tags packets lose, the outermost first.
    pub pops: usize,
    /// VLAN tags that they get, the outermost first.
    pub pushes: Vec<FlowTag>,
    /// Tags that they carry from then on.
    pub tags: Vec<(String, Word)>,
    /// What they get and lose in the end.
    pub splices: Vec<Splice>,
    /// What the TTL goes down by.
    pub ttl: u8,
    /// Whether the checksums of the IPv4 header and of what is behind it are updated.
    pub sums: [bool; 2],
    /// Records that there are.
    pub records: u64,
    /// Packets that took records of it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A VLAN tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowTag {
    /// Its type (TPID).
    pub tpid: u16,
    /// Its identifier.
    pub id: u16,
    /// Its priority (PCP).
    pub pcp: u8,
    /// Whether packets may be dropped first (DEI).
    pub dei: bool,
}

impl fmt::Display for FlowTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tpid, id, pcp, dei } = *self;
        write!(f, "vlan {id}")?;
        if tpid != 0x8100 {
            write!(f, " tpid {tpid:#06x}")?;
        }
        if pcp > 0 {
            write!(f, " pcp {pcp}")?;
        }
        f.write_str(if dei { " dei" } else { "" })
    }
}

/// What a function does with the packets of a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowPart {
    /// The function.
    pub node: u16,
    /// Whether they go backward through it.
    pub backward: bool,
    /// Rows that count them.
    pub rows: Vec<RowId>,
    /// Events that it publishes, in order.
    pub events: Vec<String>,
    /// What its state functions do with the payload at most; `None` if it has none.
    pub state: Option<Payload>,
    /// What it runs for each of them, if it is a native function.
    pub native: Option<FlowNative>,
}

/// What a native function runs for each packet that takes a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowNative {
    /// What its state functions do with the payload, in order.
    pub state: Vec<Payload>,
    /// How many conditions it looks at.
    pub guards: usize,
}

/// What becomes of the packets of a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FlowEnd {
    /// They leave by this interface.
    Leave(u16),
    /// They are dropped.
    Drop {
        /// By this function.
        node: u16,
        /// At this row.
        row: RowId,
        /// The reason.
        reason: String,
    },
    /// A function takes them.
    Consume(u16),
}

/// A condition that packets must fulfil to take a record.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FlowGuard {
    /// The field, `pkt.len`, or which bytes of the packet.
    pub field: String,
    /// Bits of it that matter, if these are not all.
    pub mask: Option<u32>,
    /// The least value.
    pub least: u32,
    /// The largest value.
    pub most: u32,
    /// The largest value that there could be.
    pub all: u32,
    /// Where in the packet's bytes the least of its bits is.
    pub(super) shift: u32,
}

/// A field with its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowField {
    /// The field's name, or which bytes of the packet.
    pub field: String,
    /// The value as people write it.
    pub value: String,
}

/// A record.
#[derive(Clone, Debug)]
pub struct FlowRecord {
    /// The number of its class.
    pub class: u32,
    /// Fields that packets of the flow have in common.
    pub key: Vec<FlowField>,
    /// What is written.
    pub writes: Vec<FlowField>,
    /// What is added to the checksums of the IPv4 header and of what is behind it, where they are updated.
    pub sums: [Option<u16>; 2],
    /// Packets that have taken it.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// When it was last taken (ns).
    pub seen_ns: Option<u64>,
    /// Entries that must stay.
    pub rests_on: Vec<Resting>,
    /// Entries that must not be there.
    pub absent: Vec<Missing>,
}

impl fmt::Display for FlowGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, mask, least, most, all, .. } = self;
        f.write_str(field)?;
        if let Some(mask) = mask {
            write!(f, " & {mask:#x}")?;
            return match least == most {
                true => write!(f, " == {least:#x}"),
                false => write!(f, " in {least:#x}..{most:#x}"),
            };
        }
        match (least, most) {
            (least, most) if least == most => write!(f, " == {least}"),
            (0, most) => write!(f, " <= {most}"),
            (least, most) if most >= all => write!(f, " >= {least}"),
            (least, most) => write!(f, " in {least}..{most}"),
        }
    }
}

impl Compiled {
    /// From now on it is known of each flow record how many packets have taken it, also where others look at
    /// what it counts.
    pub fn keep_flow_totals(&mut self) {
        self.functions.store.keep_record_totals();
    }

    /// All flow records, if records are made.
    #[must_use]
    pub fn flow_table(&self) -> Option<FlowTable> {
        let flows = self.flows()?;
        let fused = self.fused.as_ref()?;
        let counts = self.functions.store.record_counts();
        let classes = (0..).zip(fused.classes.all.iter().zip(&fused.classes.ways));
        let mut classes: Vec<FlowClass> = classes
            .map(|(number, (class, way))| {
                let (packets, bytes) = counts.get(number as usize).copied().unwrap_or_default();
                FlowClass { packets, bytes, ..self.flow_class(number, class, way) }
            })
            .collect();
        let listed = self.functions.store.list_records();
        let record = |one: Listed| {
            let class = classes.get_mut(one.class as usize)?;
            class.records += 1;
            for part in &mut class.parts {
                one.rests_on.iter().for_each(|resting| part.changes(resting));
            }
            let way = &fused.classes.ways[one.class as usize];
            let (program, outline, is_narrow) = of_kind(one.kind);
            let mut mask = *self.entered(program)?.2.mask(outline)?;
            let mut full_key = one.key;
            if is_narrow {
                full_key = unfolded(&[one.key[0], one.key[1]]);
                mask.iter_mut().zip(way.link.mask).for_each(|(word, link)| *word &= !link);
            }
            let (head, sums) = self.final_head(way, &one, is_narrow);
            let value = |(field, bits): (Field, Bits)| shown(field, bits, &head);
            Some(FlowRecord {
                class: one.class,
                key: key(outline, &bytes(&mask), &bytes(&full_key)),
                writes: self.written(way).into_iter().map(value).collect(),
                sums,
                packets: one.packets,
                bytes: one.bytes,
                seen_ns: one.seen_ns,
                rests_on: one.rests_on,
                absent: one.absent,
            })
        };
        let records = listed.into_iter().filter_map(record).collect();
        classes.iter_mut().for_each(|class| class.batches = groups(&class.parts));
        Some(FlowTable { flows, classes, records })
    }

    fn flow_class(&self, number: u32, class: &Class, way: &Way) -> FlowClass {
        let (point, mut shape) = self.entered(way.entry).map_or(NOWHERE, |(at, of, _)| (at, of));
        if way.entry >= OPEN {
            // All that is there: what is not goes without saying.
            shape.care = shape.present;
        }
        FlowClass {
            number,
            program: (way.entry < OPEN).then_some(way.entry),
            point,
            shape,
            end: self.way_end(way, point.node, class.reached),
            copies: class.more.as_ref().map_or(Vec::new(), |more| more.goal.copies.clone()),
            parts: self.parts(way),
            batches: Vec::new(),
            rules: way.rules.clone(),
            link: link(way),
            guards: way.guards.iter().map(|guard| self.in_words(way, guard)).collect(),
            rests_on: way.bases.clone(),
            is_outdated: self.functions.store.is_class_outdated(number),
            writes: self.written(way).iter().map(|(field, _)| field.info().name).collect(),
            pops: way.aside.vlans.lost,
            pushes: tags(&way.aside.vlans.got),
            tags: way.aside.tags.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
            splices: way.aside.splices.clone(),
            ttl: way.blends().map(|blend| blend.ttl).sum(),
            sums: [0, 1].map(|at| way.blends().any(|blend| blend.sums[at])),
            records: 0,
            packets: 0,
            bytes: 0,
        }
    }

    /// What functions do with a way's packets, in order.
    fn parts(&self, way: &Way) -> Vec<FlowPart> {
        let (mut parts, mut programs) = (Vec::new(), way.programs());
        for leg in &way.legs {
            match leg {
                Leg::Program(_) => {
                    let Some((through, tallies)) = programs.next() else { continue };
                    let residual = &self.programs.all[through.program as usize].residual;
                    parts.extend(self.in_order(residual.point, counted(residual, tallies)));
                }
                Leg::Native(native) => parts.push(FlowPart::of(native)),
            }
        }
        for say in &way.aside.says {
            let model = &self.functions.chain.nodes[usize::from(say.node)].model;
            let name = model.events[say.event.index()].name.clone();
            let part = parts.iter_mut().find(|part| part.node == say.node);
            part.into_iter().for_each(|part| part.events.push(name.clone()));
        }
        parts.iter_mut().for_each(|part| part.searches(way));
        parts
    }

    /// What becomes of packets at the end of a way that begins at a function.
    fn way_end(&self, way: &Way, node: u16, reached: Reached) -> FlowEnd {
        if let Reached::Interface(interface) = reached {
            return FlowEnd::Leave(interface);
        }
        match way.legs.last() {
            None => FlowEnd::Consume(node),
            Some(Leg::Program(through)) => {
                let residual = &self.programs.all[through.program as usize].residual;
                self.flow_end(residual, through.block as usize)
            }
            Some(Leg::Native(Native { node, drops, .. })) => {
                let reasons = &self.functions.chain.nodes[usize::from(*node)].model.reasons;
                let reason = drops.and_then(|reason| reasons.get(reason as usize));
                let reason = reason.cloned().unwrap_or_default();
                FlowEnd::Drop { node: *node, row: native::BODY, reason }
            }
        }
    }

    fn flow_end(&self, residual: &Residual, block: usize) -> FlowEnd {
        let End::Exit(exit) = &residual.blocks[block].end else {
            return FlowEnd::Consume(residual.point.node);
        };
        match &exit.fate {
            Fate::Leave { interface } => FlowEnd::Leave(*interface),
            Fate::Drop { node, row, reason } => {
                let model = &self.functions.chain.nodes[usize::from(*node)].model;
                let reason = model.reasons[reason.index()].clone();
                FlowEnd::Drop { node: *node, row: *row, reason }
            }
            Fate::Fault { node, fault } => {
                let row = self.functions.instances[usize::from(*node)].fault_row();
                FlowEnd::Drop { node: *node, row, reason: fault.reason().to_owned() }
            }
            Fate::Consume { node } | Fate::Output { node, .. } | Fate::Resubmit { node } => {
                FlowEnd::Consume(*node)
            }
            Fate::Go(point) => FlowEnd::Consume(point.node),
        }
    }

    /// The functions of a way in the order in which packets that enter at a point come to them.
    fn in_order(&self, point: Point, mut parts: Vec<FlowPart>) -> Vec<FlowPart> {
        let mut ordered = Vec::with_capacity(parts.len());
        let mut next = parts.iter().position(|part| part.node == point.node);
        while let Some(at) = next {
            let FlowPart { node, backward, .. } = parts[at];
            ordered.push(parts.remove(at));
            let model = &self.functions.instances[usize::from(node)].model;
            let ports = (0..model.ports.len() as u32).map(|port| Dest::Port(PortId(port)));
            let mut dests = [Dest::Onward, Dest::Back].into_iter().chain(ports);
            next = dests.find_map(|dest| {
                let Sink::Port(node, port) = self.graph.next(node, port(dest, backward))? else {
                    return None;
                };
                let is_it = |part: &FlowPart| (part.node, part.backward) == (node, port == RIGHT);
                parts.iter().position(is_it)
            });
        }
        ordered.append(&mut parts);
        ordered
    }
}

/// Where no packets enter.
const NOWHERE: (Point, HeaderMask) =
    (Point { node: 0, backward: false, held: false }, HeaderMask { care: 0, present: 0 });

impl FlowPart {
    /// What a native function does.
    fn of(native: &Native) -> Self {
        let Native { node, backward, ref state, guards, .. } = *native;
        Self {
            node,
            backward,
            rows: vec![native::BODY],
            events: Vec::new(),
            state: state.iter().copied().max(),
            native: Some(FlowNative { state: state.clone(), guards }),
        }
    }
}

/// What functions count of packets by tallies of a program, by number.
fn counted(residual: &Residual, tallies: &[(TallyId, i32)]) -> Vec<FlowPart> {
    let tallies = tallies.iter().map(|(tally, _)| &residual.tallies[tally.0 as usize]);
    let mut parts: Vec<FlowPart> = Vec::new();
    for one in tallies.flatten() {
        let known = parts.iter().position(|part| part.node == one.node);
        let at = known.unwrap_or_else(|| {
            parts.push(FlowPart {
                node: one.node,
                backward: false,
                rows: Vec::new(),
                events: Vec::new(),
                state: None,
                native: None,
            });
            parts.len() - 1
        });
        match one.counter {
            Counter::Forward => {}
            Counter::Backward => parts[at].backward = true,
            Counter::Row(row) => parts[at].rows.push(row),
        }
    }
    parts.sort_by_key(|part| part.node);
    parts
}

/// Tags by their bytes.
fn tags(bytes: &[u8]) -> Vec<FlowTag> {
    let (tags, _) = bytes.as_chunks::<4>();
    let tag = |&[a, b, high, low]: &[u8; 4]| FlowTag {
        tpid: u16::from_be_bytes([a, b]),
        id: u16::from_be_bytes([high & 0xf, low]),
        pcp: high >> 5,
        dei: high >> 4 & 1 == 1,
    };
    tags.iter().map(tag).collect()
}
