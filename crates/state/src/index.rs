//! The index from the hash of a key to the entries that may have the key: linear hashing over cache
//! lines.
//!
//! A line has twelve ways. Each way holds an 8-bit tag of the hash and the place of an entry. All
//! tags of a line are compared at once. The index grows by one line at a time (Litwin: Linear
//! hashing, VLDB '80): the next line in turn is split in two, so that no insertion takes long.
//! Entries that do not fit into a line go to lines chained to it.
#![expect(
    clippy::indexing_slicing,
    reason = "`home`, links and `chain` give numbers of lines, and a line has `LINE` words"
)]

use crate::memory::{LINE, make_room};

/// The number of ways of a line.
const WAYS: u32 = 12;
/// The average number of entries per line above which the index grows.
const FILL: usize = 8;

/// A cache line of the index. Word 0 holds the tags of the first eight entries. Word 1 holds the
/// tags of the other four and, above them, the link to the next line of the chain (0: none,
/// otherwise the line's number in `chained` plus 1). Each further word holds two places.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; LINE]);

impl Line {
    const EMPTY: Line = Line([0; LINE]);
}

/// Maps hashes to places. The tag of an empty way is 0.
#[derive(Debug)]
pub struct Index {
    lines: Vec<Line>,
    /// The largest power of two that is not above the number of lines.
    base: usize,
    /// Twice `base`, minus 1.
    mask: usize,
    chained: Vec<Line>,
    /// The number of entries.
    len: usize,
    /// The unused lines of `chained`.
    spare: Vec<u32>,
    /// Scratch memory for the places that a split moves.
    moved: Vec<u32>,
}

/// A reference to a line: the first of a chain or a chained one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    First(usize),
    Chained(usize),
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// An index without entries.
    #[must_use]
    pub fn new() -> Self {
        let (chained, spare, moved) = (Vec::new(), Vec::new(), Vec::new());
        Self { lines: vec![Line::EMPTY], base: 1, mask: 1, chained, len: 0, spare, moved }
    }

    /// Calls `is` with each place that has this hash's tag in the lines for this hash. Returns the
    /// first result that is not `None`.
    #[inline(always)]
    pub fn find<T>(&self, hash: u64, is: impl Fn(u32) -> Option<T>) -> Option<T> {
        let tag = tag(hash);
        let mut line = &self.lines[self.home(hash)];
        loop {
            let mut hits = ways_with(line, tag);
            while hits != 0 {
                if let Some(found) = is(place_in(line, way(hits))) {
                    return Some(found);
                }
                hits &= hits - 1;
            }
            line = self.chained.get(link(line).checked_sub(1)?)?;
        }
    }

    /// Prefetches the line of a hash. The result has no meaning.
    #[inline]
    pub fn touch(&self, hash: u64) -> u64 {
        self.lines[self.home(hash)].0[0]
    }

    /// The place that [`Index::find`] tries first, if any.
    #[inline]
    pub fn guess(&self, hash: u64) -> Option<u32> {
        let line = &self.lines[self.home(hash)];
        let hits = ways_with(line, tag(hash));
        (hits != 0).then(|| place_in(line, way(hits)))
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.lines) + size_of_val(&*self.chained)
    }

    /// Adds a place. `rehash` returns the hash of any place in the index.
    pub fn insert(&mut self, hash: u64, place: u32, rehash: impl Fn(u32) -> u64) {
        if self.len >= self.lines.len() * FILL {
            self.split(rehash);
        }
        self.put(hash, place);
        self.len += 1;
    }

    /// Removes a place that was added under this hash. Does nothing if it is absent.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are fewer chained lines than places, which have 32 bits"
    )]
    pub fn remove(&mut self, hash: u64, place: u32) {
        let mut at = At::First(self.home(hash));
        let mut hole = None;
        let mut before = None;
        loop {
            let line = self.line(at);
            hole = hole.or_else(|| way_of(line, hash, place).map(|way| (at, way)));
            let Some(next) = link(line).checked_sub(1) else { break };
            before = Some(at);
            at = At::Chained(next);
        }
        let Some((hole, empty)) = hole else { return };
        self.len -= 1;
        // The last line of the chain gives an entry to the emptied way, so that chains stay short.
        let last = self.line(at);
        let full = !ways_with(last, 0) & ALL_WAYS;
        if at == hole || full == 0 {
            set_way(self.line_mut(hole), empty, 0, 0);
        } else {
            let from = way(full);
            let (tag, place) = (tag_in(last, from), place_in(last, from));
            set_way(self.line_mut(at), from, 0, 0);
            set_way(self.line_mut(hole), empty, tag, place);
        }
        if let (Some(before), At::Chained(number)) = (before, at)
            && !ways_with(self.line(at), 0) & ALL_WAYS == 0
        {
            set_link(self.line_mut(before), 0);
            self.spare.push(number as u32);
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the mask keeps only low bits")]
    fn home(&self, hash: u64) -> usize {
        let line = hash as usize & self.mask;
        // Computes both candidates, because the choice between them by a branch could not be
        // predicted.
        let folded = line & (self.mask >> 1);
        if line < self.lines.len() { line } else { folded }
    }

    fn line(&self, at: At) -> &Line {
        match at {
            At::First(line) => &self.lines[line],
            At::Chained(line) => &self.chained[line],
        }
    }

    fn line_mut(&mut self, at: At) -> &mut Line {
        match at {
            At::First(line) => &mut self.lines[line],
            At::Chained(line) => &mut self.chained[line],
        }
    }

    fn put(&mut self, hash: u64, place: u32) {
        let mut at = At::First(self.home(hash));
        loop {
            let line = self.line_mut(at);
            let free = ways_with(line, 0);
            if free != 0 {
                set_way(line, way(free), tag(hash), place);
                return;
            }
            at = match link(line) {
                0 => self.chain(at),
                next => At::Chained(next - 1),
            };
        }
    }

    /// Chains a new line to another line.
    fn chain(&mut self, to: At) -> At {
        let number = match self.spare.pop() {
            Some(number) => number as usize,
            None => {
                self.chained.push(Line::EMPTY);
                self.chained.len() - 1
            }
        };
        self.chained[number] = Line::EMPTY;
        set_link(self.line_mut(to), number + 1);
        At::Chained(number)
    }

    /// Adds a line and moves its part of the entries from the line whose turn it is.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are fewer chained lines than places, which have 32 bits"
    )]
    fn split(&mut self, rehash: impl Fn(u32) -> u64) {
        let mut at = At::First(self.lines.len() - self.base);
        let mut moved = std::mem::take(&mut self.moved);
        loop {
            let line = std::mem::replace(self.line_mut(at), Line::EMPTY);
            let mut full = !ways_with(&line, 0) & ALL_WAYS;
            while full != 0 {
                moved.push(place_in(&line, way(full)));
                full &= full - 1;
            }
            if let At::Chained(number) = at {
                self.spare.push(number as u32);
            }
            match link(&line) {
                0 => break,
                next => at = At::Chained(next - 1),
            }
        }
        make_room(&mut self.lines, 1);
        self.lines.push(Line::EMPTY);
        if self.lines.len() == 2 * self.base {
            self.base = self.lines.len();
            self.mask = 2 * self.base - 1;
        }
        for place in moved.drain(..) {
            self.put(rehash(place), place);
        }
        self.moved = moved;
    }
}

