//! The records and record templates that exist at one time, for people and for tests.

use crate::bindings::{Bindings, HeaderChange};
use crate::cache::{FlowCache, Flows};
use crate::entry_use::{Bound, Update};
use crate::goal::Onward;
use crate::host::{Functions, Programs};
use crate::key::{OPEN, SharedBytes, bytes_inside, is_peeled, kind_mask, of_kind, unfolded};
use crate::path::Path;
use crate::records::Records;
use crate::slab::{Hot, IS_WIDE, Record};
use braid_ir::engine::StateEntry;
use braid_ir::model::{Kind, Word};
use braid_ir::residual::{HeaderMask, Point, Residual};
use braid_ir::walk::Reached;
use braid_packet::Field;
use braid_packet::rewrite::{Follows, Outline, Rewrite, WIDE, WIDE_BYTES, Window, bytes, widened};
use braid_state::{Tables, describe};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Flow records at one time, by template.
#[derive(Clone, Debug)]
pub struct FlowTable {
    /// How packets were processed.
    pub flows: Flows,
    /// Templates by number.
    pub templates: Vec<FlowTemplate>,
    /// The records.
    pub records: Vec<FlowRecord>,
    /// The place at which the next page begins.
    pub next: Option<usize>,
}

/// A record template: a path through programs and native functions that many records share.
#[derive(Clone, Debug)]
pub struct FlowTemplate {
    /// The template's number.
    pub number: u32,
    /// The number of the program that the packets enter, if they can meet no native functions.
    pub program: Option<u32>,
    /// Where the packets enter.
    pub point: Point,
    /// The packets' headers, as far as the path depends on them, or all of them where packets can
    /// meet native functions.
    pub shape: HeaderMask,
    /// The path. Its rules have the numbers that they have now.
    pub path: Path,
    /// The programs of the path, in order.
    pub programs: Vec<Arc<Residual>>,
    /// Where the packets are at the end of their path, unless they go on.
    pub reached: Reached,
    /// Where the packets go on, if the path is a part of their whole path.
    pub onward: Option<Onward>,
    /// Interfaces by which copies of the packets leave.
    pub copies: Vec<u16>,
    /// Whether a parameter that the records depend on has changed. If so, no packet takes the
    /// records any more.
    pub is_outdated: bool,
    /// How many of the records the table has.
    pub records: u64,
    /// Packets that took records of the template. In a page: records of the page.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
}

/// A record.
#[derive(Clone, Debug)]
pub struct FlowRecord {
    /// The number of the record's template.
    pub template: u32,
    /// The bytes that packets of the flow have in common.
    pub key: SharedBytes,
    /// The packets' first bytes after the rewrite, as far as the record assigns them.
    pub head: [u8; WIDE_BYTES],
    /// Fields to which the record adds an amount, modulo their width, with the amounts.
    pub adds: Vec<(Field, u32)>,
    /// The amounts that the record adds to the checksum of the IPv4 header and to the transport
    /// checksum. `None` where the record does not update the checksum, or where the amount differs
    /// by packet.
    pub sums: [Option<u16>; 2],
    /// Packets that have taken the record since it was made, or at least since
    /// [`Records::keep_totals`] was called.
    pub packets: u64,
    /// The packets' bytes on the wire.
    pub bytes: u64,
    /// When the record was last taken (ns). `None` if it was never taken.
    pub seen_ns: Option<u64>,
    /// Entries that must stay, by function, table and key.
    pub depends_on: Vec<Dependency>,
    /// Entries that must be absent, in the same order.
    pub absent: Vec<Missing>,
}

/// An entry that a record depends on.
#[derive(Clone, PartialEq, Debug)]
pub struct Dependency {
    /// The entry as it is now.
    pub entry: StateEntry,
    /// Slots whose values the record depends on or reads for each packet, as bits.
    pub reads: u64,
    /// Slots that the record assigns for each packet, as bits.
    pub puts: u64,
    /// Slots that packets change in a way that adds up, with the change.
    pub updates: Vec<Update>,
    /// Bounds of these slots.
    pub bounds: Vec<Bound>,
}

/// An entry that must be absent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// The function.
    pub node: u16,
    /// The table's name.
    pub table: String,
    /// The shard.
    pub shard: u16,
    /// The parts of the key.
    pub key: Vec<(Kind, Word)>,
}

