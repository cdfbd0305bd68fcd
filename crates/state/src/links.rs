//! Which records rest on which entries.

use crate::bugs::RecordBug;
use crate::hash::HashKey;
use crate::records::Records;
use crate::store::TableRef;
use crate::table::NONE;
use crate::uses::{MOST_WRITERS, Use};

/// That a record rests on an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// The number of the root of the entry's group; that in [`crate::absent::Absences`] of one that must not be there.
    pub(crate) root: u32,
    pub(crate) record: u32,
    /// The next one of the record.
    pub(crate) next: u32,
    /// Its neighbours among those on the same group.
    before: u32,
    pub(crate) behind: u32,
    /// Where the entry is in its table.
    pub(crate) place: u32,
    /// The number of its [`Use`], or [`NONE`].
    pub(crate) how: u32,
}

/// The links on a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The first one.
    pub(crate) first: u32,
    len: u32,
    /// Slots that records take for granted, as bits that several slots may have ([`bits`]);
    /// also those of links that have ended since there was none.
    pub(crate) reads: u16,
    /// Those that count.
    pub(crate) counts: u16,
    /// Those that are read, and assigned, for each packet.
    live: u16,
    puts: u16,
}

impl Head {
    pub(crate) const NONE: Head =
        Head { first: NONE, len: 0, reads: 0, counts: 0, live: 0, puts: 0 };

    /// With one more link, which is now the first.
    fn with(self, first: u32, one: Option<&Use>) -> Head {
        let of = |slots: fn(&Use) -> u64| one.map_or(0, |one| bits(one.table, slots(one)));
        Head {
            first,
            len: self.len + 1,
            reads: self.reads | of(|one| one.reads),
            counts: self.counts | of(Use::counts),
            live: self.live | of(|one| one.live),
            puts: self.puts | of(|one| one.puts),
        }
    }
}

/// The links on all groups. Most groups have one, which says all.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    /// By table and number of a group's root; behind the tables, those on absent entries: the only link, or with
    /// [`CROWD`] a number in `crowds`.
    all: Vec<Vec<u32>>,
    crowds: Vec<Head>,
    /// Unused ones of those.
    spare: Vec<u32>,
}

/// That a group has, or has had, several links.
const CROWD: u32 = 1 << 31;

impl Heads {
    pub(crate) fn new(tables: usize) -> Self {
        Self { all: vec![Vec::new(); tables + 1], ..Self::default() }
    }

    #[inline(always)]
    fn get(&self, (table, number): (usize, usize)) -> u32 {
        self.all[table].get(number).copied().unwrap_or(NONE)
    }

    fn set(&mut self, (table, number): (usize, usize), head: u32) {
        let heads = &mut self.all[table];
        if heads.len() <= number {
            heads.resize(number + 1, NONE);
        }
        heads[number] = head;
    }

    /// A group gets more links than one.
    fn crowd(&mut self, head: Head) -> u32 {
        let number = self.spare.pop().unwrap_or_else(|| {
            self.crowds.push(head);
            (self.crowds.len() - 1) as u32
        });
        self.crowds[number as usize] = head;
        number | CROWD
    }
}

/// Bits for slots of one of a group's tables.
pub(crate) fn bits(table: TableRef, slots: u64) -> u16 {
    let all = (0..4).fold(0, |all, part| all | (slots >> (16 * part)) as u16);
    all.rotate_left(table.0 % 16)
}

impl Records {
    /// The links on the group with this root.
    #[inline]
    pub(crate) fn head(&self, root: (usize, usize)) -> Head {
        match self.heads.get(root) {
            NONE => Head::NONE,
            crowd if crowd & CROWD != 0 => self.heads.crowds[(crowd ^ CROWD) as usize],
            only => {
                let how = self.links[only as usize].how;
                Head::NONE.with(only, self.uses.all.get(how as usize))
            }
        }
    }

    /// Whether there are any.
    #[inline(always)]
    pub(crate) fn has_links(&self, table: usize, number: usize) -> bool {
        self.heads.get((table, number)) != NONE
    }