/// A bit for each of the twelve ways of a line. The lowest bit is for the first way.
type Ways = u32;
const ALL_WAYS: Ways = (1 << WAYS) - 1;

/// The tag of a hash: 1 to 255.
#[inline]
fn tag(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(1)
}

/// The ways of a line with this tag.
#[inline]
#[cfg(target_arch = "x86_64")]
fn ways_with(line: &Line, tag: u8) -> Ways {
    use safe_arch::{cmp_eq_mask_i8_m128i, move_mask_i8_m128i, set_i64_m128i, set_splat_i8_m128i};
    let tags = set_i64_m128i(line.0[1] as i64, line.0[0] as i64);
    let same = cmp_eq_mask_i8_m128i(tags, set_splat_i8_m128i(tag as i8));
    move_mask_i8_m128i(same) as Ways & ALL_WAYS
}

/// The ways of a line with this tag.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
fn ways_with(line: &Line, tag: u8) -> Ways {
    let tags = u128::from(line.0[1]) << 64 | u128::from(line.0[0]);
    let is_it = |way: &u32| tags >> (8 * way) & 0xff == u128::from(tag);
    (0..WAYS).filter(is_it).fold(0, |ways, way| ways | 1 << way)
}

/// The number of the lowest of these bits.
#[inline]
fn way(ways: Ways) -> u32 {
    ways.trailing_zeros()
}

/// The index of the word with the place of a way. (The remainder spares the compiler a bounds
/// check.)
#[inline]
fn places(way: u32) -> usize {
    (2 + way as usize / 2) % LINE
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the cast removes the word's other place")]
fn place_in(line: &Line, way: u32) -> u32 {
    (line.0[places(way)] >> (way % 2 * 32)) as u32
}

#[expect(clippy::cast_possible_truncation, reason = "the cast removes the word's other tags")]
fn tag_in(line: &Line, way: u32) -> u8 {
    (line.0[way as usize / 8 % 2] >> (way % 8 * 8)) as u8
}

fn set_way(line: &mut Line, way: u32, tag: u8, place: u32) {
    let (tags, shift) = (&mut line.0[way as usize / 8 % 2], way % 8 * 8);
    *tags = *tags & !(0xff << shift) | u64::from(tag) << shift;
    let (places, shift) = (&mut line.0[places(way)], way % 2 * 32);
    *places = *places & !(u64::from(u32::MAX) << shift) | u64::from(place) << shift;
}

/// The way of a place that was added under this hash.
fn way_of(line: &Line, hash: u64, place: u32) -> Option<u32> {
    let mut hits = ways_with(line, tag(hash));
    while hits != 0 {
        if place_in(line, way(hits)) == place {
            return Some(way(hits));
        }
        hits &= hits - 1;
    }
    None
}

#[inline]
fn link(line: &Line) -> usize {
    (line.0[1] >> 32) as usize
}

fn set_link(line: &mut Line, link: usize) {
    line.0[1] = line.0[1] & u64::from(u32::MAX) | (link as u64) << 32;
}

#[cfg(test)]
mod tests {
    use super::{FILL, Index, WAYS};

    #[test]
    fn chained_lines_are_used_again() {
        let mut index = Index::new();
        for _ in 0..50 {
            (0..100).for_each(|place| index.insert(0, place, |_| 0));
            assert!(
                (0..100).all(|place| index.find(0, |at| (at == place).then_some(())).is_some())
            );
            (0..100).for_each(|place| index.remove(0, place));
            assert!(index.find(0, Some).is_none());
        }
        assert!(index.chained.len() <= 100_usize.div_ceil(WAYS as usize));
        assert_eq!(index.spare.len(), index.chained.len());
    }

    #[test]
    fn index_grows_with_its_entries_line_by_line() {
        let mut index = Index::new();
        let hash = |place: u32| u64::from(place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for place in 0..10_000 {
            index.insert(hash(place), place, hash);
            assert_eq!(index.lines.len(), (place as usize + 1).div_ceil(FILL), "{place}");
        }
        assert!(
            (0..10_000).all(|place| {
                index.find(hash(place), |at| (at == place).then_some(())).is_some()
            })
        );
    }
}
