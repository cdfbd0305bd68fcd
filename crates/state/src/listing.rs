//! Flow records for people: what each one is, and what it rests on.

use crate::fuel::Bound;
use crate::shelf::{Body, IS_WIDE, Record, WIDE};
use crate::store::Store;
use crate::uses::Update;
use braid_ir::engine::StateEntry;
use braid_ir::model::{Kind, Word};
use std::collections::HashMap;

/// A record.
#[derive(Clone, PartialEq, Debug)]
pub struct Listed {
    /// Its number.
    pub number: u32,
    /// Its flow, as in [`crate::NewRecord`], like what follows; zeros behind the words of a narrow one.
    pub key: [u64; WIDE.0],
    /// For which packets it is, beside the key.
    pub kind: u32,
    /// What is to be done.
    pub class: u32,
    /// What is written over the packet's first bytes.
    pub head: [u64; WIDE.1],
    /// What is added to its checksums.
    pub sums: [u16; 2],
    /// When it was last taken (ns); `None`: not yet.
    pub seen_ns: Option<u64>,
    /// Packets that have taken it, since [`Store::keep_record_totals`] at most.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Entries that must stay, by function, table and key.
    pub rests_on: Vec<Resting>,
    /// Entries that must not be there, in the same order.
    pub absent: Vec<Missing>,
}

/// An entry that a record rests on.
#[derive(Clone, PartialEq, Debug)]
pub struct Resting {
    /// The entry as it is now.
    pub entry: StateEntry,
    /// Slots that the record takes for granted, as bits.
    pub reads: u64,
    /// Slots that are assigned for each packet.
    pub puts: u64,
    /// Slots that each of its packets changes in a way that adds up.
    pub updates: Vec<Update>,
    /// Bounds of those.
    pub bounds: Vec<Bound>,
}

/// An entry that is not there.
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

/// What records have counted and given away, if anyone wants to know: packets and bytes by record.
#[derive(Debug, Default)]
pub(crate) struct Totals(Option<HashMap<u32, (u64, u64)>>);

impl Totals {
    /// A record gives away what it has counted.
    #[inline]
    pub(crate) fn add(&mut self, number: u32, packets: u32, bytes: u32) {
        let Some(all) = &mut self.0 else { return };
        let total = all.entry(number).or_default();
        total.0 += u64::from(packets);
        total.1 += u64::from(bytes);
    }

    /// A record has this number that has counted nothing yet.
    pub(crate) fn start(&mut self, number: u32) {
        if let Some(all) = &mut self.0 {
            all.remove(&number);
        }
    }

    fn get(&self, number: u32) -> (u64, u64) {
        self.0.as_ref().and_then(|all| all.get(&number)).copied().unwrap_or_default()
    }
}

impl Store {
    /// From now on it is known of each record how many packets have taken it, for [`Store::list_records`].
    pub fn keep_record_totals(&mut self) {
        self.records.totals.0.get_or_insert_default();
    }

    /// All records, by kind and key.
    #[must_use]
    pub fn list_records(&self) -> Vec<Listed> {
        let narrow = (0..).zip(&self.records.narrow.all).map(|(at, one)| self.listed(at, one));
        let wide = (IS_WIDE..).zip(&self.records.wide.all).map(|(at, one)| self.listed(at, one));
        let mut all: Vec<_> = narrow.chain(wide).flatten().collect();
        all.sort_by_key(|one| (one.kind, one.key.map(u64::swap_bytes)));
        all
    }

    /// A record, unless it has ended.
    fn listed<const K: usize, const W: usize>(
        &self,
        number: u32,
        record: &Record<K, W>,
    ) -> Option<Listed> {
        let Body { seen, kind, class, .. } = record.body;
        if class == Body::ENDED {
            return None;
        }
        let (packets, bytes) = self.records.totals.get(number);
        let word = |words: &[u64], at: usize| words.get(at).copied().unwrap_or(0);
        let mut listed = Listed {
            number,
            key: std::array::from_fn(|at| word(&record.key, at)),
            kind,
            class,
            head: std::array::from_fn(|at| word(&record.head, at)),
            sums: record.sums,
            seen_ns: (seen > 0).then_some(seen),
            packets: packets + u64::from(record.body.packets),
            bytes: bytes + u64::from(self.records.counted(number).bytes),
            rests_on: Vec::new(),
            absent: Vec::new(),
        };
        for link in self.records.links(number) {
            match self.records.uses.all.get(link.how as usize) {
                Some(one) => listed.rests_on.push(Resting {
                    entry: self.entry(self.at(one.table), link.place),
                    reads: one.reads | one.live,
                    puts: one.puts,
                    updates: one.updates.clone(),
                    bounds: one.bounds.clone(),
                }),
                None => listed.absent.extend(self.missing(link.place)),
            }
        }
        let entry = |one: &Resting| {
            let StateEntry { node, table, key, .. } = &one.entry;
            (*node, table.clone(), words(key))
        };
        listed.rests_on.sort_by_cached_key(entry);
        let missing = |one: &Missing| (one.node, one.table.clone(), words(&one.key));
        listed.absent.sort_by_cached_key(missing);
        Some(listed)
    }

    fn missing(&self, number: u32) -> Option<Missing> {
        let (table, key) = self.records.absences.key(number)?;
        let at = self.at(table);
        let model = &self.functions[usize::from(at.site.node)].model;
        Some(Missing {
            node: at.site.node,
            table: model.state[at.site.state.index()].name.clone(),
            shard: at.site.shard,
            key: at.keys.describe(key),
        })
    }
}

/// The parts of a key without what they denote.
fn words(key: &[(Kind, Word)]) -> Vec<Word> {
    key.iter().map(|(_, value)| *value).collect()
}