    /// The table and number of the root of a link's group.
    pub(crate) fn root(&self, link: &Link) -> (u32, u32) {
        let table = self.uses.roots.get(link.how as usize).copied();
        (table.unwrap_or_else(|| self.absent_table()), link.root)
    }

    /// When a record that rests on a group was last taken.
    pub(crate) fn seen(&self, root: (usize, usize)) -> Option<u64> {
        let mut at = self.head(root).first;
        let mut latest = None;
        while at != NONE {
            let link = &self.links[at as usize];
            latest = latest.max(Some(self.body(link.record).seen));
            at = link.behind;
        }
        latest
    }

    /// Whether a record that does this with an entry of a group gets on with those that are there.
    pub(crate) fn fits(&self, root: (u32, u32), one: &Use) -> bool {
        let head = self.head((root.0 as usize, root.1 as usize));
        if self.has_bug(RecordBug::ContentionIgnored) {
            return true;
        }
        let [reads, counts, live, puts] =
            [one.reads, one.counts(), one.live, one.puts].map(|slots| bits(one.table, slots));
        let few = head.len < MOST_WRITERS || head.counts | counts == 0;
        let clash = reads & (head.counts | head.puts)
            | counts & (head.reads | head.live | head.puts)
            | live & head.counts
            | puts & (head.reads | head.counts);
        few && clash == 0
    }

    /// Where links on absent entries are.
    pub(crate) fn absent_table(&self) -> u32 {
        (self.heads.all.len() - 1) as u32
    }

    /// Lets a record rest on an entry of a group.
    pub(crate) fn tie(&mut self, record: u32, root: (u32, u32), place: u32, one: Option<&Use>) {
        let how = one.map_or(NONE, |one| self.uses.number(one, root.0));
        let group = (root.0 as usize, root.1 as usize);
        let head = self.head(group);
        let behind = head.first;
        let next = self.link(record);
        let link = Link { root: root.1, record, next, before: NONE, behind, place, how };
        let at = self.spare;
        let at = if at == NONE {
            self.links.push(link);
            (self.links.len() - 1) as u32
        } else {
            self.spare = self.links[at as usize].next;
            self.links[at as usize] = link;
            at
        };
        match self.heads.get(group) {
            NONE => self.heads.set(group, at),
            crowd if crowd & CROWD != 0 => {
                self.heads.crowds[(crowd ^ CROWD) as usize] = head.with(at, one);
            }
            _ => {
                let crowd = self.heads.crowd(head.with(at, one));
                self.heads.set(group, crowd);
            }
        }
        if behind != NONE {
            self.links[behind as usize].before = at;
        }
        self.set_link(record, at);
    }

    /// Takes a link out of those on its group, and gives it back: its group and the record's next one.
    pub(crate) fn untie(&mut self, at: u32, hash: &HashKey) -> Link {
        let link = self.links[at as usize];
        let root = self.root(&link);
        let group = (root.0 as usize, root.1 as usize);
        match link.before {
            NONE => {}
            before => self.links[before as usize].behind = link.behind,
        }
        if link.behind != NONE {
            self.links[link.behind as usize].before = link.before;
        }
        let crowd = self.heads.get(group);
        let is_last = crowd & CROWD == 0 || {
            let head = &mut self.heads.crowds[(crowd ^ CROWD) as usize];
            head.len -= 1;
            if link.before == NONE {
                head.first = link.behind;
            }
            head.len == 0
        };
        if is_last {
            self.heads.set(group, NONE);
            if crowd & CROWD != 0 {
                self.heads.spare.push(crowd ^ CROWD);
            }
            if root.0 == self.absent_table() {
                self.absences.forget(root.1, hash);
            }
        }
        self.links[at as usize].next = self.spare;
        self.spare = at;
        link
    }

    /// Whether a record rests on this already.
    pub(crate) fn rests(&self, record: u32, root: (u32, u32)) -> bool {
        let mut at = self.link(record);
        while at != NONE {
            let link = &self.links[at as usize];
            if self.root(link) == root {
                return true;
            }
            at = link.next;
        }
        false
    }
}
