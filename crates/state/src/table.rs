//! One table: entries with stable places, found by key.

use crate::due::Queue;
use crate::hash::HashKey;
use crate::index::Index;
use crate::shape::{KeyShape, SlotShape};
use crate::words::{LINE, Words};
use braid_ir::engine::TableCounters;
use braid_ir::model::{StateDecl, StateId, WhenFull};

/// No place.
pub(crate) const NONE: u32 = u32::MAX;

/// Limits of a table, from its declaration and the function's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    pub(crate) capacity: u64,
    pub(crate) times: Times,
}

/// Time-outs and tick (ns).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Times {
    pub(crate) idle: Option<u64>,
    pub(crate) hard: Option<u64>,
    /// At least 1.
    pub(crate) tick: u64,
}

/// Where a table is, and those that it has to do with, by number in the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) node: u16,
    pub(crate) state: StateId,
    pub(crate) shard: u16,
    /// The function's first table in this shard.
    pub(crate) row: usize,
    /// The table whose entries new ones live with.
    pub(crate) partner: Option<usize>,
    /// The table at the end of those: its entries are the roots of groups. This one, if it lives
    /// with none.
    pub(crate) root: usize,
    /// Whether this is that one.
    pub(crate) is_root: bool,
    /// Whether the function has several shards.
    pub(crate) sharded: bool,
    /// Whether a program runs for entries that end.
    pub(crate) runs: bool,
}

/// What finding an entry does not need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cold {
    pub(crate) created_ns: u64,
    /// Unique in the store and rising with creation.
    pub(crate) id: u64,
    /// The next member of the group, or the next free place.
    pub(crate) next: u32,
    /// The table of that member, by number in the function.
    pub(crate) next_state: u32,
}

/// A table. Words of an entry: generation (odd while there is one) above the place of the group's
/// root; for roots, when the group was last seen; key; slots.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) site: Site,
    pub(crate) keys: KeyShape,
    pub(crate) slots: SlotShape,
    pub(crate) limits: Limits,
    pub(crate) counters: TableCounters,
    /// For tables with time-outs.
    pub(crate) queue: Option<Queue>,
    /// For tables that evict.
    order: Option<Order>,
    key_at: usize,
    slots_at: usize,
    stride: usize,
    hot: Words,
    cold: Vec<Cold>,
    /// The shard that created each entry, in functions with several.
    creators: Vec<u16>,
    /// The first free place.
    free: u32,
    len: u64,
    index: Index,
}

/// What a new entry is made of.
pub(crate) struct Fresh<'a> {
    pub(crate) key: &'a [u64],
    pub(crate) slots: &'a [u64],
    pub(crate) hash: u64,
    pub(crate) now: u64,
    pub(crate) id: u64,
    pub(crate) shard: u16,
    /// The place of the root of its group; `None`: its own.
    pub(crate) root: Option<u32>,
}

impl Table {
    pub(crate) fn new(decl: &StateDecl, site: Site, limits: Limits) -> Self {
        let (keys, slots) = (KeyShape::new(decl), SlotShape::new(decl));
        let key_at = 1 + usize::from(site.is_root);
        let slots_at = key_at + keys.words();
        let timed = site.is_root && (decl.idle.is_some() || decl.hard.is_some());
        Self {
            site,
            limits,
            counters: TableCounters::default(),
            queue: timed.then(Queue::default),
            order: (decl.when_full == WhenFull::EvictOldest).then(Order::default),
            key_at,
            slots_at,
            stride: stride(slots_at + slots.words()),
            keys,
            slots,
            hot: Words::default(),
            cold: Vec::new(),
            creators: Vec::new(),
            free: NONE,
            len: 0,
            index: Index::new(),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The place of the entry with this key.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u64]) -> Option<u32> {
        match (key, self.keys.words()) {
            (&[a], 1) => self.find_words(hash, &[a]),
            (&[a, b], 2) => self.find_words(hash, &[a, b]),
            (&[a, b, c, d, e], 5) => self.find_words(hash, &[a, b, c, d, e]),
            (key, words) if key.len() == words => {
                self.index.find(hash, |place| self.key(place) == key)
            }
            _ => None,
        }
    }

