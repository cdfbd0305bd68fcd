//! Several tables over the same packet, looked up at once.
//!
//! What tables have in common is the search for an address: the intervals that all of them tell apart
//! are numbered together, one search finds the number, and its row has what each table wants to know,
//! the next hop of a route table or the rank of the address in a rule set. Ten route tables cost one
//! search and one row. What is behind the ranks stays a structure for each rule set: its product with
//! another's would grow with both.
//!
//! [`Joint::search`] does the searches, and [`Joint::rule`] and [`Joint::hop`] say what a table answers
//! to what was found: a program that asks one table here and another there searches once.
//!
//! A change is made in the table itself. If that makes the row wrong (a route, or rules that were
//! settled) the table is searched apart until [`Joint::settle`], and nothing else is slower.

use crate::flat::{Query, Starts};
use crate::packed::Ask;
use crate::trie::{Key, Run, Trie};
use crate::{Lpm, RuleTable};
use braid_ir::routes::RouteTable;
use braid_ir::rules::RulePacket;
use braid_ir::value::{Rule, RuleSet};
use std::collections::HashMap;

/// Which address a route table is asked about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The source.
    Src,
    /// The destination.
    Dst,
}

/// A table to be looked up with others.
#[derive(Clone, Copy, Debug)]
pub enum Member<'a> {
    /// A rule set.
    Rules(&'a RuleSet),
    /// A route table, asked about an address of the packet's IP version.
    Routes(&'a RouteTable, Side),
}

/// What one table answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Whether the packet passes, and the number of the rule that decides.
    Rule(bool, u32),
    /// The next hop, if there is a route.
    Hop(Option<u32>),
}

/// Several tables over the same packet, looked up at once. Each answers as it would alone.
#[derive(Clone, Debug)]
pub struct Joint {
    members: Vec<One>,
    v4: Pair<u32>,
    v6: Pair<u128>,
    /// The distinct hops of all route tables; first none.
    hops: Vec<Option<u32>>,
}

/// What the searches for a packet's addresses found.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Rows of its source and destination; empty if it is neither IPv4 nor IPv6.
    src: &'a [u32],
    dst: &'a [u32],
}

/// A table, and where its columns are.
#[derive(Clone, Debug)]
struct One {
    table: Table,
    /// Columns of source and destination, for IPv4 and IPv6; `None` where it is searched apart.
    columns: [Option<[u32; 2]>; 2],
}

#[derive(Clone, Debug)]
enum Table {
    Rules(Box<RuleTable>),
    Routes(Box<Lpm>, Side),
}

/// Rows for the addresses of one family.
#[derive(Clone, Debug)]
struct Pair<K> {
    src: Rows<K>,
    dst: Rows<K>,
}

/// What the tables want to know about an address.
#[derive(Clone, Debug)]
struct Rows<K> {
    trie: Trie<K>,
    /// Values in a row.
    width: usize,
    values: Vec<u32>,
}

/// A table's values by the start of their intervals.
type Column = Vec<Run>;

/// Columns of sources and destinations.
type Columns = [Vec<Column>; 2];

impl Joint {
    /// These tables, numbered from 0.
    #[must_use]
    pub fn new(members: &[Member<'_>]) -> Self {
        let table = |member: &Member<'_>| match *member {
            Member::Rules(set) => Table::Rules(Box::new(RuleTable::new(set))),
            Member::Routes(table, side) => Table::Routes(Box::new(Lpm::new(table)), side),
        };
        let one = |member| One { table: table(member), columns: [None; 2] };
        let mut joint = Self {
            members: members.iter().map(one).collect(),
            v4: Pair::new(&Columns::default()),
            v6: Pair::new(&Columns::default()),
            hops: Vec::new(),
        };
        joint.join();
        joint
    }

    /// Makes the rows anew.
    fn join(&mut self) {
        let mut places = HashMap::new();
        self.hops = vec![None];
        let mut columns = [Columns::default(), Columns::default()];
        for one in &mut self.members {
            match &one.table {
                Table::Rules(table) => {
                    let starts = table.starts();
                    for ((columns, starts), at) in
                        columns.iter_mut().zip(starts).zip(&mut one.columns)
                    {
                        *at = starts.map(|starts| put_ranks(columns, starts));
                    }
                }
                Table::Routes(table, side) => {
                    let mut place = |hop: Option<u32>| {
                        let Some(hop) = hop else { return 0 };
                        *places.entry(hop).or_insert_with(|| {
                            self.hops.push(Some(hop));
                            u32::try_from(self.hops.len() - 1).unwrap_or(0)
                        })
                    };
                    let side = usize::from(*side == Side::Dst);
                    let ranges = [table.ranges4(), table.ranges6()];
                    for ((columns, ranges), at) in
                        columns.iter_mut().zip(ranges).zip(&mut one.columns)
                    {
                        let column = ranges.into_iter().map(|(start, hop)| (start, place(hop)));
                        columns[side].push(column.collect());
                        *at = Some([number(columns[side].len() - 1); 2]);
                    }
                }
            }
        }
        let [four, six] = &columns;
        (self.v4, self.v6) = (Pair::new(four), Pair::new(six));
    }