impl FlowTable {
    /// All records of a flow cache by kind and key, and all templates. `flows` says how packets
    /// were processed.
    #[must_use]
    pub fn new<P: Programs, F: Functions>(
        cache: &FlowCache,
        flows: Flows,
        (programs, functions): (&P, &F),
    ) -> Self {
        let (records, tables) = (functions.state().dependents(), functions.state().tables());
        let slabs = records.slabs();
        let narrow = (0..).zip(&slabs.narrow.all);
        let narrow = narrow.map(|(at, one)| listed(cache, (records, tables), at, one));
        let wide = (IS_WIDE..).zip(&slabs.wide.all);
        let wide = wide.map(|(at, one)| listed(cache, (records, tables), at, one));
        let mut all: Vec<_> = narrow.chain(wide).flatten().collect();
        all.sort_by_key(|(order, _)| *order);
        let records: Vec<FlowRecord> = all.into_iter().map(|(_, one)| one).collect();
        let counts = functions.state().dependents().counted_by_template();
        let template = |number: u32| {
            let template = FlowTemplate::new(cache, number, (programs, functions))?;
            let (packets, bytes) = counts.get(number as usize).copied().unwrap_or_default();
            Some(FlowTemplate { packets, bytes, ..template })
        };
        let mut templates: Vec<_> = (0..).map_while(template).collect();
        for record in &records {
            if let Some(template) = templates.get_mut(record.template as usize) {
                template.records += 1;
            }
        }
        Self { flows, templates, records, next: None }
    }

    /// A page of the records by place, with their templates: at most `most` records, which begin at
    /// the place `from`. Looks at no more than 16 places for each of them.
    #[must_use]
    pub fn page<P: Programs, F: Functions>(
        cache: &FlowCache,
        flows: Flows,
        world: (&P, &F),
        (from, most): (usize, usize),
    ) -> Self {
        let (records, tables) = (world.1.state().dependents(), world.1.state().tables());
        let slabs = records.slabs();
        let narrow = slabs.narrow.all.len();
        let end = narrow + slabs.wide.all.len();
        let last = end.min(from.saturating_add(most.saturating_mul(16)));
        let (mut found, mut at) = (Vec::new(), from);
        while at < last && found.len() < most {
            let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            let one = match slabs.narrow.all.get(at) {
                Some(one) => listed(cache, (records, tables), number(at), one),
                None => slabs.wide.all.get(at - narrow).and_then(|one| {
                    listed(cache, (records, tables), IS_WIDE | number(at - narrow), one)
                }),
            };
            found.extend(one.map(|(_, one)| one));
            at += 1;
        }
        let mut templates = BTreeMap::new();
        for FlowRecord { template: number, packets, bytes, .. } in &found {
            let of = || FlowTemplate::new(cache, *number, world);
            if let Some(one) = templates.entry(*number).or_insert_with(of) {
                one.records += 1;
                one.packets += packets;
                one.bytes += bytes;
            }
        }
        let templates = templates.into_values().flatten().collect();
        Self { flows, templates, records: found, next: (at < end).then_some(at) }
    }
}

impl FlowTemplate {
    /// A template, without records.
    pub(crate) fn new<P: Programs, F: Functions>(
        cache: &FlowCache,
        number: u32,
        (programs, functions): (&P, &F),
    ) -> Option<Self> {
        let (template, path) = cache.templates.get(number)?;
        let (point, shape) = cache.extractors.place(path.entry, programs).unwrap_or(NOWHERE);
        let rules = cache.templates.rules(number).collect();
        let residual = |through: u32| programs.residual(through as usize).cloned();
        Some(Self {
            number,
            program: (path.entry < OPEN).then_some(path.entry),
            point,
            shape,
            path: Path { rules, ..path.clone() },
            programs: path.programs().filter_map(|(one, _)| residual(one.program)).collect(),
            reached: template.reached,
            onward: template.more.as_ref().and_then(|more| more.goal.onward),
            copies: template.more.as_ref().map_or(Vec::new(), |more| more.goal.copies.clone()),
            is_outdated: functions.state().dependents().is_template_outdated(number),
            records: 0,
            packets: 0,
            bytes: 0,
        })
    }
}

/// Stands in for the entry of a template that has none.
const NOWHERE: (Point, HeaderMask) =
    (Point { node: 0, backward: false, held: false }, HeaderMask { care: 0, present: 0 });

