//! The flow table for people: the templates, and each record, with the names of fields and
//! functions.
#![expect(
    clippy::indexing_slicing,
    reason = "records, programs and verified models refer only to what exists"
)]

use crate::basis::Basis;
use crate::batches::{Payload, groups};
use crate::cache::{FlowCache, Flows};
use crate::effects::Splice;
use crate::field_names::{
    FlowGuard, SharedBytes, Source, Written, bytes, final_head, key, link, named_guard, written,
};
use crate::host::{Functions, Programs};
use crate::key::{Bits, OPEN, of_kind, unfolded};
use crate::listing::{Dependency, Listed, Missing, list, page};
use crate::path::{Native, Path, Subpath};
use crate::template::Template;
use braid_ir::chain::Sink;
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Dest, ParamId, PortId, RIGHT, RowId, Word};
use braid_ir::residual::{Counter, CounterListId, End, Fate, HeaderMask, Point, Residual};
use braid_ir::walk::Reached;
use braid_native::bridge as native;
use braid_packet::Field;
use braid_packet::rewrite::Outline;
use braid_packet::tunnel::Change;

/// All flow records at one time, by template.
#[derive(Clone, Debug)]
pub struct FlowTable {
    /// How packets were processed.
    pub flows: Flows,
    /// Templates by number, including templates without records.
    pub templates: Vec<FlowTemplate>,
    /// Records by program and key.
    pub records: Vec<FlowRecord>,
}

/// A record template for people: a path through programs and native functions that many records
/// share.
#[derive(Clone, Debug)]
pub struct FlowTemplate {
    /// The template's number.
    pub number: u32,
    /// The number of the program, if packets can meet no native functions.
    pub program: Option<u32>,
    /// Where the packets enter.
    pub point: Point,
    /// The packets' headers, as far as the path depends on them.
    pub shape: HeaderMask,
    /// The end of the packets' path.
    pub end: FlowEnd,
    /// Interfaces by which copies of the packets leave.
    pub copies: Vec<u16>,
    /// Functions in the order of the packets' path.
    pub parts: Vec<FlowPart>,
    /// The functions with state functions, in groups. The functions of a group could run their
    /// state functions at the same time, after the previous group (SpeedyBox, Table I).
    pub batches: Vec<Vec<u16>>,
    /// Rules that decide about the packets: function, rule set, number of the rule.
    pub rules: Vec<(u16, ParamId, u32)>,
    /// Link addresses that packets must have.
    pub link: SharedBytes,
    /// The other conditions on packets.
    pub guards: Vec<FlowGuard>,
    /// Parameters that the records depend on.
    pub depends_on: Vec<Basis>,
    /// Whether one of these parameters has changed. If so, no packet takes the records any more.
    pub is_outdated: bool,
    /// Fields that the records write.
    pub writes: Vec<&'static str>,
    /// Fields to which the records add amounts, modulo their width.
    pub adds: Vec<&'static str>,
    /// The number of VLAN tags that packets lose. The outermost tags are lost first.
    pub pops: usize,
    /// VLAN tags that packets get. The outermost tag comes first.
    pub pushes: Vec<FlowTag>,
    /// The packet tags that the records set, with their values.
    pub tags: Vec<(String, Word)>,
    /// Bytes that native functions insert into packets and remove from them, after all other
    /// changes.
    pub splices: Vec<Splice>,
    /// Outer headers that packets get, by name, the outermost first.
    pub outer: Vec<String>,
    /// The amount by which the TTL decreases.
    pub ttl: u8,
    /// Whether the records update the checksum of the IPv4 header, and the transport checksum.
    pub sums: [bool; 2],
    /// How many records the template has now.
    pub records: u64,
    /// Packets that took records of the template.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
}

/// A VLAN tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowTag {
    /// The tag's type (TPID).
    pub tpid: u16,
    /// The VLAN's identifier.
    pub id: u16,
    /// The priority (PCP).
    pub pcp: u8,
    /// Whether packets may be dropped first (DEI).
    pub dei: bool,
}

