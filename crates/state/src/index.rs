//! The index from the hash of a key to the entries that may have the key: linear hashing over cache
//! lines.
//!
//! A line has twelve ways. Each way holds an 8-bit tag of the hash and the place of an entry. All
//! tags of a line are compared at once. The index grows by one line at a time (Litwin: Linear
//! hashing, VLDB '80): the next line in turn is split in two, so that no insertion takes long.
//! Entries that do not fit into a line go to lines chained to it.
#![expect(
    clippy::indexing_slicing,
    reason = "`home`, links and `chain` give numbers of lines, and ways are below `WAYS`"
)]

use crate::memory::{make_room, prefetch};

/// The number of ways of a line.
const WAYS: usize = 12;
/// The average number of entries per line above which the index grows. A line whose turn to be
/// split has not come holds up to twice the average. A larger average would fill many such lines
/// and chain others to them.
const FILL: usize = 6;

/// A cache line of the index.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line {
    /// The tags of the ways. The last four bytes hold the link to the next line of the chain (0:
    /// none, otherwise the line's number in `chained` plus 1).
    tags: [u8; 16],
    places: [u32; WAYS],
}

impl Line {
    const EMPTY: Line = Line { tags: [0; 16], places: [0; WAYS] };

    /// Sets the tag and the place of a way.
    #[inline]
    fn set(&mut self, way: usize, tag: u8, place: u32) {
        self.tags[way] = tag;
        self.places[way] = place;
    }

    /// The number of the chain's next line plus 1, or 0.
    #[inline]
    fn link(&self) -> usize {
        self.tags.last_chunk().map_or(0, |link| u32::from_le_bytes(*link) as usize)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are fewer chained lines than places, which have 32 bits"
    )]
    fn set_link(&mut self, link: usize) {
        self.tags[WAYS..].copy_from_slice(&(link as u32).to_le_bytes());
    }
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
    /// The number of entries from which on the next one makes the index grow.
    most: usize,
    /// The unused lines of `chained`.
    spare: Vec<u32>,
    /// Scratch memory for the places that a split moves.
    moved: Vec<u32>,
}

/// The result of a lookup that finds nothing: the hash, and the number of its line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absent {
    pub(crate) hash: u64,
    home: usize,
}

/// Where a place was added, as a hint for [`Index::remove_at`]: the number of a line and of a way.
/// The place may have moved since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spot(u32);

impl Spot {
    pub(crate) const NONE: Spot = Spot(u32::MAX);

