//! Flow records for people: what classes there are and what each record says, by the names of fields and
//! functions.

use super::Flows;
use super::batches::{Payload, groups};
use super::change::Basis;
use super::class::{Class, Way};
use super::guard::{Guard, Number, WIRE};
use super::plan::{Bits, bits, is_key, of_kind, unfolded};
use crate::Compiled;
use crate::walk::Reached;
use braid_ir::chain::Sink;
use braid_ir::graph::port;
use braid_ir::model::{Dest, Op, ParamId, PortId, RIGHT, RowId, Word};
use braid_ir::residual::{Counter, End, Fate, HeaderMask, Point, Residual, What};
use braid_packet::Field;
use braid_packet::blend::{Outline, WIDE, WIDE_BYTES, Window, widened};
use braid_packet::show::format_field;
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

/// What many records have in common: a way through a program.
#[derive(Clone, Debug)]
pub struct FlowClass {
    /// Its number.
    pub number: u32,
    /// The number of the program.
    pub program: u32,
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
    shift: u32,
}

impl FlowGuard {
    pub(super) fn shift(&self) -> u32 {
        self.shift
    }
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
            let mut mask = *fused.plans.get(program as usize)?.as_ref()?.mask(outline)?;
            let (mut full_key, mut head) = (one.key, one.head);
            if is_narrow {
                full_key = unfolded(&[one.key[0], one.key[1]]);
                head = widened(&[one.head[0], one.head[1]]);
                mask.iter_mut().zip(way.link.mask).for_each(|(word, link)| *word &= !link);
            }
            head.iter_mut().zip(way.first).for_each(|(word, first)| *word |= first);
            let residual = &self.programs.all[program as usize].residual;
            let head = bytes(&head);
            let value = |(field, bits): (Field, Bits)| shown(field, bits, &head);
            let sum = |at: usize| way.blend.sums[at].then_some(one.sums[at]);
            Some(FlowRecord {
                class: one.class,
                key: key(outline, &bytes(&mask), &bytes(&full_key)),
                writes: written(residual, way).into_iter().map(value).collect(),
                sums: [sum(0), sum(1)],
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
        let residual = &self.programs.all[way.program as usize].residual;
        FlowClass {
            number,
            program: way.program,
            point: residual.point,
            shape: residual.shape,
            end: self.flow_end(residual, way.block as usize, class.reached),
            copies: class.more.as_ref().map_or(Vec::new(), |more| more.goal.copies.clone()),
            parts: self.in_order(residual.point, self.parts(residual, way)),
            batches: Vec::new(),
            rules: way.rules.clone(),
            link: link(way),
            guards: way.guards.iter().map(|guard| in_words(residual, way.outline, guard)).collect(),
            rests_on: way.bases.clone(),
            is_outdated: self.functions.store.is_class_outdated(number),
            writes: written(residual, way).iter().map(|(field, _)| field.info().name).collect(),
            pops: way.aside.vlans.lost,
            pushes: tags(&way.aside.vlans.got),
            tags: way.aside.tags.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
            ttl: way.blend.ttl,
            sums: way.blend.sums,
            records: 0,
            packets: 0,
            bytes: 0,
        }
    }

    /// What functions do with a way's packets, by number.
    fn parts(&self, residual: &Residual, way: &Way) -> Vec<FlowPart> {
        let mut parts = counted(residual, way);
        for say in &way.aside.says {
            let model = &self.functions.chain.nodes[usize::from(say.node)].model;
            let name = model.events[say.event.index()].name.clone();
            let part = parts.iter_mut().find(|part| part.node == say.node);
            part.into_iter().for_each(|part| part.events.push(name.clone()));
        }
        parts.iter_mut().for_each(|part| part.searches(way));
        parts
    }

    fn flow_end(&self, residual: &Residual, block: usize, reached: Reached) -> FlowEnd {
        if let Reached::Interface(interface) = reached {
            return FlowEnd::Leave(interface);
        }
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

/// What functions count of a way's packets, by number.
fn counted(residual: &Residual, way: &Way) -> Vec<FlowPart> {
    let tallies = way.tallies.iter().map(|(tally, _)| &residual.tallies[tally.0 as usize]);
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

/// Fields that a way writes, in their order in the packet.
fn written(residual: &Residual, way: &Way) -> Vec<(Field, Bits)> {
    let steps = residual.blocks.iter().flat_map(|block| &block.steps);
    let fields = steps.filter_map(|step| match &step.what {
        What::Write(fields) => Some(fields.iter().map(|(field, _)| *field)),
        _ => None,
    });
    let assigned = bytes(&way.blend.keep.map(|keep| !keep));
    named((residual, way.outline), fields.flatten(), &assigned)
}

/// Fields all of whose bits are in a mask, in their order in the packet; of those with bits in common the widest.
fn named(
    (residual, outline): (&Residual, Outline),
    fields: impl Iterator<Item = Field>,
    mask: &[u8; WIDE_BYTES],
) -> Vec<(Field, Bits)> {
    let mut fields: Vec<_> =
        fields.filter_map(|field| Some((field, bits(residual, outline, field)?))).collect();
    fields.sort_by_key(|(field, bits)| (u32::MAX - bits.width, bits.at, *field as u32));
    let mut left = *mask;
    let mut found = Vec::new();
    for (field, bits) in fields {
        let mut own = [0; WIDE_BYTES];
        bits.set(&mut own, u128::MAX);
        if own.iter().zip(&left).all(|(own, left)| own & !left == 0) {
            left.iter_mut().zip(own).for_each(|(left, own)| *left &= !own);
            found.push((field, bits));
        }
    }
    found.sort_by_key(|(_, bits)| (bits.at, u32::MAX - bits.shift));
    found
}

/// Addresses of the link that a way's packets have.
fn link(way: &Way) -> Vec<FlowField> {
    let window = |words: [u64; 2]| bytes(&std::array::from_fn(|at| *words.get(at).unwrap_or(&0)));
    values(LINK.into_iter(), window(way.link.mask), &window(way.link.is))
}

/// Fields that a flow's packets have in common. What version of IP they have goes without saying, and that they are
/// no fragments.
fn key(outline: Outline, mask: &[u8; WIDE_BYTES], key: &[u8; WIDE_BYTES]) -> Vec<FlowField> {
    let Outline { ip, is_ip6 } = outline;
    let behind: &[(Field, usize, usize)] = match key[outline.proto()] {
        1 => &[(Field::IcmpType, 0, 1), (Field::IcmpCode, 1, 1), (Field::IcmpId, 4, 2)],
        58 => &[(Field::Icmp6Type, 0, 1), (Field::Icmp6Code, 1, 1), (Field::Icmp6Id, 4, 2)],
        47 => &[(Field::GreProto, 2, 2)],
        50 => &[(Field::EspSpi, 0, 4)],
        17 => &[(Field::L4Sport, 0, 2), (Field::L4Dport, 2, 2), (Field::VxlanVni, 12, 3)],
        _ => &[(Field::L4Sport, 0, 2), (Field::L4Dport, 2, 2)],
    };
    let network = if is_ip6 {
        [(Field::Ip6Proto, 6, 1), (Field::Ip6Src, 8, 16), (Field::Ip6Dst, 24, 16)]
    } else {
        [(Field::IpProto, 9, 1), (Field::IpSrc, 12, 4), (Field::IpDst, 16, 4)]
    };
    let network = network.into_iter().map(|(field, at, len)| (field, ip + at, len));
    let behind = behind.iter().map(|(field, at, len)| (*field, outline.l4() + at, *len));
    let mut left = *mask;
    left[ip - 2..=ip].fill(0);
    if !is_ip6 && key[ip + 6..ip + 8] == [0, 0] {
        left[ip + 6..ip + 8].fill(0);
    }
    values(LINK.into_iter().chain(network).chain(behind), left, key)
}

/// Addresses of the link: fields, offsets, bytes.
const LINK: [(Field, usize, usize); 2] = [(Field::EthDst, 0, 6), (Field::EthSrc, 6, 6)];

/// Those of some fields, by offset and bytes, that are in a mask, and what else is in it.
fn values(
    fields: impl Iterator<Item = (Field, usize, usize)>,
    mut left: [u8; WIDE_BYTES],
    is: &[u8; WIDE_BYTES],
) -> Vec<FlowField> {
    let mut found = Vec::new();
    for (field, at, len) in fields {
        if left[at..at + len].iter().all(|byte| *byte == 0xff) {
            let bits = Bits { at, len, shift: 0, width: 8 * len as u32 };
            found.push(shown(field, bits, is));
            left[at..at + len].fill(0);
        }
    }
    let rest = left.iter().enumerate().filter(|(_, mask)| **mask != 0);
    found.extend(rest.map(|(at, mask)| FlowField {
        field: format!("byte {at} & {mask:#04x}"),
        value: format!("{:#04x}", is[at] & mask),
    }));
    found
}

/// A field's value in a packet's first bytes.
fn shown(field: Field, bits: Bits, bytes: &[u8; WIDE_BYTES]) -> FlowField {
    let value = format_field(field, bits.get(bytes));
    FlowField { field: field.info().name.to_owned(), value }
}

/// A guard by the name of the field that a program loads there.
pub(super) fn in_words(residual: &Residual, outline: Outline, guard: &Guard) -> FlowGuard {
    let Guard { number, least, most } = *guard;
    if number.at == WIRE {
        let field = "pkt.len".to_owned();
        return FlowGuard { field, mask: None, least, most, all: u32::MAX, shift: 0 };
    }
    let steps = residual.blocks.iter().flat_map(|block| &block.steps);
    let fields = steps.flat_map(|step| match &step.what {
        What::Op(Op::Load { field, .. }) => vec![*field],
        What::Write(fields) => fields.iter().map(|(field, _)| *field).collect(),
        _ => Vec::new(),
    });
    let mut near: Vec<(Field, Number, u32)> = fields
        .filter(|field| !is_key(*field))
        .filter_map(|field| {
            let bits = bits(residual, outline, field)?;
            let whole = bits.number()?;
            let same = (whole.at, whole.len) == (number.at, number.len);
            (same && number.mask & !whole.mask == 0).then_some((field, whole, bits.shift))
        })
        .collect();
    near.sort_by_key(|(field, whole, _)| (whole.mask.count_ones(), *field as u32));
    let (field, whole, shift) = match near.first() {
        Some((field, whole, shift)) => (field.info().name.to_owned(), whole.mask, *shift),
        None => (format!("bytes {}..{}", number.at, number.at + number.len), u32::MAX, 0),
    };
    FlowGuard {
        field,
        mask: (whole != number.mask).then_some(number.mask >> shift),
        least: least >> shift,
        most: most >> shift,
        all: number.mask >> shift,
        shift,
    }
}

/// Words as bytes.
fn bytes(window: &Window<WIDE>) -> [u8; WIDE_BYTES] {
    let mut bytes = [0; WIDE_BYTES];
    let (chunks, _) = bytes.as_chunks_mut::<8>();
    chunks.iter_mut().zip(window).for_each(|(chunk, word)| *chunk = word.to_le_bytes());
    bytes
}
