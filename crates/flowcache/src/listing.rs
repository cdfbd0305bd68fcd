//! Flow records for people, each with its dependencies.

use crate::entry_use::{Bound, Update};
use crate::records::Records;
use crate::slab::{Hot, IS_WIDE, Record, WIDE};
use braid_ir::engine::StateEntry;
use braid_ir::model::{Kind, Word};
use braid_state::{Tables, describe};

/// A record.
#[derive(Clone, PartialEq, Debug)]
pub struct Listed {
    /// The record's number.
    pub number: u32,
    /// The key of the record's flow. A narrow key is followed by zeros. This field and the fields
    /// up to `sums` are as in [`crate::new_record::NewRecord`].
    pub key: [u64; WIDE.0],
    /// The kind of the record: its extractor and its outline.
    pub kind: u32,
    /// The record's template.
    pub template: u32,
    /// The words that the record writes over the packet's first bytes.
    pub head: [u64; WIDE.1],
    /// The amounts that the record adds to the packet's checksums.
    pub sums: [u16; 2],
    /// When the record was last taken (ns). `None` if it was never taken.
    pub seen_ns: Option<u64>,
    /// Packets that have taken the record since it was made, or at least since
    /// [`Records::keep_totals`] was called.
    pub packets: u64,
    /// The packets' bytes on the wire.
    pub bytes: u64,
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

/// All records, by kind and key.
#[must_use]
pub fn list(records: &Records, tables: &Tables) -> Vec<Listed> {
    let slabs = records.slabs();
    let narrow = (0..).zip(&slabs.narrow.all).map(|(at, one)| listed((records, tables), at, one));
    let wide = (IS_WIDE..).zip(&slabs.wide.all).map(|(at, one)| listed((records, tables), at, one));
    let mut all: Vec<_> = narrow.chain(wide).flatten().collect();
    all.sort_by_key(|one| (one.kind, one.key.map(u64::swap_bytes)));
    all
}

/// Some records by number, and where the next ones begin: at most `most` records, which begin at the
/// place `from`. Looks at no more than 16 places for each of them.
#[must_use]
pub fn page(
    records: &Records,
    tables: &Tables,
    from: usize,
    most: usize,
) -> (Vec<Listed>, Option<usize>) {
    let slabs = records.slabs();
    let narrow = slabs.narrow.all.len();
    let end = narrow + slabs.wide.all.len();
    let last = end.min(from.saturating_add(most.saturating_mul(16)));
    let (mut found, mut at) = (Vec::new(), from);
    while at < last && found.len() < most {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        found.extend(match slabs.narrow.all.get(at) {
            Some(one) => listed((records, tables), number(at), one),
            None => slabs
                .wide
                .all
                .get(at - narrow)
                .and_then(|one| listed((records, tables), IS_WIDE | number(at - narrow), one)),
        });
        at += 1;
    }
    (found, (at < end).then_some(at))
}

/// A record as listed. `None` if it has ended.
fn listed<const K: usize, const W: usize>(
    (records, tables): (&Records, &Tables),
    number: u32,
    record: &Record<K, W>,
) -> Option<Listed> {
    let Hot { seen, kind, template, .. } = record.hot;
    if template == Hot::ENDED {
        return None;
    }
    let (packets, bytes) = records.total(number);
    let word = |words: &[u64], at: usize| words.get(at).copied().unwrap_or(0);
    let mut listed = Listed {
        number,
        key: std::array::from_fn(|at| word(&record.key, at)),
        kind,
        template,
        head: std::array::from_fn(|at| word(&record.head, at)),
        sums: record.sums,
        seen_ns: (seen > 0).then_some(seen),
        packets: packets + u64::from(record.hot.packets),
        bytes: bytes + u64::from(records.counted(number).bytes),
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
    Some(listed)
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
