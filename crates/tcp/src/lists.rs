//! A slab of items in lists, each in the order of last use.

/// Which list an item is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum List {
    /// Items that nothing confirms yet.
    Unconfirmed,
    /// Items in use.
    Live,
    /// Items that are done and wait for their removal.
    Done,
}

/// The neighbours of a list's ends, and of items without neighbours.
const NONE: usize = usize::MAX;

#[derive(Debug)]
struct Slot<T> {
    item: T,
    list: List,
    older: usize,
    newer: usize,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    oldest: usize,
    newest: usize,
}

/// Items by number. Each list is in the order of last use.
#[derive(Debug)]
pub struct Lists<T> {
    slots: Vec<Option<Slot<T>>>,
    free: Vec<usize>,
    unconfirmed: Ends,
    live: Ends,
    done: Ends,
}

impl<T> Lists<T> {
    /// No items.
    pub fn new() -> Self {
        let none = Ends { oldest: NONE, newest: NONE };
        Self { slots: Vec::new(), free: Vec::new(), unconfirmed: none, live: none, done: none }
    }

    fn ends(&mut self, list: List) -> &mut Ends {
        match list {
            List::Unconfirmed => &mut self.unconfirmed,
            List::Live => &mut self.live,
            List::Done => &mut self.done,
        }
    }

    fn slot(&mut self, at: usize) -> Option<&mut Slot<T>> {
        self.slots.get_mut(at)?.as_mut()
    }

    /// Adds an item as the newest one of a list, and returns its number.
    pub fn add(&mut self, item: T, list: List) -> usize {
        let slot = Slot { item, list, older: NONE, newer: NONE };
        let at = match self.free.pop() {
            Some(at) => {
                if let Some(place) = self.slots.get_mut(at) {
                    *place = Some(slot);
                }
                at
            }
            None => {
                self.slots.push(Some(slot));
                self.slots.len() - 1
            }
        };
        self.link(at, list);
        at
    }

    /// An item.
    pub fn get(&mut self, at: usize) -> Option<&mut T> {
        self.slot(at).map(|slot| &mut slot.item)
    }

    /// Makes an item the newest of a list.
    pub fn renew(&mut self, at: usize, list: List) {
        if self.ends(list).newest != at {
            self.unlink(at);
            self.link(at, list);
        }
    }

    /// The oldest item of a list.
    pub fn oldest(&mut self, list: List) -> Option<usize> {
        Some(self.ends(list).oldest).filter(|at| *at != NONE)
    }

    /// The items of a list, the oldest first.
    pub fn iter(&self, list: List) -> impl Iterator<Item = &T> {
        let ends = match list {
            List::Unconfirmed => self.unconfirmed,
            List::Live => self.live,
            List::Done => self.done,
        };
        let slot = |at: usize| self.slots.get(at)?.as_ref();
        let slots = std::iter::successors(slot(ends.oldest), move |last| slot(last.newer));
        slots.map(|slot| &slot.item)
    }

    /// Removes an item.
    pub fn remove(&mut self, at: usize) -> Option<T> {
        self.unlink(at);
        let slot = self.slots.get_mut(at)?.take()?;
        self.free.push(at);
        Some(slot.item)
    }

    fn unlink(&mut self, at: usize) {
        let Some(slot) = self.slot(at) else { return };
        let (list, older, newer) = (slot.list, slot.older, slot.newer);
        match self.slot(older) {
            Some(slot) => slot.newer = newer,
            None => self.ends(list).oldest = newer,
        }
        match self.slot(newer) {
            Some(slot) => slot.older = older,
            None => self.ends(list).newest = older,
        }
    }

    fn link(&mut self, at: usize, list: List) {
        let older = self.ends(list).newest;
        self.ends(list).newest = at;
        match self.slot(older) {
            Some(slot) => slot.newer = at,
            None => self.ends(list).oldest = at,
        }
        if let Some(slot) = self.slot(at) {
            (slot.list, slot.older, slot.newer) = (list, older, NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{List, Lists};

    #[test]
    fn each_list_is_in_the_order_of_last_use() {
        let mut lists = Lists::new();
        let numbers: Vec<usize> =
            ["a", "b", "c", "d"].map(|name| lists.add(name, List::Live)).to_vec();
        let [a, b, c, d] = numbers[..] else { panic!("four items") };
        lists.renew(a, List::Live);
        lists.renew(c, List::Done);
        lists.renew(d, List::Done);
        lists.renew(c, List::Done);
        let all: [Vec<_>; 2] =
            [List::Live, List::Done].map(|list| lists.iter(list).copied().collect());
        assert_eq!(all, [vec!["b", "a"], vec!["d", "c"]]);
        let mut order = Vec::new();
        for list in [List::Live, List::Done] {
            while let Some(at) = lists.oldest(list) {
                order.extend(lists.remove(at));
            }
        }
        assert_eq!(order, ["b", "a", "d", "c"]);
        let again = lists.add("e", List::Unconfirmed);
        assert!([a, b, c, d].contains(&again));
        assert_eq!(lists.get(again), Some(&mut "e"));
        assert_eq!(lists.oldest(List::Unconfirmed), Some(again));
        assert_eq!(lists.remove(again), Some("e"));
        assert_eq!((lists.remove(again), lists.oldest(List::Unconfirmed)), (None, None));
    }
}
