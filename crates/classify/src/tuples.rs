//! Tuple space search with priority pruning: one hash table for each pair of prefix lengths.
//!
//! Each table has the rules with the same lengths of the prefixes around source and destination
//! (Srinivasan, Suri and Varghese, 1999). A lookup searches the tables in the order of their best
//! rules, until no table can have a better rule than the one found (Open vSwitch's pruning). Rules
//! with the same key are tried in order.

use crate::packed::{Ask, NONE, Packed};
use crate::trie::Key;
use rustc_hash::FxHashMap;

/// Rules in order, with their numbers.
type Place<K> = Vec<(u32, Packed<K>)>;

/// The structure.
#[derive(Clone, Debug)]
pub struct Tuples<K> {
    tables: Vec<Table<K>>,
}

#[derive(Clone, Debug)]
struct Table<K> {
    /// The number of bits of source and destination that are compared.
    lens: (u32, u32),
    /// The number of its first rule.
    best: u32,
    places: FxHashMap<(K, K), Place<K>>,
}

impl<K: Key + std::hash::Hash> Tuples<K> {
    /// Builds the structure for these rules.
    #[must_use]
    pub fn new(rules: &[Option<Packed<K>>]) -> Self {
        let mut tables: FxHashMap<(u32, u32), Table<K>> = FxHashMap::default();
        for (number, rule) in (0..).zip(rules) {
            let Some(rule) = rule else { continue };
            let lens = (prefix_len(rule.src), prefix_len(rule.dst));
            let table = tables.entry(lens).or_insert_with(|| Table {
                lens,
                best: number,
                places: FxHashMap::default(),
            });
            let place = (rule.src.0.above(K::BITS - lens.0), rule.dst.0.above(K::BITS - lens.1));
            table.places.entry(place).or_default().push((number, *rule));
        }
        let mut tables: Vec<_> = tables.into_values().collect();
        tables.sort_by_key(|table| table.best);
        Self { tables }
    }

    /// The number of the first rule that matches, or [`NONE`].
    #[must_use]
    pub fn find(&self, src: K, dst: K, ask: &Ask) -> u32 {
        self.find_where(src, dst, ask, |_| true)
    }

    /// The same as [`Self::find`] among the rules whose numbers `kind` accepts.
    #[must_use]
    pub fn find_where(&self, src: K, dst: K, ask: &Ask, kind: impl Fn(u32) -> bool) -> u32 {
        let mut best = NONE;
        for table in &self.tables {
            if table.best >= best {
                break;
            }
            let place = (src.above(K::BITS - table.lens.0), dst.above(K::BITS - table.lens.1));
            let rules = table.places.get(&place).map_or(&[][..], Vec::as_slice);
            let better = rules.iter().take_while(|(number, _)| *number < best);
            let mut some = better.filter(|(number, _)| kind(*number));
            if let Some((number, _)) = some.find(|(_, rule)| rule.matches(src, dst, ask)) {
                best = *number;
            }
        }
        best
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        let places = |table: &Table<K>| {
            let slot = size_of::<((K, K), Place<K>)>() + 1;
            let rules: usize = table.places.values().map(Vec::capacity).sum();
            table.places.capacity() * slot + rules * size_of::<(u32, Packed<K>)>()
        };
        self.tables.iter().map(places).sum()
    }
}

/// The length of the longest prefix that contains a range.
fn prefix_len<K: Key>((lo, hi): (K, K)) -> u32 {
    let differ: u128 = lo.into() ^ hi.into();
    K::BITS - (u128::BITS - differ.leading_zeros())
}