    #[expect(clippy::cast_possible_truncation, reason = "a wrong hint does no harm")]
    #[inline(always)]
    fn new(line: usize, way: usize) -> Self {
        Self((line as u32) << 4 | way as u32)
    }
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
        let lines = vec![Line::EMPTY];
        Self { lines, base: 1, mask: 1, chained, len: 0, most: FILL, spare, moved }
    }

    /// Calls `is` with each place that has this hash's tag in the lines for this hash. Returns the
    /// first result that is not `None`.
    #[inline(always)]
    pub fn find<T>(&self, hash: u64, is: impl Fn(u32) -> Option<T>) -> Option<T> {
        self.find_or_absent(hash, is).ok()
    }

    /// As [`Index::find`]. The error is for [`Index::insert_absent`].
    #[inline(always)]
    pub(crate) fn find_or_absent<T>(
        &self,
        hash: u64,
        is: impl Fn(u32) -> Option<T>,
    ) -> Result<T, Absent> {
        let absent = self.absent(hash);
        let tag = tag(hash);
        let mut line = &self.lines[absent.home];
        loop {
            let mut hits = ways_with(line, tag);
            while hits != 0 {
                if let Some(found) = is(line.places[way(hits)]) {
                    return Ok(found);
                }
                hits &= hits - 1;
            }
            let next = line.link().checked_sub(1).ok_or(absent)?;
            line = self.chained.get(next).ok_or(absent)?;
        }
    }

    /// The result of a lookup that finds nothing, if no entry in the lines for this hash has its
    /// tag, and there is only one line.
    #[inline(always)]
    pub(crate) fn lacks(&self, hash: u64) -> Option<Absent> {
        let absent = self.absent(hash);
        let line = &self.lines[absent.home];
        (ways_with(line, tag(hash)) == 0 && line.link() == 0).then_some(absent)
    }

    /// A hash for [`Index::insert_absent`].
    #[inline(always)]
    pub(crate) fn absent(&self, hash: u64) -> Absent {
        Absent { hash, home: self.home(hash) }
    }

    /// Starts to load the line of a hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(self.lines.get(self.home(hash)));
    }

    /// Starts to load the line where a place was added.
    #[inline(always)]
    pub(crate) fn prefetch_spot(&self, Spot(spot): Spot) {
        prefetch(self.lines.get(spot as usize / 16));
    }

    /// The place that [`Index::find`] tries first, if any.
    #[inline]
    pub fn guess(&self, hash: u64) -> Option<u32> {
        let line = &self.lines[self.home(hash)];
        let hits = ways_with(line, tag(hash));
        (hits != 0).then(|| line.places[way(hits)])
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.lines) + size_of_val(&*self.chained)
    }

    /// Adds a place. `rehash` returns the hash of any place in the index.
    #[inline]
    pub fn insert(&mut self, hash: u64, place: u32, rehash: impl Fn(u32) -> u64) {
        self.insert_absent(self.absent(hash), place, rehash, |_, _| ());
    }

    /// As [`Index::insert`], with the result of a lookup. No place was added since. Calls `moved`
    /// with the new spots of places that move. Returns the spot of the added place.
    #[inline(always)]
    pub(crate) fn insert_absent(
        &mut self,
        Absent { hash, mut home }: Absent,
        place: u32,
        rehash: impl Fn(u32) -> u64,
        moved: impl FnMut(u32, Spot),
    ) -> Spot {
        debug_assert_eq!(home, self.home(hash), "the index has grown since the lookup");
        if self.len >= self.most {
            self.split(rehash, moved);
            home = self.home(hash);
        }
        self.len = self.len.wrapping_add(1);
        self.put(home, hash, place)
    }

    /// The number of places.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Removes a place if it is at this spot, in a line to which no others are chained. Otherwise
    /// returns false, and nothing changes.
    #[inline(always)]
    pub(crate) fn remove_at(&mut self, Spot(spot): Spot, place: u32) -> bool {
        let way = spot as usize % 16;
        let Some(line) = self.lines.get_mut(spot as usize / 16) else { return false };
        // The tag of an empty way is 0. A place is in one way at most.
        let is_there = line.places.get(way) == Some(&place) && line.tags[way] != 0;
        let is_it = is_there && line.link() == 0;
        if is_it {
            line.set(way, 0, 0);
            self.len = self.len.wrapping_sub(1);
        }
        is_it
    }

    /// Removes a place that was added under this hash. Does nothing if it is absent.
    pub fn remove(&mut self, hash: u64, place: u32) {
        let home = self.home(hash);
        let line = &mut self.lines[home];
        if line.link() != 0 {
            self.remove_from_chain(home, hash, place);
        } else if let Some(way) = way_of(line, hash, place) {
            line.set(way, 0, 0);
            self.len = self.len.wrapping_sub(1);
        }
    }

    /// As [`Index::remove`], for a line to which others are chained.
    #[cold]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are fewer chained lines than places, which have 32 bits"
    )]
    fn remove_from_chain(&mut self, home: usize, hash: u64, place: u32) {
        let mut at = At::First(home);
        let mut hole = None;
        let mut before = None;
        loop {
            let line = self.line(at);
            hole = hole.or_else(|| way_of(line, hash, place).map(|way| (at, way)));
            let Some(next) = line.link().checked_sub(1) else { break };
            before = Some(at);
            at = At::Chained(next);
        }
        let Some((hole, empty)) = hole else { return };
        self.len -= 1;
        // The last line of the chain gives an entry to the emptied way, so that chains stay short.
        let last = self.line(at);
        let full = full_ways(last);
        if at == hole || full == 0 {
            self.line_mut(hole).set(empty, 0, 0);
        } else {
            let from = way(full);
            let (tag, place) = (last.tags[from], last.places[from]);
            self.line_mut(at).set(from, 0, 0);
            self.line_mut(hole).set(empty, tag, place);
        }
        if let (Some(before), At::Chained(number)) = (before, at)
            && full_ways(self.line(at)) == 0
        {
            self.line_mut(before).set_link(0);
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

    #[inline(always)]
    fn put(&mut self, home: usize, hash: u64, place: u32) -> Spot {
        let line = &mut self.lines[home];
        let free = ways_with(line, 0);
        if free == 0 {
            return self.put_behind(home, hash, place);
        }
        line.set(way(free), tag(hash), place);
        Spot::new(home, way(free))
    }

    /// Adds a place behind a full line.
    #[cold]
    fn put_behind(&mut self, home: usize, hash: u64, place: u32) -> Spot {
        let mut at = At::First(home);
        loop {
            let line = self.line_mut(at);
            let free = ways_with(line, 0);
            if free != 0 {
                line.set(way(free), tag(hash), place);
                return Spot::NONE;
            }
            at = match line.link() {
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
        self.line_mut(to).set_link(number + 1);
        At::Chained(number)
    }

    /// Adds a line and moves its part of the entries from the line whose turn it is.
    #[inline(never)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are fewer chained lines than places, which have 32 bits"
    )]
    fn split(&mut self, rehash: impl Fn(u32) -> u64, mut report: impl FnMut(u32, Spot)) {
        let mut at = At::First(self.lines.len() - self.base);
        let mut moved = std::mem::take(&mut self.moved);
        loop {
            let line = std::mem::replace(self.line_mut(at), Line::EMPTY);
            let mut full = full_ways(&line);
            while full != 0 {
                moved.push(line.places[way(full)]);
                full &= full - 1;
            }
            if let At::Chained(number) = at {
                self.spare.push(number as u32);
            }
            match line.link() {
                0 => break,
                next => at = At::Chained(next - 1),
            }
        }
        make_room(&mut self.lines, 1);
        self.lines.push(Line::EMPTY);
        self.most += FILL;
        if self.lines.len() == 2 * self.base {
            self.base = self.lines.len();
            self.mask = 2 * self.base - 1;
        }
        for place in moved.drain(..) {
            let hash = rehash(place);
            report(place, self.put(self.home(hash), hash, place));
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
    use safe_arch::{
        cmp_eq_mask_i8_m128i, load_unaligned_m128i, move_mask_i8_m128i, set_splat_i8_m128i,
    };
    let tags = load_unaligned_m128i(&line.tags);
    let same = cmp_eq_mask_i8_m128i(tags, set_splat_i8_m128i(tag as i8));
    move_mask_i8_m128i(same) as Ways & ALL_WAYS
}

/// The ways of a line with this tag.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
fn ways_with(line: &Line, tag: u8) -> Ways {
    (0..WAYS).filter(|way| line.tags[*way] == tag).fold(0, |ways, way| ways | 1 << way)
}

/// The ways of a line that hold places.
#[inline]
fn full_ways(line: &Line) -> Ways {
    !ways_with(line, 0) & ALL_WAYS
}

/// The number of the lowest of these bits.
#[inline]
fn way(ways: Ways) -> usize {
    // There is such a bit. The minimum spares the compiler bounds checks.
    (ways.trailing_zeros() as usize).min(WAYS - 1)
}

/// The way of a place that was added under this hash.
fn way_of(line: &Line, hash: u64, place: u32) -> Option<usize> {
    let mut hits = ways_with(line, tag(hash));
    while hits != 0 {
        if line.places[way(hits)] == place {
            return Some(way(hits));
        }
        hits &= hits - 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{FILL, Index, Spot, WAYS};

    #[test]
    fn place_in_a_chained_line_is_not_absent() {
        let mut index = Index::new();
        // All in the first line and those chained to it, each with a tag of its own.
        let hash = |place: u32| u64::from(place) << 56;
        for place in 1..=50 {
            assert!(place > WAYS as u32 || index.lacks(hash(place)).is_some());
            index.insert(hash(place), place, hash);
            assert!((1..=place).all(|place| index.lacks(hash(place)).is_none()));
        }
    }

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
        assert!(index.chained.len() <= 100_usize.div_ceil(WAYS));
        assert_eq!(index.spare.len(), index.chained.len());
    }

    #[test]
    fn place_is_removed_at_its_latest_spot() {
        let hash = |place: u32| u64::from(place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (mut index, mut spots) = (Index::new(), vec![Spot::NONE; 10_000]);
        for place in 0..10_000 {
            let moved = |place: u32, spot| spots[place as usize] = spot;
            let spot = index.insert_absent(index.absent(hash(place)), place, hash, moved);
            spots[place as usize] = spot;
        }
        let mut count = 0;
        for place in 0..10_000 {
            let spot = spots[place as usize];
            match index.remove_at(spot, place) {
                true => count += 1,
                false => index.remove(hash(place), place),
            }
            assert!(!index.remove_at(spot, place), "{place}");
            assert!(index.find(hash(place), |at| (at == place).then_some(())).is_none());
        }
        assert!(index.len() == 0 && count > 9_900, "{count}");
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
