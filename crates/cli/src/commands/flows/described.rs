//! Record templates as people see them: functions in order, with rows and events, the end of the
//! path, and fields in place of bytes.

use braid_engine::{
    Dependency, FlowRecord, FlowTable, FlowTemplate, Flows, Native, Reached, Subpath,
};
use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Dest, PortId, RIGHT, RowId, Word};
use braid_ir::residual::{Counter, CounterListId, End, Fate, Point, Residual, shape_words};
use braid_native::Payload;
use braid_native::bridge::BODY;
use braid_packet::{Bits, Field};

use super::bits::{Condition, condition, written};
use super::fields::{self, Named};
use crate::commands::names::Names;

/// The choice of records to show.
#[derive(Clone, Copy)]
pub enum Shown {
    /// No records, only record templates.
    Templates,
    /// At most this many records.
    Records(usize),
}

/// A template.
pub struct Described<'t> {
    pub template: &'t FlowTemplate,
    /// Functions in the order of the packets' path.
    pub parts: Vec<PathPart<'t>>,
    /// The functions with state functions, in groups. The functions of a group could run their
    /// state functions at the same time, after the previous group (SpeedyBox, Table I).
    pub batches: Vec<Vec<u16>>,
    pub conditions: Vec<Condition>,
    /// Fields that the records write.
    pub writes: Vec<(Field, Bits)>,
    pub end: PathEnd<'t>,
}

/// The work of a function for the packets of a template.
pub struct PathPart<'t> {
    pub node: u16,
    pub backward: bool,
    /// Rows that count the packets.
    pub rows: Vec<RowId>,
    /// Events that the function publishes, in order.
    pub events: Vec<&'t str>,
    /// The strongest payload access of its state functions; `None` if it has none.
    pub state: Option<Payload>,
    /// What runs for each packet, if it is a native function.
    pub native: Option<&'t Native>,
}

/// The end of the path of a template's packets.
pub enum PathEnd<'t> {
    /// The packets leave by this interface.
    Leave(u16),
    /// A function drops them in this row, for this reason.
    Drop(u16, RowId, &'t str),
    /// This function consumes the packets.
    Consume(u16),
    /// They go on at this function.
    Onward(u16),
}

/// A flow table with its templates described.
pub struct Listing<'t> {
    pub names: Names<'t>,
    pub flows: Flows,
    pub templates: Vec<Described<'t>>,
    pub records: Vec<&'t FlowRecord>,
}

impl<'t> Listing<'t> {
    pub fn of(chain: &'t Chain, table: &'t FlowTable) -> Self {
        let (names, graph) = (Names(chain), Graph::new(chain).ok());
        let of = |template| Described::of(names, graph.as_ref(), template);
        let mut templates: Vec<Described<'t>> = table.templates.iter().map(of).collect();
        for record in &table.records {
            let Some(at) = place(&templates, record) else { continue };
            for part in &mut templates[at].parts {
                record.depends_on.iter().for_each(|one| part.changes(one));
            }
        }
        for one in &mut templates {
            one.batches = groups(one.parts.iter().map(|part| (part.node, part.state)));
        }
        Self { names, flows: table.flows, templates, records: table.records.iter().collect() }
    }

    /// Fields that a record writes, with their values.
    pub fn assigned(&self, record: &FlowRecord) -> impl Iterator<Item = (Field, Word)> {
        let fields = self.template(record).into_iter().flat_map(|one| &one.writes);
        fields.map(|(field, bits)| (*field, bits.get(&record.head)))
    }

    /// The bytes that packets of a record's flow have in common, by field.
    pub fn key(&self, record: &FlowRecord) -> Vec<Named> {
        let outline = self.template(record).map(|one| one.template.path.outline);
        outline.map_or_else(Vec::new, |outline| fields::key(outline, &record.key))
    }

    fn template(&self, record: &FlowRecord) -> Option<&Described<'t>> {
        place(&self.templates, record).map(|at| &self.templates[at])
    }
}

/// The place of a record's template among templates, which are in order of their numbers.
fn place(templates: &[Described<'_>], record: &FlowRecord) -> Option<usize> {
    templates.binary_search_by_key(&record.template, |one| one.template.number).ok()
}

impl<'t> Described<'t> {
    fn of(names: Names<'t>, graph: Option<&Graph>, template: &'t FlowTemplate) -> Self {
        let inner = template.path.guards.iter().map(|guard| (guard, false));
        let conditions =
            template.path.outer_guards().iter().map(|guard| (guard, true)).chain(inner);
        let condition = |(guard, is_outer)| condition(template, guard, is_outer);
        Self {
            template,
            parts: parts(names, graph, template),
            batches: Vec::new(),
            conditions: conditions.map(condition).collect(),
            writes: written(template),
            end: path_end(names, template),
        }
    }
}

impl PathPart<'_> {
    /// Marks that the function has a state function, if its packets change this entry and the entry
    /// belongs to the function.
    fn changes(&mut self, dependency: &Dependency) {
        let is_changed = dependency.puts > 0 || !dependency.updates.is_empty();
        if dependency.entry.node == self.node && is_changed {
            self.state = self.state.max(Some(Payload::Ignore));
        }
    }
}