/// The work of a function for the packets of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowPart {
    /// The function.
    pub node: u16,
    /// Whether the packets go backward through the function.
    pub backward: bool,
    /// Rows that count the packets.
    pub rows: Vec<RowId>,
    /// Events that the function publishes, in order.
    pub events: Vec<String>,
    /// The strongest payload access of its state functions; `None` if it has none.
    pub state: Option<Payload>,
    /// The state functions and conditions that run for each packet, if it is a native function.
    pub native: Option<FlowNative>,
}

/// The state functions and conditions of a native function that run for each packet with a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowNative {
    /// The payload access of each of its state functions, in order.
    pub state: Vec<Payload>,
    /// How many conditions it checks.
    pub guards: usize,
}

/// The end of the path of a template's packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FlowEnd {
    /// The packets leave by this interface.
    Leave(u16),
    /// The packets are dropped.
    Drop {
        /// The function that drops them.
        node: u16,
        /// The row at which they are dropped.
        row: RowId,
        /// The reason.
        reason: String,
    },
    /// This function consumes the packets.
    Consume(u16),
}

/// A record.
#[derive(Clone, Debug)]
pub struct FlowRecord {
    /// The number of the record's template.
    pub template: u32,
    /// The positions of the headers of the flow's packets.
    pub outline: Outline,
    /// The bytes that packets of the flow have in common.
    pub key: SharedBytes,
    /// Fields that the record writes, with their values.
    pub writes: Vec<(Field, Word)>,
    /// Fields to which the record adds an amount, modulo their width, with the amounts.
    pub adds: Vec<(Field, u32)>,
    /// The amounts that the record adds to the checksum of the IPv4 header and to the transport
    /// checksum. `None` where the record does not update the checksum.
    pub sums: [Option<u16>; 2],
    /// Packets that have taken the record.
    pub packets: u64,
    /// The packets' bytes on the wire.
    pub bytes: u64,
    /// When the record was last taken (ns).
    pub seen_ns: Option<u64>,
    /// Entries that must stay.
    pub depends_on: Vec<Dependency>,
    /// Entries that must be absent.
    pub absent: Vec<Missing>,
}

/// A flow cache with everything that its description refers to.
struct View<'a, P, F> {
    cache: &'a FlowCache,
    programs: &'a P,
    functions: &'a F,
    graph: &'a Graph,
}

impl FlowTable {
    /// The records of a flow cache, described with the programs and functions of its chain. `flows`
    /// says how packets were processed.
    #[must_use]
    pub fn new<P: Programs, F: Functions>(
        cache: &FlowCache,
        flows: Flows,
        (programs, functions, graph): (&P, &F, &Graph),
    ) -> Self {
        let view = View { cache, programs, functions, graph };
        let records = functions.state().dependents();
        let listed = list(records, functions.state().tables());
        let (templates, records) = view.describe(listed, &records.counted_by_template());
        Self { flows, templates, records }
    }

    /// A page of the records, by place, and where the next one begins. The counts of templates are
    /// those of the page's records, and templates without such records are left out.
    #[must_use]
    pub fn page<P: Programs, F: Functions>(
        cache: &FlowCache,
        flows: Flows,
        (programs, functions, graph): (&P, &F, &Graph),
        (from, most): (usize, usize),
    ) -> (Self, Option<usize>) {
        let view = View { cache, programs, functions, graph };
        let (records, tables) = (functions.state().dependents(), functions.state().tables());
        let (listed, next) = page(records, tables, from, most);
        let mut counts = vec![(0, 0); cache.templates.all.len()];
        for one in &listed {
            if let Some(count) = counts.get_mut(one.template as usize) {
                *count = (count.0 + one.packets, count.1 + one.bytes);
            }
        }
        let (mut templates, records) = view.describe(listed, &counts);
        templates.retain(|template| template.records > 0);
        (Self { flows, templates, records }, next)
    }
}