    /// The same, for a key of a size known when compiling, which is the table's.
    #[inline]
    pub(crate) fn find_words<const N: usize>(&self, hash: u64, key: &[u64; N]) -> Option<u32> {
        let at = self.key_at;
        self.index.find(hash, |place| self.hot.get(self.at(place) + at, N) == key)
    }

    /// Reads what finding a key of this hash will read first.
    #[inline]
    pub(crate) fn touch(&self, hash: u64) -> u64 {
        self.index.touch(hash)
    }

    /// Reads the entry that finding a key of this hash will look at first.
    #[inline]
    pub(crate) fn touch_entry(&self, hash: u64) -> u64 {
        self.index.guess(hash).map_or(0, |place| self.head(place))
    }

    #[inline]
    fn at(&self, place: u32) -> usize {
        place as usize * self.stride
    }

    /// The generation of the entry at a place, above the place of its group's root.
    #[inline]
    pub(crate) fn head(&self, place: u32) -> u64 {
        self.hot.word(self.at(place))
    }

    /// Whether the entry with this generation is still at its place.
    #[inline]
    pub(crate) fn has(&self, place: u32, generation: u32) -> bool {
        (place as usize) < self.cold.len()
            && generation % 2 == 1
            && (self.head(place) >> 32) as u32 == generation
    }

    pub(crate) fn exists(&self, place: u32) -> bool {
        self.has(place, (self.head(place) >> 32) as u32)
    }

    #[inline]
    pub(crate) fn key(&self, place: u32) -> &[u64] {
        self.hot.get(self.at(place) + self.key_at, self.keys.words())
    }

    #[inline]
    pub(crate) fn slots(&self, place: u32) -> &[u64] {
        self.hot.get(self.at(place) + self.slots_at, self.slots.words())
    }

    #[inline]
    pub(crate) fn slots_mut(&mut self, place: u32) -> &mut [u64] {
        self.hot.get_mut(self.at(place) + self.slots_at, self.slots.words())
    }

    pub(crate) fn put(&mut self, place: u32, slot: usize, value: u128) {
        let at = self.at(place) + self.slots_at;
        self.slots.put(self.hot.get_mut(at, self.slots.words()), slot, value);
    }

    pub(crate) fn cold(&self, place: u32) -> &Cold {
        &self.cold[place as usize]
    }

    pub(crate) fn creator(&self, place: u32) -> u16 {
        self.creators.get(place as usize).copied().unwrap_or(0)
    }

    /// When a group was last seen, whose root is here.
    pub(crate) fn last_seen(&self, place: u32) -> u64 {
        self.hot.word(self.at(place) + 1)
    }

    #[inline]
    pub(crate) fn renew(&mut self, place: u32, now: u64) {
        let at = self.at(place) + 1;
        self.hot.set(at, now);
    }

    /// When the group whose root is here expires unless a packet finds it.
    pub(crate) fn deadline(&self, place: u32) -> Option<u64> {
        let Times { idle, hard, tick } = self.limits.times;
        let idle = idle.and_then(|idle| self.last_seen(place).checked_add(idle));
        let hard = hard.and_then(|hard| self.cold(place).created_ns.checked_add(hard));
        idle.into_iter().chain(hard).min()?.div_ceil(tick).checked_mul(tick)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.len < self.limits.capacity.min(u64::from(NONE))
    }