/// A record, and its place in the order of records: its kind and its key. `None` if it has ended.
fn listed<const K: usize, const W: usize>(
    cache: &FlowCache,
    (records, tables): (&Records, &Tables),
    number: u32,
    record: &Record<K, W>,
) -> Option<((u32, Window<WIDE>), FlowRecord)> {
    let Hot { seen, kind, template, .. } = record.hot;
    if template == Hot::ENDED {
        return None;
    }
    let (_, path) = cache.templates.get(template)?;
    let word = |words: &[u64], at: usize| words.get(at).copied().unwrap_or(0);
    let packed: Window<WIDE> = std::array::from_fn(|at| word(&record.key, at));
    let written: Window<WIDE> = std::array::from_fn(|at| word(&record.head, at));
    let (program, outline, is_narrow) = of_kind(kind);
    let extractor = cache.extractors.get(program)?;
    let mut mask = *extractor.mask(outline)?;
    let (full_key, written) = match (is_narrow, packed, written) {
        (true, [a, b, ..], [c, d, ..]) => (unfolded(&[a, b]), widened(&[c, d])),
        (false, ..) => (packed, written),
    };
    if is_narrow {
        mask.iter_mut().zip(path.link.mask).for_each(|(word, link)| *word &= !link);
    }
    let last = HeaderChange { rewrite: path.rewrite, bytes: written, sums: record.sums };
    let mut key = key(outline, self::bytes(&mask), self::bytes(&full_key));
    if is_peeled(kind) {
        let mask = extractor.inside_mask(outline)?;
        key = self::key(Outline::PLAIN, mask, bytes_inside(&packed));
    }
    let (head, adds, sums) = written_by(path, last, cache.bindings(number));
    let (packets, bytes) = records.total(number);
    let mut listed = FlowRecord {
        template,
        key,
        packets: packets + u64::from(record.hot.packets),
        bytes: bytes + u64::from(records.counted(number).bytes),
        seen_ns: (seen > 0).then_some(seen),
        head,
        adds,
        sums,
        depends_on: Vec::new(),
        absent: Vec::new(),
    };
    for link in records.links(number) {
        match records.use_of(link) {
            Some(one) => listed.depends_on.push(Dependency {
                entry: describe(tables, records, (one.table, link.place)),
                reads: one.reads | one.dynamic,
                puts: one.puts,
                updates: one.updates.clone(),
                bounds: one.bounds.clone(),
            }),
            None => listed.absent.extend(missing((records, tables), link.place)),
        }
    }
    let entry = |one: &Dependency| {
        let StateEntry { node, table, key, .. } = &one.entry;
        (*node, table.clone(), words(key))
    };
    listed.depends_on.sort_by_cached_key(entry);
    let missing = |one: &Missing| (one.node, one.table.clone(), words(&one.key));
    listed.absent.sort_by_cached_key(missing);
    Some(((kind, packed.map(u64::swap_bytes)), listed))
}

/// As in [`FlowRecord`]: `head`, `adds`, `sums`.
type Written = ([u8; WIDE_BYTES], Vec<(Field, u32)>, [Option<u16>; 2]);

/// What a record of a path writes. `last` is the rewrite after the last native
/// function.
fn written_by(path: &Path, mut last: HeaderChange, bindings: Option<&Bindings>) -> Written {
    last.bytes.iter_mut().zip(path.first).for_each(|(word, first)| *word |= first);
    let before = bindings.into_iter().flat_map(Bindings::changes);
    let (mut head, mut sums, mut adds) = ([0; WIDE], [None; 2], Vec::new());
    for HeaderChange { rewrite, bytes, sums: added } in before.chain([&last]) {
        for ((word, keep), bytes) in head.iter_mut().zip(rewrite.keep).zip(bytes) {
            *word = *word & keep | bytes & !keep;
        }
        let new = self::bytes(bytes);
        adds.extend(rewrite.adds.iter().filter_map(|add| {
            let amount = new.get(add.from.into()..)?.get(..add.field.whole_bytes()?.into())?;
            let amount = amount.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
            Some((add.field, amount))
        }));
        for ((sum, added), _) in sums.iter_mut().zip(added).zip(rewrite.sums).filter(|one| one.1) {
            let (both, carry) = added.overflowing_add(sum.unwrap_or(0));
            *sum = Some(both + u16::from(carry));
        }
    }
    // An amount that changes no sum stands for one that differs by packet.
    for (sum, of) in sums.iter_mut().zip([Follows::Ip, Follows::Transport]) {
        let differs = |rewrite: &Rewrite| rewrite.adds.iter().any(|add| add.follows == of);
        *sum = sum.filter(|sum| *sum != u16::MAX || !path.rewrites().any(differs));
    }
    (bytes(&head), adds, sums)
}

/// The bytes that a flow's packets have in common. The mask leaves out the IP version and the bits
/// that exclude fragments.
#[expect(clippy::indexing_slicing, reason = "the headers of an outline lie in the wide words")]
fn key(outline: Outline, mut mask: [u8; WIDE_BYTES], bytes: [u8; WIDE_BYTES]) -> SharedBytes {
    for (at, known) in kind_mask(outline).into_iter().enumerate() {
        if at <= outline.ip || at != outline.proto() && bytes[at] & known == 0 {
            mask[at] &= !known;
        }
    }
    SharedBytes { mask, bytes }
}

fn missing((records, tables): (&Records, &Tables), number: u32) -> Option<Missing> {
    let (table, key) = records.absent(number)?;
    let (node, _, shard) = tables.owner(table);
    let key = tables.key_shape(table).describe(key);
    Some(Missing { node, table: tables.name(table).to_owned(), shard, key })
}

/// The values of a key's parts.
fn words(key: &[(Kind, Word)]) -> Vec<Word> {
    key.iter().map(|(_, value)| *value).collect()
}