impl<P: Programs, F: Functions> View<'_, P, F> {
    /// Describes records, and templates with the packets and bytes that they have counted.
    fn describe(
        &self,
        listed: Vec<Listed>,
        counts: &[(u64, u64)],
    ) -> (Vec<FlowTemplate>, Vec<FlowRecord>) {
        let all = &self.cache.templates;
        let templates = (0..).zip(all.all.iter().zip(&all.paths));
        let mut templates: Vec<FlowTemplate> = templates
            .map(|(number, (template, path))| {
                let (packets, bytes) = counts.get(number as usize).copied().unwrap_or_default();
                FlowTemplate { packets, bytes, ..self.flow_template(number, template, path) }
            })
            .collect();
        let record = |one: Listed| {
            let template = templates.get_mut(one.template as usize)?;
            template.records += 1;
            for part in &mut template.parts {
                one.depends_on.iter().for_each(|dependency| part.changes(dependency));
            }
            let path = &all.paths[one.template as usize];
            let (program, outline, is_narrow) = of_kind(one.kind);
            let mut mask = *self.cache.extractors.get(program)?.mask(outline)?;
            let mut full_key = one.key;
            if is_narrow {
                full_key = unfolded(&[one.key[0], one.key[1]]);
                mask.iter_mut().zip(path.link.mask).for_each(|(word, link)| *word &= !link);
            }
            let bindings = self.cache.bindings(one.number);
            let Written { head, adds, sums } = final_head(path, &one, is_narrow, bindings);
            let value = |(field, bits): (Field, Bits)| (field, bits.get(&head));
            Some(FlowRecord {
                template: one.template,
                outline,
                key: key(outline, bytes(&mask), bytes(&full_key)),
                writes: written(path, self.source()).into_iter().map(value).collect(),
                adds,
                sums,
                packets: one.packets,
                bytes: one.bytes,
                seen_ns: one.seen_ns,
                depends_on: one.depends_on,
                absent: one.absent,
            })
        };
        let records = listed.into_iter().filter_map(record).collect();
        templates.iter_mut().for_each(|template| {
            let parts = template.parts.iter().map(|part| (part.node, part.state));
            template.batches = groups(parts);
        });
        (templates, records)
    }

    fn source(&self) -> Source<'_, P> {
        (&self.cache.extractors, self.programs)
    }

    fn flow_template(&self, number: u32, template: &Template, path: &Path) -> FlowTemplate {
        let (point, mut shape) =
            self.cache.extractors.place(path.entry, self.programs).unwrap_or(NOWHERE);
        if path.entry >= OPEN {
            // The description lists the headers that are present. All others are absent.
            shape.care = shape.present;
        }
        FlowTemplate {
            number,
            program: (path.entry < OPEN).then_some(path.entry),
            point,
            shape,
            end: self.path_end(path, point.node, template.reached),
            copies: template.more.as_ref().map_or(Vec::new(), |more| more.goal.copies.clone()),
            parts: self.parts(path),
            batches: Vec::new(),
            rules: self.cache.templates.rules(number).collect(),
            link: link(path),
            guards: path
                .guards
                .iter()
                .map(|guard| named_guard(path, guard, self.source()))
                .collect(),
            depends_on: path.bases.clone(),
            is_outdated: self.functions.state().dependents().is_template_outdated(number),
            writes: written(path, self.source())
                .iter()
                .map(|(field, _)| field.info().name)
                .collect(),
            adds: path
                .rewrites()
                .flat_map(|rewrite| rewrite.adds.iter())
                .map(|add| add.field.info().name)
                .collect(),
            pops: path.effects.vlans.lost,
            pushes: tags(&path.effects.vlans.got),
            tags: path
                .effects
                .tags
                .iter()
                .map(|(name, value)| (name.to_string(), *value))
                .collect(),
            splices: path.effects.splices.clone(),
            outer: path.effects.outer.iter().map(Change::names).collect(),
            ttl: path.rewrites().map(|rewrite| rewrite.ttl).sum(),
            sums: [0, 1].map(|at| path.rewrites().any(|rewrite| rewrite.sums[at])),
            records: 0,
            packets: 0,
            bytes: 0,
        }
    }

    /// The functions on a path, in order, with their work for its packets.
    fn parts(&self, path: &Path) -> Vec<FlowPart> {
        let (mut parts, mut programs) = (Vec::new(), path.programs());
        for subpath in &path.subpaths {
            match subpath {
                Subpath::Program(_) => {
                    let Some((through, counter_lists)) = programs.next() else { continue };
                    let residual = self.programs.residual(through.program as usize);
                    let Some(residual) = residual else { continue };
                    parts.extend(self.in_order(residual.point, counted(residual, counter_lists)));
                }
                Subpath::Native(native) => parts.push(FlowPart::of(native)),
            }
        }
        for publish in &path.effects.publications {
            let model = &self.functions.chain().nodes[usize::from(publish.node)].model;
            let name = model.events[publish.event.index()].name.clone();
            let part = parts.iter_mut().find(|part| part.node == publish.node);
            part.into_iter().for_each(|part| part.events.push(name.clone()));
        }
        parts.iter_mut().for_each(|part| part.searches(path));
        parts
    }

    /// The end of a path that begins at the function `node`.
    fn path_end(&self, path: &Path, node: u16, reached: Reached) -> FlowEnd {
        if let Reached::Interface(interface) = reached {
            return FlowEnd::Leave(interface);
        }
        match path.subpaths.last() {
            None => FlowEnd::Consume(node),
            Some(Subpath::Program(through)) => {
                match self.programs.residual(through.program as usize) {
                    Some(residual) => self.flow_end(residual, through.block as usize),
                    None => FlowEnd::Consume(node),
                }
            }
            Some(Subpath::Native(Native { node, drops, .. })) => {
                let reasons = &self.functions.chain().nodes[usize::from(*node)].model.reasons;
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
                let model = &self.functions.chain().nodes[usize::from(*node)].model;
                let reason = model.reasons[reason.index()].clone();
                FlowEnd::Drop { node: *node, row: *row, reason }
            }
            Fate::Fault { node, fault } => {
                let model = &self.functions.chain().nodes[usize::from(*node)].model;
                // The row of faults is the last row.
                let row = model.rows.len().saturating_sub(1);
                let row = RowId(u32::try_from(row).unwrap_or(u32::MAX));
                FlowEnd::Drop { node: *node, row, reason: fault.reason().to_owned() }
            }
            Fate::Consume { node } | Fate::Output { node, .. } | Fate::Resubmit { node } => {
                FlowEnd::Consume(*node)
            }
            Fate::Go(point) => FlowEnd::Consume(point.node),
        }
    }

    /// The functions of a path, in the order in which packets that enter at a point reach them.
    #[expect(clippy::cast_possible_truncation, reason = "a model has fewer ports than 2^32")]
    fn in_order(&self, point: Point, mut parts: Vec<FlowPart>) -> Vec<FlowPart> {
        let mut ordered = Vec::with_capacity(parts.len());
        let mut next = parts.iter().position(|part| part.node == point.node);
        while let Some(at) = next {
            let FlowPart { node, backward, .. } = parts[at];
            ordered.push(parts.remove(at));
            let model = &self.functions.chain().nodes[usize::from(node)].model;
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

/// Stands in for the entry of a template that has none.
const NOWHERE: (Point, HeaderMask) =
    (Point { node: 0, backward: false, held: false }, HeaderMask { care: 0, present: 0 });

impl FlowPart {
    /// Marks that the function reads the payload, if the path searches it there.
    pub(crate) fn searches(&mut self, path: &Path) {
        if path.searches.iter().any(|search| search.node == self.node) {
            self.has_state(Payload::Read);
        }
    }

    /// Marks that the function has a state function, if its packets change this entry and the entry
    /// belongs to the function.
    pub(crate) fn changes(&mut self, dependency: &Dependency) {
        let is_changed = dependency.puts > 0 || !dependency.updates.is_empty();
        if dependency.entry.node == self.node && is_changed {
            self.has_state(Payload::Ignore);
        }
    }

    /// Sets the payload access of the function's batch to the stronger of its own and this one.
    fn has_state(&mut self, payload: Payload) {
        self.state = self.state.max(Some(payload));
    }
}

impl FlowPart {
    /// The work of a native function.
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

/// The functions that count packets at these edge counters of a program, in the order of their
/// numbers, with their rows.
fn counted(residual: &Residual, counter_lists: &[(CounterListId, i32)]) -> Vec<FlowPart> {
    let counter_lists =
        counter_lists.iter().map(|(counters, _)| &residual.counter_lists[counters.0 as usize]);
    let mut parts: Vec<FlowPart> = Vec::new();
    for one in counter_lists.flatten().filter(|one| one.counter != Counter::Background) {
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
            Counter::Background => {}
        }
    }
    parts.sort_by_key(|part| part.node);
    parts
}

/// VLAN tags from their bytes.
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