/// The functions on a template's path, in order, with their work for its packets.
fn parts<'t>(
    names: Names<'t>,
    graph: Option<&Graph>,
    template: &'t FlowTemplate,
) -> Vec<PathPart<'t>> {
    let (path, mut parts) = (&template.path, Vec::new());
    let mut programs = path.programs().zip(&template.programs);
    for subpath in &path.subpaths {
        match subpath {
            Subpath::Program(_) => {
                let Some(((_, counters), residual)) = programs.next() else { continue };
                let counted = counted(residual, counters);
                parts.extend(in_order(names, graph, residual.point, counted));
            }
            Subpath::Native(native) => parts.push(PathPart {
                rows: vec![BODY],
                state: native.state.iter().copied().max(),
                native: Some(native),
                ..PathPart::new(native.node, native.backward)
            }),
        }
    }
    for publish in &path.effects.publications {
        if let Some(part) = parts.iter_mut().find(|part| part.node == publish.node) {
            part.events.push(names.event(publish.node, publish.event));
        }
    }
    for part in parts.iter_mut().filter(|part| path.searches_for(part.node)) {
        part.state = part.state.max(Some(Payload::Read));
    }
    parts
}

impl PathPart<'_> {
    fn new(node: u16, backward: bool) -> Self {
        PathPart { node, backward, rows: vec![], events: vec![], state: None, native: None }
    }
}

/// The functions that count packets at these edge counters of a program, in the order of their
/// numbers, with their rows.
fn counted<'t>(residual: &Residual, counter_lists: &[(CounterListId, i32)]) -> Vec<PathPart<'t>> {
    let counter_lists =
        counter_lists.iter().map(|(counters, _)| &residual.counter_lists[counters.0 as usize]);
    let mut parts: Vec<PathPart<'t>> = Vec::new();
    for one in counter_lists.flatten().filter(|one| one.counter != Counter::Background) {
        let known = parts.iter().position(|part| part.node == one.node);
        let at = known.unwrap_or_else(|| {
            parts.push(PathPart::new(one.node, false));
            parts.len() - 1
        });
        match one.counter {
            Counter::Forward | Counter::Background => {}
            Counter::Backward => parts[at].backward = true,
            Counter::Row(row) => parts[at].rows.push(row),
        }
    }
    parts.sort_by_key(|part| part.node);
    parts
}

/// The functions of a path, in the order in which packets that enter at a point reach them.
fn in_order<'t>(
    names: Names<'t>,
    graph: Option<&Graph>,
    point: Point,
    mut parts: Vec<PathPart<'t>>,
) -> Vec<PathPart<'t>> {
    let mut ordered = Vec::with_capacity(parts.len());
    let mut next = parts.iter().position(|part| part.node == point.node);
    while let Some(at) = next {
        let PathPart { node, backward, .. } = parts[at];
        ordered.push(parts.remove(at));
        let ports = names.node(node).map_or(0, |node| node.model.ports.len() as u32);
        let ports = (0..ports).map(|port| Dest::Port(PortId(port)));
        let mut dests = [Dest::Onward, Dest::Back].into_iter().chain(ports);
        next = dests.find_map(|dest| {
            let Sink::Port(node, port) = graph?.next(node, port(dest, backward))? else {
                return None;
            };
            let is_it = |part: &PathPart<'_>| (part.node, part.backward) == (node, port == RIGHT);
            parts.iter().position(is_it)
        });
    }
    ordered.append(&mut parts);
    ordered
}

/// The end of a template's path.
fn path_end<'t>(names: Names<'t>, template: &'t FlowTemplate) -> PathEnd<'t> {
    if let Some(onward) = template.onward {
        return PathEnd::Onward(onward.point.node);
    }
    if let Reached::Interface(interface) = template.reached {
        return PathEnd::Leave(interface);
    }
    match template.path.subpaths.last() {
        None => PathEnd::Consume(template.point.node),
        Some(Subpath::Program(through)) => {
            let block = template.programs.last().map(|last| (last, through.block as usize));
            block.map_or(PathEnd::Consume(template.point.node), |(residual, block)| {
                program_end(names, residual, block)
            })
        }
        Some(Subpath::Native(Native { node, drops, .. })) => {
            let reason = drops.and_then(|reason| names.reason(*node, reason as usize));
            PathEnd::Drop(*node, BODY, reason.unwrap_or_default())
        }
    }
}