    /// Searches for the packet's addresses, once for all tables.
    #[must_use]
    #[inline]
    pub fn search(&self, packet: &RulePacket) -> Found<'_> {
        let (src, dst) = match packet.version {
            4 => self.v4.rows(u32::cut(packet.src), u32::cut(packet.dst)),
            6 => self.v6.rows(packet.src, packet.dst),
            _ => (&[][..], &[][..]),
        };
        Found { src, dst }
    }

    /// What a table of rules says, as [`RuleTable::lookup`]; `None` if it is not one.
    #[must_use]
    #[inline]
    pub fn rule(
        &self,
        found: Found<'_>,
        packet: &RulePacket,
        member: usize,
    ) -> Option<(bool, u32)> {
        let one = self.members.get(member)?;
        let Table::Rules(table) = &one.table else { return None };
        let ranks = one.columns[usize::from(packet.version != 4)].and_then(|[src, dst]| {
            Some((*found.src.get(src as usize)?, *found.dst.get(dst as usize)?))
        });
        Some(match ranks {
            Some((src, dst)) => {
                table.lookup_ranked(packet, &Query { src, dst, ask: Ask::new(packet) })
            }
            None => table.lookup(packet),
        })
    }

    /// The next hop that a table of routes says; `None` if there is no route, or if it is not one.
    #[must_use]
    #[inline]
    pub fn hop(&self, found: Found<'_>, packet: &RulePacket, member: usize) -> Option<u32> {
        let one = self.members.get(member)?;
        let Table::Routes(table, side) = &one.table else { return None };
        let row = if *side == Side::Src { found.src } else { found.dst };
        let column = one.columns[usize::from(packet.version != 4)];
        match column.and_then(|[at, _]| row.get(at as usize)) {
            Some(place) => self.hops[*place as usize],
            None => apart(table, packet, *side),
        }
    }

    /// The answer of each table, in order; as many as `answers` has places for.
    #[inline]
    pub fn lookup(&self, packet: &RulePacket, answers: &mut [Answer]) {
        self.answer(packet, self.search(packet), answers);
    }

    /// As [`Self::lookup`] for each packet; `answers` has [`Self::members`] places for each, one packet
    /// after the other.
    pub fn lookup_batch(&self, packets: &[RulePacket], answers: &mut [Answer]) {
        const LANES: usize = crate::side::LANES;
        let members = self.members.len().max(1);
        let mut out = answers.chunks_mut(members);
        let (some, rest) = packets.as_chunks::<LANES>();
        for packets in some {
            if packets.iter().all(|packet| packet.version == 4) {
                let src = packets.each_ref().map(|packet| u32::cut(packet.src));
                let dst = packets.each_ref().map(|packet| u32::cut(packet.dst));
                let (src, dst) = (self.v4.src.rows_each(&src), self.v4.dst.rows_each(&dst));
                for (lane, answers) in (0..LANES).zip(&mut out) {
                    let found = Found { src: src[lane], dst: dst[lane] };
                    self.answer(&packets[lane], found, answers);
                }
            } else {
                for (packet, answers) in packets.iter().zip(&mut out) {
                    self.lookup(packet, answers);
                }
            }
        }
        for (packet, answers) in rest.iter().zip(out) {
            self.lookup(packet, answers);
        }
    }

    #[inline]
    fn answer(&self, packet: &RulePacket, found: Found<'_>, answers: &mut [Answer]) {
        for (member, answer) in (0..self.members.len()).zip(answers) {
            *answer = match self.rule(found, packet, member) {
                Some((pass, rule)) => Answer::Rule(pass, rule),
                None => Answer::Hop(self.hop(found, packet, member)),
            };
        }
    }

    /// Number of tables.
    #[must_use]
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// A table of rules; `None` if it is not one.
    #[must_use]
    pub fn rules(&self, member: usize) -> Option<&RuleTable> {
        match &self.members.get(member)?.table {
            Table::Rules(table) => Some(table),
            Table::Routes(..) => None,
        }
    }

    /// A table of routes; `None` if it is not one.
    #[must_use]
    pub fn routes(&self, member: usize) -> Option<&Lpm> {
        match &self.members.get(member)?.table {
            Table::Routes(table, _) => Some(table),
            Table::Rules(_) => None,
        }
    }

    /// Changes a table of rules; `None` if it is not one.
    pub fn change_rules<R>(
        &mut self,
        member: usize,
        change: impl FnOnce(&mut RuleTable) -> R,
    ) -> Option<R> {
        let one = self.members.get_mut(member)?;
        let Table::Rules(table) = &mut one.table else { return None };
        let generation = table.generation();
        let result = change(table);
        if table.generation() != generation {
            one.columns = [None; 2];
        }
        Some(result)
    }

    /// Changes a table of routes; `None` if it is not one.
    pub fn change_routes<R>(
        &mut self,
        member: usize,
        change: impl FnOnce(&mut Lpm) -> R,
    ) -> Option<R> {
        let one = self.members.get_mut(member)?;
        let Table::Routes(table, _) = &mut one.table else { return None };
        one.columns = [None; 2];
        Some(change(table))
    }

    /// Adds a rule to a table of rules (see [`RuleTable::insert`]); does nothing to another.
    pub fn insert_rule(&mut self, member: usize, at: usize, rule: Rule) {
        self.change_rules(member, |table| table.insert(at, rule));
    }

    /// Removes a rule from a table of rules (see [`RuleTable::remove`]).
    pub fn remove_rule(&mut self, member: usize, at: usize) -> Option<Rule> {
        self.change_rules(member, |table| table.remove(at))?
    }

    /// Takes pending changes into the structure itself. Answers are the same before and after.
    pub fn settle(&mut self) {
        for one in &mut self.members {
            if let Table::Rules(table) = &mut one.table {
                table.settle();
            }
        }
        self.join();
    }

    /// Bytes of memory that lookups use.
    #[must_use]
    pub fn memory(&self) -> usize {
        let own = self.v4.src.memory()
            + self.v4.dst.memory()
            + self.v6.src.memory()
            + self.v6.dst.memory();
        let tables = self.members.iter().map(|one| match &one.table {
            Table::Rules(table) => table.memory(),
            Table::Routes(table, _) => table.memory(),
        });
        own + tables.sum::<usize>()
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Adds the ranks of a rule set; in which columns.
fn put_ranks(columns: &mut Columns, starts: &[Starts; 2]) -> [u32; 2] {
    let mut at = [0; 2];
    for ((columns, starts), at) in columns.iter_mut().zip(starts).zip(&mut at) {
        *at = number(columns.len());
        columns.push(starts.addresses().iter().copied().zip(0..).collect());
    }
    at
}

/// A route table's answer by a search of its own.
fn apart(table: &Lpm, packet: &RulePacket, side: Side) -> Option<u32> {
    let addr = if side == Side::Src { packet.src } else { packet.dst };
    match packet.version {
        4 => table.lookup4(u32::cut(addr)),
        6 => table.lookup6(addr),
        _ => None,
    }
}

impl<K: Key> Pair<K> {
    fn new([src, dst]: &Columns) -> Self {
        Self { src: Rows::new(src), dst: Rows::new(dst) }
    }

    #[inline]
    fn rows(&self, src: K, dst: K) -> (&[u32], &[u32]) {
        (self.src.row(src), self.dst.row(dst))
    }
}

/// Classes of addresses: all of one have the same hop in each of some route tables.
#[derive(Clone, Debug)]
pub struct Classes {
    runs: Vec<Run>,
    count: u32,
}

/// [`Classes`], made fast to look up.
#[derive(Clone, Debug)]
pub enum ClassTrie {
    /// Of IPv4 addresses.
    V4(Trie<u32>),
    /// Of IPv6 addresses.
    V6(Trie<u128>),
}

impl Classes {
    /// The classes of IPv4 addresses, or of IPv6 ones if `wide`.
    #[must_use]
    pub fn of(tables: &[&Lpm], wide: bool) -> Self {
        let column = |table: &&Lpm| -> Column {
            let ranges = if wide { table.ranges6() } else { table.ranges4() };
            let mut places = HashMap::new();
            let numbered = ranges.into_iter().map(|(start, hop)| {
                let next = number(places.len());
                (start, *places.entry(hop).or_insert(next))
            });
            numbered.collect()
        };
        let columns: Vec<Column> = tables.iter().map(column).collect();
        let (runs, values) = distinct(&columns);
        let count = number(values.len() / columns.len().max(1));
        Self { runs, count }
    }

    /// How many there are, numbered from 0.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The first address of each interval, with its class, in order from address 0.
    #[must_use]
    pub fn runs(&self) -> &[(u128, u32)] {
        &self.runs
    }

    /// A trie of them.
    #[must_use]
    pub fn trie(&self, wide: bool) -> ClassTrie {
        if wide {
            ClassTrie::V6(Trie::new(&self.runs))
        } else {
            ClassTrie::V4(Trie::new(&self.runs))
        }
    }
}

impl ClassTrie {
    /// The class of an address.
    #[must_use]
    #[inline]
    pub fn get(&self, addr: u128) -> u32 {
        match self {
            Self::V4(trie) => trie.get(u32::cut(addr)),
            Self::V6(trie) => trie.get(addr),
        }
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        match self {
            Self::V4(trie) => trie.memory(),
            Self::V6(trie) => trie.memory(),
        }
    }
}

/// Intervals of addresses with the numbers of their rows, and the distinct rows, each with a value of
/// every column.
fn distinct(columns: &[Column]) -> (Vec<Run>, Vec<u32>) {
    let mut starts: Vec<u128> = columns.iter().flatten().map(|run| run.0).chain([0]).collect();
    starts.sort_unstable();
    starts.dedup();
    let mut left: Vec<&[Run]> = columns.iter().map(Vec::as_slice).collect();
    let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
    let (mut runs, mut values): (Vec<Run>, Vec<u32>) = (Vec::new(), Vec::new());
    for start in starts {
        for left in &mut left {
            while left.get(1).is_some_and(|next| next.0 <= start) {
                *left = &left[1..];
            }
        }
        let row: Vec<u32> = left.iter().map(|left| left.first().map_or(0, |run| run.1)).collect();
        let next = u32::try_from(known.len()).unwrap_or(0);
        let number = *known.entry(row).or_insert_with_key(|row| {
            values.extend(row);
            next
        });
        if runs.last().is_none_or(|last| last.1 != number) {
            runs.push((start, number));
        }
    }
    (runs, values)
}

impl<K: Key> Rows<K> {
    fn new(columns: &[Column]) -> Self {
        let (runs, values) = distinct(columns);
        Self { trie: Trie::new(&runs), width: columns.len(), values }
    }

    #[inline]
    fn row(&self, address: K) -> &[u32] {
        if self.width == 0 { &[] } else { self.at(self.trie.get(address)) }
    }

    #[inline]
    fn rows_each<const N: usize>(&self, addresses: &[K; N]) -> [&[u32]; N] {
        if self.width == 0 {
            return [&[]; N];
        }
        self.trie.get_each(addresses).map(|row| self.at(row))
    }

    #[inline]
    fn at(&self, row: u32) -> &[u32] {
        &self.values[row as usize * self.width..][..self.width]
    }

    fn memory(&self) -> usize {
        self.trie.memory() + self.values.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> [Lpm; 3] {
        let mut all = [Lpm::default(), Lpm::default(), Lpm::default()];
        for n in 0..400_u32 {
            let (addr, len) = (n.wrapping_mul(0x9e37_79b1), (n % 33) as u8);
            all[(n % 2) as usize].insert4(addr, len, n % 5);
            let wide = u128::from(addr) << 96 | u128::from(n);
            all[(n % 2) as usize].insert6(wide, (n % 129) as u8, n % 5);
        }
        all
    }

    #[test]
    fn addresses_of_a_class_have_the_same_hops_and_others_have_not() {
        let tables = tables();
        let members: Vec<&Lpm> = tables.iter().collect();
        for wide in [false, true] {
            let classes = Classes::of(&members, wide);
            let trie = classes.trie(wide);
            let mut known: HashMap<u32, Vec<Option<u32>>> = HashMap::new();
            for (start, class) in classes.runs() {
                for addr in [*start, start.saturating_sub(1)] {
                    let hop = |table: &Lpm| {
                        if wide { table.lookup6(addr) } else { table.lookup4(u32::cut(addr)) }
                    };
                    let hops: Vec<Option<u32>> = tables.iter().map(hop).collect();
                    let found = trie.get(addr);
                    assert!(found < classes.count() && (addr != *start || found == *class));
                    assert_eq!(
                        *known.entry(found).or_insert_with(|| hops.clone()),
                        hops,
                        "{addr:x}"
                    );
                    for (table, hop) in tables.iter().zip(&hops) {
                        let own = table.class(addr, wide);
                        assert!(own < table.classes(wide) && (own == 0) == hop.is_none());
                    }
                }
            }
            let mut distinct: Vec<_> = known.values().collect();
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), classes.count() as usize);
        }
    }

    #[test]
    fn tables_without_routes_have_one_class() {
        let empty = Lpm::default();
        let classes = Classes::of(&[&empty, &empty], false);
        assert_eq!((classes.count(), classes.runs()), (1, &[(0, 0)][..]));
        assert_eq!((empty.classes(true), empty.class(7, true)), (1, 0));
    }
}