    /// The entry that was created first, in tables that evict.
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.order.as_ref().map(|order| order.first).filter(|place| *place != NONE)
    }

    /// Adds an entry; there is room, and none with its key.
    pub(crate) fn insert(&mut self, fresh: &Fresh<'_>, hash_key: &HashKey) -> u32 {
        let place = self.allot();
        let at = self.at(place);
        let generation = (self.head(place) >> 32).wrapping_add(1);
        self.hot.set(at, generation << 32 | u64::from(fresh.root.unwrap_or(place)));
        if self.site.is_root {
            self.renew(place, fresh.now);
        }
        self.hot.get_mut(at + self.key_at, self.keys.words()).copy_from_slice(fresh.key);
        self.slots_mut(place).copy_from_slice(fresh.slots);
        let (created_ns, id) = (fresh.now, fresh.id);
        self.cold[place as usize] = Cold { created_ns, id, next: NONE, next_state: 0 };
        if let Some(creator) = self.creators.get_mut(place as usize) {
            *creator = fresh.shard;
        }
        if let Some(order) = &mut self.order {
            order.append(place);
        }
        let (hot, stride, key_at, words) = (&self.hot, self.stride, self.key_at, self.keys.words());
        self.index.insert(fresh.hash, place, |place| {
            hash_key.hash(hot.get(place as usize * stride + key_at, words))
        });
        self.len += 1;
        place
    }

    /// A free place: the one that was freed last, or a new one.
    fn allot(&mut self) -> u32 {
        if let Some(cold) = self.cold.get(self.free as usize) {
            return std::mem::replace(&mut self.free, cold.next);
        }
        // Below 2^32 - 1: `has_room` was asked.
        let place = self.cold.len() as u32;
        self.hot.grow(self.stride);
        self.cold.push(Cold { created_ns: 0, id: 0, next: NONE, next_state: 0 });
        if self.site.sharded {
            self.creators.push(0);
        }
        place
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, place: u32, hash_key: &HashKey) {
        self.index.remove(hash_key.hash(self.key(place)), place);
        let head = self.head(place);
        self.hot.set(self.at(place), (head >> 32).wrapping_add(1) << 32);
        self.cold[place as usize].next = self.free;
        self.free = place;
        if let Some(order) = &mut self.order {
            order.remove(place);
        }
        self.len -= 1;
    }

    /// Ties a new entry of a table of the function to the group whose root is here.
    pub(crate) fn tie(&mut self, place: u32, member: (u32, u32)) -> (u32, u32) {
        let cold = &mut self.cold[place as usize];
        let rest = (cold.next_state, cold.next);
        (cold.next_state, cold.next) = member;
        rest
    }

    /// Sets what comes behind a member in its group.
    pub(crate) fn follow(&mut self, place: u32, rest: (u32, u32)) {
        let cold = &mut self.cold[place as usize];
        (cold.next_state, cold.next) = rest;
    }

    /// Places of all entries, in no order.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.cold.len() as u32).filter(|place| self.exists(*place))
    }

    /// Time-outs or tick are new: all deadlines follow.
    pub(crate) fn reschedule(&mut self) {
        let Some(mut queue) = self.queue.take() else { return };
        queue.clear();
        for place in self.places() {
            if let Some(due) = self.deadline(place) {
                queue.push((due, self.cold(place).id, place));
            }
        }
        self.queue = Some(queue);
    }
}

/// Words from one entry to the next: small entries do not straddle cache lines.
fn stride(words: usize) -> usize {
    if words <= LINE { words.next_power_of_two() } else { words.next_multiple_of(LINE / 2) }
}

/// Entries in the order of their creation: a list through their places.
#[derive(Debug)]
struct Order {
    /// (Before, behind) of each place.
    links: Vec<(u32, u32)>,
    first: u32,
    last: u32,
}

impl Default for Order {
    fn default() -> Self {
        Self { links: Vec::new(), first: NONE, last: NONE }
    }
}

impl Order {
    fn append(&mut self, place: u32) {
        let at = place as usize;
        if self.links.len() <= at {
            self.links.resize(at + 1, (NONE, NONE));
        }
        self.links[at] = (self.last, NONE);
        match self.links.get_mut(self.last as usize) {
            Some(last) => last.1 = place,
            None => self.first = place,
        }
        self.last = place;
    }

    fn remove(&mut self, place: u32) {
        let (before, behind) = self.links[place as usize];
        match self.links.get_mut(before as usize) {
            Some(link) => link.1 = behind,
            None => self.first = behind,
        }
        match self.links.get_mut(behind as usize) {
            Some(link) => link.0 = before,
            None => self.last = before,
        }
    }
}