fn program_end<'t>(names: Names<'t>, residual: &Residual, block: usize) -> PathEnd<'t> {
    let End::Exit(exit) = &residual.blocks[block].end else {
        return PathEnd::Consume(residual.point.node);
    };
    match &exit.fate {
        Fate::Leave { interface } => PathEnd::Leave(*interface),
        Fate::Drop { node, row, reason } => {
            let reason = names.reason(*node, reason.index());
            PathEnd::Drop(*node, *row, reason.unwrap_or_default())
        }
        Fate::Fault { node, fault } => {
            // The row of faults is the last row.
            let rows = names.node(*node).map_or(0, |node| node.model.rows.len());
            PathEnd::Drop(*node, RowId(rows.saturating_sub(1) as u32), fault.reason())
        }
        Fate::Consume { node } | Fate::Output { node, .. } | Fate::Resubmit { node } => {
            PathEnd::Consume(*node)
        }
        Fate::Go(point) => PathEnd::Consume(point.node),
    }
}

/// The strongest access of a state function to the payload (SpeedyBox §IV-A2), as a word.
pub fn payload_word(payload: Payload) -> &'static str {
    match payload {
        Payload::Ignore => "ignore",
        Payload::Read => "read",
        Payload::Write => "write",
    }
}

/// A VLAN tag.
pub struct VlanTag {
    pub tpid: u16,
    pub id: u16,
    pub pcp: u8,
    /// Whether packets may be dropped first.
    pub dei: bool,
}

/// The VLAN tags that a template's packets get, the outermost first.
pub fn pushes(template: &FlowTemplate) -> impl Iterator<Item = VlanTag> {
    let (tags, _) = template.path.effects.vlans.got.as_chunks::<4>();
    tags.iter().map(|&[a, b, high, low]| VlanTag {
        tpid: u16::from_be_bytes([a, b]),
        id: u16::from_be_bytes([high & 0xf, low]),
        pcp: high >> 5,
        dei: high >> 4 & 1 == 1,
    })
}

/// The headers of a template's packets, in words.
pub fn shape(template: &FlowTemplate) -> String {
    let mut shape = template.shape;
    if template.program.is_none() {
        // The words list the headers that are present. All others are absent.
        shape.care = shape.present;
    }
    shape_words(shape)
}

/// Whether state functions with the payload access `second` could run at the same time as earlier
/// ones with the payload access `first` (SpeedyBox, Table I). All header changes are made before
/// either of them.
fn is_beside(first: Payload, second: Payload) -> bool {
    first != Payload::Write || second == Payload::Ignore
}

/// Groups functions in path order. The state functions of a group could run at the same time, after
/// all those of the previous group. Records run them in order.
fn groups(parts: impl Iterator<Item = (u16, Option<Payload>)>) -> Vec<Vec<u16>> {
    let mut groups: Vec<Vec<(u16, Payload)>> = Vec::new();
    for (node, payload) in parts.filter_map(|(node, state)| Some((node, state?))) {
        match groups.last_mut() {
            Some(group) if group.iter().all(|(_, first)| is_beside(*first, payload)) => {
                group.push((node, payload));
            }
            _ => groups.push(vec![(node, payload)]),
        }
    }
    groups.into_iter().map(|group| group.into_iter().map(|(node, _)| node).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Payload::{Ignore, Read, Write};

    #[test]
    fn state_functions_wait_where_table_i_says_so() {
        let waits = |first, second| !is_beside(first, second);
        let all = [Ignore, Read, Write];
        let found: Vec<_> = all
            .into_iter()
            .flat_map(|first| all.map(|second| (first, second)))
            .filter(|(first, second)| waits(*first, *second))
            .collect();
        assert_eq!(found, [(Write, Read), (Write, Write)]);
    }

    #[test]
    fn groups_keep_the_order_of_functions() {
        let states = [Some(Read), None, Some(Ignore), Some(Write), Some(Ignore), Some(Read)];
        let parts: Vec<_> = (0..).zip(states).collect();
        assert_eq!(groups(parts.iter().copied()), [vec![0, 2, 3, 4], vec![5]]);
        assert!(groups(parts[1..2].iter().copied()).is_empty());
    }
}
